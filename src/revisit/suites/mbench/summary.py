"""Results → tables: dimensions by model on condition that the test is posed, with axes, total and rank.

Setting T: reliability, coverage and M-Score. Setting A: reliability alone, over clips whose camera moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from operator import attrgetter
from typing import Any

from revisit.core.cases import FLOOR
from revisit.core.grouping import group_items
from revisit.core.text import join_names
from revisit.results import Cell, Results
from revisit.results.file_types import Stage
from revisit.results.funnel import dataset_funnel, make_stage
from revisit.results.leaderboards import BoardColumn
from revisit.results.score_names import STAND_IN
from revisit.results.stand_ins import is_stand_in, list_stand_ins, stand_in_makers_by_metric
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.mbench.names import AXES, BY_ID, DIMENSIONS, SUBSETS, MemoryDimension, upstream_metric_name
from revisit.suites.mbench.ranking import Contest, RankRow, make_contest, rank_models, ranking_interval
from revisit.suites.mbench.scoring import Answers, Interval, SharedItems, Standing, answers_with_counting_rule

NOTES = {
    "trigger": "M-Score x 100; intervals come from unknown triggers",
    "camera": "mean x 100 over clips whose camera moved (action: over all clips); setting A has no M-Score",
    "all": "mean x 100 over all scored clips, whether they pose the test or not",
}
NAMED_MODELS = 6


TableCell = dict[str, Any]  # a cell of a table, as summary.json has it


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    answers = answers_with_counting_rule(results)
    dimensions = [dimension for dimension in answers.asked_dimensions() if results.lacking(dimension.id) is None]
    contest = make_contest(answers, dimensions)
    ranked = rank_models(answers, contest)
    parts = {subset or "unknown subset": answers.results_that_count.where(subset=subset) for subset in (*SUBSETS, "")}
    return {
        **standard_summary(
            answers.results_that_count,
            # Where items count whether they pose the test or not, nothing may be called best.
            cell=mean_cell_without_interval if answers.rule == "all" else Results.cell,
            funnel=partial(_funnel_stages, answers),
            parts=parts,
            noun="video",
        ),
        "sentences": _summary_sentences(answers, contest, ranked),
        "tables": _summary_tables(answers, contest, ranked),
        "mbench": {
            "setting": answers.setting,
            "rule": answers.rule,
            "dimensions": {
                d.id: {
                    "upstream": upstream_metric_name(d, answers.setting),
                    "models": _standing_rows(contest.own[d.id]),
                    **({"on_shared": _standing_rows(contest.standings[d.id])} if contest.shared[d.id].lacks else {}),
                }
                for d in dimensions
            },
            "ranking": ranked,
        },
    }


def mean_cell_without_interval(part: Results, metric_id: str) -> Cell:
    """The mean of a metric as a cell without an interval."""
    return replace(part.cell(metric_id), interval=None)


def _standing_rows(standings: Mapping[str, Standing]) -> dict[str, dict[str, object]]:
    """Standings as summary.json has them."""
    return {model: {**asdict(standing), "m_score": standing.m_score} for model, standing in standings.items()}


def sum_columns(
    models: Collection[str], setting: str, measured_by_stand_in: Collection[tuple[str, str]]
) -> list[BoardColumn]:
    """Columns of axes and total, and behind them those of sums that rest on stand-ins."""
    columns = [*(BoardColumn(axis, f"{axis} axis") for axis in AXES), BoardColumn("total", "total")]
    mixed = [c for c in columns if any(rests_on_stand_in(c.key, one, setting, measured_by_stand_in) for one in models)]
    return [*columns, *(BoardColumn(c.key + STAND_IN, f"{c.title} with stand-ins") for c in mixed)]


def scores_by_stand_in(results: Results) -> set[tuple[str, str]]:
    """Model and metric of every score that a stand-in measured."""
    return {(record.case.model, record.question) for record in results.records if is_stand_in(record)}


def rests_on_stand_in(
    column_key: str, model: str, setting: str, measured_by_stand_in: Collection[tuple[str, str]]
) -> bool:
    """Whether a model's number in a column was measured by a stand-in, or adds up one that was."""
    if column_key in BY_ID:
        return (model, column_key) in measured_by_stand_in
    own = [BY_ID[metric_id] for owner, metric_id in measured_by_stand_in if owner == model and metric_id in BY_ID]
    return any(column_key in ("total", d.axis) and setting in d.averaged for d in own)


def model_number_is_in_column(
    column: BoardColumn, model: str, setting: str, measured_by_stand_in: Collection[tuple[str, str]]
) -> bool:
    """Whether a model's number stands in this column: what stand-ins measured has columns of its own."""
    by_stand_in = rests_on_stand_in(column.key.removesuffix(STAND_IN), model, setting, measured_by_stand_in)
    return by_stand_in == column.key.endswith(STAND_IN)


def _summary_tables(answers: Answers, contest: Contest, ranked: Sequence[RankRow]) -> list[Table]:
    standings, dimensions = contest.standings, contest.dimensions
    unequal = any(shared.lacks for shared in contest.shared.values())
    on_shared = "; on the items that all compared models have" if unequal else ""
    order = [row["model"] for row in ranked]
    replaced, makers = scores_by_stand_in(answers.results), stand_in_makers_by_metric(answers.results)
    of_dimensions = []
    for d in dimensions:
        of_dimensions.append(BoardColumn(d.id, d.short))
        if d.id in makers:
            of_dimensions.append(BoardColumn(d.id + STAND_IN, f"{d.short} by {makers[d.id]} (stand-in)"))
    of_sums = sum_columns(answers.results_by_model, answers.setting, replaced)
    mixed = " with stand-ins" if of_sums[-1].key == f"total{STAND_IN}" else ""
    number = f"{_ranked_number_title(ranked)}{mixed}"

    def cells_in_columns(model: str, columns: Sequence[BoardColumn], cells: Mapping[str, TableCell]) -> list[TableCell]:
        """The cells of a model, each in the column of who measured it."""
        placed = []
        for column in columns:
            cell = cells[column.key.removesuffix(STAND_IN)]
            filled = model_number_is_in_column(column, model, answers.setting, replaced)
            placed.append(cell if filled else _cell_with_counts(0, cell["of"], None))
        return placed

    def percent_cells_by_dimension(model: str, value: Callable[[Standing], Interval | None]) -> dict[str, TableCell]:
        """A value of a model's standing under each dimension."""
        cells = {}
        for d in dimensions:
            standing, interval = standings[d.id][model], value(standings[d.id][model])
            percents = None if interval is None else [100 * end for end in interval]
            cells[d.id] = _cell_with_counts(standing.n, standing.of, percents)
        return cells

    tables = []
    if dimensions and answers.rule == "trigger":
        for title, which in (("Reliability S", "reliability_interval"), ("Coverage C", "coverage")):
            rows = [
                (model, cells_in_columns(model, of_dimensions, percent_cells_by_dimension(model, attrgetter(which))))
                for model in order
            ]
            note = f"x 100; intervals come from unknown triggers{on_shared}"
            tables.append(make_table(title, note, [c.title for c in of_dimensions], rows))
    if dimensions:
        rows = []
        for row in ranked:
            model = row["model"]
            cells = percent_cells_by_dimension(model, lambda standing: ranking_interval(standing, answers.rule))
            counts = [_counted_and_all_dimensions(axis, answers.setting, dimensions, row["left_out"]) for axis in AXES]
            cells |= {axis: _cell_with_counts(*count, row[axis]) for count, axis in zip(counts, AXES, strict=True)}
            cells["total"] = _cell_with_counts(sum(n for n, _ in counts), sum(of for _, of in counts), row["total"])
            name = model if row["rank"] is None else f"{row['rank']}. {model}"
            name += f" ({FLOOR})" if row["floor"] else ""
            on_own_list = [_cell_without_clips(midpoint_and_interval(row["own_order"]))] if unequal else []
            rows.append((name, [*cells_in_columns(model, [*of_dimensions, *of_sums], cells), *on_own_list]))
        title = "M-Score" if answers.rule == "trigger" else "Reliability"
        columns = [c.title for c in (*of_dimensions, *of_sums)]
        if unequal:
            columns.append(f"{number} on its own list")
        note = f"{NOTES[answers.rule]}; behind axes and total, dimensions that they are over{on_shared}"
        tables.append(make_table(f"{title}, MBench-{answers.setting}", note, columns, rows))
    if answers.rule != "all" and len(ranked) > 1 and any(row["rank"] for row in ranked):
        tables.append(_rank_table(answers, ranked, number))
    return tables


def _rank_table(answers: Answers, ranked: Sequence[RankRow], number: str) -> Table:
    """Ranks with and without the gate, and the numbers behind them: the total, or the mean of the axes there are."""
    gate = "the trigger" if answers.setting == "T" else "the camera gate"
    no_total = "no total, which takes all three axes: the mean of those that every ranked model has; "
    note = (
        f"x 100; {'' if number.startswith('total') else no_total}with {gate}: as above, over clips that pose the test; "
        f"without: the same dimensions over all scored clips; up: ranks gained by {gate}"
    )
    columns = [f"{number} (with)", "rank (with)", f"{number} (without)", "rank (without)", "up"]
    rows = [(row["model"], _rank_cells(row)) for row in ranked]
    return make_table(f"Ranks with and without {gate}", note, columns, rows)


def _ranked_number_title(ranked: Sequence[RankRow]) -> str:
    """What models are ranked by: the total, or the mean of the axes that there are."""
    axes = [axis for axis in AXES if any(row["rank"] and row[axis] for row in ranked)]
    return "total" if len(axes) == len(AXES) else f"mean of axes ({', '.join(axes)})"


def _cell_without_clips(content: TableCell) -> TableCell:
    """A cell that counts no clips; empty where it has no mean."""
    filled = content.get("mean") is not None
    return {"n": int(filled), "of": 1, "interval": None, **(content if filled else {})}


def _rank_cells(row: RankRow) -> list[TableCell]:
    """The cells of a model in the table of ranks; a model that is not ranked has a dash."""
    rank, other = row["rank"], row["ungated"]["rank"]
    up = None if rank is None or other is None else other - rank
    return [
        _cell_without_clips(midpoint_and_interval(row["order"] if rank else None)),
        _cell_without_clips({"mean": rank, "text": str(rank)}),
        _cell_without_clips({"mean": row["ungated"]["total"]}),
        _cell_without_clips({"mean": other, "text": str(other)}),
        _cell_without_clips({"mean": up, "text": f"{up:+d}" if up else "0"}),
    ]


def _counted_and_all_dimensions(
    axis: str, setting: str, dimensions: Sequence[MemoryDimension], left_out: Sequence[str]
) -> tuple[int, int]:
    """How many dimensions of an axis its mean is over, of those that it has."""
    averaged = [d for d in dimensions if d.axis == axis and setting in d.averaged and d.id not in left_out]
    return len(averaged), sum(d.axis == axis and setting in d.averaged for d in DIMENSIONS)


def _cell_with_counts(n: int, of: int, interval: Sequence[float] | None) -> TableCell:
    return {"n": n, "of": of, **midpoint_and_interval(interval)}


def midpoint_and_interval(interval: Sequence[float] | None) -> TableCell:
    """The middle of an interval with its ends, or the value alone where they are one."""
    if interval is None:
        return {}
    low, high = interval
    return {"mean": (low + high) / 2, "interval": None if low == high else (low, high)}


def _summary_sentences(answers: Answers, contest: Contest, ranked: Sequence[RankRow]) -> list[str]:
    sentences = []
    if answers.results.rejected:
        usable = f"{len(answers.results.cases)} of {len(answers.results.entries)}"
        sentences.append(f"coverage: {usable} items have a video that can be used")
    if answers.rule == "all" and answers.setting == "T":
        sentences.append(
            "no judge was asked which clips pose the test: scores are raw, there is no M-Score, and no model is ranked"
        )
    unknown = sum(verdict is not None and verdict.posed is None for verdict in answers.posed.values())
    if unknown:
        who = "the judge" if answers.setting == "T" else "the camera gate"
        sentences.append(f"{who} could not say of {unknown} clips whether they pose the test; all means leave them out")
    if ranked and ranked[0]["left_out"] and ranked[0]["rank"]:
        sentences += _left_out_dimension_sentences(contest, ranked[0]["left_out"], answers.rule)
    sentences += _unequal_item_sentences(contest)
    if any(row["rank"] for row in ranked):
        averaged = {d.id for d in DIMENSIONS if answers.setting in d.averaged and d.id not in ranked[0]["left_out"]}
        if counted := [one.sentence for one in list_stand_ins(answers.results) if one.metric in averaged]:
            named = "; ".join(dict.fromkeys(counted))
            sentences.append(f"ranks count stand-ins, so they are none of the published table: {named}")
    if answers.literal and answers.setting == "A":
        for model, mine in answers.results_by_model.items():
            verdicts = [answers.posed[case.id] for case in mine.cases]
            still = sum(verdict is not None and verdict.posed is False for verdict in verdicts)
            if still > len(mine.entries) / 2:
                share = f"{still} of {len(verdicts)} clips"
                sentences.append(f"the paper ranks every model: the camera of {model} stays still in {share}")
    for row in ranked:
        if row["rank"] is None and not row["floor"] and (answers.rule != "all" or answers.setting == "A"):
            sentences.append(f"{row['model']} is not ranked: {row['reason']}")
    return sentences


def _left_out_dimension_sentences(contest: Contest, left_out: Sequence[str], rule: str) -> list[str]:
    """Sentences on the dimensions that axes and total leave out, and on whose account."""

    def cause(metric_id: str) -> str:
        without = [model for model in contest.rivals if ranking_interval(contest.own[metric_id][model], rule) is None]
        return f"{join_names(without, NAMED_MODELS)}: no value for" if without else "no item is common to all models in"

    return [
        f"{why} {_lowercase_titles(ids)}; axes and total leave {'it' if len(ids) == 1 else 'them'} out for all models"
        for why, ids in group_items(left_out, cause).items()
    ]


def _unequal_item_sentences(contest: Contest) -> list[str]:
    """Sentences on the items that some compared models lack, and on the dimensions that they are of."""
    scored = [id for id, standings in contest.standings.items() if any(one.n for one in standings.values())]
    lacks = {id: _lacking_items_text(contest.shared[id]) for id in scored if contest.shared[id].lacks}
    return [f"{_lowercase_titles(ids)}: {lack}" for lack, ids in group_items(lacks, lacks.__getitem__).items()]


def _lowercase_titles(metric_ids: Sequence[str]) -> str:
    return join_names([BY_ID[metric_id].title.lower() for metric_id in metric_ids])


def _lacking_items_text(shared: SharedItems) -> str:
    """Who lacks how many items, and what follows."""
    who = join_names([f"{model} {count}" for model, count in shared.lacks.items()], NAMED_MODELS)
    return (
        f"models lack items that others have ({who}), so tables and ranks are on the {len(shared.items)} of "
        f"{shared.of} that all compared models have"
    )


def _funnel_stages(answers: Answers, part: Results) -> list[Stage]:
    readable = part.readable.cases
    stages = dataset_funnel(part, [])
    gated = any(answers.posed[case.id] is not None for case in part.cases)
    remaining = [case for case in readable if not gated or ((v := answers.posed[case.id]) is not None and v.posed)]
    if gated:
        stages.append(make_stage("test posed", remaining))
    scored = [case for case in remaining if any(record.scored for record in part.of(case).values())]
    return [*stages, make_stage("memory scored" if gated else "scored", scored)]
