"""Results → tables: the standard ones, and the benchmark's five dimensions and their average, in percent.

A dimension is the mean of its columns, each of which is the mean of its clips. One that lacks a column has no number:
a mean of other columns would not compare with the board's. Stand-ins count in a second table that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from revisit.results import Results
from revisit.results.funnel import dataset_funnel
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
    loops = [metric for metric in LOOPS if metric in results.metrics]
    standard = standard_summary(results, funnel=partial(dataset_funnel, memory=loops), parts=parts)
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
        rows.append((model, [_format_percent(row.get(name), _column_count_note(columns, name)) for name in names]))
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


def _format_percent(value: float | None, note: str = "") -> str:
    return "–" if value is None else f"{value:.1f}{note}"
