"""Trend: a score over checkpoints or dates, on the clips that all of them have a score of.

Means have the interval that tables give the same clips. Every metric is a question of its own, as in the verdict: p is
that of its slope alone, and of two points it is that of their difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from revisit.core import METRICS
from revisit.core.text import count_and_noun, join_names
from revisit.results.cells import Cell, make_score_cell, range_limits_of_metric
from revisit.results.compare import Contender, compare_coverage, mean_scores_by_clip
from revisit.results.display import p_value_text
from revisit.results.pairing import clip_key_without_seed
from revisit.results.score_names import strip_held_suffix
from revisit.stats.paired import ALPHA, PairedTest, mean_change_test


@dataclass(frozen=True)
class Trend:
    """A metric over points in order; cells are over common clips."""

    metric: str
    cells: tuple[Cell, ...]
    slope: PairedTest | None  # of a straight line through each clip's scores, per step, over scenes
    seeds: int = 0  # scores that were folded into the mean of their clip

    @property
    def monotone_direction(self) -> str:
        """`rises`, `falls`, `flat`, or nothing where it goes both ways; a step may leave it as it is."""
        steps = self._steps_between_means
        if not any(steps):
            return "flat" if self.cells else ""
        return "rises" if min(steps) >= 0 else "falls" if max(steps) <= 0 else ""

    @property
    def _steps_between_means(self) -> list[float]:
        means = [cell.mean for cell in self.cells if cell.mean is not None]
        return [after - before for before, after in pairwise(means)]

    @property
    def sentence(self) -> str:
        if not self.cells:
            return "no clip has a score at every point"
        way = {"rises": "rises and never falls", "falls": "falls and never rises", "flat": "does not change"}
        if all(self._steps_between_means):
            way |= {"rises": "rises at every step", "falls": "falls at every step"}
        direction = self.monotone_direction
        course = way.get(direction, "goes up and down")
        if self.slope is None or self.slope.p is None:
            scenes = 0 if self.slope is None else self.slope.scenes
            few = "one scene" if scenes == 1 else f"{scenes} scenes"
            return f"{course}; {few} cannot tell whether that is more than chance"
        if self.slope.p > ALPHA:
            return f"{course}; no trend beyond chance (p {p_value_text(self.slope.p)})"
        better = METRICS[strip_held_suffix(self.metric)].higher_is_better
        up = self.slope.difference > 0
        word = ("up" if up else "down") if better is None else "better" if up == better else "worse"
        if not direction:
            return f"{course}, on the whole {word} (p {p_value_text(self.slope.p)})"
        return f"{course}; a trend{'' if better is None else f' for the {word}'} (p {p_value_text(self.slope.p)})"

    def as_json(self) -> dict[str, object]:
        slope = None if self.slope is None else {"mean": self.slope.difference, "p": self.slope.p}
        cells = [cell.as_json() for cell in self.cells]
        texts = {"monotone": self.monotone_direction, "sentence": self.sentence}
        return {"metric": self.metric, "cells": cells, "slope": slope, **texts}


def common_clips_sentence(curves: Sequence[Trend]) -> str:
    """What the means and p of these curves are of, where that is not what each run's own summary has."""
    counts = [(cell.n, cell.of) for curve in curves for cell in curve.cells]
    if not counts:
        return ""
    sentences = []
    if any(n < of for n, of in counts):
        fewest, most = min(n for n, _ in counts), max(n for n, _ in counts)
        clips = count_and_noun(most, "clip") if fewest == most else f"{fewest} to {most} clips"
        sentences.append(f"means are over the {clips} that every point has a score of, and not over all of each run")
    if any(curve.seeds for curve in curves):
        sentences.append("several seeds of a clip are folded into their mean")
    if sum(bool(curve.cells) for curve in curves) > 1:
        sentences.append("p is that of each metric by itself (`compare` corrects for all that it shows)")
    return "; ".join(sentences)


@dataclass(frozen=True)
class PointCoverage:
    """How many clips a point delivered, and on how many its camera looked away and came back."""

    name: str
    asked: int
    delivered: int
    returned: int | None  # None where no gate asks that
    lacks: int = 0  # clips that other points have and this one has none of
    of: int = 0  # clips that any of the points has


def coverage_of_points(points: Sequence[Contender]) -> list[PointCoverage]:
    """The coverage of each point: scores over common clips do not show that ever more clips come back."""
    pairs = [compare_coverage(points[0], point) for point in points]
    clips = [{clip_key_without_seed(case) for case in point.results.readable.cases} for point in points]
    every = frozenset().union(*clips)
    return [
        PointCoverage(p.second, p.asked[1], p.delivered[1], p.posed and p.posed[1], len(every - mine), len(every))
        for p, mine in zip(pairs, clips, strict=True)
    ]


def lacking_clips_sentence(labels: Sequence[str], coverages: Sequence[PointCoverage]) -> str:
    """Which points lack how many of the clips that others have; nothing where all have the same."""
    some = [f"{name} lacks {one.lacks} of {one.of}" for name, one in zip(labels, coverages, strict=True) if one.lacks]
    return f"of the clips that other points have, {join_names(some)}" if some else ""


def coverage_sentence(coverages: Sequence[PointCoverage]) -> str:
    """On how many clips the camera came back at each point; nothing where no gate asks that."""
    if any(point.returned is None for point in coverages):
        return ""
    return f"looks away and comes back on {' → '.join(f'{one.returned} of {one.delivered}' for one in coverages)} clips"


def has_scores_or_coverage_change(curves: Sequence[Trend], coverages: Sequence[PointCoverage]) -> bool:
    """Whether there is anything to follow: a score of the same clips at every point, or coverage that changes."""
    return any(curve.cells for curve in curves) or len({(point.returned, point.delivered) for point in coverages}) > 1


def score_trends(points: Sequence[Contender], metrics: Sequence[str]) -> list[Trend]:
    """A trend per metric."""
    return [_trend_in_metric(points, id) for id in metrics]


def _trend_in_metric(points: Sequence[Contender], metric: str) -> Trend:
    scores = [mean_scores_by_clip(point.results, metric) for point in points]
    common = [clip for clip in scores[0] if all(clip in other for other in scores)]
    if not common:
        return Trend(metric, (), None)
    scenes = [scores[0][clip].cases[0].scene for clip in common]
    seeds = sum(len(here[clip].cases) - 1 for here in scores for clip in common)
    two_valued = not seeds and all(point.results.two_valued(metric) for point in points)
    higher = METRICS[strip_held_suffix(metric)].higher_is_better
    cells = [
        make_score_cell(
            [(here[clip].mean, scene) for clip, scene in zip(common, scenes, strict=True)],
            len(here), range_limits_of_metric(metric), higher, two_valued,
        )
        for here in scores
    ]  # fmt: skip
    middle = (len(points) - 1) / 2
    weights = [k - middle for k in range(len(points))]
    scale = sum(weight * weight for weight in weights)
    slopes = [sum(w * here[clip].mean for w, here in zip(weights, scores, strict=True)) / scale for clip in common]
    # So large that scores of few levels hide as much of it by their rounding as of a difference of two scores.
    contrasts = [slope * math.sqrt(2 * scale) for slope in slopes]
    p, method = mean_change_test(contrasts, scenes, scores=[here[clip].mean for here in scores for clip in common])
    return Trend(metric, tuple(cells), PairedTest(tuple(slopes), tuple(scenes), p, method), seeds)
