"""Target return: was the target hidden, did it come back (docs/target-gate.md), and does it look the same?

Features of a clip (`target_features.py`) give each label a probability; a label is decided where its probability is
high enough. Two logistic models in turn say it: was the target hidden, and if so, did it come back? Their weights are
in `target_model.json`, which `python benchmarks/target/target_fit.py` writes. Where the set has a network that looks
for the target, its looks count together with the layout of edges and colours, and tell when the target was away.

The target's box is that of the scene's first frame, and a model may begin with another: `PairedViews`, small pictures
of the clip and of its reference at the same times, say whether the target is there when the clip begins.

The metrics are asked of clips whose camera looks away (the gate `look_away`): what is covered for a while before a
camera that rests is no question of memory. Similarity is that of the layout of edges and colours with the target as it
looked before it was hidden, so that a change that happened in view is not held against the clip. Not measured: whether
a change while hidden was the right one (a cup that should have filled).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TypedDict

import numpy as np

from revisit.core import GateResult, Score, Series, Unscored, derived, gate, metric
from revisit.evidence.reference import PairedViews
from revisit.evidence.target import (
    HIDDEN,
    RETURNED,
    VISIBLE,
    TargetLooks,
    TargetObservations,
    TargetPhases,
    TargetTrack,
)
from revisit.metrics import target_features
from revisit.metrics import target_rules as rules
from revisit.metrics.answers import cache_for_last_record
from revisit.metrics.fidelity import box_pixel_slices
from revisit.metrics.margins import UNSURE
from revisit.metrics.overlay import box_blur
from revisit.metrics.target_rules import CAME_BACK, FAINTEST, LEAD, NEVER, STAYED_AWAY, after_return_mask

LABELS = (NEVER, CAME_BACK, STAYED_AWAY)
LAYOUT, LOOKS = "layout", "looks"
MODEL_FILE = "target_model.json"
SMALLEST_CELLS, SMALLEST_PX = 16, 12
FEWEST = 4  # frames in which something can leave and return
BLUR = 1  # pixels on each side, of pictures 160 wide
REACH = 2  # pixels by which the clip's picture may be off
LEAST_PIXELS = 24
ABSENT = 0.4  # correlation below which the box shows another thing: 0.10 and 0.24 where it did, 0.62 and more elsewhere


class Logistic(TypedDict):
    """A logistic model."""

    offset: float
    weights: dict[str, float]


class TargetModel(TypedDict):
    """The two models of one kind of evidence, and from which probability on a label is decided."""

    hidden: Logistic
    returned: Logistic
    temperature: float  # divides both log odds: 1 where the fit is as sure as it is right
    decided: float


@cache
def target_models() -> dict[str, TargetModel]:
    """The models that come with the package, by kind of evidence."""
    return json.loads((files("revisit.metrics") / MODEL_FILE).read_text(encoding="utf-8"))["models"]


def clip_features_and_rule_verdict(
    track: TargetTrack, looks: TargetLooks | None, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> tuple[dict[str, float], rules.RuleVerdict]:
    """All features of a clip, with those of a network's looks where there are any, and the verdict of the rules."""
    seconds = {"hidden_for": hidden_for, "back_for": back_for}
    verdict = rules.verdict_with_stability(partial(rules.label_and_away_by_layout, track), rules.Rule(**seconds))
    features = target_features.layout_features(track, **seconds) | rules.rule_features(verdict)
    if looks is not None:
        verdict = rules.verdict_with_stability(partial(rules.label_and_away_by_looks, looks), rules.LookRule(**seconds))
        features |= target_features.look_features(looks, **seconds) | rules.rule_features(verdict, "look_")
    return features, verdict


def logistic_probability(model: Logistic, features: Mapping[str, float], temperature: float) -> float:
    """The probability that one logistic model gives."""
    total = model["offset"] + sum(weight * features[name] for name, weight in model["weights"].items())
    return float(1 / (1 + np.exp(-np.clip(total / temperature, -50, 50))))


def label_probabilities(model: TargetModel, features: Mapping[str, float]) -> dict[str, float]:
    """Label -> probability; they add up to 1."""
    hidden = logistic_probability(model["hidden"], features, model["temperature"])
    returned = logistic_probability(model["returned"], features, model["temperature"])
    return dict(zip(LABELS, (1 - hidden, hidden * returned, hidden * (1 - returned)), strict=True))


@dataclass(frozen=True)
class TargetReading:
    """What became of the target: how probable each label is, and when it was away by the most probable one."""

    probabilities: dict[str, float]
    label: str  # the most probable one
    decided: bool
    by: str  # `layout`, or the network that looked
    index: np.ndarray  # (N,) frame numbers, of the looks where a network looked
    seconds: np.ndarray
    away: np.ndarray  # (N,) whether it is away
    says: np.ndarray  # (N,) +1 shows it, -1 lacks it, 0 does not say
    value: np.ndarray  # (N,) lead over clutter, or margin over the background
    similarity: np.ndarray  # (N,)


@cache_for_last_record  # the gate, the phases and a metric ask
def read_target_outcome(sight: TargetObservations, hidden_for: float = 0.3, back_for: float = 0.3) -> TargetReading:
    """What a clip's observations say of its target."""
    track = sight.track
    looks = sight.looks if sight.looks is not None and len(sight.looks.index) else None
    model = target_models()[LAYOUT if looks is None else LOOKS]
    lasting = {"hidden_for": hidden_for, "back_for": back_for}
    features, rule = clip_features_and_rule_verdict(track, looks, **lasting)
    probabilities = label_probabilities(model, features)
    label = max(probabilities, key=lambda name: probabilities[name])
    decided = probabilities[label] >= model["decided"]
    source: TargetTrack | TargetLooks = track if looks is None else looks
    if looks is None:
        absence, by = target_features.layout_absence(track, **lasting), LAYOUT
        presence, value = target_features.layout_presence(track), target_features.lead_over_clutter(track)
        similarity = track.peak
    else:
        absence, by = target_features.look_absence(looks, **lasting), looks.maker
        presence, value, similarity = target_features.look_presence(looks), looks.like - looks.unlike, looks.like
    away = target_features.away_mask(absence, label != NEVER, label == CAME_BACK)
    if rule.label == label:  # frame by frame the rules are more exact than averages
        away = rule.away
    there, gone = presence >= target_features.CLEARLY_THERE, presence < target_features.MOSTLY_GONE
    says = np.where(there, 1, np.where(gone, -1, 0)).astype(np.int8)
    return TargetReading(
        probabilities, label, decided, by, source.index, source.seconds, away, says, value, similarity
    )  # fmt: skip


@derived(makes=TargetObservations, needs=(TargetTrack,), optional=(TargetLooks, PairedViews), version=2)
def gather_target_observations(
    track: TargetTrack, looks: TargetLooks | None, views: PairedViews | None = None
) -> TargetObservations:
    """Everything that the set observes of the target, together."""
    return TargetObservations(track, looks, start_box_correlation(track, views))


@derived(makes=TargetPhases, needs=(TargetObservations,), version=7)
def target_phases(
    sight: TargetObservations, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> TargetPhases | Unscored:
    """Visible, hidden or returned for each frame, with the target's box.

    Each frame takes the state of the look nearest in time, and the box of that look once the target was lost.
    """
    track, looks = sight.track, sight.looks
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    reading = read_target_outcome(sight, hidden_for, back_for)
    state = np.where(reading.away, HIDDEN, np.where(np.cumsum(reading.away) > 0, RETURNED, VISIBLE)).astype(np.int8)
    if looks is None or reading.by == LAYOUT:
        apart = (np.abs(track.peak_box - track.box).max(1) > 0.1) & (reading.value >= LEAD)
        box = np.where((apart & ~reading.away)[:, None], track.peak_box, track.box)
        return TargetPhases(track.index, track.seconds, state, reading.says != 0, box, reading.value)
    near = np.abs(track.seconds[:, None] - looks.seconds[None]).argmin(axis=1)
    box = np.where((state[near] == RETURNED)[:, None], looks.box[near], track.box)
    return TargetPhases(track.index, track.seconds, state[near], (reading.says != 0)[near], box, reading.value[near])


def start_box_correlation(track: TargetTrack, views: PairedViews | None) -> float | None:
    """Correlation of what is in the target's box with what the reference shows there, both in their first frames.

    None without a reference, where the first frame is not among the pairs, or where the box is too small.
    """
    if views is None or not len(views.index) or not len(track.index) or views.index[0] != track.index[0]:
        return None
    x0, y0, x1, y1 = (float(value) for value in np.clip(track.box[0], 0, 1))
    return best_box_correlation(views.clip[0], views.reference[0], (x0, y0, x1, y1))


def best_box_correlation(
    picture: np.ndarray, truth: np.ndarray, box: tuple[float, float, float, float]
) -> float | None:
    """The largest correlation of colours inside a box of two pictures (H, W, 3), over shifts by a few pixels."""
    rows, columns = box_pixel_slices(box, picture.shape[:2])
    true_box = box_blur(truth, BLUR)[rows, columns]
    if true_box[..., 0].size < LEAST_PIXELS:
        return None
    surroundings = np.pad(box_blur(picture, BLUR), ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge")
    height, width = true_box.shape[:2]
    shifts = [(y, x) for y in range(2 * REACH + 1) for x in range(2 * REACH + 1)]
    top, left = rows.start, columns.start
    return max(_channel_correlation(surroundings[top + y :, left + x :][:height, :width], true_box) for y, x in shifts)


def _channel_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of two pictures of one size, each channel around its own mean."""
    a, b = (values - values.mean(axis=(0, 1)) for values in (a, b))
    return float((a * b).sum() / max(float(np.sqrt((a * a).sum() * (b * b).sum())), 1e-9))


def reason_target_is_unjudgeable(sight: TargetObservations) -> str:
    """Why this target cannot be judged in this clip, or nothing."""
    track = sight.track
    if min(track.width_px, track.height_px) < SMALLEST_PX or track.cells < SMALLEST_CELLS:
        return f"the target's box is only {track.width_px:.0f}x{track.height_px:.0f} pixels: too small to recognise"
    if sight.start_likeness is not None and sight.start_likeness < ABSENT:
        return (
            "the target is not there in the first frame: its box shows something else than the reference does "
            f"(correlation {sight.start_likeness:.2f})"
        )
    if len(track.index) < FEWEST:
        return f"{len(track.index)} frames are too few for a target to leave and return"
    if sight.looks is not None and len(sight.looks.index):
        return ""
    if track.texture < FAINTEST:
        return "the target has too little texture and colour of its own to be told from the rest of the first frame"
    if target_features.lead_over_clutter(track)[0] < LEAD:
        return "other things in the first frame look like the target"
    return ""


@gate(id="target_return", version=9, title="Target hidden and returned", needs=(TargetObservations,))
def target_return(
    sight: TargetObservations, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> GateResult | Unscored:
    """Open when the target was out of sight for a while and came back.

    Hidden means away for at least `hidden_for` seconds: blur and quick passers-by make it drop out for a frame or two,
    and what a model forgets in less cannot be called memory. Returned means shown for at least `back_for` seconds.
    Each label has a probability, from the layout of edges and colours and, where the set has a network that looks, from
    its looks; `confidence` is that of the most probable label, `guess`. One that is not probable enough is not decided.
    """
    track, looks = sight.track, sight.looks
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    if reason := reason_target_is_unjudgeable(sight):
        return GateResult("unsure", UNSURE, reason, {"judgeable": False, "sentence": reason})
    reading = read_target_outcome(sight, hidden_for, back_for)
    away, back = reading.away, after_return_mask(reading.away)
    facts: dict[str, object] = {
        "hidden_seconds": round(float(away.sum() * target_features.median_frame_seconds(reading.seconds, 0.0)), 3),
        "first_hidden_frame": int(reading.index[away.argmax()]) if away.any() else None,
        "first_return_frame": int(reading.index[back.argmax()]) if back.any() else None,
        "return_similarity": round(float(np.median(reading.similarity[back])), 3) if back.any() else None,
        "undecided_share": round(float((reading.says == 0).mean()), 3),
        "by": reading.by,
        "confidence": round(reading.probabilities[reading.label], 3),
        "guess": reading.label,
        "probabilities": {name: round(value, 3) for name, value in reading.probabilities.items()},
    }
    if looks is not None and reading.by != LAYOUT:
        facts |= {"looked_at": len(looks.index), "views": looks.views}
        further = dict(zip(("x0", "y0", "x1", "y1"), looks.box.T, strict=True))
    else:
        further = {"inside": track.inside}
    columns = {"value": reading.value, "similarity": reading.similarity, "hidden": away, "says": reading.says}
    return _target_verdict(reading, facts, Series(frame=reading.index, **columns, **further))


def _target_verdict(reading: TargetReading, facts: dict[str, object], units: Series) -> GateResult:
    """The verdict with its sentence."""
    gone = f"hidden from frame {facts['first_hidden_frame']} for {facts['hidden_seconds']:.1f} s"
    if not reading.decided:
        ranked = sorted(reading.probabilities.items(), key=lambda item: -item[1])
        (first, likely), (second, possible) = ranked[:2]
        sentence = f"probably {first} ({likely:.0%}), but perhaps {second} ({possible:.0%})"
        state, label = "unsure", UNSURE
    elif reading.label == NEVER:
        state, label, sentence = "closed", NEVER, "the target was never hidden: it stays in view throughout"
    elif reading.label == CAME_BACK:
        state, label, sentence = "open", CAME_BACK, f"{gone}, back in frame {facts['first_return_frame']}"
    else:
        state, label, sentence = "closed", STAYED_AWAY, f"{gone}, and not seen again"
    facts |= {"judgeable": reading.decided, "sentence": sentence}
    return GateResult(state, label, "" if state == "open" else sentence, facts, units)


@metric(
    id="target_reappearance", version=8, title="Target reappears", unit="score", range=(0, 1), higher_is_better=True,
    needs=(TargetObservations, TargetPhases), gates=("look_away",), suites=("folder",),
    responds_to=("object forgotten while out of view",),
    blind_to=("object dissolves in plain sight", "identity drift", "state reset", "object returns in the wrong place",
              "frozen camera"),
)  # fmt: skip
def target_reappearance(sight: TargetObservations, phases: TargetPhases, *, seen_for: float = 0.3) -> Score | Unscored:
    """1 if the target came back after it was hidden, 0 if its place came back into view without it.

    The place counts as seen again when, for at least `seen_for` seconds after the target was lost,
    what surrounded it in the first frame stands out in the frame with the target's window inside it.
    """
    verdict, track = target_return(sight), sight.track
    if isinstance(verdict, Unscored):
        return verdict
    if verdict.state == "unsure" or verdict.label == NEVER:
        return Unscored(verdict.refusal)
    facts = {"label": verdict.label, "hidden_seconds": verdict.facts["hidden_seconds"]}
    if verdict.label == CAME_BACK:
        return Score(1.0, facts={**facts, "first_return_frame": verdict.facts["first_return_frame"]})
    place_visible = target_features.place_without_target_mask(track) & (phases.state == HIDDEN)
    count = facts["place_seen_frames"] = int(place_visible.sum())
    if count < target_features.frame_count_lasting(track.seconds, seen_for, 3):
        return Unscored(
            "no_return", "the place of the target was not seen again, so its return cannot be checked", facts
        )
    units = Series(frame=track.index[place_visible], value=np.zeros(count), place=track.place[place_visible])
    return Score(0.0, units=units, facts=facts)


@metric(
    id="target_identity", version=8, title="Returned target looks the same", unit="similarity", range=(0, 1),
    higher_is_better=True, needs=(TargetTrack, TargetPhases), gates=("look_away", "target_return"), suites=("folder",),
    responds_to=("identity drift", "object replaced", "colour drift"),
    blind_to=("state reset", "object returns in the wrong place", "small changes of detail", "frozen camera"),
    rewards_unchanged=True,
)  # fmt: skip
def target_identity(track: TargetTrack, phases: TargetPhases) -> Score | Unscored:
    """Similarity of the returned target to its views before it was hidden, upper quartile of the returned frames.

    The upper quartile, because a target that comes back is first cut off by the border and blurred
    by the turn of the camera; its better views are the fair ones. Position and size do not matter.
    """
    back = (phases.state == RETURNED) & (phases.lead >= LEAD)
    if not back.any():
        return Unscored("not_seen", "the target was not seen again after it was hidden")
    value = np.clip(track.peak[back], 0, 1)
    score = float(np.percentile(value, 75))
    units = Series(frame=track.index[back], value=value, first_view=track.first[back], colour=track.colour[back])
    return Score(score, raw=float(np.percentile(track.first[back], 75)), units=units)
