"""Results → tables and boards: the standard ones, and the thirteen columns of each split as the benchmark prints them.

A model's thirteen numbers come from the answers about its clips, as the benchmark adds them up. Columns of control are
means over keys, not over clips: a clip of three keys counts three times. Local memory multiplies two means, and global
memory is that of the mean error. Intervals are over scenes; those of the last two are of the line that touches the
formula at the means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from revisit.core import METRICS, Record
from revisit.core.text import read_package_yaml
from revisit.media.text_files import csv_text
from revisit.results import Cell, Results
from revisit.results.cells import mean_and_interval
from revisit.results.funnel import dataset_funnel
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
from revisit.results.stand_ins import separate_stand_ins, stand_in_makers_by_metric
from revisit.results.tables import Table, make_table, standard_summary
from revisit.stats.correlation import spearman
from revisit.suites.board_rows import board_row_of_printed_line, board_rows_of_models
from revisit.suites.worldmark.metrics import COLUMNS, STAND_INS
from revisit.suites.worldmark.metrics.whole import SCALE

MEMORY = ("worldmark_revisit", "worldmark_revisit_small")
NOTE = "means over keys for control, over clips for memory and quality; intervals over scenes"
PUBLISHED = read_package_yaml(__package__, "published.yaml")
NAMES: Mapping[str, str] = PUBLISHED["names"]
LEFT_OUT = ("Open-Oasis", "Genie3")  # upstream, without a word
ANOTHER_PROTOCOL = "other networks: not comparable with runs made here"
Values = list[tuple[float, str]]  # a number and its scene
BOUNDS = (0.0, 100.0)


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    standard = standard_summary(
        results, funnel=partial(dataset_funnel, memory_metrics=MEMORY), parts=results_by_split(results)
    )
    return standard | {"headline": split_tables(separate_stand_ins(results))}


def split_tables(results: Results) -> list[Table]:
    """The thirteen columns of each split; what stand-ins measured has columns of its own."""
    columns = column_titles_and_metric_ids(results)
    if len(columns) < 2:
        return []
    return [
        make_table(
            f"As the benchmark prints it, {name}",
            NOTE,
            [head for head, _ in columns],
            [
                (model, [aggregate_model_cell(mine, id, False) for _, id in columns])
                for model, mine in part.groups("model").items()
            ],
        )
        for name, part in results_by_split(results).items()
    ]


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
    for head, id in column_titles_and_metric_ids(part):
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


def column_titles_and_metric_ids(results: Results) -> list[tuple[str, str]]:
    """Head and metric of each column that was asked, with a column of its own behind it for what stand-ins measured."""
    makers = stand_in_makers_by_metric(results)
    columns = []
    for head, id in {**COLUMNS, **{METRICS[id].title: id for id in STAND_INS}}.items():
        if id in results.metrics or id in makers:
            columns.append((head, id))
        if id in makers:
            columns.append((f"{head} by {makers[id]} (stand-in)", id + STAND_IN))
    return columns


def aggregate_model_cell(results: Results, metric: str, upstream: bool) -> Cell:
    """The cell of a model under a metric; `upstream` counts a direction below zero as zero."""
    id = metric.removesuffix(STAND_IN)
    cell = replace(results.cell(metric), of=results.expected(id))
    records = results.scores(metric)
    collect = COLLECTORS.get(id, _key_score_values)
    if not records or (collect is _key_score_values and not any("keys" in record.facts for record in records)):
        return cell  # a mean over clips, with the interval that every table gives it
    bounds = (-100.0, 100.0) if "_direction_" in id else BOUNDS
    mean, interval = mean_and_interval(collect(records), bounds)
    if upstream and mean is not None and "_direction_" in id:
        mean, interval = max(mean, 0.0), None if interval is None else (max(interval[0], 0.0), max(interval[1], 0.0))
    return replace(cell, mean=mean, interval=interval, few_scenes=False)


def _key_score_values(records: Sequence[Record]) -> Values:
    """The scores of all keys; of a metric that is not about keys, those of the clips."""
    values: Values = []
    for record in records:
        keys = record.facts.get("keys")
        own = [record.value] if keys is None else [key["score"] for key in keys]
        values += [(float(one), record.case.sample) for one in own if one is not None]
    return values


def _values_averaging_to_local_memory(records: Sequence[Record]) -> Values:
    """100 (1 - share with a cut) (1 - mean share of mutations), as values whose mean that is."""
    whole = [0.0 if record.facts["cut"] else 1.0 for record in records]
    shares = [record.facts["mutations"] for record in records]
    shares_without = [1.0 - share for share in shares if share is not None]
    if not shares_without:
        return [(0.0, record.case.sample) for record in records]
    uncut, calm = sum(whole) / len(whole), sum(shares_without) / len(shares_without)
    return [
        (100 * (uncut * (calm if share is None else 1.0 - share) + calm * one - uncut * calm), record.case.sample)
        for record, one, share in zip(records, whole, shares, strict=True)
    ]


def _values_averaging_to_global_memory(records: Sequence[Record]) -> Values:
    """100 / (1 + mean error / 0.05), as values whose mean that is."""
    errors = [float(record.facts["error"]) for record in records]
    mean = sum(errors) / len(errors)
    top, slope = 100 / (1 + mean / SCALE), -100 / SCALE / (1 + mean / SCALE) ** 2
    return [(top + slope * (error - mean), record.case.sample) for error, record in zip(errors, records, strict=True)]


COLLECTORS = {
    "worldmark_local": _values_averaging_to_local_memory,
    "worldmark_local_small": _values_averaging_to_local_memory,
    "worldmark_global": _values_averaging_to_global_memory,
}


def published_table_statistics() -> dict[str, float]:
    """What the benchmark's page says of its tables, recomputed from them.

    Examples
    --------
    >>> round(published_table_statistics()["sd of Global"], 2)
    13.08
    """
    tables = {board.title.rpartition(", ")[2]: board for board in published_worldmark_boards()}

    def column_means_by_model(split: str, head: str) -> dict[str, float]:
        cells = {row.model: row.cells[COLUMNS[head]].mean for row in tables[split].rows}
        return {model: mean for model, mean in cells.items() if mean is not None}

    findings: dict[str, float] = {}
    for head in ("Local", "Global"):
        values = list(column_means_by_model("first/real", head).values())
        mean = sum(values) / len(values)
        findings[f"sd of {head}"] = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    quality = column_means_by_model("first/real", "QA_q")
    for head in ("Local", "Global", "Rev", "RL_t"):
        rho = spearman(list(quality.values()), [column_means_by_model("first/real", head)[model] for model in quality])
        findings[f"Spearman of QA_q with {head}"] = float("nan") if rho is None else rho[0]
    for head in ("DA_r", "DA_t"):
        first, third = column_means_by_model("first/real", head), column_means_by_model("third/real", head)
        common = first.keys() & third.keys()
        findings[f"third minus first of {head}"] = sum(third[model] - first[model] for model in common) / len(common)
    return findings
