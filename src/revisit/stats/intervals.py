"""Intervals: how far a mean or a share may be from what more clips would give.

Means: cluster-robust standard error (clips of one scene are not independent) with Student's t on
the number of clusters minus one. Shares: Wilson's interval. Both at 95 % unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist


def mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Confidence interval of the mean, or None where fewer than two clusters leave it unknown."""
    n = len(values)
    names = list(clusters) if clusters is not None else list(range(n))
    groups = len(set(names))
    if groups < 2:
        return None
    mean = math.fsum(values) / n
    sums: dict[Hashable, float] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0.0) + (value - mean)
    # The sandwich estimator of a mean, with the usual correction for few clusters.
    variance = math.fsum(total * total for total in sums.values()) / n**2 * groups / (groups - 1)
    margin = student_t_quantile((1 + level) / 2, groups - 1) * math.sqrt(variance)
    return mean - margin, mean + margin


def difference_interval(
    first: Sequence[float], second: Sequence[float], level: float = 0.95
) -> tuple[float, float] | None:
    """Welch's interval of the difference of two means, or None where one of them rests on fewer than two values.

    Its degrees of freedom are rounded down to a whole number, which widens it a little.
    """
    if min(len(first), len(second)) < 2:
        return None
    means = [math.fsum(values) / len(values) for values in (first, second)]
    squares = [
        math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
        for values, mean in zip((first, second), means, strict=True)
    ]
    difference, variance = means[0] - means[1], sum(squares)
    if variance == 0:
        return difference, difference
    freedom = variance**2 / sum(
        square**2 / (len(values) - 1) for square, values in zip(squares, (first, second), strict=True)
    )
    margin = student_t_quantile((1 + level) / 2, max(1, math.floor(freedom + 1e-9))) * math.sqrt(variance)
    return difference - margin, difference + margin


def share_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a share, or None for n = 0."""
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - margin), min(1.0, centre + margin)


def student_t_quantile(probability: float, df: int) -> float:
    """Quantile of Student's t for probabilities of a half and more, by bisection on its distribution."""
    low, high = 0.0, 1.0
    while _student_t_cdf(high, df) < probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _student_t_cdf(middle, df) < probability:
            low = middle
        else:
            high = middle
        if high - low <= 1e-13 * high:
            break
    return (low + high) / 2


def _student_t_cdf(t: float, df: int) -> float:
    """P(T <= t) for t >= 0 and whole degrees of freedom, from the finite trigonometric series."""
    theta = math.atan(t / math.sqrt(df))
    cosine = math.cos(theta)
    if df == 1:
        inside = 2 * theta / math.pi
    elif df % 2:
        term = total = cosine
        for k in range(3, df, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = 2 / math.pi * (theta + math.sin(theta) * total)
    else:
        term = total = 1.0
        for k in range(2, df, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = math.sin(theta) * total
    return 0.5 + inside / 2
