"""Sweep: one parameter at several values: how do scores change, and does the ranking stay the same?

A parameter belongs to a metric, a gate, a piece of derived evidence or an observer, and is named ID.name as
`revisit show ID` lists it. Values of metrics and gates are scored again from cached evidence; another value of an
observer's parameter is another observation, which is made once and cached like any other.

Rank stability is Kendall's tau-b against the default value: over models (their means) and over single clips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from revisit.audit.schema import Content
from revisit.core import METRICS, UsageError
from revisit.core.text import convert_read_errors, parse_json, parse_yaml
from revisit.engine.dependencies import Parameters, protocol_facts
from revisit.engine.parameters import (
    default_parameter_value,
    is_compatible_type,
    parameter_type_name,
    require_parameters_used,
)
from revisit.engine.plan import Plan
from revisit.engine.run import Progress, evaluate
from revisit.results import Results
from revisit.stats.correlation import kendall_tau

MakePlan = Callable[[Parameters | None], Plan]


@dataclass(frozen=True)
class Parameter:
    """A parameter and the values to try; or several that move together, whose values are then tuples."""

    targets: tuple[tuple[str, str], ...]  # (id, name) of each
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return "+".join(f"{owner}.{name}" for owner, name in self.targets)

    def overrides_for(self, value: Any) -> Parameters:
        """What takes the place of the protocol's parameters at one of the values."""
        overrides: dict[str, dict[str, object]] = {}
        for (owner, name), one in zip(self.targets, self.value_of_each_target(value), strict=True):
            overrides.setdefault(owner, {})[name] = one
        return overrides

    def value_of_each_target(self, value: Any) -> tuple[Any, ...]:
        """The value of each parameter."""
        return (value,) if len(self.targets) == 1 else tuple(value)


def parse_parameter(text: str) -> Parameter:
    """The parameter in `ID.name=v1,v2,...`; a value is a number, true, false, null or a word.

    Several move together in `ID.name+ID.name=v1/w1,v2/w2,...`.
    """
    target, equals, values = text.partition("=")
    parts = [part.strip().rpartition(".") for part in target.split("+")]
    try:
        rows = [
            tuple(parse_yaml(one.strip() or '""') for one in (value.split("/") if len(parts) > 1 else [value]))
            for value in values.split(",")
        ]
    except yaml.YAMLError:
        equals, rows = "", []
    if not equals or not all(owner and dot and name for owner, dot, name in parts) or any("" in row for row in rows):
        raise UsageError(f"--param takes ID.name=value,value, such as motion_smoothness.tau=0.1,0.15,0.2, not {text!r}")
    if any(len(row) != len(parts) for row in rows):
        raise UsageError(f"--param {text}: a value has {len(parts)} parts with a slash between them, such as 0.1/0.5")
    targets = tuple((owner, name) for owner, _, name in parts)
    return Parameter(targets, tuple(row[0] if len(parts) == 1 else row for row in rows))


def sweeps_of_other_parameters(folder: Path, source: Path, parameters: Sequence[Parameter]) -> list[Content]:
    """What sweep.json in a folder says of further parameters of this source; refuses a folder of another source."""
    file = folder / "sweep.json"
    if not file.exists():
        return []
    with convert_read_errors(file, "a file of sweeps; choose another folder with --out"):
        sweeps: list[Content] = parse_json(file.read_text(encoding="utf-8"))
        others = sorted({str(sweep.get("source", "another source")) for sweep in sweeps} - {str(source.resolve())})
    if others:
        raise UsageError(f"{folder} holds sweeps of {', '.join(others)}; choose another folder with --out")
    names = {str(parameter) for parameter in parameters}
    return [sweep for sweep in sweeps if sweep["parameter"] not in names]


def sweep_parameter(
    make_plan: MakePlan,
    parameter: Parameter,
    out: Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Content:
    """Scores per model at the default and at each value, with the rank stability against the default.

    Reported are the metrics whose answers can depend on the parameter.
    """
    default = make_plan(None)
    standing = _default_value(default, parameter)
    values = [standing, *(value for value in parameter.values if value != standing)]
    plans = [default, *(make_plan(parameter.overrides_for(value)) for value in values[1:])]
    facts = [
        {metric.id: protocol_facts(METRICS[metric.id], plan.observers, plan.parameters) for metric in default.metrics}
        for plan in plans
    ]
    touched = [id for id, usual in facts[0].items() if any(one[id] != usual for one in facts)]
    if len(plans) > 1 and not touched:
        raise UsageError(f"no chosen metric depends on {parameter}; choose others with --metric")
    at: list[Results] = []
    rows: list[Content] = []
    for number, (value, plan) in enumerate(zip(values, plans, strict=True)):
        folder = out / ("default" if number == 0 else f"value-{number}")
        at.append(evaluate(plan, folder, workers=workers, progress=progress).results)
        metrics = {metric_id: _compare_with_default(at[0], at[number], metric_id) for metric_id in touched}
        rows.append({"value": value, "default": number == 0, "metrics": metrics})
    order = {value: position for position, value in enumerate(parameter.values)}
    rows.sort(key=lambda row: order.get(row["value"], -1))
    return {
        "suite": default.suite.id,
        "protocol": default.protocol,
        "set": default.observers.id,
        "parameter": str(parameter),
        "default": standing,
        "cases": len(default.cases),
        "models": at[0].models,
        "metrics": {
            metric_id: {"title": METRICS[metric_id].title, "higher_is_better": METRICS[metric_id].higher_is_better}
            for metric_id in touched
        },
        "rows": rows,
        "read": "tau: Kendall's tau-b against the default, over models with a score at both, and over clips",
    }


def _default_value(plan: Plan, parameter: Parameter) -> Any:
    """The value that the plan has without us; refuses what the plan does not use, or has another kind of value."""
    require_parameters_used(plan, {owner: {} for owner, _ in parameter.targets})
    standing = tuple(
        plan.parameters.get(owner, {}).get(name, default_parameter_value(owner, name))
        for owner, name in parameter.targets
    )
    for value in parameter.values:
        for one, usual, (owner, name) in zip(
            parameter.value_of_each_target(value), standing, parameter.targets, strict=True
        ):
            if not is_compatible_type(one, usual):
                raise UsageError(
                    f"{owner}.{name} is {usual!r} by default; {one!r} is not a {parameter_type_name(usual)}"
                )
    return standing if len(standing) > 1 else standing[0]


def _compare_with_default(before: Results, after: Results, metric: str) -> Content:
    """Scores per model, and Kendall's tau over models and over clips that are scored both times."""
    scores = [{record.case.id: record for record in results.scores(metric)} for results in (before, after)]
    clips = [case_id for case_id in scores[0] if case_id in scores[1]]
    models = sorted({scores[0][case_id].case.model for case_id in clips})

    def scores_of(which: int, model: str | None = None) -> list[float]:
        records = (scores[which][case_id] for case_id in clips if model in (None, scores[which][case_id].case.model))
        return [record.value for record in records if record.value is not None]

    means = [[sum(some) / len(some) for some in (scores_of(which, model) for model in models)] for which in (0, 1)]
    return {
        "models": {model: part.cell(metric).as_json() for model, part in after.groups().items()},
        "tau_models": kendall_tau(*means),
        "tau_clips": kendall_tau(scores_of(0), scores_of(1)),
        "models_compared": len(models),
        "clips_compared": len(clips),
    }
