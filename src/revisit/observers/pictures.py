"""Small pictures and flow between them, as several observers need them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from revisit.core import Frame, every

SHARED_LONG_SIDE = 320  # most observers look at this size, so it is made once per frame
FLOW_SIDE = 256  # flow from frame to frame, there and back, is worked out once for all at this size
# Frames whose views are compared with each other: all who ask look at the same.
VIEWED = every(at_most=36)


def rgb_at_shared_size(frame: Frame) -> np.ndarray:
    """RGB at the size at which most observers look."""
    return rgb_at_long_side(frame, SHARED_LONG_SIDE)


def rgb_at_long_side(frame: Frame, long_side: int) -> np.ndarray:
    """RGB with its longer side at about `long_side`, as `rgb_at_exact_size` makes it; never enlarged."""
    height, width = frame.rgb.shape[:2]
    return rgb_at_exact_size(frame, *shrunk_size(width, height, long_side))


def small_rgb_from_shared_size(frame: Frame, long_side: int) -> np.ndarray:
    """RGB at a longer side below 320, made from the shared 320 instead of the full frame; never enlarged."""
    return frame.once(("small", long_side), lambda: shrink_to_long_side(rgb_at_shared_size(frame), long_side))


def shrink_to_long_side(picture: np.ndarray, long_side: int) -> np.ndarray:
    """A picture with its longer side at `long_side`; never enlarged."""
    height, width = picture.shape[:2]
    return resize_by_halving(picture, *shrunk_size(width, height, long_side))


def shrunk_size(width: int, height: int, long_side: int) -> tuple[int, int]:
    """Both sides of a picture, in any order, whose longer side becomes `long_side`; never enlarged."""
    scale = min(1.0, long_side / max(height, width))
    return max(1, round(width * scale)), max(1, round(height * scale))


def rgb_at_exact_size(frame: Frame, width: int, height: int) -> np.ndarray:
    """RGB at exactly this size: halved as often as that goes, and the rest by interpolation.

    That costs a fraction of area averaging at once, and is about as sharp. Every step is one of whole numbers.
    """
    picture, times = frame.rgb, 0
    while _can_be_halved(picture, width, height):
        times += 1
        picture = frame.once(("halved", times), partial(shrink_to_half, picture))
    return frame.once(("brought", width, height), lambda: resize_by_halving(picture, width, height))


def resize_by_halving(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """RGB, RGBA or grey at exactly this size, as `rgb_at_exact_size` makes it."""
    while _can_be_halved(picture, width, height):
        picture = shrink_to_half(picture)
    if picture.shape[:2] == (height, width):
        return picture
    far = picture.shape[0] > 2 * height + 1 or picture.shape[1] > 2 * width + 1  # an odd size, which cannot be halved
    return (resize_by_area if far else resize_by_exact_bilinear)(picture, width, height)


def _can_be_halved(picture: np.ndarray, width: int, height: int) -> bool:
    return all(have % 2 == 0 and have >= 2 * want for have, want in zip(picture.shape, (height, width), strict=False))


def resize_by_exact_bilinear(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """RGB, RGBA or grey at this size by bilinear interpolation that gives the same bytes on every processor.

    OpenCV's plain `INTER_LINEAR` does not: between ARM64 and x86-64 a third of them differ, by up to 2. Area averaging
    over fractions of pixels comes close: one in two thousand differs, by 1. The exact kind takes two thirds of the time
    for four channels that it takes for three.
    """
    import cv2

    if picture.ndim == 2 or picture.shape[2] == 4:
        return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR_EXACT))
    four = cv2.resize(cv2.cvtColor(picture, cv2.COLOR_RGB2RGBA), (width, height), interpolation=cv2.INTER_LINEAR_EXACT)
    return np.asarray(cv2.cvtColor(four, cv2.COLOR_RGBA2RGB))


def resize_by_area(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture at exactly this size, by area averaging."""
    import cv2

    return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA))


def shrink_to_half(picture: np.ndarray) -> np.ndarray:
    """The picture with half as many rows and columns, one at least."""
    return resize_by_area(picture, max(1, picture.shape[1] // 2), max(1, picture.shape[0] // 2))


def gray_at_long_side(frame: Frame, long_side: int) -> np.ndarray:
    """BT.601 luma, 8 bits, of a frame at this longer side; below 320 made from that of 320."""
    if long_side >= SHARED_LONG_SIDE:
        return frame.once(("gray", long_side), lambda: to_gray(rgb_at_long_side(frame, long_side)))
    return frame.once(
        ("gray", long_side), lambda: shrink_to_long_side(gray_at_long_side(frame, SHARED_LONG_SIDE), long_side)
    )


def to_gray(rgb: np.ndarray) -> np.ndarray:
    """BT.601 luma, 8 bits."""
    import cv2

    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))


def create_dis_flow() -> Any:
    """Dense inverse search (Kroeger et al. 2016) with OpenCV's FAST preset; call `.calc(earlier, later, None)`."""
    import cv2

    return cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)


class Flows:
    """Flow between frames, there and back, at a longer side of 256: worked out once for whoever asks."""

    def __init__(self) -> None:
        self._maker = create_dis_flow()

    def forward_flow(self, before: Frame, after: Frame) -> np.ndarray:
        """(rows, columns, 2) from the earlier frame to the later one, in pixels at that size."""
        return after.once(("flow from", before.index), lambda: self._flow_between(before, after))

    def forward_and_backward_flow(self, before: Frame, after: Frame) -> tuple[np.ndarray, np.ndarray]:
        """The same, and from the later frame to the earlier one."""
        there = self.forward_flow(before, after)
        return there, after.once(("flow to", before.index), lambda: self._flow_between(after, before))

    def _flow_between(self, a: Frame, b: Frame) -> np.ndarray:
        return np.asarray(self._maker.calc(gray_at_long_side(a, FLOW_SIDE), gray_at_long_side(b, FLOW_SIDE), None))


def flow_with_initial_shift(
    maker: Any, a: np.ndarray, b: np.ndarray, start: tuple[float, float] = (0.0, 0.0)
) -> np.ndarray:
    """Flow from picture a to b that sets out from a shift in pixels.

    OpenCV's maker keeps the start that it was last given and sets out from it again where none is given, so that one
    maker must be given a start always, as here, or never.
    """
    flow = np.zeros((*a.shape, 2), np.float32)
    if start != (0.0, 0.0):
        flow[..., 0], flow[..., 1] = start
    return np.asarray(maker.calc(a, b, flow))


def flow_both_ways(
    maker: Any, a: np.ndarray, b: np.ndarray, start: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Flow from a to b and back that sets out from a shift in pixels."""
    return flow_with_initial_shift(maker, a, b, start), flow_with_initial_shift(maker, b, a, (-start[0], -start[1]))


def warp_back_with_mask(flow: np.ndarray, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`later` as seen from the earlier frame, and which pixels of that stay inside: later[x + flow(x)]."""
    at, inside = flow_destinations_and_inside(flow)
    return sample_picture_at(later, at), inside


def flow_destinations_and_inside(flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the flow carries each pixel, x and y, and whether that is inside.

    Half a pixel of slack keeps the outermost rows inside when the flow there is not exactly 0.
    """
    import cv2

    height, width = flow.shape[:2]
    at = flow + pixel_coordinates(width, height)
    return at, cv2.inRange(at, (-0.5, -0.5), (width - 0.5, height - 0.5)) > 0


def sample_picture_at(picture: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A picture at these places, by bilinear interpolation; beyond its border as at its border."""
    import cv2

    return np.asarray(cv2.remap(picture, at, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))


def feed_frames_in_groups(
    size: int, handle_group: Callable[[list[Frame]], None]
) -> Generator[None, Frame | None, None]:
    """Show the frames that are sent to `handle_group`, so many at a time, and at the end the rest: for `yield from`."""
    waiting: list[Frame] = []
    while (frame := (yield)) is not None:
        waiting.append(frame)
        if len(waiting) == size:
            handle_group(waiting)
            waiting = []
    if waiting:
        handle_group(waiting)


@lru_cache(maxsize=8)
def pixel_coordinates(width: int, height: int) -> np.ndarray:
    """(height, width, 2) x and y of every pixel; not to be written to."""
    return np.stack(np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)), axis=2)


def median(values: np.ndarray) -> float:
    """The median of some numbers; numpy's takes five times as long for a few hundred."""
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half, axis=None)[half])
    below, above = np.partition(values, (half - 1, half), axis=None)[half - 1 : half + 1]
    return float((below + above) / 2)


def vector_lengths(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Lengths of vectors of floats; the last bit of cv2.magnitude depends on where in memory its input lies."""
    squares = u * u
    squares += v * v
    return np.sqrt(squares, out=squares)
