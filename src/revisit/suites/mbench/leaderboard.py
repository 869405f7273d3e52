"""The leaderboard of MBench from a run: dimensions, axes and total (x 100) of the models that may be ranked.

A model that may not be ranked stands on the board without values, and with the reason: no column can be sorted so that
it comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from revisit.core import UsageError
from revisit.core.cases import CEILING, FLOOR
from revisit.results.cells import Cell
from revisit.results.display import observed_by
from revisit.results.leaderboards import Board, BoardCell, Column, Row, RunFacts, columns_of
from revisit.results.stand_ins import SUFFIX, is_stand_in, set_apart
from revisit.suites.mbench.names import AXES, BY_ID, MOVED, SUBSETS, TRIGGER

SUMS = (*(Column(axis, f"{axis} axis") for axis in AXES), Column("total", "total"))
TITLES = {"trigger": "M-Score", "camera": "reliability", "all": "mean over all scored clips"}


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of a run, or of the dimensions of one subset."""
    if subset and subset.lower() not in SUBSETS:
        raise UsageError(f"{run.name} has no subset {subset!r}; MBench has {', '.join(SUBSETS)}")
    part = run.summary["mbench"]
    apart = {(record.case.model, record.question) for record in run.results.records if is_stand_in(record)}
    run = replace(run, results=set_apart(run.results))
    known = [
        Column(id, BY_ID[id].short) for id in part["dimensions"] if not subset or BY_ID[id].subset == subset.lower()
    ]
    asked = columns_of(run, known) if known else ()
    mixed = tuple(replace(sum, key=f"{sum.key}{SUFFIX}", title=f"{sum.title} with stand-ins") for sum in SUMS)
    sums = (*SUMS, *(mixed if apart else ())) if not subset else ()
    columns = (*(_triggered(run, part["rule"], c) for c in asked), *sums)
    rows = [
        Row(row["model"], run.name, _cells(row, part, columns, apart), role=FLOOR if row.get("floor") else "")
        for row in part["ranking"]
    ]
    if run.results.truths:  # the filmed videos that the samples were made from
        truth = run.results.truth
        shown = [c.key for c in columns if c.key.removesuffix(SUFFIX) in part["dimensions"]]
        cells = {key: _of_truth(truth.cell(key)) for key in shown}
        rows.append(Row(run.results.truth_name, run.name, cells, role=CEILING))
    protocol = run.facts["protocol"]
    board = Board(
        title=f"mbench {part['setting']}, {TITLES[part['rule']]}{', ' + subset if subset else ''}",
        protocol=f"{protocol['name']}:{protocol['hash']}, observers {observed_by(run.facts)}",
        columns=columns,
        rows=tuple(rows),
        note="; ".join(f"{row['model']} is not ranked: {row['reason']}" for row in part["ranking"] if row["reason"]),
    )
    return [board]


def _triggered(run: RunFacts, rule: str, column: Column) -> Column:
    """The column with what decided which clips count: M-Scores by two triggers are not comparable."""
    gate = {"trigger": TRIGGER, "camera": MOVED}.get(rule, "")
    tag = run.facts["protocol"]["gates"].get(gate, "").partition(":")[2]
    records = run.results.about(gate) if gate else []
    judges = {str(record.facts.get("judge") or "") for record in records} - {""}
    return replace(column, protocol=" ".join([column.protocol, tag, *sorted(judges)])) if tag else column


def _cells(
    row: Mapping[str, Any], part: Mapping[str, Any], columns: tuple[Column, ...], apart: Collection[tuple[str, str]]
) -> dict[str, BoardCell]:
    """The cells of a model; what stand-ins measured, and sums with them, are in columns of their own."""
    model, cells = row["model"], {}
    own = {id for id in part["dimensions"] if (model, id) in apart}
    for column in columns:
        id = column.key.removesuffix(SUFFIX)
        counted = [BY_ID[one] for one in own if part["setting"] in BY_ID[one].averaged]
        is_apart = id in own if id in part["dimensions"] else any(id in ("total", one.axis) for one in counted)
        if is_apart != column.key.endswith(SUFFIX):
            cells[column.key] = BoardCell(0, 0, reason="measured by a stand-in" if is_apart else "no stand-in")
            continue
        made = part["dimensions"].get(id, {}).get("models", {}).get(model)
        if made is not None:
            s = made["reliability"]
            ends = made["m_interval"] if part["rule"] == "trigger" else None if s is None else (s, s)
            scaled = None if ends is None else (100 * ends[0], 100 * ends[1])
            cells[column.key] = _cell(scaled, row["reason"], made["n"], made["of"])
        else:
            cells[column.key] = _cell(row.get(id), row["reason"])
    return cells


def _of_truth(cell: Cell) -> BoardCell:
    return BoardCell(cell.n, cell.of, None if cell.mean is None else 100 * cell.mean)


def _cell(ends: Any, reason: str, n: int = 0, of: int = 0) -> BoardCell:
    if ends is None or reason:
        return BoardCell(n, of, reason=reason or "no score")
    low, high = ends
    return BoardCell(n, of, (low + high) / 2, None if low == high else (low, high))
