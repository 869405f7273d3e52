"""Observers: frames in, evidence out, and what they ask of the engine.

Five kinds, told apart by what they are given:

- `frame`: a function of a Batch of single frames, of one clip or of several; every array of its evidence has a row for
  each frame, by which the evidence is split and joined again. With `pairs=True` the batch holds reference frames too;
- `sequence`: a generator that receives the frames of one clip in order through `yield`, ends on
  None and returns its evidence. With `pairs=True` it receives (frame, reference frame) instead;
- `clip`: a function of all chosen frames of a clip at once (bounded by the request);
- `file`: an importer: a function of the path of a file that came with the clip (`artifact` names it in
  Case.artifacts). It sees no frames, and its evidence goes with the bytes of that file;
- `judge`: a generator that is given the pictures of a clip (`shows` names the evidence that holds them), yields lists
  of questions, receives a judge's answers to them and returns its evidence. It runs in the main process, beside the
  decoding, and its evidence goes with everything that the judge's answers depend on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from revisit.core.evidence import evidence_id
from revisit.core.registry import Registry

Kind = Literal["frame", "sequence", "clip", "file", "judge"]


@dataclass(frozen=True)
class Sampling:
    """Which frames an observer wants: every one, `rate` per second, or at most `at_most` spread evenly.

    The first and the last frame are always among them, so that both end views are seen.
    """

    rate: float | None = None
    at_most: int | None = None

    def pick(self, count: int, fps: float) -> np.ndarray:
        """Frame numbers wanted of a clip with `count` frames."""
        wanted = np.arange(count)
        if self.rate is not None and count:
            step = max(fps / self.rate, 1.0)
            wanted = np.unique(np.r_[0, np.arange(0, count, step).round().astype(int), count - 1])
            wanted = wanted[wanted < count]
        if self.at_most is not None and len(wanted) > self.at_most:
            wanted = wanted[np.linspace(0, len(wanted) - 1, self.at_most).astype(int)]
        return wanted

    def __str__(self) -> str:
        rate = "every frame" if self.rate is None else f"{self.rate:g} frames a second"
        return rate if self.at_most is None else f"{rate}, at most {self.at_most}"


def every(*, at_most: int | None = None) -> Sampling:
    """Every frame, or at most so many of them, evenly spread."""
    return Sampling(at_most=at_most)


def per_second(rate: float, *, at_most: int | None = None) -> Sampling:
    """So many frames a second."""
    return Sampling(rate=rate, at_most=at_most)


@dataclass(frozen=True)
class ClipInfo:
    """What is known of a clip before its first frame arrives."""

    width: int
    height: int
    count: int  # frames announced by the container; a broken file may hold fewer
    fps: float
    times: np.ndarray  # seconds of each announced frame


class Frame:
    """One decoded frame; `at(long_side)` gives it scaled down, once for all observers that ask."""

    def __init__(self, index: int, time: float, rgb: np.ndarray, digest: str) -> None:
        self.index, self.time, self.rgb, self.digest = index, time, rgb, digest
        self._scaled: dict[int, np.ndarray] = {}

    def at(self, long_side: int | None) -> np.ndarray:
        """RGB with its longer side reduced to `long_side` by area averaging; never enlarged."""
        height, width = self.rgb.shape[:2]
        if long_side is None or max(height, width) <= long_side:
            return self.rgb
        if long_side not in self._scaled:
            import cv2

            scale = long_side / max(height, width)
            size = max(1, round(width * scale)), max(1, round(height * scale))
            self._scaled[long_side] = cv2.resize(self.rgb, size, interpolation=cv2.INTER_AREA)
        return self._scaled[long_side]


@dataclass(frozen=True)
class Batch:
    """A few frames, at the size the observer asked for. Those of a network are all of one size, from any clips."""

    index: np.ndarray
    time: np.ndarray
    rgb: Sequence[np.ndarray]  # on a GPU one tensor (frames, height, width, 3)
    reference: Sequence[np.ndarray] = ()  # the frame each is compared with, for observers of pairs
    reference_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    inputs: Sequence[tuple[Any, ...]] = ()  # what the case says, for each frame: values of the observer's `inputs`


Sight = Generator[None, Any, Any]  # what a sequence observer is: frames are sent in, evidence is returned


@dataclass(frozen=True)
class Observer:
    """An observer with its request. Call `fn` through the engine, or directly in a test."""

    id: str
    version: int
    kind: Kind
    makes: type
    fn: Callable[..., Any]
    frames: Sampling = field(default_factory=every)
    size: int | str | None = None  # longer side in pixels, or the parameter that says it; None for the clip's own size
    pairs: bool = False  # receives the reference clip's frames too
    inputs: tuple[str, ...] = ()  # fields of the Case it reads, such as "target"; None for "target?" without one
    weights: tuple[str, ...] = ()  # ids in weights.lock; an observer with weights runs where the networks are
    choose: Callable[..., np.ndarray] | None = None  # (count, fps, *inputs, **params) -> frames wanted, for `frames`
    prepare: Callable[..., Any] | None = None  # (frame or pair, **params) -> picture(s) of a batch, for `size`
    sets: tuple[str, ...] = ()  # observer sets it joins without being named in their file
    params: Mapping[str, Any] = field(default_factory=dict)
    ready: Callable[[], str | None] | None = None  # says why it cannot run here; asked before anything is decoded
    artifact: str = ""  # the file that an importer reads, as Case.artifacts calls it
    shows: type | None = None  # the kind of evidence that holds the pictures a judge is shown
    made_by: str = ""  # the command that makes an importer's file

    def side(self, params: Mapping[str, Any]) -> int | None:
        """Longer side in pixels of the pictures it wants, None for the clip's own size."""
        return params[self.size] if isinstance(self.size, str) else self.size

    def wanted(self, count: int, fps: float, inputs: Sequence[Any], params: Mapping[str, Any]) -> np.ndarray:
        """Numbers of the frames it wants of a clip with `count` frames."""
        if self.choose is None:
            return self.frames.pick(count, fps)
        chosen = np.unique(np.asarray(self.choose(count, fps, *inputs, **params), dtype=np.int64))
        return chosen[(chosen >= 0) & (chosen < count)]

    @property
    def sees(self) -> str:
        """Which frames it wants, in words."""
        return str(self.frames) if self.choose is None else "some, by the case"

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.fn) or "").partition("\n")[0]


OBSERVERS: Registry[Observer] = Registry("observer")


def observer(
    *,
    id: str,
    version: int,
    kind: Kind,
    makes: type,
    frames: Sampling | None = None,
    size: int | str | None = None,
    pairs: bool = False,
    inputs: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
    choose: Callable[..., np.ndarray] | None = None,
    prepare: Callable[..., Any] | None = None,
    sets: tuple[str, ...] = (),
    ready: Callable[[], str | None] | None = None,
    artifact: str = "",
    shows: type | None = None,
    made_by: str = "",
) -> Callable[[Callable[..., Any]], Observer]:
    """Register a function as an observer. Keyword-only arguments with defaults are its parameters."""
    evidence_id(makes)
    if (kind == "file") != bool(artifact):
        raise TypeError(f"{id}: an observer of kind 'file' names its artifact, and only such an observer does")
    if (kind == "judge") != (shows is not None):
        raise TypeError(f"{id}: an observer of kind 'judge' says what it shows, and only such an observer does")

    def register(fn: Callable[..., Any]) -> Observer:
        made = Observer(
            id, version, kind, makes, fn, frames or every(), size, pairs, inputs, weights, choose, prepare,
            sets, keyword_defaults(fn), ready, artifact, shows, made_by,
        )  # fmt: skip
        OBSERVERS.add(id, made)
        return made

    return register


def keyword_defaults(fn: Callable[..., Any]) -> dict[str, Any]:
    """Keyword-only parameters of a function with their defaults."""
    found = inspect.signature(fn).parameters.values()
    return {p.name: p.default for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY}
