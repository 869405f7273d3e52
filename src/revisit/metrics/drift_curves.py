"""Drift curves: how similarity falls with time, against the first frames and against growing gaps.

Of every two sampled frames a distance is taken, in three ways:

- *similarity*: 1 - cosine of the descriptors of the whole frames (`PatchFeatures`); half is lost at 0.22, because views
  that have nothing in common are 0.44 apart;
- *look*: the mean change of light and colour (CIELAB units / 10) and of the logarithms of gradients, contrast and
  saturation, as in `long_drift`; half of the look is left at ln 2;
- *place*: the share of the one view that is outside the other (`ViewRelations`); for a camera that turns, the angle as
  a share of the field of view. Pairs that nothing joins say nothing.

The curve against growing gaps is the mean distance of frames so many seconds apart. Its slope, by least squares over
all pairs, is what a clip loses in a minute. The curve against the first frames is that from the first three; the time
at which half is lost is its half-life. A camera that moves on changes place and similarity without any fault: there the
same numbers of the truth, or of a camera at rest, are what to compare with. At most 36 frames of a clip are compared,
however long it is, so memory does not grow with its length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from revisit.core import Metric, NoScore, Score, Series, Unscored, metric
from revisit.evidence.appearance import LabStats, PatchFeatures, StyleStats
from revisit.evidence.frames import FrameFacts
from revisit.evidence.views import ViewRelations
from revisit.metrics.answers import cache_for_last_record
from revisit.metrics.appearance import style_names_and_logs
from revisit.metrics.drift import NOTICED
from revisit.metrics.rows import nearest_rows

FAMILY = "drift"
FIRST = 3  # sampled frames that stand for the beginning
GAPS = tuple(2.0**k for k in range(10))  # seconds, of the curve against growing gaps: 1 s to 512 s
LEAST_PAIRS = 3  # of a point of that curve
LEAST_FRAMES = 8
SHORT_STEP = 0.05  # of the view
LINES = 200  # along which the common area of two views is measured
UNRELATED = 0.44  # 1 - cosine of the descriptors of views that have nothing in common: the median of ten real clips


@dataclass(frozen=True)
class DriftSignal:
    """A distance of every two sampled frames; `half` is where half is lost."""

    name: str
    needs: tuple[type, ...]
    distances: Callable[..., np.ndarray]  # (N, N) of the frames of the last kind of evidence, nan where unknown
    half: float
    responds_to: tuple[str, ...]
    blind_to: tuple[str, ...]
    version: int = 1


def similarity_distances(features: PatchFeatures) -> np.ndarray:
    """1 - cosine of whole frames."""
    whole = features.whole.astype(np.float64)
    return np.clip(1 - whole @ whole.T, 0, None)


def look_distances(lab: LabStats, style: StyleStats) -> np.ndarray:
    """Mean change of light, colour and style."""
    light = lab.mean[nearest_rows(lab.index, style.index)].astype(float) / NOTICED
    rows = np.column_stack([light, style_names_and_logs(style)[1]])
    return np.asarray(np.abs(rows[:, None] - rows[None]).mean(axis=2))


@cache_for_last_record  # the slope and the half-life ask for them
def place_distances(relations: ViewRelations) -> np.ndarray:
    """Share of the earlier view that is outside the later one."""
    count = len(relations.index)
    if len(relations.share) != count:  # only the first frame was asked about
        return np.full((count, count), np.nan)
    outside = 1 - share_left_in_unit_square(warps_by_short_steps(relations))
    return np.where(np.isfinite(relations.share), outside, np.nan)


def warps_by_short_steps(relations: ViewRelations) -> np.ndarray:
    """(N, N, 3, 3) maps between frames, made of steps by a twentieth of the view where the direct map goes farther.

    Perspective moves the borders of a turning view faster than its middle. A map of shift, scale and roll has the mean
    over what two frames have in common, which is right for the angle of a short step; of frames far apart that is part
    of both views, and the map falls short by up to a tenth. Still shorter steps would add up errors of single pixels.
    Where a step is not known, the map of the two frames themselves stays.
    """
    count = len(relations.index)
    direct = np.asarray(relations.warp, dtype=float)
    short = relations.seen & (1 - share_left_in_unit_square(direct) <= SHORT_STEP)
    maps = direct.copy()
    for start in range(count):
        via, path = start, np.eye(3)
        for end in range(start + 1, count):
            if not short[via, end] and end - 1 > via:
                path = direct[via, end - 1] @ path
                via = end - 1
            if not relations.seen[via, end]:
                break
            maps[start, end] = direct[via, end] @ path
            maps[end, start] = np.linalg.inv(maps[start, end])
    return maps


def share_left_in_unit_square(warp: np.ndarray) -> np.ndarray:
    """Share of the unit square that affine maps (..., 3, 3) leave inside it, along 200 lines across.

    `ViewRelations.share` counts 20 cells a side: its steps of a twentieth are coarser than what slow cameras leave.
    """
    y = (np.arange(LINES) + 0.5) / LINES
    low, high = np.zeros((*warp.shape[:-2], LINES)), np.ones((*warp.shape[:-2], LINES))
    for row in (0, 1):  # both coordinates stay between 0 and 1 for x between `low` and `high`
        slope = warp[..., row, 0, None].astype(float)
        start = warp[..., row, 1, None] * y + warp[..., row, 2, None]
        level = np.abs(slope) < 1e-9
        one_end, other_end = -start, 1 - start
        slope = np.where(level, 1.0, slope)
        one_end /= slope
        other_end /= slope
        flat = level[..., 0]
        inside = (start[flat] >= 0) & (start[flat] <= 1)
        first, last = np.minimum(one_end, other_end), np.maximum(one_end, other_end)
        first[flat], last[flat] = np.where(inside, 0.0, 1.0), np.where(inside, 1.0, 0.0)
        np.maximum(low, first, out=low)
        np.minimum(high, last, out=high)
    high -= low
    return np.asarray(np.maximum(high, 0, out=high).mean(axis=-1))


SIGNALS = (
    DriftSignal(
        "similarity", (PatchFeatures,), similarity_distances, UNRELATED / 2,
        ("decay", "collapse", "place changes"), ("frozen camera", "what the moving camera changes"),
    ),
    DriftSignal(
        "look", (LabStats, StyleStats), look_distances, float(np.log(2)),
        ("exposure drift", "colour drift", "loss of detail", "oversaturation"), ("frozen camera", "objects and places"),
    ),
    DriftSignal(
        "place", (ViewRelations,), place_distances, 0.5,
        ("camera drift",), ("frozen camera", "a place replaced by one that looks alike", "views without texture"), 2,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class DriftCurve:
    """Distances over the time of one clip."""

    index: np.ndarray
    seconds: np.ndarray
    from_first: np.ndarray  # nan where unknown
    slope: float  # distance gained in a second, over growing gaps
    gaps: dict[float, float]  # seconds apart -> mean distance


def drift_curve(signal: DriftSignal, frames: FrameFacts, evidence: tuple[Any, ...], least_seconds: float) -> DriftCurve:
    """The curves of a clip."""
    index = evidence[-1].index
    if not all(len(one.index) for one in (frames, *evidence)):
        raise NoScore("too_short", "no frame was sampled")
    seconds = np.asarray(frames.time[nearest_rows(frames.index, index)], dtype=float)
    lasting = float(seconds[-1] - seconds[0])
    if lasting < least_seconds or len(index) < LEAST_FRAMES:
        raise NoScore(
            "too_short", f"drift is asked of clips of {least_seconds:g} s or more; this one has {lasting:.1f} s"
        )
    apart = signal.distances(*evidence)
    earlier, later = np.triu_indices(len(index), 1)
    gap, distance = (seconds[later] - seconds[earlier]), apart[earlier, later]
    known = np.isfinite(distance)
    if known.sum() < LEAST_FRAMES or np.ptp(gap[known]) <= 0:
        raise NoScore("not_followed", "too few frames of this clip could be compared with others")
    slope = float(np.polyfit(gap[known], distance[known], 1)[0])
    gaps = {}
    for at in GAPS:
        near = known & (np.abs(gap - at) <= at / 4)
        if near.sum() >= LEAST_PAIRS:
            gaps[at] = float(distance[near].mean())
    with np.errstate(invalid="ignore"):
        first = apart[:FIRST]
        count = np.isfinite(first).sum(axis=0)
        from_first = np.where(count > 0, np.nansum(first, axis=0) / np.maximum(count, 1), np.nan)
    return DriftCurve(index, seconds - seconds[0], from_first, slope, gaps)


def seconds_until_half_lost(curve: DriftCurve, half_distance: float) -> float | None:
    """Seconds until half is lost for the first time, between samples by a straight line; None where it is not."""
    known = np.isfinite(curve.from_first)
    seconds, lost = curve.seconds[known], curve.from_first[known]
    over = np.flatnonzero(lost >= half_distance)
    if not len(over):
        return None
    row = int(over[0])
    if row == 0 or lost[row] <= lost[row - 1]:
        return float(seconds[row])
    share = (half_distance - lost[row - 1]) / (lost[row] - lost[row - 1])
    return float(seconds[row - 1] + share * (seconds[row] - seconds[row - 1]))


def _curve_score(curve: DriftCurve, half: float, value: float, **facts: object) -> Score:
    """A score with the curve that it was taken from, and further facts."""
    at = seconds_until_half_lost(curve, half)
    curve_facts = {
        "per_minute": round(60 * curve.slope, 5), "half_life_seconds": None if at is None else round(at, 3),
        "lasts_seconds": round(float(curve.seconds[-1]), 3), "gap_seconds": list(curve.gaps),
        "gap_distance": [round(value, 5) for value in curve.gaps.values()],
    }  # fmt: skip
    series = Series(frame=curve.index, seconds=curve.seconds, value=curve.from_first / half)
    return Score(value, units=series, facts={**curve_facts, **facts})


def register_drift_metrics(signal: DriftSignal) -> tuple[Metric, Metric]:
    """The slope and the half-life of a signal as metrics."""

    def score_slope(frames: FrameFacts, *evidence: Any, least: float = 8.0) -> Score | Unscored:
        curve = drift_curve(signal, frames, evidence, least)
        return _curve_score(curve, signal.half, 60 * curve.slope)

    def score_half_life(frames: FrameFacts, *evidence: Any, least: float = 8.0) -> Score | Unscored:
        curve = drift_curve(signal, frames, evidence, least)
        at = seconds_until_half_lost(curve, signal.half)
        seconds = float(curve.seconds[-1]) if at is None else at
        return _curve_score(curve, signal.half, seconds, reached=at is not None)

    drift_metric = partial(
        metric, version=signal.version, needs=(FrameFacts, *signal.needs), suites=("folder",),
        responds_to=signal.responds_to,
    )  # fmt: skip
    return (
        drift_metric(
            id=f"drift_{signal.name}", title=f"Drift of {signal.name}", unit="1/min", range=(None, None),
            higher_is_better=False, blind_to=signal.blind_to,
            doc=f"How much the distance in {signal.name} of two frames grows with a minute between them.\n\n"
            "By least squares over all pairs of at most 36 sampled frames; clips under `least` seconds are not asked. "
            "The facts hold the curve against growing gaps.",
        )(score_slope),
        drift_metric(
            id=f"half_life_{signal.name}", title=f"Half-life of {signal.name}", unit="s", range=(0, None),
            higher_is_better=True, blind_to=(*signal.blind_to, "what happens after the clip ends"),
            doc=f"Seconds until half of the first frames' {signal.name} is lost; the length of the clip where it is "
            "not.\n\nMeans over clips are then lower bounds, and the facts say `reached`; compare clips of one length. "
            "Sampled at 36 frames, it is known to a 36th of the clip.",
        )(score_half_life),
    )  # fmt: skip


DRIFT_METRICS = {signal.name: register_drift_metrics(signal) for signal in SIGNALS}
