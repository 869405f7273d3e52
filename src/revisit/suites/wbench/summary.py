"""Results → tables and boards: the standard ones, and the five dimensions and their average, in percent.

A dimension is the mean of its columns, each of which is the mean of its clips. One that lacks a column has no number:
a mean of other columns would not compare with the board's. Stand-ins count in a second table that says so. Boards are
those of a run, of the evaluator's report.json, and the published one (navigation split).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from revisit.core import METRICS, MediaError
from revisit.core.text import read_package_yaml
from revisit.media.text_files import read_json_object
from revisit.results import Results
from revisit.results.funnel import dataset_funnel
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    RunFacts,
    board_of_run,
    cell_without_counts,
    protocol_tag,
)
from revisit.results.stand_ins import separate_stand_ins
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.board_rows import board_row_of_printed_line, board_rows_of_models
from revisit.suites.wbench.metrics import DIMENSIONS

AVERAGE = "Average"
NOTE = "in percent; each dimension is the mean of its columns, and the average that of the five"
MIXED = "as above, with stand-ins in the place of the published networks and judges, of the columns that have a score"
LOOPS = ("wb_spatial", "wb_gated_spatial")
SUMMARY = tuple(BoardColumn(name.lower(), name, decimals=1) for name in (AVERAGE, *DIMENSIONS))
ANOTHER_PROTOCOL = "the benchmark's own networks and judge: another protocol than any run of yours"


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    parts = {
        name: results.where(subset=name) for name in dict.fromkeys(entry.subset for entry in results.entries) if name
    }
    loops = [metric for metric in LOOPS if metric in results.metrics]
    standard = standard_summary(results, funnel=partial(dataset_funnel, memory_metrics=loops), parts=parts)
    return standard | {"headline": dimension_tables(results)}


def dimension_tables(results: Results) -> list[Table]:
    """The five dimensions of each model as published, and with stand-ins where there are some."""
    published = {model: metric_means(part) for model, part in separate_stand_ins(results).groups("model").items()}
    tables = [_dimension_table("Dimensions", NOTE, published, with_gaps=False)]
    mixed = {model: metric_means(part) for model, part in results.groups("model").items()}
    if any(dimension_means(mixed[model], with_gaps=True) != dimension_means(published[model]) for model in mixed):
        tables.append(_dimension_table("Dimensions with stand-ins", MIXED, mixed, with_gaps=True))
    return tables


def _dimension_table(title: str, note: str, means: Mapping[str, Mapping[str, float]], *, with_gaps: bool) -> Table:
    names, rows = [*DIMENSIONS, AVERAGE], []
    for model, columns in means.items():
        row = dimension_means(columns, with_gaps=with_gaps)
        cells = [f"{row[name]:.1f}{_column_count_note(columns, name)}" if name in row else "–" for name in names]
        rows.append((model, cells))
    return make_table(title, note, names, rows)


def metric_means(results: Results) -> dict[str, float]:
    """Metric -> mean over the clips that have a score, from 0 to 1."""
    cells = {metric: results.cell(metric) for ids in DIMENSIONS.values() for metric in ids if metric in results.metrics}
    return {metric: cell.mean for metric, cell in cells.items() if cell.mean is not None}


def dimension_means(columns: Mapping[str, float], *, with_gaps: bool = False) -> dict[str, float]:
    """Dimension -> mean of its columns in percent, where all are there; the average where all dimensions are.

    With `with_gaps`, a dimension is the mean of the columns that are there.

    >>> dimension_means({metric: 0.5 for ids in DIMENSIONS.values() for metric in ids})["Average"]
    50.0
    """
    row = {}
    for name, ids in DIMENSIONS.items():
        there = [columns[metric] for metric in ids if metric in columns]
        if there and (with_gaps or len(there) == len(ids)):
            row[name] = 100 * sum(there) / len(there)
    return row | ({AVERAGE: sum(row.values()) / len(row)} if len(row) == len(DIMENSIONS) else {})


def _column_count_note(columns: Mapping[str, float], dimension: str) -> str:
    """How many columns of a dimension are there, where these are not all."""
    ids = DIMENSIONS.get(dimension, [])
    count = sum(metric in columns for metric in ids)
    return f" ({count} of {len(ids)} columns)" if count < len(ids) else ""


def wbench_run_boards(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of the metrics, and that of the dimensions where any has all its columns."""
    board = board_of_run(run, subset=subset)
    results = separate_stand_ins(run.results)
    rows = board_rows_of_models(results, run.name, lambda part: _dimension_cells(dimension_means(metric_means(part))))
    if subset or not any(cell.mean is not None for row in rows for cell in row.cells.values()):
        return [board]
    tags = {column.key: column.protocol.partition(":")[2] for column in board.columns}
    columns = []
    for column in SUMMARY:  # dimensions compare where all their metrics do
        metrics = DIMENSIONS.get(column.title) or [metric for ids in DIMENSIONS.values() for metric in ids]
        there = [tags[metric] for metric in metrics if metric in tags]
        columns.append(replace(column, protocol=" ".join(there) if len(there) == len(metrics) else ""))
    protocol = protocol_tag(run.facts)
    return [board, Board("wbench, dimensions", protocol, tuple(columns), tuple(rows), NOTE, truths=board.truths)]


def _dimension_cells(row: dict[str, float]) -> dict[str, BoardCell]:
    return {column.key: cell_without_counts(row.get(column.title)) for column in SUMMARY}


def board_of_report_files(folder: Path, subset: str = "") -> Board | None:
    """The board of evaluation/report.json below a model's folder, or of several models; None where there is none."""
    reports = [path for below in ("", "evaluation/", "*/evaluation/") for path in folder.glob(f"{below}report.json")]
    names = {METRICS[metric].upstream: metric for ids in DIMENSIONS.values() for metric in ids}
    rows = []
    for path in sorted(reports):
        try:
            content = read_json_object(path, "the report of WBench's evaluator")
        except MediaError:
            continue
        part = content.get("full" if subset == "full" else "navi")
        if not isinstance(part, dict) or "n_navi" not in content:
            continue
        means = {name: entry.get("mean") for name, entry in part.items() if isinstance(entry, dict)}
        columns = {names[name]: mean for name, mean in means.items() if name in names and isinstance(mean, float | int)}
        cells = {metric: cell_without_counts(100 * value, f"{100 * value:.1f}") for metric, value in columns.items()}
        model = str(content.get("model") or path.parent.parent.name)
        rows.append(BoardRow(model, path.name, cells | _dimension_cells(dimension_means(columns))))
    if not rows:
        return None
    title = f"wbench, report.json, {'full' if subset == 'full' else 'navigation'} split"
    return Board(
        title, ANOTHER_PROTOCOL, (*SUMMARY, *_metric_columns(names.values())), tuple(rows), NOTE, as_printed=True
    )


def _metric_columns(metrics: Iterable[str]) -> tuple[BoardColumn, ...]:
    return tuple(BoardColumn(metric, METRICS[metric].title, decimals=1) for metric in metrics)


@cache
def published_wbench_boards(supplement: bool = False) -> tuple[Board, ...]:
    """The printed board of 31 models; its 19 columns as the supplement."""
    content = read_package_yaml(__package__, "published.yaml")
    protocol = f"{content['source']} ({ANOTHER_PROTOCOL})"
    title = "Published: WBench, navigation split"
    parts = {"summary": (title, SUMMARY, NOTE)}
    if supplement:
        parts["detail"] = (f"{title}, columns", _metric_columns(content["columns"]), "in percent")
    boards = []
    for part, (name, columns, note) in parts.items():
        rows = [board_row_of_printed_line(model, "board", columns, line) for model, line in content[part].items()]
        boards.append(Board(name, protocol, columns, tuple(rows), note, as_printed=True))
    return tuple(boards)
