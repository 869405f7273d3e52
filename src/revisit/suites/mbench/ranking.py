"""Ranking: axes and total of every model, and who may be ranked by them (docs/mbench.md).

Setting T ranks by M-Score, by its lower end where triggers are unknown; setting A by reliability; both on the
dimensions of which every model that may be ranked has a value. A model that does nothing is not ranked, so it is never
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from revisit.suites.mbench.names import AXES, Dimension
from revisit.suites.mbench.records import Answers
from revisit.suites.mbench.scoring import Interval, Standing, board

LEAST_POSED = 0.5
SAME = 1e-9  # percent: closer values are one
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
    floors = floors_of(answers)
    ranked = [model for model in answers.models if model not in floors]
    rivals = [model for model in ranked if not reasons[model]] or ranked
    scored = [d.id for d in asked if any(made.n for made in standings[d.id].values())]
    common = [id for id in scored if all(values[model][id] is not None for model in rivals)]
    rows = []
    for model in answers.models:
        row: dict[str, Any] = {
            "model": model,
            "floor": model in answers.results.floors,
            **_axes(values[model], answers.setting, common),
        }
        found = [row[axis] for axis in AXES if row[axis] is not None]
        # Without all three axes there is no total; models are then ordered by the mean of those that are there.
        row["order"] = row["total"] or ([sum(end) / len(found) for end in zip(*found, strict=True)] if found else None)
        row["reason"] = reasons[model] or ("" if found else _no_axis(scored))
        row["left_out"] = [d.id for d in asked if answers.setting in d.averaged and d.id not in common]
        row["own"] = _axes(values[model], answers.setting, None)
        rows.append(row)
    rows.sort(
        key=lambda row: (row["floor"], bool(row["reason"]), -(row["order"][0] if row["order"] else 0), row["model"])
    )
    ranks = shared_ranks([None if row["reason"] or row["model"] in floors else row["order"][0] for row in rows])
    beside = ungated(answers, asked, standings)
    for row, rank in zip(rows, ranks, strict=True):
        row["rank"], row["ungated"] = rank, beside[row["model"]]
    return rows


def floors_of(answers: Answers) -> set[str]:
    """Baselines without memory, which are not ranked; where there is nothing else, they are."""
    floors = answers.results.floors
    return floors if floors < set(answers.models) else set()


def shared_ranks(values: Sequence[float | None]) -> list[int | None]:
    """1 for the largest value; equal values share a rank, and the next one comes after all of them."""
    return [None if v is None else 1 + sum(o is not None and o - v > SAME for o in values) for v in values]


def ungated(
    answers: Answers, asked: Sequence[Dimension], standings: Mapping[str, Mapping[str, Standing]]
) -> dict[str, dict[str, Any]]:
    """Total (the mean of the axes that are there) and rank of every model where all scored clips count."""
    values = {m: {d.id: standings[d.id][m].ungated for d in asked} for m in answers.models}
    having = [m for m in answers.models if any(value is not None for value in values[m].values())]
    common = [d.id for d in asked if having and all(values[m][d.id] is not None for m in having)]
    totals: list[float | None] = []
    for model in answers.models:
        made = board({id: value and 100 * value for id, value in values[model].items()}, answers.setting, common)
        axes = [value for axis in AXES if (value := made[axis]) is not None]
        totals.append(sum(axes) / len(axes) if axes else None)
    floors = floors_of(answers)
    ranks = shared_ranks([None if m in floors else total for m, total in zip(answers.models, totals, strict=True)])
    return {m: {"total": t, "rank": r} for m, t, r in zip(answers.models, totals, ranks, strict=True)}


def why_not(answers: Answers, model: str) -> str:
    """Why a model may not be ranked; empty where it may."""
    mine = answers.models[model]
    asked = [verdict for case in mine.cases if (verdict := answers.posed[case.id]) is not None]
    if not mine.cases:
        return "it has no clips"
    if answers.literal and answers.setting == "A":
        return ""
    if not asked:
        return (
            "no judge said which clips pose the test"
            if answers.setting == "T"
            else "its camera motion was not measured"
        )
    posed, of = sum(verdict.posed is True for verdict in asked), len(mine.entries)
    if not posed or (answers.setting == "A" and posed < LEAST_POSED * of):
        some = "" if len(asked) == len(mine.cases) else f" ({len(asked)} were asked about)"
        return f"{posed} of {of} clips pose the test{some}"
    return ""


def _axes(values: Mapping[str, Interval | None], setting: str, reported: Sequence[str] | None) -> dict[str, Any]:
    """Axes and total in percent, each as an interval, or None."""
    low, high = (
        board({id: 100 * value[end] if value else None for id, value in values.items()}, setting, reported)
        for end in (0, 1)
    )
    return {name: None if low[name] is None or high[name] is None else [low[name], high[name]] for name in COLUMNS}


def _no_axis(scored: Sequence[str]) -> str:
    return "no dimension has a value for every model" if scored else "nothing was scored"
