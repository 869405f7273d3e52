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
from functools import partial, update_wrapper
from typing import Any, Literal

import numpy as np

from revisit.core.cases import FRAME_RATE_OF_FOLDERS
from revisit.core.errors import UsageError
from revisit.core.evidence import evidence_id
from revisit.core.frames import Frame, as_stream
from revisit.core.registry import Registry
from revisit.core.watching import watched

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


# What a sequence observer is: frames, or pairs of them, are sent in, None at the end, and evidence is returned.
Sight = Generator[None, Frame | None, Any]
PairSight = Generator[None, tuple[Frame, Frame] | None, Any]


@dataclass(frozen=True)
class Observer:
    """An observer with its request. `observer(frames)` is its evidence of frames in memory."""

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

    def __call__(self, frames: Any, *, reference: Any = None, fps: float = FRAME_RATE_OF_FOLDERS, **given: Any) -> Any:
        """Its evidence of frames: (count, height, width, 3) bytes, frames or a stream of them; an importer's of a file.

        A `reference` has as many frames. Further names are inputs and parameters: `flow(frames)`,
        `masks(frames, target=Target("cup", box), at_most=8)`.
        """
        inputs, params = self.arguments(given)
        if self.kind == "file":
            return self.fn(frames, *inputs, **params)
        if self.kind == "judge":
            raise UsageError(f"{self.id} needs a judge, so it only runs in `revisit eval --judge`")
        if self.ready is not None and (why := self.ready()):
            raise UsageError(f"{self.id}: {why}")
        if self.pairs and reference is None:
            raise UsageError(f"{self.id}: no reference video was given")
        truth = as_stream(reference, fps) if self.pairs else None
        return watched(self, as_stream(frames, fps), truth, inputs, params)

    def arguments(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Inputs in their order and all parameters, from both by name: `artifacts.da3?` is called da3."""
        names = {name: name.removesuffix("?").rpartition(".")[2].removesuffix("_or_name") for name in self.inputs}
        unknown = sorted(set(given) - {*names.values(), *self.params})
        if unknown:
            takes = ", ".join([*names.values(), *self.params]) or "only frames"
            raise UsageError(f"{self.id} has no input or parameter {unknown[0]!r}; it takes {takes}")
        inputs = []
        for name, called in names.items():
            value = given.get(called, {} if called == "annotations" else None)
            if value is None and not name.endswith("?"):
                raise UsageError(f"{self.id} needs {called}: pass {called}=")
            inputs.append(value)
        return inputs, {**self.params, **{name: given[name] for name in self.params if name in given}}

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
        raise TypeError(f"{id}: an observer of kind 'file' must name its artifact; other kinds must not")
    if (kind == "judge") != (shows is not None):
        raise TypeError(f"{id}: an observer of kind 'judge' must say what it shows; other kinds must not")

    def register(fn: Callable[..., Any]) -> Observer:
        return OBSERVERS.add(id, Observer(
            id, version, kind, makes, fn, frames or every(), size, pairs, inputs, weights, choose, prepare,
            sets, keyword_defaults(fn), ready, artifact, shows, made_by,
        ))  # fmt: skip

    return register


def observers(
    networks: Mapping[str, str | tuple[str, ...]], **request: Any
) -> Callable[[Callable[..., Any]], tuple[Observer, ...]]:
    """Register one function as several observers that differ in their network: the id of each -> its weights.

    The function is given the first of these weights as its first argument; its docstring names it as {network}.
    """

    def register(fn: Callable[..., Any]) -> tuple[Observer, ...]:
        made = []
        for id, named in networks.items():
            weights = (named,) if isinstance(named, str) else named
            one = update_wrapper(partial(fn, weights[0]), fn)
            one.__doc__ = (fn.__doc__ or "").replace("{network}", weights[0])
            made.append(observer(id=id, weights=weights, **request)(one))
        return tuple(made)

    return register


def keyword_defaults(fn: Callable[..., Any]) -> dict[str, Any]:
    """Keyword-only parameters of a function with their defaults."""
    found = inspect.signature(fn).parameters.values()
    return {p.name: p.default for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY}
