"""Intervals: how far a mean or a share may be from what more clips would give (docs/statistics.md).

Clips of one scene are not independent, so scenes are counted, not clips: the standard error is CR2 (Bell and McCaffrey
2002), with Student's t. Skewed values need more room on one side: each end is the farther one of Student's and of
Hall's (1992), up to twice as far. Values that are only ever one end of their range or the other are shares: two more of
each are added (Agresti and Coull 1998) to as many independent ones as the clusters are worth (Korn and Graubard 1998).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

Interval = tuple[float, float]
LEAST_FOR_SHAPE = 5  # fewer clusters show no shape
MOST = 2.0  # times as far as Student's: where few values look very skewed, Hall's goes to any length for nothing
ADDED = 2  # to each end of a range of which only the ends occur


@dataclass(frozen=True)
class Estimate:
    """A mean over clusters with its standard error, on which intervals and tests rest."""

    mean: float
    error: float
    freedom: float
    clusters: int
    skew: float = 0.0  # of the mean's own distribution; that of the clusters, over the root of their number

    def interval(self, level: float = 0.95) -> Interval:
        down, up = self.interval_reach_in_errors(t_quantile((1 + level) / 2, self.freedom))
        return self.mean - down * self.error, self.mean + up * self.error

    def interval_reach_in_errors(self, far: float) -> Interval:
        """How far an interval goes down and up, in errors, where Student's goes `far` both ways."""
        down, up = add_skew_to_t(far, self.skew), -add_skew_to_t(-far, self.skew)
        return min(max(far, down), MOST * far), min(max(far, up), MOST * far)

    @property
    def p(self) -> float:
        """Of a two-sided test of whether the mean is 0: below 0.05 where the interval at 95 % leaves out 0."""
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        t = self.mean / self.error
        straight = remove_skew_from_t(t, self.skew)
        by_shape = two_sided_t_p(straight, self.freedom) if t * straight > 0 else 1.0
        return max(two_sided_t_p(t, self.freedom), min(by_shape, two_sided_t_p(t / MOST, self.freedom)))


def remove_skew_from_t(t: float, skew: float) -> float:
    """Hall's transformation (1992): what t would be without the skew of the mean; it grows with t."""
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def add_skew_to_t(t: float, skew: float) -> float:
    """Its inverse."""
    if abs(skew) < 1e-6:
        return t - skew / 6 - skew * t**2 / 3
    return 3 / skew * (float(np.cbrt(1 + skew * (t - skew / 6))) - 1)


def estimate_mean(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate | None:
    """The mean of all values, or None where fewer than two clusters leave its spread unknown."""
    names = list(clusters) if clusters is not None else list(range(len(values)))
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(place) < 2:
        return None
    rows = np.array([place[name] for name in names])
    numbers = np.asarray(values, dtype=float)
    mean = math.fsum(values) / len(values)
    sizes = np.bincount(rows).astype(float)
    sums = np.bincount(rows, numbers - mean)
    sums[np.abs(sums) <= 1e-12 * max(np.abs(numbers).max(), 1e-300)] = 0  # what rounding leaves of equal values
    leverage = 1 - sizes / len(numbers)  # a cluster pulls the mean towards itself by what is missing here
    spread = float((sums**2 / leverage).sum())
    error = math.sqrt(spread) / len(numbers)
    # of the matrix whose eigenvalues tell the freedom
    own, shared = sizes / leverage, sizes**2 / leverage / len(numbers)
    freedom = float((own - shared).sum() ** 2 / ((own**2 - 2 * own * shared).sum() + shared.sum() ** 2))
    if not spread or len(place) < LEAST_FOR_SHAPE:
        return Estimate(mean, error, freedom, len(place))
    few = math.sqrt(freedom * (freedom + 1)) / max(freedom - 1, 1)  # few values show less skew than there is
    skew = few * float((sums**3 / leverage**1.5).sum()) / spread**1.5
    return Estimate(mean, error, freedom, len(place), skew)


def mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Interval | None:
    """Confidence interval of the mean, or None where fewer than two clusters leave it unknown."""
    mean = estimate_mean(values, clusters)
    return None if mean is None else mean.interval(level)


def interval_of_two_valued_mean(
    values: Sequence[float], clusters: Sequence[Hashable], ends: Interval, level: float = 0.95
) -> Interval | None:
    """Confidence interval of the mean of values that are nothing but ends of a range; None for fewer than two clusters.

    As many independent values count as have the same error; at least one of each cluster, as if its values were one.
    """
    low, high = ends
    mean = estimate_mean([(value - low) / (high - low) for value in values], clusters)
    if mean is None:
        return None
    share, n, far = mean.mean, len(values), NormalDist().inv_cdf((1 + level) / 2)
    worth = n**2 / sum(size**2 for size in Counter(clusters).values())
    if mean.error:
        sure = (far / t_quantile((1 + level) / 2, mean.freedom)) ** 2  # the error itself is known from clusters alone
        worth = max(worth, sure * n * min(1.0, share * (1 - share) / (n - 1) / mean.error**2))
    centre = (share * worth + ADDED) / (worth + 2 * ADDED)
    margin = far * math.sqrt(centre * (1 - centre) / (worth + 2 * ADDED))
    return low + (high - low) * max(0.0, centre - margin), low + (high - low) * min(1.0, centre + margin)


def estimate_mean_with_added_ends(
    values: Sequence[float], clusters: Sequence[Hashable], ends: Interval
) -> Estimate | None:
    """As `estimate_mean`, with one more cluster at each end, for values that may all be ends."""
    each = max(1, round(len(values) / max(1, len(set(clusters)))))
    added = [end for end in ends for _ in range(each)]
    names = [*((name,) for name in clusters), *(end for end in ends for _ in range(each))]
    mean = estimate_mean([*values, *added], names)
    return None if mean is None else replace(mean, skew=0.0)  # what was added has no shape


def welch_interval(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Interval | None:
    """Welch's interval of the difference of two means, or None where one of them rests on fewer than two values."""
    difference = welch_difference(first, second)
    return None if difference is None else difference.interval(level)


def welch_difference(first: Sequence[float], second: Sequence[float]) -> Estimate | None:
    """The difference first - second of two means of independent values of unequal spread."""
    if min(len(first), len(second)) < 2:
        return None
    means = [math.fsum(values) / len(values) for values in (first, second)]
    squares = [
        math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
        for values, mean in zip((first, second), means, strict=True)
    ]
    variance, least = sum(squares), min(len(first), len(second)) - 1
    freedom = (
        variance**2
        / sum(square**2 / (len(values) - 1) for square, values in zip(squares, (first, second), strict=True))
        if variance
        else float(least)
    )
    return Estimate(means[0] - means[1], math.sqrt(variance), freedom, len(first) + len(second))


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval of a share, or None for n = 0."""
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - margin), min(1.0, centre + margin)


# From the incomplete beta function, and not from scipy: intervals stand in every table, and scipy would triple the size
# of what is installed.
def two_sided_t_p(t: float, freedom: float) -> float:
    """P(|T| >= |t|): the p-value of a two-sided test."""
    if math.isinf(t):
        return 0.0
    return _regularised_incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=1024)  # most means of a run rest on the same number of scenes
def t_quantile(probability: float, freedom: float) -> float:
    """Where P(T <= t) is this probability, by bisection."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    beyond = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while two_sided_t_p(high, freedom) > beyond:
        high *= 2
    for _ in range(200):
        midpoint = (low + high) / 2
        if two_sided_t_p(midpoint, freedom) > beyond:
            low = midpoint
        else:
            high = midpoint
        if high - low <= 1e-13 * high:
            break
    return (low + high) / 2


def _regularised_incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised one, by its continued fraction (Lentz's method), on the side where that converges quickly."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_continued_fraction(x, a, b) / a
    return 1 - front * _beta_continued_fraction(1 - x, b, a) / b


def _beta_continued_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    product = d
    for m in range(1, 500):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):  # fmt: skip
            d = 1 / (1 + top * d)
            c = 1 + top / c
            product *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return product
