"""The table of MIND's paper: seven columns, one table for each perspective, of a run and as it was printed.

Memory, quality and actions are those of mem_test, scene consistency that of mirror_test, and action space
generalization is the memory error on action_space_test. The paper prints errors as MSE and rates on 0 to 1, as we do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

from revisit.core.text import read_package_yaml
from revisit.results import Cell, Results
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    RunFacts,
    as_board_cell,
    protocol_tag,
    truth_digests,
)
from revisit.results.tables import Table, make_table
from revisit.suites.board_rows import board_row_of_printed_line, board_rows_of_models
from revisit.suites.mind.read import PERSPECTIVES

PERSONS = dict(zip(PERSPECTIVES, ("first person", "third person"), strict=True))
ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"
NOTE = "mem_test; scene consistency of mirror_test, action space generalization of action_space_test"


@dataclass(frozen=True)
class PaperColumn:
    """A column as the paper prints it, and what it is made of here."""

    key: str
    title: str
    metric: str
    test: str
    higher_is_better: bool = False


PUBLISHED = read_package_yaml(__package__, "published.yaml")
COLUMNS = tuple(PaperColumn(key, **facts) for key, facts in PUBLISHED["columns"].items())


def paper_tables_by_perspective(results: Results) -> list[Table]:
    """The paper's table of each perspective that has clips, with the columns that were asked."""
    tables = []
    for perspective, mine, columns in _perspective_parts(results):
        heads = [f"{column.title} {'↑' if column.higher_is_better else '↓'}" for column in columns]
        rows = [
            (model, [_column_cell(part, column) for column in columns]) for model, part in mine.groups("model").items()
        ]
        tables.append(make_table(f"As the paper prints it, {PERSONS[perspective]}", NOTE, heads, rows))
    return tables


def paper_boards_by_perspective(run: RunFacts) -> list[Board]:
    """The same as boards, so that several runs and the printed numbers stand one below the other."""
    protocol = run.facts["protocol"]["metrics"]
    boards = []
    for perspective, mine, columns in _perspective_parts(run.results):
        heads = tuple(_paper_board_column(column, f"{protocol[column.metric]} {column.test}") for column in columns)
        rows = board_rows_of_models(mine, run.name, partial(_paper_board_cells, columns))
        truths = truth_digests(run.plan, mine)
        title = f"mind, {PERSONS[perspective]}, as printed"
        boards.append(Board(title, protocol_tag(run.facts), heads, tuple(rows), NOTE, truths=truths))
    return boards


def _paper_board_column(column: PaperColumn, protocol: str = "") -> BoardColumn:
    return BoardColumn(column.key, column.title, column.higher_is_better, 4, protocol)


@cache
def published_mind_boards(supplement: bool = False) -> tuple[Board, ...]:
    """Tables 2 and 3 of the paper; its models compete within those that see as much of the context."""
    heads = tuple(map(_paper_board_column, COLUMNS))
    boards = []
    for number, entry in PUBLISHED["tables"].items():
        rows = [board_row_of_printed_line(model, "paper", heads, line, group) for model, group, line in entry["rows"]]
        protocol = f"{PUBLISHED['source']}, Table {number} ({ANOTHER_PROTOCOL})"
        boards.append(Board(f"Published: MIND, {entry['title']}", protocol, heads, tuple(rows), as_printed=True))
    return tuple(boards)


def _perspective_parts(results: Results) -> list[tuple[str, Results, list[PaperColumn]]]:
    """The perspectives that have clips, and the columns that the run asked there; one column alone is no table."""
    parts = []
    for perspective in PERSPECTIVES:
        mine = results.where(subset=perspective)
        columns = [
            column
            for column in COLUMNS
            if column.metric in results.metrics and mine.where(condition=column.test).expected(column.metric)
        ]
        if len(columns) > 1:
            parts.append((perspective, mine, columns))
    return parts


def _column_cell(part: Results, column: PaperColumn) -> Cell:
    return part.where(condition=column.test).cell(column.metric)


def _paper_board_cells(columns: Sequence[PaperColumn], part: Results) -> dict[str, BoardCell]:
    return {column.key: as_board_cell(_column_cell(part, column)) for column in columns}
