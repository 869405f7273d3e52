"""Small pictures and flow between them, as several observers need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Frame

SHARED_LONG_SIDE = 320  # most observers look at this size, so it is made once per frame


def small(frame: Frame, long_side: int) -> np.ndarray:
    """RGB at a longer side below 320, made from the shared 320 instead of the full frame; never enlarged."""
    import cv2

    rgb = frame.at(SHARED_LONG_SIDE)
    height, width = rgb.shape[:2]
    if max(height, width) <= long_side:
        return rgb
    scale = long_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA))


def gray(rgb: np.ndarray) -> np.ndarray:
    """BT.601 luma, 8 bits."""
    import cv2

    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))


def flow_maker() -> Any:
    """Dense inverse search (Kroeger et al. 2016) with OpenCV's FAST preset; call `.calc(earlier, later, None)`."""
    import cv2

    return cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)


def follow(flow: np.ndarray, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`later` as seen from the earlier frame, and which pixels of that stay inside: later[x + flow(x)].

    Half a pixel of slack keeps the outermost rows inside when the flow there is not exactly 0.
    """
    import cv2

    height, width = flow.shape[:2]
    x = flow[:, :, 0] + np.arange(width, dtype=np.float32)
    y = flow[:, :, 1] + np.arange(height, dtype=np.float32)[:, None]
    inside = (x >= -0.5) & (y >= -0.5) & (x <= width - 0.5) & (y <= height - 0.5)
    return np.asarray(cv2.remap(later, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)), inside
