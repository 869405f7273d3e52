"""Observers: frames in, evidence out; what they ask of the engine, and how they are run on a clip.

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

`start_observer` makes an observer ready for the first frame of a clip. Whoever has the frames hands them over one by
one: the engine, which feeds many observers in one pass, or `run_observer`, which feeds one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial, update_wrapper
from itertools import repeat
from typing import Any, Literal, Protocol

import numpy as np

from revisit.core.cases import FRAME_RATE_OF_FOLDERS
from revisit.core.errors import MediaError, UsageError
from revisit.core.evidence import evidence_id
from revisit.core.frames import Batch, ClipInfo, Frame, Stream, as_stream
from revisit.core.registry import Registry
from revisit.core.text import count_and_noun

ObserverKind = Literal["frame", "sequence", "clip", "file", "judge"]
Params = Mapping[str, Any]  # parameters by name
ANY_SET = "*"  # in `sets`: an observer that joins every set
BATCH = 16  # frames handed to a frame observer at a time, where it works on one clip


@dataclass(frozen=True)
class Sampling:
    """Which frames an observer wants; the first and the last one are always among them.

    Parameters
    ----------
    rate
        Frames a second; None for every one.
    at_most
        So many of them at most, evenly spread.

    Examples
    --------
    >>> revisit.per_second(2).pick(count=12, fps=8)
    array([ 0,  4,  8, 11])
    """

    rate: float | None = None
    at_most: int | None = None

    def pick(self, count: int, fps: float) -> np.ndarray:
        """Numbers of the frames that are wanted of a clip with `count` frames."""
        numbers = np.arange(count)
        if self.rate is not None and count:
            step = max(fps / self.rate, 1.0)
            numbers = np.unique(np.r_[0, np.arange(0, count, step).round().astype(int), count - 1])
            numbers = numbers[numbers < count]
        if self.at_most is not None and len(numbers) > self.at_most:
            numbers = numbers[np.linspace(0, len(numbers) - 1, self.at_most).astype(int)]
        return numbers

    def __str__(self) -> str:
        rate = "every frame" if self.rate is None else f"{self.rate:g} frames a second"
        return rate if self.at_most is None else f"{rate}, at most {self.at_most}"


def every(*, at_most: int | None = None) -> Sampling:
    """Ask for every frame of a clip, or for at most so many of them, evenly spread.

    Parameters
    ----------
    at_most
        The largest number of frames; None for all.

    Returns
    -------
    Sampling
        For `frames=` of an observer or of a frame metric.

    Examples
    --------
    >>> revisit.every(at_most=3).pick(count=9, fps=24)
    array([0, 4, 8])
    """
    return Sampling(at_most=at_most)


def per_second(rate: float, *, at_most: int | None = None) -> Sampling:
    """Ask for so many frames a second, the first and the last one among them.

    Parameters
    ----------
    rate
        Frames a second.
    at_most
        The largest number of frames; None for no limit.

    Returns
    -------
    Sampling
        For `frames=` of an observer or of a frame metric.

    Examples
    --------
    >>> revisit.per_second(8).pick(count=10, fps=24)
    array([0, 3, 6, 9])
    """
    return Sampling(rate=rate, at_most=at_most)


# What a sequence observer returns: frames, or pairs of them, are sent in, None at the end, and evidence is returned.
FrameStream = Generator[None, Frame | None, Any]
PairStream = Generator[None, tuple[Frame, Frame] | None, Any]


@dataclass(frozen=True)
class Observer:
    """A function from frames to evidence, with what it asks for; `@revisit.observer` makes one.

    `observer(frames)` is its evidence of frames in memory.

    Attributes
    ----------
    id, version, kind
        Name, version of its evidence, and what it is given: "frame", "sequence", "clip", "file" or "judge".
    makes, fn, params
        The kind of evidence, the function, and its parameters with their defaults.
    frames, choose
        Which frames it wants, or the function that says it.
    size, prepare
        Longer side in pixels, or the parameter that says it, or None for the clip's own; or a function that makes the
        picture.
    pairs
        Whether it receives the reference's frames, too.
    inputs
        Fields of the case that it reads; "target?" is None where there is none.
    weights
        Ids in weights.lock; an observer with weights runs where the networks are.
    sets
        Observer sets that it joins without being named in their file.
    ready
        Says why it cannot run here, before anything is decoded.
    artifact, made_by
        The file that an importer reads, as `Case.artifacts` calls it, and the command that makes one.
    shows
        The kind of evidence that holds the pictures a judge is shown.
    gpu_size
        Says to which size a GPU brings whole frames in the place of `prepare`.

    Examples
    --------
    >>> from revisit.core import OBSERVERS
    >>> lab = OBSERVERS["lite.lab"]
    >>> lab.makes.__name__
    'LabStats'
    >>> lab(np.zeros((2, 32, 48, 3), np.uint8)).mean[0, 0]
    np.float32(0.0)
    """

    id: str
    version: int
    kind: ObserverKind
    makes: type
    fn: Callable[..., Any]
    frames: Sampling = field(default_factory=every)
    size: int | str | None = None
    pairs: bool = False
    inputs: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    choose: Callable[..., np.ndarray] | None = None
    prepare: Callable[..., Any] | None = None
    sets: tuple[str, ...] = ()
    params: Params = field(default_factory=dict)
    ready: Callable[[], str | None] | None = None
    artifact: str = ""
    shows: type | None = None
    made_by: str = ""
    gpu_size: Callable[..., tuple[int, int] | None] | None = None

    def long_side_pixels(self, params: Params) -> int | None:
        """Longer side in pixels of the pictures it wants, None for the clip's own size."""
        return params[self.size] if isinstance(self.size, str) else self.size

    def wanted_frame_numbers(self, count: int, fps: float, inputs: Sequence[Any], params: Params) -> np.ndarray:
        """Numbers of the frames it wants of a clip with `count` frames."""
        if self.choose is None:
            return self.frames.pick(count, fps)
        numbers = np.unique(np.asarray(self.choose(count, fps, *inputs, **params), dtype=np.int64))
        return numbers[(numbers >= 0) & (numbers < count)]

    def __call__(
        self, frames: Any, *, reference: Any = None, fps: float = FRAME_RATE_OF_FOLDERS, **arguments: Any
    ) -> Any:
        """Its evidence of frames: (count, height, width, 3) bytes, frames or a stream of them; an importer's of a file.

        A `reference` has as many frames. Further names are inputs and parameters: `flow(frames)`,
        `masks(frames, target=Target("cup", box), at_most=8)`.
        """
        inputs, params = self.split_inputs_and_parameters(arguments)
        if self.kind == "file":
            return self.fn(frames, *inputs, **params)
        if self.kind == "judge":
            raise UsageError(f"{self.id} needs a judge, so it only runs in `revisit eval --judge`")
        if self.ready is not None and (why := self.ready()):
            raise UsageError(f"{self.id}: {why}")
        if self.pairs and reference is None:
            raise UsageError(f"{self.id}: no reference video was given")
        truth = as_stream(reference, fps) if self.pairs else None
        return run_observer(self, as_stream(frames, fps), truth, inputs, params)

    def split_inputs_and_parameters(self, values: Params) -> tuple[list[Any], Params]:
        """Inputs in their order and all parameters, from both by name: `artifacts.da3?` is called da3."""
        names = {name: name.removesuffix("?").rpartition(".")[2].removesuffix("_or_name") for name in self.inputs}
        unknown = sorted(set(values) - {*names.values(), *self.params})
        if unknown:
            takes = ", ".join([*names.values(), *self.params]) or "only frames"
            raise UsageError(f"{self.id} has no input or parameter {unknown[0]!r}; it takes {takes}")
        inputs = []
        for name, called in names.items():
            value = values.get(called, {} if called == "annotations" else None)
            if value is None and not name.endswith("?"):
                raise UsageError(f"{self.id} needs {called}: pass {called}=")
            inputs.append(value)
        return inputs, {**self.params, **{name: values[name] for name in self.params if name in values}}

    @property
    def frames_in_words(self) -> str:
        """Which frames it wants, in words."""
        return str(self.frames) if self.choose is None else "some, by the case"

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.fn) or "").partition("\n")[0]


OBSERVERS: Registry[Observer] = Registry("observer")


def observer(
    *,
    id: str,
    version: int = 1,
    kind: ObserverKind,
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
    params: Params | None = None,
    gpu_size: Callable[..., tuple[int, int] | None] | None = None,
) -> Callable[[Callable[..., Any]], Observer]:
    """Register a function from frames to evidence as an observer; its keyword-only arguments are its parameters.

    Parameters
    ----------
    id
        Name in commands and set files.
    version
        Raise it when the evidence changes: cached evidence is then made again.
    kind
        What the function is given. "frame": a `Batch` of a few frames. "clip": a `Batch` of all chosen frames.
        "sequence": it is a generator that receives frames through `yield`, and returns its evidence on None.
        "file": the path of a file that came with the clip. "judge": it is a generator that yields questions.
    makes
        The kind of evidence that it returns.
    frames
        Which frames it wants: `revisit.every()`, `revisit.per_second(8)`.
    size
        Longer side in pixels; the clip's own size by default.
    choose
        Function `(count, fps, *inputs, **params)` that names the frames it wants, in the place of `frames`.
    prepare
        Function `(frame or pair, **params)` that makes its pictures, in the place of `size`.
    pairs
        Whether it receives the aligned frames of the reference, too.
    inputs
        Fields of the case that it reads, such as "target"; with a question mark behind those it can do without.
    weights
        Ids of the weights of its networks.
    sets
        Observer sets that it joins; `ANY_SET` joins all.
    ready
        A function that says why it cannot run on this machine, or None.
    artifact
        Of kind "file": what `Case.artifacts` calls the file.
    made_by
        Of kind "file": the command that makes one.
    shows
        Of kind "judge": the kind of evidence that holds the pictures to ask about.
    params
        Parameters beside the keyword-only arguments, with their defaults.
    gpu_size
        Function `((height, width), **params)` of whole frames: the size to which halving and bilinear interpolation
        bring them as `prepare` does, so that a GPU can do it, or None where it cannot.

    Returns
    -------
    Observer
        The function with its request. Calling it with frames gives the evidence.

    Examples
    --------
    >>> @revisit.evidence_kind(id="redness")
    ... @dataclass(frozen=True)
    ... class Redness:
    ...     "Mean of the red channel."
    ...     index: Annotated[revisit.Array, "N; rising"]
    ...     mean: Annotated[revisit.Array, "N; finite, 0 to 255"]
    >>> @revisit.observer(id="redness", kind="frame", makes=Redness, size=64)
    ... def redness(batch):
    ...     return Redness(batch.index, np.array([rgb[..., 0].mean() for rgb in batch.rgb]))
    >>> redness(np.full((4, 32, 48, 3), 20, np.uint8)).mean
    array([20., 20., 20., 20.])
    """
    evidence_id(makes)
    if (kind == "file") != bool(artifact):
        raise TypeError(f"{id}: an observer of kind 'file' must name its artifact; other kinds must not")
    if (kind == "judge") != (shows is not None):
        raise TypeError(f"{id}: an observer of kind 'judge' must say what it shows; other kinds must not")

    def register(fn: Callable[..., Any]) -> Observer:
        return OBSERVERS.add(id, Observer(
            id, version, kind, makes, fn, frames or every(), size, pairs, inputs, weights, choose, prepare,
            sets, {**keyword_only_defaults(fn), **(params or {})}, ready, artifact, shows, made_by, gpu_size,
        ))  # fmt: skip

    return register


def register_observer_per_network(
    networks: Mapping[str, str | tuple[str, ...]], **request: Any
) -> Callable[[Callable[..., Any]], tuple[Observer, ...]]:
    """Register one function as several observers that differ in their network: the id of each -> its weights.

    The function is given the first of these weights as its first argument; its docstring names it as {network}.
    """

    def register(fn: Callable[..., Any]) -> tuple[Observer, ...]:
        registered = []
        for observer_id, weight_ids in networks.items():
            weights = (weight_ids,) if isinstance(weight_ids, str) else weight_ids
            one = update_wrapper(partial(fn, weights[0]), fn)
            one.__doc__ = (fn.__doc__ or "").replace("{network}", weights[0])
            registered.append(observer(id=observer_id, weights=weights, **request)(one))
        return tuple(registered)

    return register


def keyword_only_defaults(fn: Callable[..., Any]) -> Params:
    """Keyword-only parameters of a function with their defaults."""
    parameters = inspect.signature(fn).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


class RunningObserver(Protocol):
    """An observer at work on one clip; one of pairs sees each frame that has a partner together with it."""

    def see(self, frame: Frame, reference: Frame | None) -> None: ...

    def finish(self) -> Any: ...


def start_observer(observer: Observer, info: ClipInfo, inputs: Sequence[Any], params: Params) -> RunningObserver:
    """An observer that is ready for the first frame of a clip; `inputs` are in the order of `observer.inputs`."""
    if observer.kind == "sequence":
        return _Sequence(observer, info, inputs, params)
    if observer.kind == "frame":
        return _Frames(observer, inputs, params, limit=BATCH)
    return _Frames(observer, inputs, {**params, **dict(zip(observer.inputs, inputs, strict=True))}, limit=None)


def run_observer(
    observer: Observer, clip: Stream, reference: Stream | None, inputs: Sequence[Any], params: Params
) -> Any:
    """The evidence that one observer makes of a clip; with a reference, frames of the same number are a pair."""
    info = clip.info
    if reference is not None and reference.info.count != info.count:
        raise UsageError(
            f"the reference has {count_and_noun(reference.info.count, 'frame')} and the clip {info.count}; "
            "cut the longer one"
        )
    numbers = set(observer.wanted_frame_numbers(info.count, info.fps, inputs, params).tolist())
    with single_threaded_libraries():
        watcher = start_observer(observer, info, inputs, params)
        partners: Iterable[Frame | None] = _select_frames(reference, numbers) if reference is not None else repeat(None)
        for frame, partner in zip(_select_frames(clip, numbers), partners, strict=False):
            watcher.see(frame, partner)
        return watcher.finish()


def _select_frames(stream: Stream, numbers: set[int]) -> Iterator[Frame]:
    return (frame for frame in stream if frame.index in numbers)


class _Sequence:
    """Drives a generator that receives frames through `yield`."""

    def __init__(self, observer: Observer, info: ClipInfo, inputs: Sequence[Any], params: Params) -> None:
        self.pairs = observer.pairs
        self.sight = observer.fn(info, *inputs, **params)
        next(self.sight)

    def see(self, frame: Frame, reference: Frame | None) -> None:
        self.sight.send((frame, reference) if self.pairs else frame)

    def finish(self) -> Any:
        try:
            self.sight.send(None)
        except StopIteration as stop:
            return stop.value
        raise TypeError("a sequence observer returns its evidence when it receives None")


class _Frames:
    """Collects frames and calls a function of a Batch; `limit` None means all frames at once."""

    def __init__(self, observer: Observer, inputs: Sequence[Any], params: Params, limit: int | None) -> None:
        self.observer, self.inputs, self.params, self.limit = observer, tuple(inputs), params, limit
        self.waiting: list[PreparedFrame] = []
        self.parts: list[Any] = []

    def see(self, frame: Frame, reference: Frame | None) -> None:
        self.waiting.append(prepare_frame(self.observer, self.params, frame, reference))
        if self.limit is not None and len(self.waiting) >= self.limit:
            self._run_waiting_batch()

    def _run_waiting_batch(self) -> None:
        rows, self.waiting = self.waiting, []
        batch = Batch(
            np.array([row.index for row in rows]),
            np.array([row.time for row in rows]),
            [row.rgb for row in rows],
            [row.reference for row in rows if row.reference is not None],
            np.array([row.reference_index for row in rows if row.reference is not None], dtype=np.int64),
            [self.inputs] * len(rows),
        )
        self.parts.append(self.observer.fn(batch, **self.params))

    def finish(self) -> Any:
        if self.waiting:
            self._run_waiting_batch()
        return concatenate_evidence(self.parts)


@dataclass(frozen=True)
class PreparedFrame:
    """One frame as an observer wants it, with the reference's, at the same size, where it observes pairs."""

    index: int
    time: float
    rgb: np.ndarray
    reference_index: int | None = None
    reference: np.ndarray | None = None
    digest: str = ""  # of a whole frame


def prepare_frame(observer: Observer, params: Params, frame: Frame, reference: Frame | None) -> PreparedFrame:
    """A frame, or a pair of them, at the size that the observer asks for."""
    side = observer.long_side_pixels(params)
    if not observer.pairs:
        picture = frame.at(side) if observer.prepare is None else observer.prepare(frame, **params)
        return PreparedFrame(frame.index, frame.time, picture)
    assert reference is not None
    if observer.prepare is None:
        mine, other = frame.at(side), reference.at(side)
    else:
        mine, other = observer.prepare((frame, reference), **params)
    if mine.shape != other.shape:
        import cv2

        other = cv2.resize(other, mine.shape[1::-1], interpolation=cv2.INTER_AREA)
    return PreparedFrame(frame.index, frame.time, mine, reference.index, other)


def concatenate_evidence(parts: Sequence[Any]) -> Any:
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
def single_threaded_libraries() -> Iterator[None]:
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
