"""Vectors: normalisation that several chapters share."""

from __future__ import annotations

import numpy as np


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 along the last axis, in double precision; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=np.float64)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))
