"""By: the clips of a run in groups, each with a table of its own, from answers that are already there.

An expression names what clips are grouped by, or compares it with a number; several joined by commas are crossed:

    subset          condition        model            a field of the case
    subject                                           an annotation
    view_return                                       the finding of a gate
    true_turn>=90   memo_psnr<12                      a score
    memo_camera.poses_from                            a fact behind a score, such as its source
    rotation>=90                                      a short name that the suite gives one of these

Numbers take a comparison (>=, <=, >, <, =); the clips on the other side, and those without the number, get tables too.
Intervals, counts and reasons are those of the suite's own tables. Only clips of the run are counted, not missing ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from revisit.core import SUITES, Case, Clip, UsageError
from revisit.engine.run import Run
from revisit.suites.tables import ByCase, by_case, cell

FIELDS = ("model", "subset", "condition", "sample", "seed", "camera")
COMPARED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq}
OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "=": "is not"}
UNKNOWN = "not known"
MOST_GROUPS = 40
_EXPRESSION = re.compile(r"\s*([\w.-]+?)\s*(?:(>=|<=|>|<|=)\s*(-?\d+(?:\.\d+)?)\s*)?")


@dataclass(frozen=True)
class By:
    """One thing to group by: its name as given, what it means, and a comparison with a number."""

    name: str
    path: tuple[str, ...]
    sign: str = ""
    number: float = 0.0

    def group(self, value: Any) -> str:
        """The name of the group of a value."""
        if value is None or value == "":
            return f"{self.name}: {UNKNOWN}"
        if not self.sign:
            return f"{self.name}: {value}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{self.name} is {str(value)[:60]!r}, which is no number; group by it without {self.sign}")
        holds = COMPARED[self.sign](value, self.number)
        return f"{self.name} {self.sign if holds else OPPOSITE[self.sign]} {self.number:g}"


def tables_by(run: Run, expression: str, metrics: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Group -> its table: metrics (all, or those named), and per model the number of clips and a cell per metric."""
    plan, summary = run.plan, run.summary
    keys = [parse(part, run.facts["suite"]) for part in expression.split(",")]
    answers = by_case(run.records)
    values = [_value_of(key, plan, answers) for key in keys]
    groups: dict[tuple[str, ...], list[Case]] = {}
    order: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for case in plan["cases"]:
        found = [value(case) for value in values]
        name = tuple(key.group(value) for key, value in zip(keys, found, strict=True))
        groups.setdefault(name, []).append(_case(case))
        order.setdefault(name, tuple(_rank(key, value) for key, value in zip(keys, found, strict=True)))
    if len(groups) > MOST_GROUPS:
        raise UsageError(
            f"--by {expression} makes {len(groups)} groups; give a number to compare with, such as "
            f"{keys[0].name}>=90, or group by something that fewer clips differ in"
        )
    unknown = [id for id in metrics if id not in summary["metrics"]]
    if unknown:
        raise UsageError(f"this run has no table of {unknown[0]!r}; it has {', '.join(summary['metrics'])}")
    asked = list(metrics) or list(summary["metrics"])
    tables = {}
    for name in sorted(groups, key=lambda name: order[name]):
        cases = groups[name]
        models = sorted({case.model for case in cases})
        title = f"{', '.join(name)} ({len(cases)} {'clip' if len(cases) == 1 else 'clips'})"
        tables[title] = {
            "metrics": asked,
            "models": {
                model: _row([case for case in cases if case.model == model], asked, answers) for model in models
            },
        }
    return tables


def parse(text: str, suite: str) -> By:
    """One part of an expression, with the suite's short names resolved."""
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--by takes a name such as subset, or a comparison such as rotation>=90, not {text.strip()!r}"
        )
    name, sign, number = found[1], found[2] or "", float(found[3] or 0)
    known = SUITES[suite].card.get("by", {}) if suite in SUITES else {}
    return By(name, tuple(str(known.get(name, name)).split(".")), sign, number)


def _row(cases: Sequence[Case], asked: Sequence[str], answers: ByCase) -> dict[str, Any]:
    return {"cases": len(cases), "scores": {id: cell(id, cases, answers) for id in asked}}


def _value_of(key: By, plan: Mapping[str, Any], answers: ByCase) -> Callable[[Mapping[str, Any]], Any]:
    """A function from a case of the plan to the value it is grouped by."""
    first, *rest = key.path
    if first in plan["gates"] and not rest:
        return lambda case: answers.get(case["id"], {}).get(first, {}).get("label")
    if first in plan["metrics"] or first in plan["gates"]:
        if not rest and not key.sign:
            raise UsageError(f"--by {key.name} is a score; compare it with a number, such as {key.name}>=0.5")
        return lambda case: _answer(answers.get(case["id"], {}).get(first, {}), rest)
    if first in FIELDS and not rest:
        return lambda case: case[first]
    if any(first in case["annotations"] for case in plan["cases"]):
        return lambda case: _inside(case["annotations"], key.path)
    notes = sorted({name for case in plan["cases"] for name in case["annotations"]})
    raise UsageError(
        f"nothing in this run is called {key.name!r}; group by {', '.join(FIELDS)}, an annotation "
        f"({', '.join(notes[:12]) or 'there are none'}), a gate ({', '.join(plan['gates'])}) or a metric with a number"
    )


def _answer(record: Mapping[str, Any], rest: Sequence[str]) -> Any:
    """The score of a record, or a fact behind it, which may also stand behind an answer that is unscored."""
    return _inside(record.get("facts") or {}, rest) if rest else record.get("score")


def _inside(facts: Any, path: Sequence[str]) -> Any:
    for name in path:
        facts = facts.get(name) if isinstance(facts, Mapping) else None
    return facts


def _rank(key: By, value: Any) -> tuple[int, float, str]:
    """Where a group stands: numbers in order, then words, the unknown last; of a comparison what holds comes first."""
    if value is None or value == "":
        return (2, 0.0, "")
    if key.sign:
        return (0, 0.0 if COMPARED[key.sign](value, key.number) else 1.0, "")
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _case(facts: Mapping[str, Any]) -> Case:
    """As much of a case as a cell needs."""
    clip = Clip(facts["clip"]["path"])
    return Case(facts["id"], facts["suite"], facts["model"], facts["sample"], clip, seed=facts["seed"])
