"""Paired comparisons: the t-test over clusters, Wilcoxon's signed ranks (1945), and what many tests at once do to p.

The t-test goes with the intervals of tables: p is below 0.05 where the interval at 95 % leaves out 0. The signed ranks
have the normal approximation with the correction for ties; differences of 0 are left out. Holm (1979) bounds the chance
of any false finding, Benjamini and Hochberg (1995) the share of false ones.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.stats.intervals import Estimate, estimate, of_ends

LEAST_PAIRS = 6  # with fewer differences no result can be significant at 5 %


@dataclass(frozen=True)
class SignedRank:
    """A two-sided test of whether paired differences lie around 0."""

    statistic: float  # the smaller sum of ranks
    p: float
    n: int  # pairs that differ
    median: float  # of the differences


def paired_test(
    before: Sequence[float], after: Sequence[float], clusters: Sequence[Hashable], range: float | None = None
) -> Estimate | None:
    """The mean of after - before over clusters, with its test; None for fewer than two clusters.

    `range` is how far apart two scores can be. Where every difference is that or none at all, one more in each
    direction is added (Bonett and Price 2012): three of three is no certainty.
    """
    change = [b - a for a, b in zip(before, after, strict=True)]
    if range is not None and len(set(clusters)) > 1 and all(abs(size) in (0.0, range) for size in change):
        return of_ends(change, clusters, (-range, range))
    return estimate(change, clusters)


def wilcoxon(before: Sequence[float], after: Sequence[float]) -> SignedRank | None:
    """The signed-rank test of after - before; None for too few pairs that differ."""
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    differs = change[change != 0]
    n = len(differs)
    if n < LEAST_PAIRS:
        return None
    size = np.abs(differs)
    ranks = mean_ranks(size)
    up, down = float(ranks[differs > 0].sum()), float(ranks[differs < 0].sum())
    _, counts = np.unique(size, return_counts=True)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts.astype(float) ** 3 - counts).sum()) / 48
    statistic = min(up, down)
    z = (statistic - n * (n + 1) / 4) / math.sqrt(variance)
    return SignedRank(statistic, math.erfc(-z / math.sqrt(2)), n, float(np.median(change)))


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, ties sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts + 1) / 2)[inverse]


def holm(p: Sequence[float]) -> list[float]:
    """P-values that bound the chance of any false finding among them."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    return _in_place(np.minimum(raised, 1), order)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """P-values that bound the share of false findings among them."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    raised = values[order] * len(values) / (1 + np.arange(len(values)))
    lowered = np.minimum.accumulate(raised[::-1])[::-1]
    return _in_place(np.minimum(lowered, 1), order)


def _in_place(sorted_values: np.ndarray, order: np.ndarray) -> list[float]:
    found = np.empty_like(sorted_values)
    found[order] = sorted_values
    return [float(value) for value in found]
