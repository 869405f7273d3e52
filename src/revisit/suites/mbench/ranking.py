"""Ranking: axes and total of every model, and who may be ranked by them.

Setting T ranks by M-Score, by its lower end where triggers are unknown; setting A by reliability. Models are compared
on the dimensions of which every model that may be ranked has a value, so that nobody gains by having no score where
others have one; the rest is named as left out.

A model that does nothing is never first: it is not ranked. In T none of its clips is known to pose the test. In A a
model needs half of its clips to pose it, because the mean of the others would be one of exceptions. Where nobody was
asked which clips pose the test, nobody is ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from revisit.suites.mbench.names import AXES, Dimension
from revisit.suites.mbench.records import Answers
from revisit.suites.mbench.scoring import Interval, Standing, board

LEAST_POSED = 0.5
COLUMNS = (*AXES, "total")


def contribution(made: Standing, rule: str) -> Interval | None:
    """What a dimension contributes: the M-Score in T with a judge, else reliability."""
    if rule == "trigger":
        return made.m_interval
    return None if made.reliability is None else (made.reliability, made.reliability)


def ranking(
    answers: Answers, asked: Sequence[Dimension], standings: Mapping[str, Mapping[str, Standing]]
) -> list[dict[str, Any]]:
    """A row per model, the best first: axes and total in percent as intervals, the rank, or why there is none.

    `own` are the axes and the total over all dimensions of the setting, where the model has them all.
    """
    reasons = {model: why_not(answers, model) for model in answers.models}
    values = {
        model: {d.id: contribution(standings[d.id][model], answers.rule) for d in asked} for model in answers.models
    }
    rivals = [model for model, reason in reasons.items() if not reason] or answers.models
    scored = [d.id for d in asked if any(made.n for made in standings[d.id].values())]
    common = [id for id in scored if all(values[model][id] is not None for model in rivals)]
    rows = []
    for model in answers.models:
        row: dict[str, Any] = {"model": model, **_axes(values[model], answers.setting, common)}
        found = [row[axis] for axis in AXES if row[axis] is not None]
        # Without all three axes there is no total; models are then ordered by the mean of those that are there.
        row["order"] = row["total"] or ([sum(end) / len(found) for end in zip(*found, strict=True)] if found else None)
        row["reason"] = reasons[model] or ("" if found else _no_axis(scored))
        row["left_out"] = [d.id for d in asked if d.id not in common]
        row["own"] = _axes(values[model], answers.setting, None)
        rows.append(row)
    rows.sort(key=lambda row: (bool(row["reason"]), -(row["order"][0] if row["order"] else 0), row["model"]))
    for position, row in enumerate(rows, start=1):
        row["rank"] = None if row["reason"] else position
    return rows


def why_not(answers: Answers, model: str) -> str:
    """Why a model may not be ranked; empty where it may."""
    cases, lacking = answers.of(model)
    asked = [verdict for case in cases if (verdict := answers.posed[case.id]) is not None]
    if not cases:
        return "it has no clips"
    if not asked:
        return "no judge said which clips pose the test" if answers.setting == "T" else "its camera was not looked at"
    posed, of = sum(verdict.posed is True for verdict in asked), len(cases) + len(lacking)
    if not posed or (answers.setting == "A" and posed < LEAST_POSED * of):
        return f"{posed} of {of} clips pose the test"
    return ""


def _axes(values: Mapping[str, Interval | None], setting: str, reported: Sequence[str] | None) -> dict[str, Any]:
    """Axes and total in percent, each as an interval, or None."""
    low, high = (
        board({id: 100 * value[end] if value else None for id, value in values.items()}, setting, reported)
        for end in (0, 1)
    )
    return {name: None if low[name] is None or high[name] is None else [low[name], high[name]] for name in COLUMNS}


def _no_axis(scored: Sequence[str]) -> str:
    return "no dimension has a value of every model" if scored else "nothing was scored"
