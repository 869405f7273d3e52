"""Frames: how observers receive a clip: one by one, in batches, or as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from revisit.core.errors import UsageError

Made = TypeVar("Made")


@dataclass(frozen=True)
class ClipInfo:
    """What is known of a clip before its first frame arrives.

    Attributes
    ----------
    width, height
        In pixels.
    count
        Frames announced by the container; a broken file may hold fewer.
    fps
        Frames a second.
    times
        Seconds of each announced frame.

    Examples
    --------
    >>> revisit.ClipInfo(48, 32, 3, 24.0, np.arange(3) / 24)
    ClipInfo(3 frames of 48x32 at 24 fps)
    """

    width: int
    height: int
    count: int
    fps: float
    times: np.ndarray

    def __repr__(self) -> str:
        return f"ClipInfo({self.count} frames of {self.width}x{self.height} at {self.fps:g} fps)"


class Frame:
    """One decoded frame. What several observers need of it is made once, and goes with it.

    Attributes
    ----------
    index, time
        Number of the frame in its clip, and its time in seconds.
    rgb
        Pixels (height, width, 3) of bytes.
    digest
        Of the pixels, worked out when it is first asked for.

    Examples
    --------
    >>> frame = revisit.Frame(0, 0.0, np.zeros((32, 48, 3), np.uint8))
    >>> frame.at(24).shape
    (16, 24, 3)
    """

    def __init__(self, index: int, time: float, rgb: np.ndarray, digest: str | None = None) -> None:
        self.index, self.time, self.rgb = index, time, rgb
        self._digest = digest
        self._made: dict[Hashable, Any] = {}

    @property
    def digest(self) -> str:
        if self._digest is None:
            self._digest = frame_digest(self.rgb)
        return self._digest

    def __repr__(self) -> str:
        return f"Frame({self.index} of {self.rgb.shape[1]}x{self.rgb.shape[0]})"

    def at(self, long_side: int | None) -> np.ndarray:
        """RGB with its longer side reduced to `long_side` by area averaging; never enlarged."""
        height, width = self.rgb.shape[:2]
        if long_side is None or max(height, width) <= long_side:
            return self.rgb
        return self.once(long_side, lambda: resize_by_area_averaging(self.rgb, long_side))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returns, made for the first observer that asks under this key and kept for the others."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def resize_by_area_averaging(rgb: np.ndarray, long_side: int) -> np.ndarray:
    """A picture with its longer side at `long_side`, by area averaging."""
    import cv2

    height, width = rgb.shape[:2]
    scale = long_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA))


@dataclass(frozen=True)
class Batch:
    """A few frames, at the size that an observer asked for.

    Those that a network is given are of one size, and may be of several clips.

    Attributes
    ----------
    index, time
        Number and time in seconds of each frame.
    rgb
        Pixels of each, (height, width, 3) of bytes; on a GPU one tensor.
    reference, reference_index
        The frame that each is compared with, and its number, for observers of pairs.
    inputs
        What the case says, for each frame: values of the observer's `inputs`.

    Examples
    --------
    >>> revisit.Batch(np.array([0]), np.array([0.0]), [np.zeros((32, 48, 3), np.uint8)])
    Batch(1 frames)
    """

    index: np.ndarray
    time: np.ndarray
    rgb: Sequence[np.ndarray]
    reference: Sequence[np.ndarray] = ()
    reference_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    inputs: Sequence[tuple[Any, ...]] = ()

    def __repr__(self) -> str:
        return f"Batch({len(self.index)} frames{' with their references' if len(self.reference) else ''})"


class Stream(Protocol):
    """The frames of a clip in order, and what is known of them before."""

    @property
    def info(self) -> ClipInfo: ...

    def __iter__(self) -> Iterator[Frame]: ...


def as_stream(clip: Any, fps: float) -> Stream:
    """A clip that is given as a stream, as frames (some, by their numbers), or as an array or tensor of pixels."""
    if hasattr(clip, "info"):
        return clip
    if isinstance(clip, Sequence) and len(clip) and isinstance(clip[0], Frame):
        (height, width), count = clip[0].rgb.shape[:2], clip[-1].index + 1
        return _InMemory(ClipInfo(width, height, count, fps, np.array([frame.time for frame in clip])), clip)
    rgb = as_pixel_array(clip)
    if not 0 < fps < float("inf"):
        raise UsageError(f"{fps:g} is not a valid frame rate; give a number above zero")
    count, height, width = rgb.shape[:3]
    return _InMemory(ClipInfo(width, height, count, fps, np.arange(count) / fps), rgb)


@dataclass(frozen=True)
class _InMemory:
    """A stream of frames, or of pixels that become frames one by one."""

    info: ClipInfo
    pictures: Sequence[Frame] | np.ndarray

    def __iter__(self) -> Iterator[Frame]:
        for number, picture in enumerate(self.pictures):
            if isinstance(picture, Frame):
                yield picture
            else:
                rgb = np.ascontiguousarray(picture)
                yield Frame(number, float(self.info.times[number]), rgb)


def as_pixel_array(frames: Any, name: str = "frames") -> np.ndarray:
    """(count, height, width, 3) bytes, from an array, a tensor or a list of pictures."""
    if hasattr(frames, "detach"):  # a torch tensor, wherever it lies
        frames = frames.detach().cpu().numpy()
    array = np.asarray(frames)
    if array.dtype == object or array.ndim < 3:
        described = f"shape {array.shape}" if isinstance(frames, list | tuple | np.ndarray) else type(frames).__name__
        raise UsageError(f"{name}: frames are an array (count, height, width, 3) of bytes, not {described}")
    if array.dtype != np.uint8:
        raise UsageError(
            f"{name}: pixels are bytes from 0 to 255 (uint8), not {array.dtype}; for values from 0 to 1 pass "
            "(255 * frames).round().clip(0, 255) as uint8"
        )
    if array.ndim != 4 or array.shape[-1] != 3 or 0 in array.shape:
        hint = "; put the channels last: frames.permute(0, 2, 3, 1)" if array.ndim == 4 and array.shape[1] == 3 else ""
        raise UsageError(f"{name}: frames are (count, height, width, 3), not {array.shape}{hint}")
    return array


def frame_digest(rgb: np.ndarray) -> str:
    """The first 128 bits of the SHA-256 of a frame's shape and bytes, in hex."""
    sha256 = hashlib.sha256("x".join(map(str, rgb.shape)).encode())
    sha256.update(rgb.data)
    return sha256.hexdigest()[:32]
