"""Metric, Gate and Derived: pure functions of evidence, each with its card.

`needs` lists the kinds of evidence in the order of the function's positional arguments; `Case` itself may be among
them, for what the dataset says (phases, the camera script). Keyword-only arguments are parameters: a protocol may set
them, and they are part of its hash.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, get_type_hints, overload

from revisit.core.cases import Case
from revisit.core.evidence import evidence_id
from revisit.core.observer import Params, keyword_only_defaults
from revisit.core.registry import Registry
from revisit.core.scores import GateResult, NoScore, Score, Unscored, to_gate_result_or_unscored, to_score_or_unscored

Card = ParamSpec("Card")
Function = TypeVar("Function", contravariant=True)
Registered = TypeVar("Registered", covariant=True)
Range = tuple[float | None, float | None]
ScoreFunction = Callable[..., Score | Unscored | float]
GateFunction = Callable[..., GateResult | Unscored]


def answer_or_unscored(fn: Callable[..., Any], *evidence: Any, **params: Any) -> Any:
    """What the function of a metric, gate or derivation returns, or the Unscored that stopped it."""
    try:
        return fn(*evidence, **params)
    except NoScore as error:
        return error.unscored


@dataclass(frozen=True)
class Derived:
    """Evidence computed from evidence, once per case: pairs of frames, phases, a smoothed path."""

    makes: type
    needs: tuple[type, ...]
    fn: Callable[..., Any]
    version: int
    params: Params
    optional: tuple[type, ...] = ()  # further arguments; None where there is no such evidence

    def __call__(self, *evidence: Any, **params: Any) -> Any:
        return answer_or_unscored(self.fn, *evidence, **params)

    @property
    def id(self) -> str:
        return evidence_id(self.makes)


@dataclass(frozen=True)
class Gate:
    """Decides whether a metric may be asked of a clip at all; `@revisit.gate` makes one.

    Attributes
    ----------
    id, version, title
        Name, version of its decisions, and heading for people.
    needs, fn, params
        Kinds of evidence, the function of them, and its parameters with their defaults.

    Examples
    --------
    >>> @revisit.gate(id="two_frames", title="Two frames", needs=(revisit.evidence.LabStats,))
    ... def two_frames(lab):
    ...     return revisit.GateResult("open", f"{len(lab.index)} frames")
    >>> two_frames(revisit.observe(np.zeros((2, 32, 48, 3), np.uint8), "lite.lab")).label
    '2 frames'
    """

    id: str
    version: int
    title: str
    needs: tuple[type, ...]
    fn: GateFunction
    params: Params

    def __call__(self, *evidence: Any, **params: Any) -> GateResult | Unscored:
        return to_gate_result_or_unscored(self.id, answer_or_unscored(self.fn, *evidence, **params))

    @property
    def summary(self) -> str:
        return inspect.getdoc(self.fn) or ""


UNNAMED = ("a file", "file", "not stated")  # makers of imported evidence whose file names none


@dataclass(frozen=True)
class PublishedMaker:
    """Who makes the evidence of a published column: numbers by others stand in for it, and never stand in that column.

    `fact` is the fact of a score that names its maker. Accepted are makers whose names begin with one of `names`, or
    all but `others` where no names are given; capitals, underscores and the owner before a slash do not count. A file
    that names no maker is taken at its user's word: benchmarks' own files do not name theirs either.
    """

    title: str  # for people
    fact: str
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def accepts(self, maker: str) -> bool:
        """Whether evidence by this maker is that of the published column."""
        name = maker.lower().replace("_", "-").rpartition("/")[2]
        if name in UNNAMED:
            return True
        return name.startswith(self.names) if self.names else not name.startswith(self.others)


@dataclass(frozen=True)
class Metric:
    """A pure function from evidence to a Score, with its card; `@revisit.metric` makes one.

    `metric(*evidence)` is its score of evidence in memory.

    Attributes
    ----------
    id, version, title
        Name in tables and commands, version of its numbers, and heading for people.
    unit, range, higher_is_better
        Of the score; None for an end that is open, and for a description, which is neither good nor bad.
    needs, fn, params
        Kinds of evidence, the function of them, and its parameters with their defaults.
    gates, suites, family
        Gates that must be open, suites that ask it, and the chapter of tables that it stands in.
    paper, upstream, published_by
        The publication, the published column that it reproduces, and who makes the evidence of that column.
    responds_to, blind_to, rewards_unchanged
        Failures it is meant to notice, those it cannot notice, and whether an unchanged look scores best, also where
        something should have changed.
    noise_floor
        Of a score of which 0 is best: smaller ones are errors of measurement, and count as 0 where models are compared.
    doc
        Its description, where the docstring of the function serves several metrics.

    Examples
    --------
    >>> @revisit.metric(unit="L*")
    ... def first_lightness(lab: revisit.evidence.LabStats):
    ...     "Lightness of the first frame."
    ...     return lab.mean[0, 0]
    >>> first_lightness.title, first_lightness.summary
    ('First lightness', 'Lightness of the first frame.')
    >>> first_lightness(revisit.observe(np.zeros((2, 32, 48, 3), np.uint8), "lite.lab")).value
    0.0
    """

    id: str
    version: int
    title: str
    unit: str
    range: Range
    higher_is_better: bool | None
    needs: tuple[type, ...]
    fn: ScoreFunction
    gates: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    family: str = ""
    paper: str = ""
    upstream: str = ""
    responds_to: tuple[str, ...] = ()
    blind_to: tuple[str, ...] = ()
    params: Params = field(default_factory=dict)
    doc: str = ""
    rewards_unchanged: bool = False
    published_by: tuple[PublishedMaker, ...] = ()
    noise_floor: float = 0.0

    def __call__(self, *evidence: Any, **params: Any) -> Score | Unscored:
        return to_score_or_unscored(self.id, answer_or_unscored(self.fn, *evidence, **{**self.params, **params}))

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.partition("\n")[0]

    @property
    def description(self) -> str:
        return self.doc or inspect.getdoc(self.fn) or ""


METRICS: Registry[Metric] = Registry("metric")
GATES: Registry[Gate] = Registry("gate")
DERIVED: Registry[Derived] = Registry("derivation")


class BareOrCalled(Protocol[Card, Function, Registered]):
    """A decorator that is used bare, or called with what its card shall say."""

    @overload
    def __call__(self, *args: Card.args, **card: Card.kwargs) -> Callable[[Function], Registered]: ...

    @overload
    def __call__(self, fn: Function, /) -> Registered: ...


def bare_or_called(
    decorator: Callable[Card, Callable[[Function], Registered]],
) -> BareOrCalled[Card, Function, Registered]:
    """The decorator, which then need not be called where everything is left to its defaults: `@metric`."""

    @wraps(decorator)
    def decorate(fn: Any = None, /, **card: Any) -> Any:
        register: Any = decorator(**card)  # type: ignore[call-arg]
        return register if fn is None else register(fn)

    return cast(Any, decorate)


@bare_or_called
def metric(
    *,
    id: str = "",
    version: int = 1,
    title: str = "",
    unit: str = "",
    range: Range = (None, None),
    higher_is_better: bool | None = None,
    needs: tuple[type, ...] | None = None,
    gates: tuple[str, ...] = (),
    suites: tuple[str, ...] = (),
    paper: str = "",
    upstream: str = "",
    responds_to: tuple[str, ...] = (),
    blind_to: tuple[str, ...] = (),
    doc: str = "",
    params: Params | None = None,
    rewards_unchanged: bool = False,
    published_by: tuple[PublishedMaker, ...] = (),
    noise_floor: float = 0.0,
) -> Callable[[ScoreFunction], Metric]:
    """Register a pure function of evidence as a metric: `@metric`, or `@metric(...)` with what its card shall say.

    The function returns a number, a `Score`, or an `Unscored`. Its docstring is the description; its keyword-only
    arguments are parameters, which a protocol or `params=` of an evaluation may set.

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
    needs
        Kinds of evidence in the order of the arguments; by default the annotations of the arguments.
    gates
        Ids of gates that must be open.
    suites
        Suites that ask it without being told to, such as "folder".
    paper
        The publication.
    upstream
        Name of the published column that it reproduces.
    responds_to
        Failures that it is meant to notice.
    blind_to
        Failures that it cannot notice.
    doc
        The description, where one function serves several metrics.
    params
        Parameters beside the keyword-only arguments, where one function serves several metrics.
    rewards_unchanged
        Whether an unchanged look scores best, also where something should have changed.
    published_by
        Who makes the evidence of the published column.
    noise_floor
        Of a score of which 0 is best: smaller ones are errors of measurement, and count as 0 where models are compared.

    Returns
    -------
    Metric
        The function with its card. Calling it with evidence gives a `Score` or an `Unscored`.

    Raises
    ------
    TypeError
        If `needs` is not given and an argument is not annotated with a kind of evidence.
    UsageError
        If another function has registered the same id.

    Examples
    --------
    >>> @revisit.metric
    ... def lightness(lab: revisit.evidence.LabStats):
    ...     "Mean lightness of the clip, 0 to 100."
    ...     return lab.mean[:, 0].mean()
    >>> grey = np.full((4, 32, 48, 3), 128, np.uint8)
    >>> results = revisit.score(grey, metrics=["lightness"])
    >>> round(results.score("clip@model", "lightness"), 1)
    53.6
    """

    def register(fn: ScoreFunction) -> Metric:
        name = id or fn.__name__
        kinds = _annotated_kinds(fn) if needs is None else needs
        family = getattr(sys.modules.get(fn.__module__), "FAMILY", "") or _metric_family_of_module(fn.__module__)
        return METRICS.add(name, Metric(
            name, version, title or title_from_function_name(fn), unit, range, higher_is_better, kinds, fn, gates,
            suites, family, paper, upstream, responds_to, blind_to, {**keyword_only_defaults(fn), **(params or {})},
            doc, rewards_unchanged, published_by, noise_floor,
        ))  # fmt: skip

    return register


def title_from_function_name(fn: Callable[..., Any]) -> str:
    """The name of a function in words."""
    return fn.__name__.strip("_<>").replace("_", " ").capitalize()


def _annotated_kinds(fn: ScoreFunction) -> tuple[type, ...]:
    """The kinds of evidence with which the positional arguments of a function are annotated."""
    hints = get_type_hints(fn)
    kinds: list[type] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            kind: Any = hints.get(parameter.name)
            if kind is not Case and not hasattr(kind, "evidence_id"):
                raise TypeError(
                    f"{fn.__name__}: annotate {parameter.name!r} with a kind of evidence, or name all kinds in needs="
                )
            kinds.append(kind)
    return tuple(kinds)


def _metric_family_of_module(module: str) -> str:
    """The name of a metric's file; in the folder of a benchmark the benchmark's stands before or in place of it.

    A module whose metrics are known by another name states it as FAMILY.
    """
    *_, folder, room, name = ["", "", *module.split(".")]
    if name == "metrics":
        return room
    return f"{folder}_{name}" if room == "metrics" and folder != "revisit" else name


def gate(*, id: str, version: int = 1, title: str, needs: tuple[type, ...]) -> Callable[[GateFunction], Gate]:
    """Register a pure function of evidence as a gate: metrics that name it in `gates` are asked where it is open.

    Parameters
    ----------
    id
        Name in tables and commands.
    version
        Raise it when decisions change.
    title
        Heading for people.
    needs
        Kinds of evidence in the order of the arguments.

    Returns
    -------
    Gate
        The function with its card.

    Examples
    --------
    >>> @revisit.gate(id="lit", title="Light enough", needs=(revisit.evidence.LabStats,))
    ... def lit(lab):
    ...     "Open where the first frame is not dark."
    ...     if lab.mean[0, 0] < 10:
    ...         return revisit.GateResult("closed", "dark", "the first frame is dark")
    ...     return revisit.GateResult("open", "lit")
    >>> dark = revisit.observe(np.zeros((4, 32, 48, 3), np.uint8), "lite.lab")
    >>> lit(dark).state
    'closed'
    """

    def register(fn: GateFunction) -> Gate:
        return GATES.add(id, Gate(id, version, title, needs, fn, keyword_only_defaults(fn)))

    return register


def derived(
    *, makes: type, needs: tuple[type, ...], version: int = 1, optional: tuple[type, ...] = ()
) -> Callable[[Callable[..., Any]], Derived]:
    """Register a pure function from evidence to further evidence, which is computed once per clip.

    Parameters
    ----------
    makes
        The kind of evidence that the function returns; it may also return an `Unscored`.
    needs
        Kinds of evidence in the order of the arguments.
    version
        Raise it when the evidence changes.
    optional
        Kinds of further arguments, which are None where there is no such evidence.

    Returns
    -------
    Derived
        The function with what it needs. Metrics name `makes` in their `needs`.

    Examples
    --------
    >>> @revisit.evidence_kind(id="brightest")
    ... @dataclass(frozen=True)
    ... class Brightest:
    ...     "The brightest frame of a clip."
    ...     frame: int
    >>> @revisit.derived(makes=Brightest, needs=(revisit.evidence.LabStats,))
    ... def brightest(lab):
    ...     return Brightest(int(lab.index[lab.mean[:, 0].argmax()]))
    >>> brightest.id
    'brightest'
    """

    def register(fn: Callable[..., Any]) -> Derived:
        return DERIVED.add(evidence_id(makes), Derived(makes, needs, fn, version, keyword_only_defaults(fn), optional))

    return register
