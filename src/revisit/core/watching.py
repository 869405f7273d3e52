"""Watching: runs an observer of any kind on one clip. This is the one place that drives observers.

`watch` makes an observer ready for the first frame of a clip, and whoever has the frames shows them one by one: the
engine, which feeds many observers in one pass, or `watched`, which feeds one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from revisit.core.errors import MediaError, UsageError
from revisit.core.frames import Batch, ClipInfo, Frame, Stream

if TYPE_CHECKING:
    from revisit.core.observer import Observer

BATCH = 16  # frames handed to a frame observer at a time, where it works on one clip


class Watcher(Protocol):
    """An observer at work on one clip."""

    def see(self, frame: Frame, reference: Frame | None) -> None: ...

    def finish(self) -> Any: ...


def watch(observer: Observer, info: ClipInfo, inputs: Sequence[Any], params: Mapping[str, Any]) -> Watcher:
    """An observer that is ready for the first frame of a clip; `inputs` are in the order of `observer.inputs`."""
    if observer.kind == "sequence":
        return _Sequence(observer, info, inputs, params)
    if observer.kind == "frame":
        return _Frames(observer, inputs, params, limit=BATCH)
    return _Frames(observer, inputs, {**params, **dict(zip(observer.inputs, inputs, strict=True))}, limit=None)


def watched(
    observer: Observer, clip: Stream, reference: Stream | None, inputs: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """The evidence that one observer makes of a clip; with a reference, frames of the same number are a pair."""
    info = clip.info
    if reference is not None and reference.info.count != info.count:
        raise UsageError(
            f"the reference has {reference.info.count} frames and the clip {info.count}; cut the longer one"
        )
    wanted = set(observer.wanted(info.count, info.fps, inputs, params).tolist())
    with steady_libraries():
        watcher = watch(observer, info, inputs, params)
        partners: Iterable[Frame | None] = _of(reference, wanted) if reference is not None else repeat(None)
        for frame, partner in zip(_of(clip, wanted), partners, strict=False):
            watcher.see(frame, partner)
        return watcher.finish()


def _of(stream: Stream, wanted: set[int]) -> Iterator[Frame]:
    return (frame for frame in stream if frame.index in wanted)


class _Sequence:
    """Drives a generator that receives frames through `yield`."""

    def __init__(self, observer: Observer, info: ClipInfo, inputs: Sequence[Any], params: Mapping[str, Any]) -> None:
        self.pairs = observer.pairs
        self.sight = observer.fn(info, *inputs, **params)
        next(self.sight)

    def see(self, frame: Frame, reference: Frame | None) -> None:
        if self.pairs and reference is None:
            return  # the reference ended before the clip
        self.sight.send((frame, reference) if self.pairs else frame)

    def finish(self) -> Any:
        try:
            self.sight.send(None)
        except StopIteration as stop:
            return stop.value
        raise TypeError("a sequence observer returns its evidence when it receives None")


class _Frames:
    """Collects frames and calls a function of a Batch; `limit` None means all frames at once."""

    def __init__(self, observer: Observer, inputs: Sequence[Any], params: Mapping[str, Any], limit: int | None) -> None:
        self.observer, self.inputs, self.params, self.limit = observer, tuple(inputs), params, limit
        self.waiting: list[Prepared] = []
        self.parts: list[Any] = []

    def see(self, frame: Frame, reference: Frame | None) -> None:
        if self.observer.pairs and reference is None:
            return  # the reference ended before the clip
        self.waiting.append(prepared(self.observer, self.params, frame, reference))
        if self.limit is not None and len(self.waiting) >= self.limit:
            self._flush()

    def _flush(self) -> None:
        rows, self.waiting = self.waiting, []
        self.parts.append(self.observer.fn(batch_of(rows, [self.inputs] * len(rows)), **self.params))

    def finish(self) -> Any:
        if self.waiting:
            self._flush()
        return joined(self.parts)


@dataclass(frozen=True)
class Prepared:
    """One frame as an observer wants it, with the reference's, at the same size, where it observes pairs."""

    index: int
    time: float
    rgb: np.ndarray
    digest: str  # of the frame as it was decoded
    reference_index: int | None = None
    reference: np.ndarray | None = None


def prepared(observer: Observer, params: Mapping[str, Any], frame: Frame, reference: Frame | None) -> Prepared:
    """A frame, or a pair of them, at the size that the observer asks for."""
    side = observer.side(params)
    if not observer.pairs:
        picture = frame.at(side) if observer.prepare is None else observer.prepare(frame, **params)
        return Prepared(frame.index, frame.time, picture, frame.digest)
    assert reference is not None
    if observer.prepare is None:
        mine, other = frame.at(side), reference.at(side)
    else:
        mine, other = observer.prepare((frame, reference), **params)
    if mine.shape != other.shape:
        import cv2

        other = cv2.resize(other, mine.shape[1::-1], interpolation=cv2.INTER_AREA)
    return Prepared(frame.index, frame.time, mine, frame.digest, reference.index, other)


def batch_of(rows: Sequence[Prepared], inputs: Sequence[tuple[Any, ...]]) -> Batch:
    """Prepared frames as one batch."""
    pairs = rows[0].reference is not None
    return Batch(
        np.array([row.index for row in rows]),
        np.array([row.time for row in rows]),
        [row.rgb for row in rows],
        [row.reference for row in rows if row.reference is not None],
        np.array([row.reference_index for row in rows if pairs], dtype=np.int64),
        inputs,
    )


def joined(parts: Sequence[Any]) -> Any:
    """Evidence of several batches as one record, along the first axis of every array."""
    if not parts:
        raise MediaError("the clip has no frames")
    first = parts[0]
    if len(parts) == 1:
        return first
    together = {}
    for f in fields(first):
        values = [getattr(part, f.name) for part in parts]
        together[f.name] = np.concatenate(values) if isinstance(values[0], np.ndarray) else values[0]
    return type(first)(**together)


@contextmanager
def steady_libraries() -> Iterator[None]:
    """OpenCV and BLAS on one thread each: what some of their algorithms give depends on the number of threads."""
    import cv2
    from threadpoolctl import threadpool_limits

    threads, opencl = cv2.getNumThreads(), cv2.ocl.useOpenCL()
    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        cv2.setNumThreads(threads)
        cv2.ocl.setUseOpenCL(opencl)
