"""Rows of evidence: finding frames in an index, runs of them, values from 0 to 1, and vectors of length 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike


def nearest_rows(index: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """For each frame number the row of `index` (rising) that is nearest, the earlier one of two."""
    after = np.clip(np.searchsorted(index, frames), 0, len(index) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(index[before] - frames) <= np.abs(index[after] - frames), before, after)


def true_runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of each run of True; the end is the row behind it."""
    edges = np.flatnonzero(np.diff(np.r_[0, mask.astype(np.int8), 0]))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def linear_ramp(values: np.ndarray | float, low: float, high: float) -> np.ndarray:
    """0 up to `low`, 1 from `high` on, and evenly more in between; either may be the larger."""
    return np.clip((np.asarray(values, dtype=float) - low) / (high - low), 0.0, 1.0)


def unit_vectors(vectors: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Vectors of length 1 along the last axis, in double precision unless told otherwise; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=dtype)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))
