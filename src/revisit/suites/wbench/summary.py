"""Results → tables: the standard ones, and the benchmark's five dimensions and their average, in percent.

A dimension is the mean of its columns, each of which is the mean of its clips. One that lacks a column has no number:
a mean of other columns would not compare with the board's. Stand-ins count in a second table that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from revisit.results import Cell, Results
from revisit.results.file_types import Stage
from revisit.results.funnel import make_stage, memory_stage
from revisit.results.stand_ins import separate_stand_ins
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.wbench.metrics import DIMENSIONS

AVERAGE = "Average"
NOTE = "in percent; each dimension is the mean of its columns, and the average that of the five"
MIXED = "as above, with stand-ins in the place of the published networks and judges, of the columns that have a score"
LOOPS = ("wb_spatial", "wb_gated_spatial")


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    parts = {
        name: results.where(subset=name) for name in dict.fromkeys(entry.subset for entry in results.entries) if name
    }
    standard = standard_summary(results, funnel=partial(_funnel, metrics=results.metrics), parts=parts)
    return standard | {"headline": dimension_tables(results)}


def _funnel(results: Results, metrics: list[str]) -> list[Stage]:
    """Expected clips → found → readable → loops that could be scored."""
    stages = {"expected clips": results.entries, "all clips": results.cases, "readable": results.readable.cases}
    loops = [metric for metric in LOOPS if metric in metrics]
    return [
        *(make_stage(name, clips) for name, clips in stages.items()),
        *(memory_stage(results, loops) if loops else ()),
    ]


def dimension_tables(results: Results) -> list[Table]:
    """The five dimensions of each model as published, and with stand-ins where there are some."""
    names = [*DIMENSIONS, AVERAGE]
    published = {
        model: dimension_means(metric_means(part))
        for model, part in separate_stand_ins(results).groups("model").items()
    }
    mixed = {model: partial_dimensions(metric_means(part)) for model, part in results.groups("model").items()}
    tables = [
        make_table(
            "Dimensions",
            NOTE,
            names,
            [(model, [_cell(row.get(name)) for name in names]) for model, row in published.items()],
        )
    ]
    if any(row != published[model] for model, (row, _) in mixed.items()):
        rows = [
            (model, [_cell(row.get(name), counts.get(name, "")) for name in names])
            for model, (row, counts) in mixed.items()
        ]
        tables.append(make_table("Dimensions with stand-ins", MIXED, names, rows))
    return tables


def metric_means(results: Results) -> dict[str, float]:
    """Metric -> mean over the clips that have a score, from 0 to 1."""
    cells = {metric: results.cell(metric) for ids in DIMENSIONS.values() for metric in ids if metric in results.metrics}
    return {metric: cell.mean for metric, cell in cells.items() if cell.mean is not None}


def dimension_means(columns: Mapping[str, float]) -> dict[str, float]:
    """Dimension -> mean of its columns in percent, where all of them are there; the average where all dimensions are.

    >>> dimensions({metric: 0.5 for ids in DIMENSIONS.values() for metric in ids})["Average"]
    50.0
    """
    row = {
        name: 100 * sum(columns[metric] for metric in ids) / len(ids)
        for name, ids in DIMENSIONS.items()
        if all(metric in columns for metric in ids)
    }
    return row | ({AVERAGE: sum(row.values()) / len(row)} if len(row) == len(DIMENSIONS) else {})


def partial_dimensions(columns: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """The same of the columns that are there, and how many these are."""
    row, counts = {}, {}
    for name, ids in DIMENSIONS.items():
        there = [columns[metric] for metric in ids if metric in columns]
        if there:
            row[name] = 100 * sum(there) / len(there)
            counts[name] = "" if len(there) == len(ids) else f" ({len(there)} of {len(ids)} columns)"
    if len(row) == len(DIMENSIONS):
        row[AVERAGE] = sum(row.values()) / len(row)
    return row, counts


def _cell(value: float | None, note: str = "") -> Cell | str:
    return "–" if value is None else f"{value:.1f}{note}"
