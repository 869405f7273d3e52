"""Claims: what the cards of the metrics promise, in terms of the failures that worlds can show.

A metric says in `responds_to` what it is meant to notice. The words are for readers; MEANS says which failures
test them. A word that no failure of ours shows has an empty row, and is reported as not tested: a claim is
never counted as kept because nobody looked. The id or the title of a failure stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from revisit.core import Metric
from revisit.worlds.failures import FAILURES

IDENTITY = ("colour_drift", "texture_drift", "shape_drift")
CAMERA = ("frozen_camera", "timid_camera", "camera_drift", "late_return", "partial_return")

MEANS: Mapping[str, tuple[str, ...]] = {
    "another time of day on return": ("lighting",),
    "boiling texture": (),
    "camera drift": ("camera_drift",),
    "changed background": ("background",),
    "changed object": IDENTITY,
    "collapse of the picture": ("collapse",),
    "colour drift": ("colour_drift",),
    "content changed while away": ("background",),
    "content replaced on return": ("background",),
    "depth collapse": ("collapse",),
    "disobeyed keys": ("timid_camera", "camera_drift"),
    "drift": ("camera_drift",),
    "ends in another place": ("partial_return",),
    "event did not happen": ("state_reset",),
    "exposure drift": ("lighting",),
    "forgotten content": ("vanish", "background"),
    "frozen camera": ("frozen_camera",),
    "frozen picture": ("frozen_camera",),
    "identity drift": IDENTITY,
    "impossible motion": (),
    "jitter": (),
    "loss of contrast": ("lighting",),
    "loss of detail": ("blur",),
    "missing event": ("state_reset", "state_frozen"),
    "noise": (),
    "object forgotten while out of view": ("vanish",),
    "object missing after the event": ("vanish",),
    "object replaced": ("colour_drift", "texture_drift"),
    "object slides with the camera": (),
    "object vanishes": ("vanish",),
    "oversaturation": (),
    "overshoot": (),
    "scene cut": ("cut",),
    "state reset": ("state_reset",),
    "state reset in view": (),
    "teleport": ("teleport",),
    "texture drift": ("texture_drift",),
    "texture lost on return": ("blur", "style"),
    "turn cut short": ("timid_camera",),
    "ugly frames": ("collapse",),
    "unrecognisable object": IDENTITY,
    "wrong camera": CAMERA,
    "wrong content": ("vanish", "background"),
    "wrong direction": (),
    "wrong light": ("lighting",),
    "wrong result": ("state_reset", "state_frozen"),
}
# Where one word means another thing in one metric: colours of the whole picture, not of the target.
OWN_MEANING: Mapping[tuple[str, str], tuple[str, ...]] = {("lighting_consistency", "colour drift"): ("lighting",)}

RETURN_GATES = {"view_return", "target_return"}
# Signs of one fault each, which only the diagnosis reads together: no second target is no proof of memory.
SIGNS = ("target_departure", "camera_departure", "look_departure")
OF_MEMORY = {"vanish", *IDENTITY, "state_reset", "state_frozen", "teleport", "duplicate", "background"}


@dataclass(frozen=True)
class Claims:
    """Failures a metric says it notices, and its words that no failure of ours can test."""

    kinds: tuple[str, ...]
    untested: tuple[str, ...]


def claims_of(metric: Metric) -> Claims:
    """What the card of a metric promises."""
    titles = {failure.title: kind for kind, failure in FAILURES.items()}
    kinds: dict[str, None] = {}
    untested = []
    for word in metric.responds_to:
        meant = OWN_MEANING.get((metric.id, word), MEANS.get(word, ()))
        meant = meant or ((word,) if word in FAILURES else ()) or ((titles[word],) if word in titles else ())
        kinds.update(dict.fromkeys(kind for kind in meant if kind in FAILURES))
        if not meant:
            untested.append(word)
    return Claims(tuple(kind for kind in FAILURES if kind in kinds), tuple(untested))


def is_memory(metric: Metric) -> bool:
    """Whether a good score can be read as: the world was remembered.

    It can where only a clip that looked away and back is scored at all, where only what came back is looked at, and
    where the card claims that a lost, changed or misplaced target, or another place, would be noticed. A sign of one
    fault is none: its absence says nothing of the others.
    """
    if metric.higher_is_better is None or metric.family in SIGNS:
        return False
    gated = bool(set(metric.gates) & RETURN_GATES) or metric.id.endswith("_returned")
    return gated or bool(OF_MEMORY & set(claims_of(metric).kinds))
