"""Correlation: Pearson's of two columns, and Spearman's of their ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from revisit.stats.paired import ranks_with_mean_ties


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
