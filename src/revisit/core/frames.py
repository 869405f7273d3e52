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
    """What is known of a clip before its first frame arrives."""

    width: int
    height: int
    count: int  # frames announced by the container; a broken file may hold fewer
    fps: float
    times: np.ndarray  # seconds of each announced frame


class Frame:
    """One decoded frame. What several observers need of it is made once, and goes with it: `at`, `once`."""

    def __init__(self, index: int, time: float, rgb: np.ndarray, digest: str) -> None:
        self.index, self.time, self.rgb, self.digest = index, time, rgb, digest
        self._made: dict[Hashable, Any] = {}

    def at(self, long_side: int | None) -> np.ndarray:
        """RGB with its longer side reduced to `long_side` by area averaging; never enlarged."""
        height, width = self.rgb.shape[:2]
        if long_side is None or max(height, width) <= long_side:
            return self.rgb
        return self.once(long_side, lambda: area_averaged(self.rgb, long_side))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returns, made for the first observer that asks under this key and kept for the others."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def area_averaged(rgb: np.ndarray, long_side: int) -> np.ndarray:
    """A picture with its longer side at `long_side`, by area averaging."""
    import cv2

    height, width = rgb.shape[:2]
    scale = long_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA))


@dataclass(frozen=True)
class Batch:
    """A few frames, at the size the observer asked for. Those of a network are all of one size, from any clips."""

    index: np.ndarray
    time: np.ndarray
    rgb: Sequence[np.ndarray]  # on a GPU one tensor (frames, height, width, 3)
    reference: Sequence[np.ndarray] = ()  # the frame each is compared with, for observers of pairs
    reference_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    inputs: Sequence[tuple[Any, ...]] = ()  # what the case says, for each frame: values of the observer's `inputs`


class Stream(Protocol):
    """The frames of a clip in order, and what is known of them before."""

    @property
    def info(self) -> ClipInfo: ...

    def __iter__(self) -> Iterator[Frame]: ...


def as_stream(given: Any, fps: float) -> Stream:
    """A clip that is given as a stream, as frames (some, by their numbers), or as an array or tensor of pixels."""
    if hasattr(given, "info"):
        return given
    if isinstance(given, Sequence) and len(given) and isinstance(given[0], Frame):
        (height, width), count = given[0].rgb.shape[:2], given[-1].index + 1
        return _InMemory(ClipInfo(width, height, count, fps, np.array([frame.time for frame in given])), given)
    rgb = pixels(given)
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
        for number, shown in enumerate(self.pictures):
            if isinstance(shown, Frame):
                yield shown
            else:
                rgb = np.ascontiguousarray(shown)
                yield Frame(number, float(self.info.times[number]), rgb, frame_digest(rgb))


def pixels(given: Any, name: str = "frames") -> np.ndarray:
    """(count, height, width, 3) bytes, from an array, a tensor or a list of pictures."""
    if hasattr(given, "detach"):  # a torch tensor, wherever it lies
        given = given.detach().cpu().numpy()
    made = np.asarray(given)
    if made.dtype != np.uint8:
        raise UsageError(
            f"{name}: pixels are bytes from 0 to 255 (uint8), not {made.dtype}; for values from 0 to 1 pass "
            "(255 * frames).round().clip(0, 255) as uint8"
        )
    if made.ndim != 4 or made.shape[-1] != 3 or 0 in made.shape:
        hint = "; put the channels last: frames.permute(0, 2, 3, 1)" if made.ndim == 4 and made.shape[1] == 3 else ""
        raise UsageError(f"{name}: frames are (count, height, width, 3), not {made.shape}{hint}")
    return made


def frame_digest(rgb: np.ndarray) -> str:
    """The first 128 bits of the SHA-256 of a frame's shape and bytes, in hex."""
    made = hashlib.sha256("x".join(map(str, rgb.shape)).encode())
    made.update(rgb.data)
    return made.hexdigest()[:32]
