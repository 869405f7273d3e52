"""Rows of evidence: finding frames in an index."""

from __future__ import annotations

import numpy as np


def nearest_rows(index: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """For each frame number the row of `index` (rising) that is nearest, the earlier one of two."""
    after = np.clip(np.searchsorted(index, frames), 0, len(index) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(index[before] - frames) <= np.abs(index[after] - frames), before, after)
