"""Vectors: normalisation that several chapters share."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike


def unit_vectors(vectors: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Vectors of length 1 along the last axis, in double precision unless told otherwise; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=dtype)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))
