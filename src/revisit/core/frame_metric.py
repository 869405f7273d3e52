"""Metrics of frames: an observer, its evidence and a metric from one function of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from revisit.core.errors import InvalidAnswer
from revisit.core.evidence import Array, evidence
from revisit.core.frames import Batch
from revisit.core.metric import Metric, Range, bare_or_called, metric, title_from_function_name
from revisit.core.observer import ANY_SET, Sampling, keyword_only_defaults, observer
from revisit.core.protocol import digest
from revisit.core.scores import Score, Series, Unscored, to_score_or_unscored

FrameFunction = Callable[..., Any]


@dataclass(frozen=True)
class FrameValues:
    """What a function of frames returned: a number, a number for each frame, or the reason why there is none."""

    index: Annotated[Array, "N"]  # frame numbers
    values: Array  # a number, or one for each frame
    reason: str = ""  # kind of the reason
    sentence: str = ""


@bare_or_called
def frame_metric(
    *,
    id: str = "",
    version: int = 1,
    title: str = "",
    unit: str = "",
    range: Range = (None, None),
    higher_is_better: bool | None = None,
    frames: Sampling | None = None,
    size: int | None = None,
    suites: tuple[str, ...] = ("folder",),
    responds_to: tuple[str, ...] = (),
    blind_to: tuple[str, ...] = (),
) -> Callable[[FrameFunction], Metric]:
    """Register a function of frames as a metric: `@frame_metric`, or `@frame_metric(...)` with what its card shall say.

    The function is `fn(frames)`, or `fn(frames, reference)` for clips with a reference, whose frames are aligned and
    brought to the clip's size. Both are arrays (count, height, width, 3) of bytes. It returns a number; an array with a
    number for each frame, whose mean is the score; or an `Unscored`. Keyword-only arguments are parameters.

    What it returns is cached like all evidence. The text of the function is part of the address, and so are numbers and
    texts that it takes from around it, so an edited function is asked again; raise `version` when something that it
    calls has changed.

    Parameters
    ----------
    id
        Name in tables and commands; the function's by default.
    version
        Raise it when the numbers change: old and new ones then never share a column.
    title
        Heading for people; by default the function's name in words.
    unit
        Of the score, such as "dB".
    range
        Lowest and highest score, such as (0, 99); None for an end that is open.
    higher_is_better
        None for a description, by which models are not ranked.
    frames
        Which frames it wants, such as `revisit.per_second(8)`; every one by default.
    size
        Longer side in pixels to which frames are reduced; their own size by default.
    suites
        Suites that ask it without being told to.
    responds_to
        Failures that it is meant to notice.
    blind_to
        Failures that it cannot notice.

    Returns
    -------
    Metric
        The metric, which `revisit.score` and `revisit.evaluate` know by its id from now on.

    Raises
    ------
    TypeError
        If the function takes anything but `frames`, or `frames` and `reference`, as positional arguments.

    Examples
    --------
    >>> @revisit.frame_metric(unit="levels", higher_is_better=False)
    ... def brightness_error(frames, reference):
    ...     "Difference of the mean brightness of each frame."
    ...     return abs(frames.mean((1, 2, 3)) - reference.mean((1, 2, 3)))
    >>> truth = np.full((4, 32, 48, 3), 100, np.uint8)
    >>> results = revisit.score(truth + 7, reference=truth, metrics=["brightness_error"])
    >>> results.score("clip@model", "brightness_error")
    7.0
    >>> results.series("clip@model", "brightness_error")["value"]
    array([7., 7., 7., 7.])
    """

    def register(fn: FrameFunction) -> Metric:
        name = id or fn.__name__
        parameters = inspect.signature(fn).parameters.values()
        positional = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        if len(positional) not in (1, 2):
            raise TypeError(f"{name}: a frame metric is a function of frames, or of frames and reference")
        about = {"__module__": fn.__module__, "__qualname__": fn.__qualname__}
        about["__doc__"] = f"What {fn.__name__} returned."
        kind: type[FrameValues] = evidence(id=f"values_of_{name}")(type("FrameValues", (FrameValues,), about))
        pairs = len(positional) == 2
        observer(
            id=name, version=version, kind="clip", makes=kind, frames=frames, size=size, pairs=pairs,
            sets=(ANY_SET,), params=keyword_only_defaults(fn),
        )(_make_observer_function(fn, kind, name, pairs))  # fmt: skip
        return metric(
            id=name, version=version, title=title or title_from_function_name(fn), unit=unit, range=range,
            higher_is_better=higher_is_better, needs=(kind,), suites=suites, responds_to=responds_to,
            blind_to=blind_to, doc=inspect.getdoc(fn) or "", params=keyword_only_defaults(fn),
        )(_copy_name_and_module(fn, lambda values, **_: _score_of_values(name, values)))  # fmt: skip

    return register


def _copy_name_and_module(fn: FrameFunction, other: Callable[..., Any]) -> Callable[..., Any]:
    """Another function under the name of `fn`: by that, registries tell a new definition from another function."""
    other.__module__, other.__name__, other.__qualname__ = fn.__module__, fn.__name__, fn.__qualname__
    return other


def _make_observer_function(fn: FrameFunction, kind: type[FrameValues], name: str, pairs: bool) -> Callable[..., Any]:
    """What an observer does that calls the function with all frames of a clip."""

    def call_with_all_frames(batch: Batch, *, code: str = _code_digest(fn), **params: Any) -> FrameValues:
        arrays = (batch.rgb, batch.reference) if pairs else (batch.rgb,)
        answer = fn(*(np.stack(list(pictures)) for pictures in arrays), **params)
        if isinstance(answer, Unscored):
            return kind(batch.index, np.zeros(0), answer.kind, answer.sentence)
        values = np.asarray(answer)
        if values.shape not in ((), batch.index.shape) or values.dtype.kind not in "fiu":
            raise InvalidAnswer(
                f"{name} returned {type(answer).__name__} of shape {values.shape}; return a number, or an array with a "
                f"number for each of the {len(batch.index)} frames"
            )
        return kind(batch.index, values.astype(float))

    call_with_all_frames.__doc__ = inspect.getdoc(fn)
    return _copy_name_and_module(fn, call_with_all_frames)


def _score_of_values(name: str, result: FrameValues) -> Score | Unscored:
    """The number, or the mean of the values of frames."""
    if result.reason:
        return Unscored(result.reason, result.sentence)
    if not result.values.ndim:
        return to_score_or_unscored(name, float(result.values))
    mean = to_score_or_unscored(name, float(result.values.mean()))
    return Score(mean.value, units=Series(frame=result.index, value=result.values)) if isinstance(mean, Score) else mean


def _code_digest(fn: FrameFunction) -> str:
    """A digest of the text of a function, or of its bytecode where there is no text, and of plain values it names."""
    text: object
    try:
        text = inspect.getsource(fn)
    except OSError:
        constants = [repr(one) for one in fn.__code__.co_consts if not hasattr(one, "co_code")]
        text = [fn.__code__.co_code.hex(), list(fn.__code__.co_names), constants]
    values = _plain_outer_values(fn)
    return digest([text, values] if values else text)


def _plain_outer_values(fn: FrameFunction) -> dict[str, object]:
    """Numbers and texts that a function takes from around it, by name."""
    with suppress(ValueError):  # a name that has no value yet
        names = inspect.getclosurevars(fn)
        outer = {**names.globals, **names.nonlocals}
        return {name: value for name, value in outer.items() if isinstance(value, int | float | str)}
    return {}
