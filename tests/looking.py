"""Running one observer over frames, without a plan or workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, Frame, FrameStream, Observer
from revisit.core.frames import frame_digest
from revisit.media import open_clip


def as_frames(pictures: Iterable[np.ndarray], fps: float = 24.0) -> list[Frame]:
    """Frames with numbers, times and digests, from plain pictures."""
    return [Frame(k, k / fps, rgb, frame_digest(rgb)) for k, rgb in enumerate(pictures)]


def read(path: Path, wanted: Sequence[int] | None = None) -> tuple[list[Frame], float]:
    """Frames of a clip (all, or the wanted ones) and its frame rate."""
    with open_clip(Clip(path)) as clip:
        frames = [frame for frame in clip if wanted is None or frame.index in wanted]
        return frames, clip.info.fps


def look(
    observer: Observer, frames: list[Frame], fps: float = 24.0, reference: list[Frame] | None = None, **given: Any
) -> Any:
    """The evidence that an observer makes of these frames."""
    return observer(frames, reference=reference, fps=fps, **given)


def driven(sight: FrameStream, frames: Iterable[Frame]) -> Any:
    """What a part of an observer returns that is fed by `yield from`."""
    next(sight)
    for frame in frames:
        sight.send(frame)
    try:
        sight.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it did not end on None")


def wall(width: int = 2000, height: int = 180, seed: int = 0) -> np.ndarray:
    """A long wall with large and small random structure, to slide a window over."""
    import cv2

    rng = np.random.default_rng(seed)
    total = np.zeros((height, width, 3), np.float32)
    for cell, weight in ((64, 0.5), (16, 0.3), (4, 0.2)):
        coarse = rng.uniform(0, 255, (height // cell + 2, width // cell + 2, 3)).astype(np.float32)
        total += weight * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(total, 0, 255).astype(np.uint8)


def window(picture: np.ndarray, x: int, width: int = 320) -> np.ndarray:
    """The part of a wall that starts at column x."""
    return np.ascontiguousarray(picture[:, x : x + width])
