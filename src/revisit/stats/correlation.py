"""Correlation: does one thing grow with another, and do two groups lie apart?

Pearson's of two columns, and Spearman's of their ranks. Kendall's tau-b (Kendall 1945) counts pairs that agree in order
minus pairs that do not, with its correction for ties. Within groups, only pairs of one group are counted: the clips of
one scene are compared with each other and not with those of another. The area under the curve is the chance that a
value of one group lies above one of the other, ties counting half (Mann and Whitney 1947).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from revisit.core.grouping import group_items
from revisit.stats.paired import ranks_with_mean_ties

RESAMPLES = 2000


def pearson(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[float, int] | None:
    """(correlation, n) over the rows in which both are known; None where fewer than three are, or one never varies."""
    both = _complete_pairs(x, y)
    if both is None or not np.ptp(both, axis=1).all():
        return None
    a, b = (column - column.mean() for column in both)
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return (float((a * b).sum()) / scale, len(a)) if scale > 0 else None


def spearman(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[float, int] | None:
    """As `pearson`, of the ranks among those rows."""
    both = _complete_pairs(x, y)
    return None if both is None else pearson(*(ranks_with_mean_ties(column).tolist() for column in both))


def _complete_pairs(x: Sequence[float | None], y: Sequence[float | None]) -> np.ndarray | None:
    """Both columns (2, rows) where both are known; None for fewer than three rows."""
    rows = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    return np.array(rows, dtype=float).T if len(rows) >= 3 else None


def pearson_matrix(columns: Mapping[str, Sequence[float | None]]) -> dict[str, dict[str, float | None]]:
    """Pearson's correlation of every column with every other one."""
    rows: dict[str, dict[str, float | None]] = {}
    for name, x in columns.items():
        pairs = {other: pearson(x, y) for other, y in columns.items()}
        rows[name] = {other: None if correlation is None else correlation[0] for other, correlation in pairs.items()}
    return rows


def kendall_tau(x: Sequence[float], y: Sequence[float], groups: Sequence[Hashable] | None = None) -> float | None:
    """Tau-b of two columns, over the pairs within each group; None where one of them never varies.

    -1 means that one always falls as the other grows, 1 that it always grows.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"two columns of the same length are needed; got {a.shape} and {b.shape}")
    names = [0] * len(a) if groups is None else list(groups)
    score, varied_a, varied_b = 0.0, 0.0, 0.0
    for rows in group_items(range(len(a)), names.__getitem__).values():
        i, j = (np.array(rows)[side] for side in np.triu_indices(len(rows), 1))
        step_a, step_b = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        score += float((step_a * step_b).sum())
        varied_a += float((step_a != 0).sum())
        varied_b += float((step_b != 0).sum())
    if not varied_a or not varied_b:
        return None
    return score / math.sqrt(varied_a * varied_b)


def auc(above: Sequence[float], below: Sequence[float]) -> float | None:
    """The chance that a value of `above` is larger than one of `below`, ties half; None where a group is empty."""
    a, b = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    if not len(a) or not len(b):
        return None
    higher = (a[:, None] > b[None, :]).mean()
    return float(higher + (a[:, None] == b[None, :]).mean() / 2)


def paired_cohen_d(before: Sequence[float], after: Sequence[float]) -> dict[str, float | None] | None:
    """Cohen's d of paired values (mean over deviation of after - before); None for fewer than two pairs.

    `size` is None where all differences are equal and not 0, and has no bound; `difference` is in the units of the
    values. The interval is that of the percentile bootstrap over pairs; few pairs make it wide, as it should be.
    Resamples whose differences are all equal say nothing of the size and are left out.
    """
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    if len(change) < 2:
        return None
    mean = float(change.mean())
    size = _standardised_mean_per_row(change[None])[0]
    resamples = np.random.default_rng(0).integers(0, len(change), (RESAMPLES, len(change)))
    sizes = _standardised_mean_per_row(change[resamples])
    sizes = sizes[np.isfinite(sizes)]
    if not math.isfinite(size):
        return {"size": None, "low": None, "high": None, "difference": mean, "n": len(change)}
    low, high = np.quantile(sizes, [0.025, 0.975]) if len(sizes) else (size, size)
    return {"size": float(size), "low": float(low), "high": float(high), "difference": mean, "n": len(change)}


def _standardised_mean_per_row(change: np.ndarray) -> np.ndarray:
    """Mean over standard deviation of each row; 0 where nothing changes, infinite where all changes are equal."""
    mean, deviation = change.mean(axis=1), change.std(axis=1, ddof=1)
    flat = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(flat, np.where(mean == 0, 0.0, np.sign(mean) * np.inf), mean / deviation)
    return np.asarray(size)
