"""Outset: how far the picture gets from where it began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="outset")
@dataclass(frozen=True)
class Outset:
    """Squared difference to the first frame, of the first, the middle and the last frame."""

    index: np.ndarray  # (N,) frame numbers: at most three
    mse: np.ndarray  # (N,) mean over pixels and channels of values from 0 to 1
