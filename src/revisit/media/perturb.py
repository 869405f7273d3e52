"""Disturb: changes of a frame that no viewer would notice, to test how stable verdicts are."""

from __future__ import annotations

import numpy as np

GAMMA = 0.02
NOISE = 0.5  # levels, standard deviation
WORDS = {
    "brighter": "one grey level more",
    "darker": "one grey level less",
    "noise": "noise of half a level",
    "gamma_up": "gamma 2 % higher",
    "gamma_down": "gamma 2 % lower",
    "shift": "one pixel to the right and one down",
    "truncated": "levels cut off instead of rounded, as some conversions do",
}


def perturb_frame(rgb: np.ndarray, disturbance: str, frame_number: int) -> np.ndarray:
    """A frame under the disturbance; `frame_number` is the frame's, so that noise differs from frame to frame."""
    if disturbance == "shift":
        return np.ascontiguousarray(np.pad(rgb, ((1, 0), (1, 0), (0, 0)), mode="edge")[:-1, :-1])
    if disturbance in ("noise", "truncated"):
        # Rounding hides where between two levels a pixel was: it is drawn anew, and rounded or cut off.
        rng = np.random.default_rng(frame_number)
        apart = rng.normal(0, NOISE, rgb.shape) if disturbance == "noise" else rng.uniform(-0.5, 0.5, rgb.shape)
        moved = rgb + apart
        return np.clip(np.rint(moved) if disturbance == "noise" else np.floor(moved), 0, 255).astype(np.uint8)
    levels = np.arange(256.0)
    table = {
        "brighter": levels + 1,
        "darker": levels - 1,
        "gamma_up": 255 * (levels / 255) ** (1 + GAMMA),
        "gamma_down": 255 * (levels / 255) ** (1 - GAMMA),
    }[disturbance]
    return np.asarray(np.clip(np.rint(table), 0, 255).astype(np.uint8)[rgb])
