"""Tests of paired differences: is the mean of after - before 0?

Clips of one scene are not independent, so scenes are tested, not clips. Which test is used follows from the data, and
none of them is used with fewer scenes than it needs (docs/statistics.md has the simulated errors of all of them):

- *a continuous scale, three scenes or more*: Student's t with the cluster-robust error and room for skew, as in the
  intervals of tables: p is below 0.05 where the interval at 95 % leaves out 0;
- *few levels, six scenes or more* (ratings, shares of k/6): Student's t with the cluster-robust error, and with the
  variance that the rounding to these levels hides, so that equal differences are no certainty;
- *one size of difference, one clip a scene, six scenes or more* (yes or no): the unconditional exact test of Suissa and
  Shuster (1991), which sees twice as much as McNemar's.

Wilcoxon's signed ranks (1945) have the normal approximation with the correction for ties, without differences of 0.
Holm (1979) bounds the chance of any false finding.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from revisit.stats.intervals import (
    Estimate,
    Interval,
    estimate_mean,
    estimate_mean_with_added_ends,
    t_quantile,
    two_sided_t_p,
)

LEAST_PAIRS = 6  # with fewer differences no result of the signed ranks can be significant at 5 %
MIN_SCENES = 3  # for scores on a continuous scale
MIN_SCENES_OF_LEVELS = 6  # for scores of few levels: 2 / 2^5 is above 5 %
MOST_EXACT = 300  # scenes of the exact test of yes and no
MOST_LEVELS = 20  # steps; a finer scale is as good as continuous
ALPHA = 0.05


@dataclass(frozen=True)
class SignedRank:
    """A two-sided test of whether paired differences lie around 0."""

    statistic: float  # the smaller sum of ranks
    p: float
    n: int  # pairs that differ
    median: float  # of the differences


@dataclass(frozen=True)
class PairedTest:
    """The mean of paired differences, and the two-sided test of whether it is 0."""

    change: tuple[float, ...]  # a difference per clip
    clusters: tuple[Hashable, ...]
    p: float | None  # None for too few scenes
    method: str  # the test, or why there is none
    range: float | None = None  # of the scores, where every one is an end of its scale

    @property
    def clips(self) -> int:
        return len(self.change)

    @property
    def scenes(self) -> int:
        return len(set(self.clusters))

    @cached_property
    def difference(self) -> float:
        return math.fsum(self.change) / len(self.change)

    @cached_property
    def estimate(self) -> Estimate | None:
        """The mean with its cluster-robust error; None for fewer than two scenes."""
        if self.range is not None and self.scenes > 1 and all(abs(size) in (0.0, self.range) for size in self.change):
            # three of three is no certainty
            return estimate_mean_with_added_ends(self.change, self.clusters, (-self.range, self.range))
        return estimate_mean(self.change, self.clusters)

    @cached_property
    def interval(self) -> Interval | None:
        """95 % interval of the difference, which leaves out 0 where p is at most 0.05; None where there is no p.

        Where the cluster-robust interval and the test disagree about 0, the end next to 0 is the test's own (test-based
        limits, Miettinen 1976).
        """
        if self.p is None or self.estimate is None:
            return None
        low, high = self.estimate.interval()
        mean, freedom = self.difference, self.estimate.freedom
        if not mean or (self.p <= ALPHA) == (not low <= 0 <= high):
            return low, high
        error = abs(mean) / t_quantile(1 - min(self.p, 0.8) / 2, freedom)
        reach = error * t_quantile(1 - ALPHA / 2, freedom)
        return (mean - reach, max(high, mean)) if mean > 0 else (min(low, mean), mean + reach)


def paired_test(
    before: Sequence[float], after: Sequence[float], clusters: Sequence[Hashable], range: float | None = None
) -> PairedTest | None:
    """Test whether the mean of after - before is 0, over clusters.

    Parameters
    ----------
    before, after
        Scores of the same clips.
    clusters
        The scene of each clip.
    range
        How far apart two scores can be, where every score is one end of its scale or the other.

    Returns
    -------
    PairedTest or None
        None where there is no clip.

    Examples
    --------
    >>> paired_test([0.11, 0.23, 0.34], [0.62, 0.81, 0.73], ["a", "b", "c"]).p < 0.05
    True
    >>> paired_test([0.5] * 3, [0.6] * 3, ["a", "b", "c"]).method
    'scores of few levels need 6 scenes'
    """
    if not before:
        return None
    change = [b - a for a, b in zip(before, after, strict=True)]
    p, method = mean_change_test(change, clusters, scores=[*before, *after])
    return PairedTest(tuple(change), tuple(clusters), p, method, range)


def mean_change_test(
    change: Sequence[float], clusters: Sequence[Hashable], scores: Sequence[float] = ()
) -> tuple[float | None, str]:
    """Two-sided p of whether the mean change is 0, and the name of the test; None and the reason for too few scenes.

    `scores` are what the changes are differences of; they tell whether the scale has few levels.
    """
    scenes = len(set(clusters))
    if scenes < MIN_SCENES:
        return None, f"{MIN_SCENES} scenes are needed"
    sizes = np.abs(np.asarray(change, dtype=float))
    if not sizes.max() > 1e-12:
        return 1.0, "no difference"
    step = step_between_levels(scores) or step_between_levels([0.0, *sizes])
    if step and scenes < MIN_SCENES_OF_LEVELS:
        return None, f"scores of few levels need {MIN_SCENES_OF_LEVELS} scenes"
    differs = sizes > 1e-9 * sizes.max()
    if len(change) == scenes <= MOST_EXACT and np.ptp(sizes[differs]) <= 1e-9 * sizes.max():
        up = int((np.asarray(change)[differs] > 0).sum())
        return unconditional_sign_test(up, int(differs.sum()) - up, scenes), "unconditional exact test"
    spread = estimate_mean(change, clusters)
    assert spread is not None
    if not step:
        return spread.p, "Student's t"
    error = math.sqrt(spread.error**2 + step**2 / 12 / len(change))
    return two_sided_t_p(spread.mean / error, spread.freedom), "Student's t for few levels"


def step_between_levels(values: Sequence[float]) -> float:
    """The distance between the levels of a scale; 0 for a continuous one, or one of more than 20 steps."""
    levels = np.unique(np.asarray(values, dtype=float))
    if len(levels) < 2:
        return 0.0
    span = levels[-1] - levels[0]
    place = (levels - levels[0]) / span * np.arange(1, MOST_LEVELS + 1)[:, None]
    fits = (np.abs(place - np.rint(place)) < 1e-6).all(axis=1)
    return float(span / (1 + np.argmax(fits))) if fits.any() else 0.0


@lru_cache(maxsize=4096)
def unconditional_sign_test(up: int, down: int, scenes: int) -> float:
    """Unconditional exact p of `up` wins and `down` losses in so many scenes (Suissa and Shuster 1991).

    The statistic is McNemar's |up - down| / sqrt(up + down), and p the largest chance to see one as large if wins and
    losses are equally likely, whatever the share of scenes that differ.

    Examples
    --------
    >>> round(unconditional_sign_test(6, 0, 6), 5)
    0.03125
    """
    if up == down:
        return 1.0
    statistic = abs(up - down) / math.sqrt(up + down)
    beyond = np.array([_two_sided_coin_tail(count, statistic * math.sqrt(count)) for count in range(scenes + 1)])
    shares = np.linspace(0, 1, 401)
    largest = shares[np.argmax(_binomial_probabilities(scenes, shares) @ beyond)]
    close = np.clip(np.linspace(largest - 0.0025, largest + 0.0025, 101), 0, 1)
    return float(min(1.0, max((_binomial_probabilities(scenes, grid) @ beyond).max() for grid in (shares, close))))


def one_sided_sign_test(more: int, fewer: int) -> float:
    """P of so many or more of `more`, if each of `more + fewer` is equally likely to be one or the other (exact).

    Of yes and no before and after this is McNemar's exact test, one-sided; what is the same in both counts for nothing.

    Examples
    --------
    >>> one_sided_sign_test(5, 0)
    0.03125
    >>> one_sided_sign_test(0, 0)
    1.0
    """
    count = more + fewer
    return min(1.0, sum(math.comb(count, k) for k in range(more, count + 1)) / 2**count)


def _two_sided_coin_tail(count: int, distance: float) -> float:
    """P(|heads - tails| >= distance) of so many fair coins."""
    if count == 0:
        return 0.0
    heads = np.arange(count + 1)
    chance = np.exp(_log_binomial_coefficients(count) - count * math.log(2))
    return float(chance[np.abs(2 * heads - count) >= distance - 1e-9].sum())


def _binomial_probabilities(count: int, shares: np.ndarray) -> np.ndarray:
    """Chances of 0 to `count` successes, a row per share."""
    hits = np.arange(count + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(hits == 0, 0.0, hits * np.log(shares)[:, None])
        no = np.where(hits == count, 0.0, (count - hits) * np.log1p(-shares)[:, None])
    return np.asarray(np.exp(_log_binomial_coefficients(count) + yes + no))


@lru_cache(maxsize=512)
def _log_binomial_coefficients(count: int) -> np.ndarray:
    logs = np.array([math.lgamma(k + 1) for k in range(count + 1)])
    return np.asarray(logs[-1] - logs - logs[::-1])


def wilcoxon_signed_rank(before: Sequence[float], after: Sequence[float]) -> SignedRank | None:
    """The signed-rank test of after - before; None for too few pairs that differ."""
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    differs = change[change != 0]
    n = len(differs)
    if n < LEAST_PAIRS:
        return None
    size = np.abs(differs)
    ranks = ranks_with_mean_ties(size)
    up, down = float(ranks[differs > 0].sum()), float(ranks[differs < 0].sum())
    _, counts = np.unique(size, return_counts=True)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts.astype(float) ** 3 - counts).sum()) / 48
    statistic = min(up, down)
    z = (statistic - n * (n + 1) / 4) / math.sqrt(variance)
    return SignedRank(statistic, math.erfc(-z / math.sqrt(2)), n, float(np.median(change)))


def ranks_with_mean_ties(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, ties sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts + 1) / 2)[inverse]


def holm_corrected_p(p: Sequence[float]) -> list[float]:
    """P-values that bound the chance of any false finding among them."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values)))))
    return [float(value) for value in adjusted]
