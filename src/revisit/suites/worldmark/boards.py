"""Boards: the thirteen columns of each split, of runs, as files of the benchmark, and as its page prints them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from revisit.core.text import read_package_yaml
from revisit.media.text_files import csv_text
from revisit.results import Results
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    RunFacts,
    as_board_cell,
    board_of_run,
    protocol_tag,
)
from revisit.results.score_names import STAND_IN
from revisit.results.stand_ins import separate_stand_ins
from revisit.suites.board_rows import board_row_of_printed_line, board_rows_of_models
from revisit.suites.worldmark.metrics import COLUMNS
from revisit.suites.worldmark.model_columns import aggregate_model_cell, asked_columns

PUBLISHED = read_package_yaml(__package__, "published.yaml")
NAMES: Mapping[str, str] = PUBLISHED["names"]
LEFT_OUT = ("Open-Oasis", "Genie3")  # upstream, without a word
ANOTHER_PROTOCOL = "other networks: not comparable with runs made here"


def results_by_split(results: Results) -> dict[str, Results]:
    """The results by split, such as first/real."""
    return {name: part for name, part in results.groups("subset").items() if name}


def worldmark_run_boards(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of all metrics, and that of each split as the benchmark prints it."""
    board = board_of_run(run, subset=subset)
    if subset and "/" not in subset:
        return [board]
    upstream = run.facts["protocol"]["name"] == "upstream"
    apart = separate_stand_ins(run.results)
    parts = {name: part for name, part in results_by_split(apart).items() if subset in ("", name)}
    return [board, *(_split_board(run, name, part, upstream) for name, part in parts.items())]


def _split_board(run: RunFacts, name: str, part: Results, upstream: bool) -> Board:
    """The columns of a split."""
    protocol = run.facts["protocol"]["metrics"]
    columns = []
    for head, id in asked_columns(part):
        tag = " ".join([protocol[id.removesuffix(STAND_IN)], name, head.partition(" by ")[2]]).rstrip()
        columns.append(BoardColumn(id, head, True, 2, tag))

    def model_cells(mine: Results) -> dict[str, BoardCell]:
        return {column.key: as_board_cell(aggregate_model_cell(mine, column.key, upstream)) for column in columns}

    dropped = [model for model in part.groups("model") if upstream and model in LEFT_OUT]
    rows = [row for row in board_rows_of_models(part, run.name, model_cells, NAMES) if row.model not in dropped]
    note = f"upstream leaves out {' and '.join(dropped)}" if dropped else ""
    return Board(f"worldmark, {name}, as printed", protocol_tag(run.facts), tuple(columns), tuple(rows), note)


@cache
def published_worldmark_boards(supplement: bool = False) -> tuple[Board, ...]:
    """The four tables of the benchmark's page."""
    columns = tuple(BoardColumn(COLUMNS[head], head, True, 2) for head in PUBLISHED["columns"])
    printed = []
    for name, lines in PUBLISHED["tables"].items():
        rows = [board_row_of_printed_line(model, "page", columns, line) for model, line in lines]
        protocol = f"{PUBLISHED['source']} ({ANOTHER_PROTOCOL})"
        printed.append(Board(f"Published: WorldMark, {name}", protocol, columns, tuple(rows), as_printed=True))
    return tuple(printed)


def export_final_master_tables(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, object]:
    """final_master_<view>_<domain>.csv of each split, as the public evaluator writes final_master.csv.

    Only what the published networks measured stands there; stand-ins have a file of their own.
    """
    upstream = str(facts["protocol"]).startswith("upstream")
    tables: dict[str, object] = {}
    for name, part in results_by_split(results).items():
        asked = [id if id in results.metrics else "" for id in COLUMNS.values()]
        rows = []
        for model, mine in part.groups("model").items():
            if not (upstream and model in LEFT_OUT):
                means = [aggregate_model_cell(mine, id, upstream).mean if id else None for id in asked]
                rows.append([NAMES.get(model, model), *("" if mean is None else f"{mean:.4f}" for mean in means)])
        tables[f"final_master_{name.replace('/', '_')}.csv"] = csv_text(["model", *COLUMNS], sorted(rows), "\n")
    return tables
