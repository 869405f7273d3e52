"""A metric of frames in five lines."""

import numpy as np

import revisit


@revisit.frame_metric(id="example.brightness_change", unit="levels", higher_is_better=False, size=320)
def brightness_change(frames: np.ndarray) -> np.ndarray:
    """Difference of the mean brightness of each frame from that of the first, 0 to 255."""
    return np.abs(frames.mean((1, 2, 3)) - frames[0].mean())
