"""Claims: what the cards of the metrics promise, in terms of the failures that worlds can show.

A metric says in `responds_to` what it is meant to notice. The words are for readers; TESTED_BY says which failures
test them. A word that no failure of ours shows stands in the last row, and is reported as not tested: a claim is
never counted as kept because nobody looked. The id or the title of a failure stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from revisit.core import Metric
from revisit.worlds.failures import FAILURES

IDENTITY = ("colour_drift", "texture_drift", "shape_drift")
CAMERA = ("frozen_camera", "timid_camera", "camera_drift", "late_return", "partial_return")

# Failures -> the words that mean them.
TESTED_BY: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("lighting",): ("another time of day on return", "exposure drift", "loss of contrast", "wrong light"),
    ("camera_drift",): ("camera drift", "drift"),
    ("background",): ("changed background", "content changed while away", "content replaced on return"),
    IDENTITY: ("changed object", "identity drift", "unrecognisable object"),
    ("collapse",): ("collapse of the picture", "decay", "depth collapse", "ugly frames"),
    ("colour_drift",): ("colour drift",),
    ("timid_camera", "camera_drift"): ("disobeyed keys",),
    ("partial_return",): ("ends in another place", "place changes"),
    ("state_reset",): ("event did not happen", "state reset"),
    ("vanish", "background"): ("forgotten content", "wrong content"),
    ("frozen_camera",): ("frozen camera", "frozen picture"),
    ("blur",): ("loss of detail",),
    ("state_reset", "state_frozen"): ("missing event", "wrong result"),
    ("vanish",): ("object forgotten while out of view", "object missing after the event", "object vanishes"),
    ("colour_drift", "texture_drift"): ("object replaced",),
    ("cut",): ("scene cut",),
    ("teleport",): ("teleport",),
    ("texture_drift",): ("texture drift",),
    ("blur", "style"): ("texture lost on return",),
    ("timid_camera",): ("turn cut short",),
    CAMERA: ("wrong camera",),
    (): (
        "boiling texture", "impossible motion", "jitter", "noise", "object slides with the camera",
        "oversaturation", "overshoot", "state reset in view", "wrong direction",
    ),
}  # fmt: skip
MEANS = {word: kinds for kinds, words in TESTED_BY.items() for word in words}
# Where one word means another thing in one metric: colours of the whole picture, not of the target.
OWN_MEANING: Mapping[tuple[str, str], tuple[str, ...]] = {("lighting_consistency", "colour drift"): ("lighting",)}

RETURN_GATES = {"view_return", "target_return"}
# Signs of one fault each, which only the diagnosis reads together: no second target is no proof of memory.
SIGNS = ("target_departure", "camera_departure", "look_departure")
OF_MEMORY = {"vanish", *IDENTITY, "state_reset", "state_frozen", "teleport", "duplicate", "background"}


@dataclass(frozen=True)
class MetricClaims:
    """Failures a metric says it notices, and its words that no failure of ours can test."""

    kinds: tuple[str, ...]
    untested: tuple[str, ...]


def claims_of(metric: Metric) -> MetricClaims:
    """What the card of a metric promises."""
    titles = {failure.title: kind for kind, failure in FAILURES.items()}
    kinds: dict[str, None] = {}
    untested = []
    for word in metric.responds_to:
        failures = OWN_MEANING.get((metric.id, word), MEANS.get(word, ()))
        failures = failures or ((word,) if word in FAILURES else ()) or ((titles[word],) if word in titles else ())
        kinds.update(dict.fromkeys(kind for kind in failures if kind in FAILURES))
        if not failures:
            untested.append(word)
    return MetricClaims(tuple(kind for kind in FAILURES if kind in kinds), tuple(untested))


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
