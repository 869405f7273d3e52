"""Does the camera do what the keys ask? Direction, purity, stability and latency of each key, from mean optical flow.

direction   mean(c) / mean(|c|) of the flow c in the key's channel, times how likely it is that a sideways flow is the
            step, or the turn, that was asked for (inverse depth tells: a turn moves near and far alike)
purity      flow along the key's axis over that along all three
stability   share of time at 0.4 of the usual speed or above, times exp(-stalls a second / 0.5), times what is left at
            the end of the speed at the start (0.7 of it is enough)
latency     1 - time until half of the usual speed / time of the key, for each key but the first

A score of a clip is the mean over its keys of one family; a model's, the mean over all keys of all its clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import Case, Metric, PublishedMaker, Score, Series, Unscored, derived, metric
from revisit.core.text import read_package_yaml
from revisit.evidence.frames import FrameFacts
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.worldmark.evidence import Family, Key, KeyFlow, KeyParallax, KeySplit
from revisit.suites.worldmark.metrics.signal import AT_REST, LEAST_SAMPLES, RATE, Signal, make_signal, moving_average

CARD: dict[str, Any] = {  # of most metrics
    "unit": "percent", "range": (0, 100), "higher_is_better": True, "suites": ("worldmark",),
    "paper": "WorldMark (arXiv 2604.21686)",
}  # fmt: skip
SEA_RAFT = PublishedMaker("SEA-RAFT", "flow", ("sea-raft", "searaft"))
DEPTH = PublishedMaker("Depth Anything 3", "depth_by", ("depth-anything-3", "da3"))
USUAL = 70  # percentile of the speed along the key that is its usual one
STALLED, GOING = 0.4, 0.5  # of the usual speed
STALL_SAMPLES, STALLS = 4, 0.5  # samples that make a stall; stalls a second that divide a score by e
ENDS_SAMPLES, FADED = 48, 0.7  # samples at both ends of a key; the share of speed left from which on nothing is lost
REFERENCE = 75  # percentile of the channel's flow over the whole clip
RESPONSE_SAMPLES, RESPONDS, ANSWERS = 8, 0.5, 0.1  # samples that are averaged; shares of the reference


@derived(makes=KeySplit, needs=(), optional=(KeyParallax,), version=1)
def sideways_step_shares(parallax: KeyParallax | None) -> KeySplit:
    """What inverse depth tells of sideways flow, where it was observed."""
    if parallax is None:
        return KeySplit(np.zeros(0, np.int64), np.zeros(0), "")
    return KeySplit(parallax.segment, parallax.lateral_step_shares(), parallax.maker)


@dataclass(frozen=True)
class KeyScore:
    """What one key came to: its number, name and family, the score, and what it was made of."""

    number: int
    key: str
    family: Family
    score: float | None  # None where it cannot be told
    parts: Mapping[str, float]
    note: str = ""


KeyParts = tuple[float | None, Mapping[str, float], str]  # a key's score, what it is made of, and a note
RESTS = "the camera is at rest"
NO_DEPTH = "no depth was observed, so a step and a turn cannot be told apart"


def round_if_upstream(value: float, rule: str, digits: int = 3) -> float:
    """The number as the public evaluator writes it; under `corrected` as it is."""
    return round(value, digits) if rule == "upstream" else value


def control_scores(aspect: str, signal: Signal, step_shares: Mapping[int, float], rule: str) -> list[KeyScore]:
    """The scores of all keys in one aspect, from -1 or 0 to 1; None where too few samples are steady.

    Examples
    --------
    >>> frames = revisit.observe(np.zeros((64, 32, 48, 3), np.uint8), "lite.frames", fps=16)
    >>> flow = KeyFlow(np.arange(62), np.zeros(62), np.full(62, 2.0), "simulated")
    >>> control_scores("direction", make_signal("W", frames, flow, "corrected"), {}, "corrected")[0].score
    1.0
    """
    scores = []
    for number, key in enumerate(signal.keys):
        steady = signal.steady_mask_of_key(number)
        if aspect == "latency":
            parts = _latency_of_key(signal, number, key, steady, rule)
        elif steady.sum() < LEAST_SAMPLES:
            parts = None, {}, f"only {steady.sum()} samples are steady; {LEAST_SAMPLES} are needed"
        else:
            parts = FORMULAS[aspect](signal, key, steady, step_shares.get(number, np.nan), rule)
        scores.append(KeyScore(number, signal.names[number], key.family, *parts))
    return scores[1:] if aspect == "latency" else scores  # nobody switches to the first key


def _direction_of_key(signal: Signal, key: Key, steady: np.ndarray, step_share: float, rule: str) -> KeyParts:
    """-1 to 1: how much of a key's flow goes as asked, and is of the kind that was asked for."""
    flow = signal.signed_flow_of_key(key)[steady]
    agreement = round_if_upstream(float(flow.mean() / (np.abs(flow).mean() + 1e-9)), rule)
    weight, note = 1.0, ""
    if key.axis != "forward":
        weight = round_if_upstream(step_share if key.axis == "sideways" else 1.0 - step_share, rule)
    if not is_upstream_rule(rule) and _is_at_rest(signal, steady):
        agreement, note = 0.0, RESTS
        weight = 1.0 if np.isnan(weight) else weight
    if np.isnan(weight):
        return None, {"direction": agreement}, NO_DEPTH
    return round_if_upstream(agreement * weight, rule), {"direction": agreement, "weight": weight}, note


def _purity_of_key(signal: Signal, key: Key, steady: np.ndarray, step_share: float, rule: str) -> KeyParts:
    """0 to 1: flow along a key's axis over that along all three."""
    across, ahead = (float(np.abs(values[steady]).mean()) for values in (signal.horizontal, signal.radial))
    step_share = 0.5 if key.axis == "forward" else step_share
    rests = not is_upstream_rule(rule) and _is_at_rest(signal, steady)
    if rests or np.isnan(step_share):
        return None, {"forward": ahead}, RESTS if rests else NO_DEPTH
    sideways, turn = round_if_upstream(step_share, rule) * across, round_if_upstream(1.0 - step_share, rule) * across
    parts = {"sideways": sideways, "forward": ahead, "turn": turn}
    return round_if_upstream(parts[key.axis] / (sideways + turn + ahead + 1e-9), rule), parts, ""


def _stability_of_key(signal: Signal, key: Key, steady: np.ndarray, step_share: float, rule: str) -> KeyParts:
    """0 to 1: is the usual speed kept, without stalls, to the end?"""
    speed = signal.signed_flow_of_key(key)[steady]
    usual = float(np.percentile(speed, USUAL))
    if usual <= (1e-6 if is_upstream_rule(rule) else AT_REST):
        return 0.0, {"sustained": 0.0}, "the camera never goes as asked"
    smoothed = moving_average(speed, STALL_SAMPLES)
    sustained = float((smoothed >= STALLED * usual).mean())
    stalls = count_stalls(smoothed, STALLED * usual, GOING * usual)
    left = float(smoothed[-ENDS_SAMPLES:].mean() / (smoothed[:ENDS_SAMPLES].mean() + 1e-9))
    left = min(max(left, 0.0), 1.2)
    score = sustained * float(np.exp(-stalls / (len(speed) / RATE) / STALLS)) * min(1.0, left / FADED)
    kept, end = round_if_upstream(sustained, rule), round_if_upstream(left, rule)
    return round_if_upstream(score, rule), {"sustained": kept, "stalls": float(stalls), "left": end}, ""


def count_stalls(speed: np.ndarray, low: float, high: float) -> int:
    """How often the speed falls below `low` for four samples or more; a stall ends with the first above `high`."""
    stalls, length = 0, 0
    for value in speed.tolist():
        if length:
            length += 1
            if value > high:
                stalls += length >= STALL_SAMPLES
                length = 0
        elif value < low:
            length = 1
    return stalls + (length >= STALL_SAMPLES)


def _latency_of_key(signal: Signal, number: int, key: Key, steady: np.ndarray, rule: str) -> KeyParts:
    """0 to 1: how soon the camera answers a switch to this key."""
    speed, share = signal.signed_flow_of_key(key), signal.seconds / len(signal.keys)
    switch, reference = number * share, float(np.percentile(np.abs(speed), REFERENCE)) + 1e-9
    reached = float(np.median(speed[steady])) if steady.sum() >= LEAST_SAMPLES else 0.0
    seconds, score, note = share, 0.0, "the camera does not answer"
    if reached > ANSWERS * reference and (is_upstream_rule(rule) or reference > AT_REST):
        within = (signal.time >= switch) & (signal.time <= switch + share)
        answers = within & (moving_average(speed, RESPONSE_SAMPLES)[: len(speed)] >= RESPONDS * reference)
        seconds = float(signal.time[answers.argmax()] - switch) if answers.any() else share
        score, note = round_if_upstream(1 - min(max(seconds, 0.0), share) / share, rule), ""
    parts = {"switch": switch, "reached": round_if_upstream(reached / reference, rule)}
    return score, {**parts, "seconds": round_if_upstream(seconds, rule, 2)}, note


def _is_at_rest(signal: Signal, steady: np.ndarray) -> bool:
    return bool(signal.speed[steady].mean() < AT_REST)


ASPECTS: Mapping[str, Mapping[str, Any]] = read_package_yaml("revisit.suites.worldmark", "control.yaml")
FORMULAS = {"direction": _direction_of_key, "purity": _purity_of_key, "stability": _stability_of_key}


def register_control_metric(aspect: str, family: Family) -> Metric:
    """The metric of one column: an aspect of the keys of one family."""
    about, needs_depth = ASPECTS[aspect], aspect in ("direction", "purity")

    def score_family_keys(
        case: Case, frames: FrameFacts, flow: KeyFlow, split: KeySplit, *, rule: str = "corrected"
    ) -> Score | Unscored:
        signal = make_signal(case.condition, frames, flow, rule)
        steps = dict(zip(split.segment.tolist(), split.step_share.tolist(), strict=True))
        keys = [one for one in control_scores(aspect, signal, steps, rule) if one.family == family]
        facts: dict[str, object] = {"flow": flow.maker, "keys": [_key_score_json(one) for one in keys]}
        if needs_depth and split.maker and any(key != "W" and key != "S" for key in signal.names):
            facts["depth_by"] = split.maker
        scored = {one.number: 100 * one.score for one in keys if one.score is not None}
        if not keys:
            return Unscored("does_not_apply", f"{case.condition} has no key that this column asks about", facts)
        if not scored:
            note = keys[0].note
            kind = "too_short" if "steady" in note else "not_in_set" if "depth" in note else "at_rest"
            return Unscored(kind, f"{keys[0].key}: {note}", facts)
        values, numbers, share = np.array(list(scored.values())), list(scored), signal.seconds / len(signal.keys)
        at = np.searchsorted(signal.time, [number * share for number in numbers])
        first = signal.frame[np.minimum(at, len(signal.frame) - 1)]  # at which a key begins
        return Score(float(values.mean()), units=Series(frame=first, value=values, segment=numbers), facts=facts)

    return metric(
        id=f"worldmark_{aspect}_{family}", version=1, title=f"{about['title']}, {family}",
        needs=(Case, FrameFacts, KeyFlow, KeySplit), upstream=f"{about['column']}_{family[0]}", doc=about["doc"],
        responds_to=tuple(about["responds_to"]), blind_to=tuple(about["blind_to"]),
        published_by=(SEA_RAFT, DEPTH) if needs_depth else (SEA_RAFT,), **{**CARD, "range": (about["lowest"], 100)},
    )(score_family_keys)  # fmt: skip


def _key_score_json(key_score: KeyScore) -> dict[str, Any]:
    """A key's score as a record has it."""
    score = None if key_score.score is None else 100 * key_score.score
    note = {"note": key_score.note} if key_score.note else {}
    return {"number": key_score.number, "key": key_score.key, "score": score, **key_score.parts, **note}


CONTROL = [register_control_metric(aspect, family) for aspect in ASPECTS for family in ("translation", "rotation")]
