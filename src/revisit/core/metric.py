"""Metric, Gate and Derived: pure functions of evidence, each with the facts a reader needs.

`needs` lists the kinds of evidence in the order of the function's positional arguments; `Case`
itself may be among them, for what the dataset says (phases, the camera script).
Keyword-only arguments are parameters: a protocol may set them, and they are part of its hash.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from revisit.core.evidence import evidence_id
from revisit.core.observer import keyword_defaults
from revisit.core.registry import Registry
from revisit.core.scores import Score, Unscored, Verdict, score_of, verdict_of


@dataclass(frozen=True)
class Derived:
    """Evidence worked out from evidence, once per case: pairs of frames, phases, a smoothed path."""

    makes: type
    needs: tuple[type, ...]
    fn: Callable[..., Any]
    version: int
    params: Mapping[str, Any]
    optional: tuple[type, ...] = ()  # further arguments; None where there is no such evidence

    @property
    def id(self) -> str:
        return evidence_id(self.makes)


@dataclass(frozen=True)
class Gate:
    """Decides whether a question may be asked of a clip at all."""

    id: str
    version: int
    title: str
    needs: tuple[type, ...]
    fn: Callable[..., Verdict | Unscored]
    params: Mapping[str, Any]

    def __call__(self, *evidence: Any, **params: Any) -> Verdict | Unscored:
        return verdict_of(self.id, self.fn(*evidence, **params))

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
    """A pure function from evidence to a Score, with its card."""

    id: str
    version: int
    title: str
    unit: str
    range: tuple[float | None, float | None]
    higher_is_better: bool | None  # None: a description, neither good nor bad
    needs: tuple[type, ...]
    fn: Callable[..., Score | Unscored | float]
    gates: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    family: str = ""
    paper: str = ""
    upstream: str = ""
    responds_to: tuple[str, ...] = ()  # failures it is meant to notice
    blind_to: tuple[str, ...] = ()  # failures it cannot notice, and says so
    params: Mapping[str, Any] = field(default_factory=dict)
    doc: str = ""
    rewards_unchanged: bool = False  # an unchanged look scores best, also where something should have changed
    published_by: tuple[PublishedMaker, ...] = ()  # of the column that `upstream` names

    def __call__(self, *evidence: Any, **params: Any) -> Score | Unscored:
        return score_of(self.id, self.fn(*evidence, **{**self.params, **params}))

    @property
    def summary(self) -> str:
        """What it returns, in a line."""
        return self.description.partition("\n")[0]

    @property
    def description(self) -> str:
        return self.doc or inspect.getdoc(self.fn) or ""


METRICS: Registry[Metric] = Registry("metric")
GATES: Registry[Gate] = Registry("gate")
DERIVED: Registry[Derived] = Registry("derivation")


def metric(
    *,
    id: str,
    version: int,
    title: str,
    unit: str,
    range: tuple[float | None, float | None],
    higher_is_better: bool | None,
    needs: tuple[type, ...],
    gates: tuple[str, ...] = (),
    suites: tuple[str, ...] = (),
    paper: str = "",
    upstream: str = "",
    responds_to: tuple[str, ...] = (),
    blind_to: tuple[str, ...] = (),
    doc: str = "",
    params: Mapping[str, Any] | None = None,
    rewards_unchanged: bool = False,
    published_by: tuple[PublishedMaker, ...] = (),
) -> Callable[[Callable[..., Score | Unscored | float]], Metric]:
    """Register a pure function of evidence as a metric. It returns a Score, an Unscored, or just a finite number.

    One function may serve a family of metrics: `doc` then speaks for its docstring, and `params` are parameters that
    only some of the family have, beside the keyword-only ones.
    """

    def register(fn: Callable[..., Score | Unscored | float]) -> Metric:
        family = getattr(sys.modules.get(fn.__module__), "FAMILY", "") or _chapter(fn.__module__)
        return METRICS.add(id, Metric(
            id, version, title, unit, range, higher_is_better, needs, fn, gates, suites,
            family, paper, upstream, responds_to, blind_to, keyword_defaults(fn) | dict(params or {}), doc,
            rewards_unchanged, published_by,
        ))  # fmt: skip

    return register


def _chapter(module: str) -> str:
    """The name of a metric's file; in the folder of a benchmark the benchmark's stands before or in place of it.

    A module whose metrics are known by another name states it as FAMILY.
    """
    *_, folder, room, name = ["", "", *module.split(".")]
    if name == "metrics":
        return room
    return f"{folder}_{name}" if room == "metrics" and folder != "revisit" else name


def gate(
    *, id: str, version: int, title: str, needs: tuple[type, ...]
) -> Callable[[Callable[..., Verdict | Unscored]], Gate]:
    """Register a pure function of evidence as a gate."""

    def register(fn: Callable[..., Verdict | Unscored]) -> Gate:
        return GATES.add(id, Gate(id, version, title, needs, fn, keyword_defaults(fn)))

    return register


def derived(
    *, makes: type, needs: tuple[type, ...], version: int, optional: tuple[type, ...] = ()
) -> Callable[[Callable[..., Any]], Derived]:
    """Register a pure function from evidence to further evidence (or Unscored)."""

    def register(fn: Callable[..., Any]) -> Derived:
        return DERIVED.add(evidence_id(makes), Derived(makes, needs, fn, version, keyword_defaults(fn), optional))

    return register
