"""The leaderboard of MBench from a run: dimensions, axes and total (x 100) of the models that may be ranked.

A model that may not be ranked stands on the board without values, and with the reason: no column can be sorted so that
it comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from revisit.core import UsageError
from revisit.core.cases import CEILING, FLOOR
from revisit.results import leaderboards as boards
from revisit.results.score_names import STAND_IN
from revisit.results.stand_ins import separate_stand_ins
from revisit.suites.mbench.names import BY_ID, MOVED, SUBSETS, TRIGGER
from revisit.suites.mbench.ranking import RankRow
from revisit.suites.mbench.summary import (
    midpoint_and_interval,
    model_number_is_in_column,
    scores_by_stand_in,
    sum_columns,
)

TITLES = {"trigger": "M-Score", "camera": "reliability", "all": "mean over all scored clips"}


def boards_of(run: boards.RunFacts, subset: str = "") -> list[boards.Board]:
    """The board of a run, or of the dimensions of one subset."""
    if subset and subset.lower() not in SUBSETS:
        raise UsageError(f"{run.name} has no subset {subset!r}; MBench has {', '.join(SUBSETS)}")
    part = run.summary["mbench"]
    apart = scores_by_stand_in(run.results)
    run = replace(run, results=separate_stand_ins(run.results))
    dimensions = [BY_ID[id] for id in part["dimensions"] if not subset or BY_ID[id].subset == subset.lower()]
    dimension_columns = [boards.BoardColumn(d.id, d.short) for d in dimensions]
    metric_columns = boards.board_columns_of_run(run, dimension_columns) if dimension_columns else ()
    sums = [] if subset else sum_columns([row["model"] for row in part["ranking"]], part["setting"], apart)
    columns = (*(_column_with_gate_protocol(run, part["rule"], c) for c in metric_columns), *sums)
    rows = []
    for row in part["ranking"]:
        cells = _board_cells_of_model(row, part, columns, apart)
        rows.append(boards.BoardRow(row["model"], run.name, cells, role=FLOOR if row.get("floor") else ""))
    if run.results.truths:  # the filmed videos that the samples were made from
        scores = {c.key: run.results.truth.cell(c.key) for c in metric_columns}
        cells = {
            key: boards.BoardCell(c.n, c.of, None if c.mean is None else 100 * c.mean) for key, c in scores.items()
        }
        rows.append(boards.BoardRow(run.results.truth_name, run.name, cells, role=CEILING))
    remarks = [f"{row['model']} is not ranked: {row['reason']}" for row in part["ranking"] if row["reason"]]
    if any("on_shared" in dimension for dimension in part["dimensions"].values()):
        remarks.append("models have different items: values are on those that all compared models of the run have")
    title = f"mbench {part['setting']}, {TITLES[part['rule']]}{', ' + subset if subset else ''}"
    truths = boards.truth_digests(run.plan, run.results)
    return [
        boards.Board(title, boards.protocol_tag(run.facts), columns, tuple(rows), "; ".join(remarks), truths=truths)
    ]


def _column_with_gate_protocol(
    run: boards.RunFacts, counting_rule: str, column: boards.BoardColumn
) -> boards.BoardColumn:
    """The column with what decided which clips count: M-Scores by two triggers are not comparable."""
    gate = {"trigger": TRIGGER, "camera": MOVED}.get(counting_rule, "")
    tag = run.facts["protocol"]["gates"].get(gate, "").partition(":")[2]
    records = run.results.records_for(gate) if gate else []
    judges = {str(record.facts.get("judge") or "") for record in records} - {""}
    return replace(column, protocol=" ".join([column.protocol, tag, *sorted(judges)])) if tag else column


def _board_cells_of_model(
    row: RankRow, part: Mapping[str, Any], columns: tuple[boards.BoardColumn, ...], apart: Collection[tuple[str, str]]
) -> dict[str, boards.BoardCell]:
    """The cells of a model; what stand-ins measured, and sums with them, are in columns of their own."""
    model, cells = row["model"], {}
    for column in columns:
        metric_id = column.key.removesuffix(STAND_IN)
        if not model_number_is_in_column(column, model, part["setting"], apart):
            reason = "no stand-in" if column.key.endswith(STAND_IN) else "measured by a stand-in"
            cells[column.key] = boards.cell_without_counts(None, reason=reason)
        elif dimension := part["dimensions"].get(metric_id):
            standing = dimension.get("on_shared", dimension["models"])[model]
            s = standing["reliability"]
            ends = standing["m_interval"] if part["rule"] == "trigger" else None if s is None else (s, s)
            scaled = None if ends is None else [100 * end for end in ends]
            cells[column.key] = _board_cell_of_interval(scaled, row["reason"], standing["n"], standing["of"])
        else:  # an axis, or the total
            cells[column.key] = _board_cell_of_interval(row[metric_id], row["reason"])
    return cells


def _board_cell_of_interval(ends: Sequence[float] | None, reason: str, n: int = 0, of: int = 0) -> boards.BoardCell:
    if ends is None or reason:
        return boards.BoardCell(n, of, reasons=(reason or "no score",))
    return boards.BoardCell(n, of, **midpoint_and_interval(ends))
