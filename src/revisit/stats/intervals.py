"""Intervals: how far a mean or a share may be from what more clips would give.

Clips of one scene are not independent, so scenes are counted, not clips. A mean has the cluster-robust standard error
that is unbiased for clusters of any sizes (CR2; Bell and McCaffrey 2002) and Student's t with the degrees of freedom
that go with it. In simulation that covers 93 to 96 % at 10, 20 and 40 clusters of equal or unequal sizes, where a
percentile bootstrap covers 86 to 92 % (docs/statistics.md). Values that are only ever one end of their range or the
other, such as 0 and 1, get two more of each (Agresti and Coull 1998): three of three is no certainty.
Shares of independent things: Wilson's interval. All at 95 % unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from revisit.stats.student import t_quantile, t_tail

Interval = tuple[float, float]
ADDED = 2  # to each end of a range of which only the ends occur


@dataclass(frozen=True)
class Estimate:
    """A mean over clusters with its standard error, on which intervals and tests rest."""

    mean: float
    error: float
    freedom: float
    clusters: int

    def interval(self, level: float = 0.95) -> Interval:
        margin = t_quantile((1 + level) / 2, self.freedom) * self.error
        return self.mean - margin, self.mean + margin

    @property
    def p(self) -> float:
        """Of a two-sided test of whether the mean is 0."""
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return t_tail(self.mean / self.error, self.freedom)


def estimate(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate | None:
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
    kept = 1 - sizes / len(numbers)  # a cluster pulls the mean towards itself by what is missing here
    error = math.sqrt(float((sums**2 / kept).sum())) / len(numbers)
    product = np.diag(sizes) - np.outer(sizes, sizes) / len(numbers)
    product = product / np.sqrt(np.outer(kept, kept))
    freedom = float(np.trace(product) ** 2 / (product**2).sum())
    return Estimate(mean, error, freedom, len(place))


def mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Interval | None:
    """Confidence interval of the mean, or None where fewer than two clusters leave it unknown."""
    made = estimate(values, clusters)
    return None if made is None else made.interval(level)


def of_ends(
    values: Sequence[float], clusters: Sequence[Hashable], ends: Sequence[float], added: int = ADDED
) -> Estimate | None:
    """As `estimate`, with so many more clusters of one value at each end, for values that are nothing but ends."""
    more = [end for end in ends for _ in range(added)]
    return estimate([*values, *more], [*((name,) for name in clusters), *range(len(more))])


def difference_interval(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Interval | None:
    """Welch's interval of the difference of two means, or None where one of them rests on fewer than two values."""
    made = welch(first, second)
    return None if made is None else made.interval(level)


def welch(first: Sequence[float], second: Sequence[float]) -> Estimate | None:
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


def share_interval(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval of a share, or None for n = 0."""
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - margin), min(1.0, centre + margin)
