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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import Case, Metric, PublishedMaker, Score, Series, Unscored, derived, metric
from revisit.evidence.frames import FrameFacts
from revisit.suites.worldmark.evidence import Family, KeyFlow, KeyParallax, KeySplit
from revisit.suites.worldmark.metrics.signal import (
    AT_REST,
    LEAST_SAMPLES,
    RATE,
    Signal,
    is_upstream,
    make_signal,
    smooth,
)

PAPER = "WorldMark (arXiv 2604.21686)"
SEA_RAFT = PublishedMaker("SEA-RAFT", "flow", ("sea-raft", "searaft"))
DEPTH = PublishedMaker("Depth Anything 3", "depth_by", ("depth-anything-3", "da3"))
USUAL = 70  # percentile of the speed along the key that is its usual one
STALLED, GOING = 0.4, 0.5  # of the usual speed
STALL_SAMPLES, STALLS = 4, 0.5  # samples that make a stall; stalls a second that divide a score by e
ENDS_SAMPLES, FADED = 48, 0.7  # samples at both ends of a key; the share of speed left from which on nothing is lost
REFERENCE = 75  # percentile of the channel's flow over the whole clip
RESPONSE_SAMPLES, RESPONDS, ANSWERS = 8, 0.5, 0.1  # samples that are averaged; shares of the reference


@derived(makes=KeySplit, needs=(), optional=(KeyParallax,), version=1)
def key_split(parallax: KeyParallax | None) -> KeySplit:
    """What inverse depth tells of sideways flow, where it was observed."""
    if parallax is None:
        return KeySplit(np.zeros(0, np.int64), np.zeros(0), "")
    return KeySplit(parallax.segment, parallax.step_shares(), parallax.maker)


@dataclass(frozen=True)
class KeyScore:
    """What one key came to: its number, name and family, the score, and what it was made of."""

    number: int
    key: str
    family: Family
    score: float | None  # None where it cannot be told
    parts: Mapping[str, float]
    note: str = ""


def round_as_upstream(value: float, rule: str, digits: int = 3) -> float:
    """The number as the public evaluator writes it; under `corrected` as it is."""
    return round(value, digits) if rule == "upstream" else value


def direction(signal: Signal, steps: Mapping[int, float], rule: str) -> list[KeyScore]:
    """-1 to 1 for each key: how much of its flow goes as asked, and is of the kind that was asked for.

    Examples
    --------
    >>> frames = revisit.observe(np.zeros((64, 32, 48, 3), np.uint8), "lite.frames", fps=16)
    >>> flow = KeyFlow(np.arange(62), np.zeros(62), np.full(62, 2.0), "simulated")
    >>> direction(make_signal("W", frames, flow, "corrected"), {}, "corrected")[0].score
    1.0
    """
    scores = []
    for number, key in enumerate(signal.keys):
        flow = signal.channel(key)[signal.steady(number)]
        if len(flow) < LEAST_SAMPLES:
            scores.append(_too_short(signal, number, len(flow)))
            continue
        agreement = round_as_upstream(float(flow.mean() / (np.abs(flow).mean() + 1e-9)), rule)
        weight, note = 1.0, ""
        if key.axis != "forward":
            share = steps.get(number, np.nan)
            weight = round_as_upstream(share if key.axis == "sideways" else 1.0 - share, rule)
        if not is_upstream(rule) and _rests(signal, number):
            agreement, note = 0.0, "the camera is at rest"
            weight = 1.0 if np.isnan(weight) else weight
        is_known = not np.isnan(weight)
        parts = {"direction": agreement, **({"weight": weight} if is_known else {})}
        if not is_known:
            note = "no depth was observed, so a step and a turn cannot be told apart"
        scores.append(
            _key_score(signal, number, round_as_upstream(agreement * weight, rule) if is_known else None, parts, note)
        )
    return scores


def purity(signal: Signal, steps: Mapping[int, float], rule: str) -> list[KeyScore]:
    """0 to 1 for each key: flow along its axis over that along all three."""
    scores = []
    for number, key in enumerate(signal.keys):
        steady = signal.steady(number)
        if steady.sum() < LEAST_SAMPLES:
            scores.append(_too_short(signal, number, int(steady.sum())))
            continue
        across, ahead = (float(np.abs(values[steady]).mean()) for values in (signal.horizontal, signal.radial))
        share = 0.5 if key.axis == "forward" else steps.get(number, np.nan)
        sideways, turn = round_as_upstream(share, rule) * across, round_as_upstream(1.0 - share, rule) * across
        own = {"sideways": sideways, "turn": turn, "forward": ahead}[key.axis]
        parts = {"sideways": sideways, "forward": ahead, "turn": turn}
        if not is_upstream(rule) and _rests(signal, number):
            scores.append(_key_score(signal, number, None, {"forward": ahead}, "the camera is at rest"))
        elif np.isnan(share):
            note = "no depth was observed, so a step and a turn cannot be told apart"
            scores.append(_key_score(signal, number, None, {"forward": ahead}, note))
        else:
            scores.append(
                _key_score(signal, number, round_as_upstream(own / (sideways + turn + ahead + 1e-9), rule), parts)
            )
    return scores


def stability(signal: Signal, rule: str) -> list[KeyScore]:
    """0 to 1 for each key: is the usual speed kept, without stalls, to the end?"""
    scores = []
    for number, key in enumerate(signal.keys):
        speed = signal.channel(key)[signal.steady(number)]
        if len(speed) < LEAST_SAMPLES:
            scores.append(_too_short(signal, number, len(speed)))
            continue
        usual = float(np.percentile(speed, USUAL))
        if usual <= (1e-6 if is_upstream(rule) else AT_REST):
            note = "the camera never goes as asked"
            scores.append(_key_score(signal, number, 0.0, {"sustained": 0.0}, note))
            continue
        smoothed = smooth(speed, STALL_SAMPLES)
        sustained = float((smoothed >= STALLED * usual).mean())
        stalls = count_stalls(smoothed, STALLED * usual, GOING * usual)
        left = float(smoothed[-ENDS_SAMPLES:].mean() / (smoothed[:ENDS_SAMPLES].mean() + 1e-9))
        left = min(max(left, 0.0), 1.2)
        score = sustained * float(np.exp(-stalls / (len(speed) / RATE) / STALLS)) * min(1.0, left / FADED)
        parts = {
            "sustained": round_as_upstream(sustained, rule),
            "stalls": float(stalls),
            "left": round_as_upstream(left, rule),
        }
        scores.append(_key_score(signal, number, round_as_upstream(score, rule), parts))
    return scores


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


def latency(signal: Signal, rule: str) -> list[KeyScore]:
    """0 to 1 for each key but the first: how soon the camera answers a switch."""
    share = signal.seconds / len(signal.keys)
    scores = []
    for number, key in list(enumerate(signal.keys))[1:]:
        speed, switch = signal.channel(key), number * share
        reference = float(np.percentile(np.abs(speed), REFERENCE)) + 1e-9
        steady = speed[signal.steady(number)]
        reached = float(np.median(steady)) if len(steady) >= LEAST_SAMPLES else 0.0
        parts = {"switch": switch, "reached": round_as_upstream(reached / reference, rule)}
        if reached <= ANSWERS * reference or (not is_upstream(rule) and reference <= AT_REST):
            note = "the camera does not answer"
            scores.append(
                _key_score(signal, number, 0.0, {**parts, "seconds": round_as_upstream(share, rule, 2)}, note)
            )
            continue
        within = (signal.time >= switch) & (signal.time <= switch + share)
        answers = within & (smooth(speed, RESPONSE_SAMPLES)[: len(speed)] >= RESPONDS * reference)
        seconds = float(signal.time[answers.argmax()] - switch) if answers.any() else share
        score = 1 - min(max(seconds, 0.0), share) / share
        parts["seconds"] = round_as_upstream(seconds, rule, 2)
        scores.append(_key_score(signal, number, round_as_upstream(score, rule), parts))
    return scores


def _rests(signal: Signal, number: int) -> bool:
    return bool(signal.speed[signal.steady(number)].mean() < AT_REST)


def _key_score(
    signal: Signal, number: int, score: float | None, parts: Mapping[str, float], note: str = ""
) -> KeyScore:
    return KeyScore(number, signal.names[number], signal.keys[number].family, score, parts, note)


def _too_short(signal: Signal, number: int, samples: int) -> KeyScore:
    return _key_score(signal, number, None, {}, f"only {samples} samples are steady; {LEAST_SAMPLES} are needed")


@dataclass(frozen=True)
class Aspect:
    """A column of the benchmark: its formula, and what its card says."""

    id: str
    called: str
    column: str
    low: float
    scores: Callable[[Signal, Mapping[int, float], str], Sequence[KeyScore]]
    doc: str
    responds_to: tuple[str, ...]
    blind_to: tuple[str, ...]
    needs_depth: bool = False


ASPECTS = (
    Aspect(
        "direction", "Direction accuracy", "DA", -100.0, direction,
        "100 x the share of the flow that goes as the key asks; below 0 where it goes the other way.",
        ("disobeyed keys", "opposite motion", "frozen camera"), ("content", "speed"), True,
    ),
    Aspect(
        "purity", "Motion purity", "MP", 0.0, purity,
        "100 x the flow along the key's axis over the flow along all three.",
        ("drift to the side", "turn in the place of a step"), ("content", "opposite motion"), True,
    ),
    Aspect(
        "stability", "Motion stability", "MS", 0.0, lambda signal, steps, rule: stability(signal, rule),
        "100 x the share of time at speed, less for stalls and for speed lost by the end.",
        ("stalls", "fading motion", "opposite motion"), ("content", "a slow camera that never stalls"),
    ),
    Aspect(
        "latency", "Response latency", "RL", 0.0, lambda signal, steps, rule: latency(signal, rule),
        "100 x the share of a key's time that is left when the camera answers the switch to it.",
        ("late response", "no response"), ("content", "the first key"),
    ),
)  # fmt: skip


def control_metric(aspect: Aspect, family: Family) -> Metric:
    """The metric of one column: an aspect of the keys of one family."""

    def scored(
        case: Case, frames: FrameFacts, flow: KeyFlow, split: KeySplit, *, rule: str = "corrected"
    ) -> Score | Unscored:
        signal = make_signal(case.condition, frames, flow, rule)
        if isinstance(signal, Unscored):
            return signal
        steps = dict(zip(split.segment.tolist(), split.step_share.tolist(), strict=True))
        keys = [one for one in aspect.scores(signal, steps, rule) if one.family == family]
        facts: dict[str, object] = {"flow": flow.maker, "keys": [_plain(one) for one in keys]}
        if aspect.needs_depth and split.maker and any(key != "W" and key != "S" for key in signal.names):
            facts["depth_by"] = split.maker
        with_score = [one for one in keys if one.score is not None]
        if not keys:
            return Unscored("does_not_apply", f"{case.condition} has no key that this column asks about", facts)
        if not with_score:
            return Unscored(_kind(keys[0].note), f"{keys[0].key}: {keys[0].note}", facts)
        values = np.array([100 * one.score for one in with_score if one.score is not None])
        units = Series(
            frame=_first_frames(signal, with_score), value=values, segment=[one.number for one in with_score]
        )
        return Score(float(values.mean()), units=units, facts=facts)

    initial = family[0]
    return metric(
        id=f"worldmark_{aspect.id}_{family}", version=1, title=f"{aspect.called}, {family}", unit="percent",
        range=(aspect.low, 100), higher_is_better=True, needs=(Case, FrameFacts, KeyFlow, KeySplit),
        suites=("worldmark",), paper=PAPER, upstream=f"{aspect.column}_{initial}", responds_to=aspect.responds_to,
        blind_to=aspect.blind_to, doc=aspect.doc,
        published_by=(SEA_RAFT, DEPTH) if aspect.needs_depth else (SEA_RAFT,),
    )(scored)  # fmt: skip


def _plain(one: KeyScore) -> dict[str, Any]:
    """A key's score as a record has it."""
    score = None if one.score is None else 100 * one.score
    return {
        "number": one.number,
        "key": one.key,
        "score": score,
        **one.parts,
        **({"note": one.note} if one.note else {}),
    }


def _kind(note: str) -> str:
    return "too_short" if "steady" in note else "not_in_set" if "depth" in note else "at_rest"


def _first_frames(signal: Signal, keys: Sequence[KeyScore]) -> np.ndarray:
    share = signal.seconds / len(signal.keys)
    at = np.searchsorted(signal.time, [one.number * share for one in keys])
    return np.asarray(signal.frame[np.minimum(at, len(signal.frame) - 1)])


CONTROL = [control_metric(aspect, family) for aspect in ASPECTS for family in ("translation", "rotation")]
