"""Small pictures and flow between them, as several observers need them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from revisit.core import Frame, every
from revisit.core.frames import area_averaged

SHARED_LONG_SIDE = 320  # most observers look at this size, so it is made once per frame
# Frames whose views are compared with each other: all who ask look at the same.
VIEWED = every(at_most=48)


def at_shared_size(frame: Frame) -> np.ndarray:
    """RGB at the size at which most observers look."""
    return frame.at(SHARED_LONG_SIDE)


def small(frame: Frame, long_side: int) -> np.ndarray:
    """RGB at a longer side below 320, made from the shared 320 instead of the full frame; never enlarged."""
    rgb = at_shared_size(frame)
    if max(rgb.shape[:2]) <= long_side:
        return rgb
    return frame.once(("small", long_side), lambda: area_averaged(rgb, long_side))


def gray_at(frame: Frame, long_side: int) -> np.ndarray:
    """BT.601 luma, 8 bits, of a frame at this longer side."""
    return frame.once(("gray", long_side), lambda: gray(frame.at(long_side)))


def gray(rgb: np.ndarray) -> np.ndarray:
    """BT.601 luma, 8 bits."""
    import cv2

    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))


def flow_maker() -> Any:
    """Dense inverse search (Kroeger et al. 2016) with OpenCV's FAST preset; call `.calc(earlier, later, None)`."""
    import cv2

    return cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)


def flow_from(maker: Any, a: np.ndarray, b: np.ndarray, start: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Flow from picture a to b that sets out from a shift in pixels.

    OpenCV's maker keeps the start that it was last given and sets out from it again where none is given, so that one
    maker must be given a start always, as here, or never.
    """
    return np.asarray(maker.calc(a, b, np.full((*a.shape, 2), start, np.float32)))


def follow(flow: np.ndarray, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`later` as seen from the earlier frame, and which pixels of that stay inside: later[x + flow(x)].

    Half a pixel of slack keeps the outermost rows inside when the flow there is not exactly 0.
    """
    import cv2

    height, width = flow.shape[:2]
    at = flow + _places(width, height)
    inside = cv2.inRange(at, (-0.5, -0.5), (width - 0.5, height - 0.5)) > 0
    return np.asarray(cv2.remap(later, at, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)), inside


@lru_cache(maxsize=8)
def _places(width: int, height: int) -> np.ndarray:
    """(height, width, 2) x and y of every pixel."""
    return np.stack(np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)), axis=2)


def lengths(across: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Lengths of vectors; the last bit of cv2.magnitude depends on where in memory its input lies."""
    found: np.ndarray = np.sqrt(across * across + down * down)
    return found
