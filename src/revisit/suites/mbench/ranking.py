"""Ranking: axes and total of every model, and who may be ranked by them (docs/mbench.md).

Setting T ranks by M-Score, by its lower end where triggers are unknown; setting A by reliability; both on the
dimensions of which every model that may be ranked has a value, and on the items that all of them have. A model that
does nothing, or has few of the items, is not ranked, so it is never first.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from revisit.core.text import count_and_noun
from revisit.stats.pairwise import models_with_few_clips
from revisit.suites.mbench.names import AXES, MemoryDimension
from revisit.suites.mbench.scoring import Answers, Interval, SharedItems, Standing, axis_and_total_means

LEAST_POSED = 0.5
SAME = 1e-9  # percent: closer values are one


RankRow = dict[str, Any]  # a model in the ranking, as summary.json has it: see `rank_models`
AxisScores = dict[str, list[float] | None]  # axes and total in percent, each as [low, high]; None without a dimension


def ranking_interval(standing: Standing, counting_rule: str) -> Interval | None:
    """What a dimension contributes: the M-Score in T with a judge, else reliability."""
    if counting_rule == "trigger":
        return standing.m_interval
    return None if standing.reliability is None else (standing.reliability, standing.reliability)


@dataclass(frozen=True)
class Contest:
    """Who is ranked, on which items, and what every model comes to on them and on its own list."""

    rivals: Sequence[str]  # models that may be ranked; all but floors where none may
    reasons: Mapping[str, str]  # model -> why it is not ranked; "" for rivals
    shared: Mapping[str, SharedItems]  # by dimension
    standings: Mapping[str, Mapping[str, Standing]]  # dimension -> model -> on shared items
    own: Mapping[str, Mapping[str, Standing]]  # dimension -> model -> on the model's list
    dimensions: Sequence[MemoryDimension]


def make_contest(answers: Answers, dimensions: Sequence[MemoryDimension]) -> Contest:
    """The contest of the models in these dimensions.

    A model with fewer than half of the median model's videos is not ranked: the others would be compared on few items.
    """
    reasons = {model: unranked_reason(answers, model) for model in answers.results_by_model}
    ranked = answers.results.ranked.models
    counts = {model: len(answers.results_by_model[model].readable.cases) for model in ranked if not reasons[model]}
    for model in models_with_few_clips(counts):
        videos, usual = count_and_noun(counts[model], "video"), statistics.median(counts.values())
        reasons[model] = f"it has {videos}, fewer than half of the median model's {usual:g}"
    rivals = [model for model in ranked if not reasons[model]] or ranked
    shared = {d.id: answers.shared_items(d, rivals) for d in dimensions}
    on_shared = {
        d.id: {model: answers.standing_of_model(model, d, shared[d.id]) for model in reasons} for d in dimensions
    }
    own = {d.id: {model: answers.standing_of_model(model, d) for model in reasons} for d in dimensions}
    return Contest(rivals, reasons, shared, on_shared, own, dimensions)


def rank_models(answers: Answers, contest: Contest) -> list[RankRow]:
    """A row per model, the best first: axes and total in percent as intervals, the rank, or why there is none.

    `order` is what models are ordered by, and `left_out` are the dimensions that not every model has. `own` are the
    axes and the total over all dimensions of the setting and all items, where the model has them all, and `own_order`
    is `order` over all items of the model's list. `ungated` has total and rank where all scored clips count.
    """
    reasons, dimensions = contest.reasons, contest.dimensions
    values, own_values = (
        {m: {id: ranking_interval(of[m], answers.rule) for id, of in standings.items()} for m in reasons}
        for standings in (contest.standings, contest.own)
    )
    scored = [d.id for d in dimensions if any(standing.n for standing in contest.own[d.id].values())]
    common = [m_id for m_id in scored if all(values[model][m_id] is not None for model in contest.rivals)]
    ungated_by_model = totals_and_ranks_without_gate(answers, contest.standings, common)
    left_out = [d.id for d in dimensions if answers.setting in d.averaged and d.id not in common]
    no_axis = "no dimension has a value for every model" if scored else "nothing was scored"
    rows: list[RankRow] = []
    for model in reasons:
        axes = _axis_intervals_in_percent(values[model], answers.setting, common)
        own_axes = _axis_intervals_in_percent(own_values[model], answers.setting, common)
        order = _total_or_mean_of_axes(axes)
        rows.append(
            {
                "model": model,
                "floor": model in answers.results.floors,
                **axes,
                "order": order,
                "reason": reasons[model] or ("" if order else no_axis),
                "left_out": left_out,
                "own": _axis_intervals_in_percent(own_values[model], answers.setting, None),
                "own_order": _total_or_mean_of_axes(own_axes),
                "rank": None,
                "ungated": ungated_by_model[model],
            }
        )
    rows.sort(key=lambda row: (row["floor"], bool(row["reason"]), -(row["order"] or [0])[0], row["model"]))
    ranked = answers.results.ranked.models  # without floors, unless there is nothing else
    scores = [row["order"][0] if not row["reason"] and row["model"] in ranked else None for row in rows]
    for row, rank in zip(rows, ranks_with_ties(scores), strict=True):
        row["rank"] = rank
    return rows


def ranks_with_ties(values: Sequence[float | None]) -> list[int | None]:
    """1 for the largest value; equal values share a rank, and the next one comes after all of them."""
    return [None if v is None else 1 + sum(o is not None and o - v > SAME for o in values) for v in values]


def totals_and_ranks_without_gate(
    answers: Answers, standings: Mapping[str, Mapping[str, Standing]], common_metric_ids: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Total (the mean of the axes that are there) and rank of every model where all scored clips count.

    Over the dimensions `common_metric_ids` that models are ranked on with the gate, so that both totals are of the same
    ones; where there is none, over those that all models with a score have.
    """
    values = {m: {id: of[m].ungated for id, of in standings.items()} for m in answers.results_by_model}
    if not common_metric_ids:
        scored = [of for of in values.values() if any(value is not None for value in of.values())]
        common_metric_ids = [id for id in standings if scored and all(of[id] is not None for of in scored)]
    totals: dict[str, float | None] = {}
    for model, of in values.items():
        percents = {metric_id: value and 100 * value for metric_id, value in of.items()}
        scores = axis_and_total_means(percents, answers.setting, common_metric_ids)
        axes = [value for axis in AXES if (value := scores[axis]) is not None]
        totals[model] = sum(axes) / len(axes) if axes else None
    ranked = answers.results.ranked.models
    ranks = ranks_with_ties([total if model in ranked else None for model, total in totals.items()])
    return {m: {"total": t, "rank": r} for (m, t), r in zip(totals.items(), ranks, strict=True)}


def unranked_reason(answers: Answers, model: str) -> str:
    """Why a model may not be ranked; empty where it may."""
    mine = answers.results_by_model[model]
    verdicts = [verdict for case in mine.cases if (verdict := answers.posed[case.id]) is not None]
    if not mine.cases:
        return "it has no clips"
    if answers.literal and answers.setting == "A":
        return ""
    if not verdicts:
        no_gate = {"T": "no judge said which clips pose the test", "A": "its camera motion was not measured"}
        return no_gate[answers.setting]
    posed, of = sum(verdict.posed is True for verdict in verdicts), len(mine.entries)
    if not posed or (answers.setting == "A" and posed < LEAST_POSED * of):
        some = "" if len(verdicts) == len(mine.cases) else f" ({len(verdicts)} were asked about)"
        return f"{posed} of {of} clips pose the test{some}"
    return ""


def _axis_intervals_in_percent(
    values: Mapping[str, Interval | None], setting: str, reported: Sequence[str] | None
) -> AxisScores:
    """Axes and total in percent, each as an interval, or None."""
    low, high = (
        axis_and_total_means(
            {id: 100 * value[end] if value else None for id, value in values.items()}, setting, reported
        )
        for end in (0, 1)
    )
    ends = {name: (first, high[name]) for name, first in low.items()}
    return {name: None if first is None or last is None else [first, last] for name, (first, last) in ends.items()}


def _total_or_mean_of_axes(axes: AxisScores) -> list[float] | None:
    """What models are ordered by: the total, or the mean of the axes that are there; None where there is none."""
    there = [score for axis in AXES if (score := axes[axis]) is not None]
    return axes["total"] or ([sum(end) / len(there) for end in zip(*there, strict=True)] if there else None)
