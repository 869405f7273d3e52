"""Correlation: Pearson's of two columns, and Spearman's of their ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from revisit.stats.paired import mean_ranks


def pearson(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[float, int] | None:
    """(correlation, n) over the rows in which both are known; None where fewer than three are, or one never varies."""
    rows = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    if len(rows) < 3:
        return None
    a, b = np.array(rows, dtype=float).T
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return (float((a * b).sum()) / scale, len(rows)) if scale > 0 else None


def spearman(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[float, int] | None:
    """As `pearson`, of the ranks among those rows."""
    rows = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    if len(rows) < 3:
        return None
    a, b = np.array(rows, dtype=float).T
    return pearson(mean_ranks(a).tolist(), mean_ranks(b).tolist())


def matrix(columns: Mapping[str, Sequence[float | None]]) -> dict[str, dict[str, float | None]]:
    """Pearson's correlation of every column with every other one."""
    found: dict[str, dict[str, float | None]] = {}
    for name, x in columns.items():
        pairs = {other: pearson(x, y) for other, y in columns.items()}
        found[name] = {other: None if made is None else made[0] for other, made in pairs.items()}
    return found
