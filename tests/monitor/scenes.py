"""Clips that look away and come back, with a known amount of forgetting."""

from __future__ import annotations

import numpy as np

METRICS = ["return_consistency", "motion_amount", "look_away"]


def truth(seed: int) -> np.ndarray:
    """A window that slides over a painted wall and back: (21, 64, 96, 3) of bytes."""
    rng = np.random.default_rng(seed)
    wall = np.kron(rng.integers(0, 256, (12, 40, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
    return np.stack([wall[:64, x : x + 96] for x in (*range(0, 161, 16), *range(144, -1, -16))])


def forgetting(seed: int) -> np.ndarray:
    """The same way out; on the way back another wall is there."""
    frames, other = truth(seed).copy(), truth(seed + 1000)
    frames[11:] = other[11:]
    return frames


def still(seed: int) -> np.ndarray:
    return np.repeat(truth(seed)[:1], 21, axis=0)


def to_floats(frames: np.ndarray, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """(T, C, H, W) of floats, as a sampler has it."""
    return (frames.transpose(0, 3, 1, 2) / np.float32(255) * np.float32(high - low) + np.float32(low)).astype(
        np.float32
    )
