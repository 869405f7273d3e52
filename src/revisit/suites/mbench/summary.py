"""Results → tables: dimensions by model on condition that the test is posed, with axes, total and rank.

Setting T: reliability, coverage and M-Score. Setting A: reliability alone, over clips whose camera moved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypedDict

from revisit.core.cases import FLOOR
from revisit.core.text import join_names
from revisit.results import Cell, Results
from revisit.results.file_types import Stage
from revisit.results.funnel import make_stage
from revisit.results.stand_ins import StandIn, is_stand_in, stand_ins
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.mbench.names import AXES, BY_ID, DIMENSIONS, SUBSETS, MemoryDimension, upstream_name
from revisit.suites.mbench.ranking import RankRow, ranked_value, ranking
from revisit.suites.mbench.records import Answers, answers_of
from revisit.suites.mbench.scoring import Interval, Standing

NOTES = {
    "trigger": "M-Score x 100; intervals come from unknown triggers",
    "camera": "mean x 100 over clips whose camera moved (action: over all clips); setting A has no M-Score",
    "all": "mean x 100 over all scored clips, whether they pose the test or not",
}
NAMED_MODELS = 6


class StandingRow(TypedDict):
    """A model under a dimension, as summary.json has it: the fields of a Standing."""

    n: int
    of: int
    reliability: float | None
    coverage: Sequence[float] | None
    m_interval: Sequence[float] | None
    m_score: float | None


class DimensionSummary(TypedDict):
    """A dimension: its name upstream, and every model under it."""

    upstream: str
    models: Mapping[str, StandingRow]


class BenchmarkSummary(TypedDict):
    """What summary.json has under `mbench`."""

    setting: str
    rule: str
    dimensions: Mapping[str, DimensionSummary]
    ranking: Sequence[RankRow]


class TableCell(TypedDict, total=False):
    """A cell of a table, as summary.json has it."""

    n: int
    of: int
    mean: float
    interval: list[float] | None
    text: str


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    answers = answers_of(results)
    dimensions = [dimension for dimension in answers.dimensions() if results.lacking(dimension.id) is None]
    standings = {d.id: {model: answers.standing(model, d) for model in answers.models} for d in dimensions}
    ranked = ranking(answers, dimensions, standings)
    parts = {subset or "unknown subset": answers.counted_results.where(subset=subset) for subset in (*SUBSETS, "")}
    return {
        **standard_summary(
            answers.counted_results,
            cell=partial(_cell, answers),
            funnel=partial(_funnel, answers),
            parts=parts,
            noun="video",
        ),
        "sentences": _sentences(answers, ranked),
        "tables": _tables(answers, dimensions, standings, ranked),
        "mbench": {
            "setting": answers.setting,
            "rule": answers.rule,
            "dimensions": {
                d.id: {
                    "upstream": upstream_name(d, answers.setting),
                    "models": {
                        model: {**asdict(standing), "m_score": standing.m_score}
                        for model, standing in standings[d.id].items()
                    },
                }
                for d in dimensions
            },
            "ranking": ranked,
        },
    }


def _cell(answers: Answers, part: Results, metric_id: str) -> Cell:
    """Reliability under a metric: the mean over the items that count.

    Where items count whether they pose the test or not, there is no interval: nothing may be called best then.
    """
    cell = part.cell(metric_id)
    return replace(cell, interval=None) if answers.rule == "all" else cell


@dataclass(frozen=True)
class _Column:
    """A column of a dimension, an axis or the total: of published makers, or of stand-ins."""

    key: str
    title: str
    by_stand_in: bool = False


def _columns(
    answers: Answers, dimensions: Sequence[MemoryDimension], measured_by_stand_in: Collection[tuple[str, str]]
) -> tuple[list[_Column], list[_Column]]:
    """Columns of the dimensions, and of axes and total; what stand-ins measured has columns of its own behind them."""
    makers: dict[str, dict[str, None]] = {}
    for one in stand_ins(answers.results):
        makers.setdefault(one.metric, {})[one.made_by] = None
    of_dimensions = []
    for d in dimensions:
        of_dimensions.append(_Column(d.id, d.short))
        if d.id in makers:
            of_dimensions.append(_Column(d.id, f"{d.short} by {' or '.join(makers[d.id])} (stand-in)", True))
    sums = [*((axis, f"{axis} axis") for axis in AXES), ("total", "total")]
    mixed = {
        key
        for key, _ in sums
        for model in answers.models
        if rests_on_stand_in(key, model, answers.setting, measured_by_stand_in)
    }
    of_sums = [_Column(key, title) for key, title in sums]
    of_sums += [_Column(key, f"{title} with stand-ins", True) for key, title in sums if key in mixed]
    return of_dimensions, of_sums


def rests_on_stand_in(key: str, model: str, setting: str, measured_by_stand_in: Collection[tuple[str, str]]) -> bool:
    """Whether a model's number in a column was measured by a stand-in, or adds up one that was."""
    if key in BY_ID:
        return (model, key) in measured_by_stand_in
    own = [BY_ID[metric_id] for owner, metric_id in measured_by_stand_in if owner == model and metric_id in BY_ID]
    return any(key in ("total", d.axis) and setting in d.averaged for d in own)


def _tables(
    answers: Answers,
    dimensions: Sequence[MemoryDimension],
    standings: Mapping[str, Mapping[str, Standing]],
    ranked: Sequence[RankRow],
) -> list[Table]:
    order = [row["model"] for row in ranked]
    replaced = {(record.case.model, record.question) for record in answers.results.records if is_stand_in(record)}
    of_dimensions, of_sums = _columns(answers, dimensions, replaced)

    def placed(model: str, columns: Sequence[_Column], cells: Mapping[str, TableCell]) -> list[TableCell]:
        """The cells of a model, each in the column of who measured it."""
        return [
            cells[c.key]
            if c.by_stand_in == rests_on_stand_in(c.key, model, answers.setting, replaced)
            else _cell_of(0, cells[c.key]["of"], None)
            for c in columns
        ]

    tables = []
    if dimensions and answers.rule == "trigger":
        for title, which in (("Reliability S", "reliability_interval"), ("Coverage C", "coverage")):
            rows = []
            for model in order:
                own = {d.id: standings[d.id][model] for d in dimensions}
                cells = {id: _percent_cell(standing, getattr(standing, which)) for id, standing in own.items()}
                rows.append((model, placed(model, of_dimensions, cells)))
            note = "x 100; intervals come from unknown triggers"
            tables.append(make_table(title, note, [c.title for c in of_dimensions], rows))
    if dimensions:
        rows = []
        for row in ranked:
            model = row["model"]
            own = {d.id: standings[d.id][model] for d in dimensions}
            cells = {id: _percent_cell(standing, ranked_value(standing, answers.rule)) for id, standing in own.items()}
            counts = [_dimension_counts(axis, answers.setting, dimensions, row["left_out"]) for axis in AXES]
            cells |= {axis: _cell_of(*count, row[axis]) for count, axis in zip(counts, AXES, strict=True)}
            cells["total"] = _cell_of(sum(n for n, _ in counts), sum(of for _, of in counts), row["total"])
            name = model if row["rank"] is None else f"{row['rank']}. {model}"
            name += f" ({FLOOR})" if row["floor"] else ""
            rows.append((name, placed(model, [*of_dimensions, *of_sums], cells)))
        title = "M-Score" if answers.rule == "trigger" else "Reliability"
        columns = [c.title for c in (*of_dimensions, *of_sums)]
        note = f"{NOTES[answers.rule]}; behind axes and total, dimensions that they are over"
        tables.append(make_table(f"{title}, MBench-{answers.setting}", note, columns, rows))
    if answers.rule != "all" and len(ranked) > 1 and any(row["rank"] for row in ranked):
        tables.append(
            _rank_table(answers, ranked, any(column.key == "total" for column in of_sums if column.by_stand_in))
        )
    return tables


def _rank_table(answers: Answers, ranked: Sequence[RankRow], by_stand_ins: bool) -> Table:
    """Ranks with and without the gate, and the numbers behind them: the total, or the mean of the axes there are."""
    gate = "the trigger" if answers.setting == "T" else "the camera gate"
    axes = [axis for axis in AXES if any(row["rank"] and row[axis] for row in ranked)]
    has_total = len(axes) == len(AXES)
    number = "total" if has_total else f"mean of axes ({', '.join(axes)})"
    number += " with stand-ins" if by_stand_ins else ""
    what = "" if has_total else "no total, which takes all three axes: the mean of those that every ranked model has; "
    note = (
        f"x 100; {what}with {gate}: as above, over clips that pose the test; without: the same dimensions over all "
        f"scored clips; up: ranks gained by {gate}"
    )
    columns = [f"{number} (with)", "rank (with)", f"{number} (without)", "rank (without)", "up"]
    rows = [(row["model"], _rank_cells(row)) for row in ranked]
    return make_table(f"Ranks with and without {gate}", note, columns, rows)


def _rank_cells(row: RankRow) -> list[TableCell]:
    """The cells of a model in the table of ranks; a model that is not ranked has a dash."""
    rank, other = row["rank"], row["ungated"]["rank"]
    up = None if rank is None or other is None else other - rank
    without = row["ungated"]["total"]

    def cell(content: TableCell) -> TableCell:
        return {"n": int(bool(content)), "of": 1, "interval": None, **content}

    def rank_cell(value: int | None) -> TableCell:
        return cell({} if value is None else {"mean": value, "text": str(value)})

    return [
        cell(_mean_and_interval(row["order"]) if rank else {}),
        rank_cell(rank),
        cell({} if without is None else {"mean": without}),
        rank_cell(other),
        cell({} if up is None else {"mean": up, "text": f"{up:+d}" if up else "0"}),
    ]


def _dimension_counts(
    axis: str, setting: str, dimensions: Sequence[MemoryDimension], left_out: Sequence[str]
) -> tuple[int, int]:
    """How many dimensions of an axis its mean is over, of those that it has."""
    averaged = [d for d in dimensions if d.axis == axis and setting in d.averaged and d.id not in left_out]
    return len(averaged), sum(d.axis == axis and setting in d.averaged for d in DIMENSIONS)


def _percent_cell(standing: Standing, interval: Interval | None) -> TableCell:
    return _cell_of(standing.n, standing.of, None if interval is None else [100 * end for end in interval])


def _cell_of(n: int, of: int, interval: Sequence[float] | None) -> TableCell:
    return {"n": n, "of": of, **_mean_and_interval(interval)}


def _mean_and_interval(interval: Sequence[float] | None) -> TableCell:
    """The middle of an interval with its ends, or the value alone where they are one."""
    if interval is None:
        return {}
    low, high = interval
    return {"mean": (low + high) / 2, "interval": None if low == high else [low, high]}


def _sentences(answers: Answers, ranked: Sequence[RankRow]) -> list[str]:
    sentences = []
    expected, usable = len(answers.results.entries), len(answers.results.cases)
    if usable < expected:
        sentences.append(f"coverage: {usable} of {expected} items have a video that can be used")
    if answers.rule == "all" and answers.setting == "T":
        sentences.append(
            "no judge was asked which clips pose the test: scores are raw, there is no M-Score, and no model is ranked"
        )
    unknown = sum(verdict is not None and verdict.posed is None for verdict in answers.posed.values())
    if unknown:
        who = "the judge" if answers.setting == "T" else "the camera gate"
        sentences.append(
            f"for {unknown} clips {who} could not say whether they pose the test; they are left out of all means"
        )
    if ranked and ranked[0]["left_out"] and ranked[0]["rank"]:
        titles = ", ".join(BY_ID[metric_id].title.lower() for metric_id in ranked[0]["left_out"])
        sentences.append(f"not every model has a value for {titles}: axes and total leave it out")
    sentences += _unequal_lists(answers)
    if any(row["rank"] for row in ranked):
        counted = [one for one in stand_ins(answers.results) if _is_ranked_by(one, answers, ranked[0]["left_out"])]
        if counted:
            named = "; ".join(dict.fromkeys(one.sentence for one in counted))
            sentences.append(f"ranks count stand-ins, so they are none of the published table: {named}")
    if answers.literal and answers.setting == "A":
        for model, mine in answers.models.items():
            verdicts = [answers.posed[case.id] for case in mine.cases]
            still = sum(verdict is not None and verdict.posed is False for verdict in verdicts)
            if still > len(mine.entries) / 2:
                sentences.append(
                    f"the paper ranks every model: the camera of {model} stays still in {still} of {len(verdicts)} "
                    "clips"
                )
    for row in ranked:
        if row["rank"] is None and not row["floor"] and (answers.rule != "all" or answers.setting == "A"):
            sentences.append(f"{row['model']} is not ranked: {row['reason']}")
    return sentences


def _is_ranked_by(one: StandIn, answers: Answers, left_out: Sequence[str]) -> bool:
    """Whether what a stand-in measured is part of the axes that models are ranked by."""
    dimension = BY_ID.get(one.metric)
    return dimension is not None and answers.setting in dimension.averaged and one.metric not in left_out


def _unequal_lists(answers: Answers) -> list[str]:
    """Sentences on the subsets of which models have different items: their columns are over different clips."""
    subsets_by_counts: dict[str, list[str]] = {}
    for subset in dict.fromkeys(dimension.subset for dimension in answers.dimensions()):
        items = {
            model: frozenset(entry.id.removesuffix(f"@{model}") for entry in mine.where(subset=subset).entries)
            for model, mine in answers.models.items()
        }
        if len(set(items.values())) > 1:
            counts = join_names([f"{model} {len(own)}" for model, own in items.items()], NAMED_MODELS)
            common = len(frozenset.intersection(*items.values()))
            subsets_by_counts.setdefault(f"{counts}; {common} in common", []).append(subset)
    return [
        f"models do not have the same items of {join_names(subsets)} ({counts}): columns are over each model's own "
        "items, so compare only models that have the same ones"
        for counts, subsets in subsets_by_counts.items()
    ]


def _funnel(answers: Answers, part: Results) -> list[Stage]:
    readable = part.readable.cases
    stages = [
        make_stage("expected clips", part.entries),
        make_stage("all clips", part.cases),
        make_stage("readable", readable),
    ]
    gated = any(answers.posed[case.id] is not None for case in part.cases)
    remaining = [case for case in readable if not gated or ((v := answers.posed[case.id]) is not None and v.posed)]
    if gated:
        stages.append(make_stage("test posed", remaining))
    scored = [case for case in remaining if any(record.scored for record in part.of(case).values())]
    return [*stages, make_stage("memory scored" if gated else "scored", scored)]
