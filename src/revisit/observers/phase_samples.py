"""Frames that stand for a phase: its first, its middle and its last one."""

from __future__ import annotations

from typing import Any

import numpy as np


def first_middle_last(count: int, fps: float, phases: tuple[int, int], *, samples: int = 3, **_: Any) -> np.ndarray:
    """Frames of the visible and of the returned phase, for `choose` of an observer.

    Some protocols count the first hidden frame as visible, so the visible phase is sampled both ways.
    """
    hidden, returned = phases
    spans = ((0, hidden - 1), (0, hidden), (returned, count - 1))
    steps = np.arange(samples)
    return np.unique(np.concatenate([a + (steps * (b - a) / max(samples - 1, 1)).astype(np.int64) for a, b in spans]))
