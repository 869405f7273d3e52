"""Memory symmetry: is each frame on the way back the frame on the way out?"""

from __future__ import annotations

import numpy as np

import revisit

FREE = 1000.0  # squared grey levels that cost nothing: an RMSE of 31.6 levels
STILL = 20.0  # squared grey levels, 35 dB: less is what compressing a picture twice does
GROWTH = 0.2  # of a frame's weight against the one before it: the last five frames have 63 % of the weight


@revisit.frame_metric(
    id="iworld_symmetry",
    title="Memory symmetry",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    suites=("iworld",),
    responds_to=("partial_return",),
    blind_to=("frozen camera", "small things", "anything but the last frames"),
)
def symmetry(frames: np.ndarray, *, rule: str = "corrected") -> float | revisit.Unscored:
    """Mean of exp(-1e-4 max(MSE - 1000, 0)^1.1) of mirrored frames, the last weighing most; 8-bit levels.

    Published is a score for every clip; `corrected` asks that the middle frame is another than the first.
    """
    count = len(frames)
    if count < 4:
        return revisit.Unscored("too_short", f"{count} frames cannot go out and come back")
    levels = frames.astype(np.float32)
    middle = ((levels[0] - levels[count // 2]) ** 2).mean()
    if rule != "upstream" and middle < STILL:
        return revisit.Unscored("at_rest", f"the middle frame differs from the first by {middle:.1f} squared levels")
    error = np.array([((levels[i] - levels[count - 1 - i]) ** 2).mean() for i in range(1, count)])
    weight = np.exp(GROWTH * np.arange(1 - count, 0))
    alike = np.exp(-1e-4 * np.maximum(error - FREE, 0) ** 1.1)
    return float(np.clip(alike @ weight / weight.sum(), 0, 1))
