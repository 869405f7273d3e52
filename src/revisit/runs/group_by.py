"""By: splits the clips of a run into groups and makes a table for each, from answers that already exist.

An expression names what clips are grouped by, or compares it with a number; several joined by commas are crossed:

    subset          condition        model            a field of the case
    subject                                           an annotation
    category        backbone                          a fact of the model (models.yaml)
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

from revisit.core import SUITES, Case, UsageError
from revisit.core.text import count_and_noun, join_names
from revisit.results import Results
from revisit.results.model_facts import GROUPS, load_model_facts
from revisit.results.run import Run
from revisit.results.score_names import resolve_score_ids
from revisit.results.tables import summarise_part

FIELDS = ("model", "subset", "condition", "sample", "seed", "camera")
COMPARED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq}
OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "=": "is not"}
UNKNOWN = "not known"
MOST_GROUPS = 40
_EXPRESSION = re.compile(r"\s*([\w.-]+?)\s*(?:(>=|<=|>|<|=)\s*(-?\d+(?:\.\d+)?)\s*)?")


@dataclass(frozen=True)
class GroupKey:
    """One thing to group by: its name as given, what it means, and a comparison with a number."""

    name: str
    path: tuple[str, ...]
    sign: str = ""
    number: float = 0.0

    def group_name(self, clip_value: Any) -> str:
        """The name of the group of a value."""
        if clip_value is None or clip_value == "":
            return f"{self.name}: {UNKNOWN}"
        if not self.sign:
            return f"{self.name}: {clip_value}"
        if isinstance(clip_value, bool) or not isinstance(clip_value, int | float):
            raise UsageError(
                f"{self.name} is {str(clip_value)[:60]!r}, which is not a number; group by it without {self.sign}"
            )
        holds = COMPARED[self.sign](clip_value, self.number)
        return f"{self.name} {self.sign if holds else OPPOSITE[self.sign]} {self.number:g}"


def score_tables_by_group(run: Run, expression: str, metrics: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Group -> its table: metrics (all, or those named), and per model the number of clips and a cell per metric."""
    results, suite, all_metrics = run.results, run.facts["suite"], list(run.summary["metrics"])
    metrics = resolve_score_ids(metrics, all_metrics, run.path, suite) or all_metrics
    keys = _group_keys_with_readers(results, suite, expression)
    name: Callable[[Any], str] = group_name_function(results, suite, expression)
    groups = results.only(lambda entry: isinstance(entry, Case)).groups(name)
    if len(groups) > MOST_GROUPS:
        raise UsageError(
            f"--by {expression} makes {len(groups)} groups; compare it with a number, such as {keys[0][0].name}>=90, "
            "or group by something with fewer values"
        )
    places = {
        group: [_group_sort_key(key, value(part.cases[0])) for key, value in keys] for group, part in groups.items()
    }
    return {
        f"{group} ({count_and_noun(len(groups[group].cases), 'clip')})": summarise_part(groups[group], metrics)
        for group in sorted(groups, key=places.__getitem__)
    }


def group_name_function(results: Results, suite: str, expression: str) -> Callable[[Case], str]:
    """A function from a case to the name of its group."""
    keys = _group_keys_with_readers(results, suite, expression)
    return lambda case: ", ".join(key.group_name(value(case)) for key, value in keys)


def _group_keys_with_readers(
    results: Results, suite: str, expression: str
) -> list[tuple[GroupKey, Callable[[Case], Any]]]:
    """What an expression groups by, each with the function that reads its value of a case."""
    keys = [parse_group_key(part, suite) for part in expression.split(",")]
    return [(key, _group_value_reader(key, results)) for key in keys]


def parse_group_key(text: str, suite: str) -> GroupKey:
    """One part of an expression, with the suite's short names resolved."""
    match = _EXPRESSION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--by takes a name such as subset, or a comparison such as rotation>=90, not {text.strip()!r}"
        )
    name, sign, number = match[1], match[2] or "", float(match[3] or 0)
    short_names = SUITES[suite].card.get("by", {}) if suite in SUITES else {}
    return GroupKey(name, tuple(str(short_names.get(name, name)).split(".")), sign, number)


def _group_value_reader(key: GroupKey, results: Results) -> Callable[[Case], Any]:
    """A function from a case to the value it is grouped by."""
    first, *rest = key.path

    def read_answer(case: Case) -> Any:
        record = results.answer(case, first)
        if record is None:
            return None
        if rest:  # a fact, which may also stand behind an answer that is unscored
            return _nested_value(record.facts, rest)
        return record.label if record.is_gate else record.value

    if first in results.metrics and not rest and not key.sign:
        raise UsageError(f"--by {key.name} is a score; compare it with a number, such as {key.name}>=0.5")
    if first in (*results.metrics, *results.gates):
        return read_answer
    if first in FIELDS and not rest:
        return lambda case: getattr(case, first)
    if first in GROUPS and not rest and not any(first in case.annotations for case in results.cases):
        model_facts = load_model_facts([results.folder] if results.folder else [])
        return lambda case: model_facts.group_name(case.model, first)
    notes = sorted({name for case in results.cases for name in case.annotations})
    if first in notes:
        return lambda case: _nested_value(case.annotations, key.path)
    raise UsageError(
        f"nothing in this run is called {key.name!r}; group by {', '.join(FIELDS)}, an annotation "
        f"({join_names(notes, 13) or 'there are none'}), a gate ({', '.join(results.gates)}) or a metric with a number"
    )


def _nested_value(facts: Any, path: Sequence[str]) -> Any:
    for name in path:
        facts = facts.get(name) if isinstance(facts, Mapping) else None
    return facts


def _group_sort_key(key: GroupKey, value: Any) -> tuple[int, float, str]:
    """Where a group stands: numbers in order, then words, the unknown last; of a comparison what holds comes first."""
    if value is None or value == "":
        return (2, 0.0, "")
    if key.sign:
        return (0, 0.0 if COMPARED[key.sign](value, key.number) else 1.0, "")
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
