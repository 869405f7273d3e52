"""Results as tables of other libraries, a row per answer; and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from operator import attrgetter
from typing import TYPE_CHECKING

from revisit.core import Record
from revisit.core.optional import import_optional
from revisit.results.record_files import FACTS_OF_CASE

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from revisit.results.results import Results

COLUMNS: dict[str, Callable[[Record], object]] = {
    "case": attrgetter("case.id"),
    **{name: attrgetter(f"case.{name}") for name in FACTS_OF_CASE},
    "question": attrgetter("question"),
    "kind": lambda record: "gate" if record.is_gate else "metric",
    **{name: attrgetter(name) for name in ("status", "value", "raw")},
    "label": lambda record: record.label or None,
    "reason_kind": lambda record: record.reason.kind if record.reason else None,
    "reason": lambda record: record.sentence or None,
    **{name: attrgetter(name) for name in ("version", "protocol")},
}


def record_row(record: Record) -> dict[str, object]:
    """One answer as plain columns, the same for every answer."""
    return {name: value_of(record) for name, value_of in COLUMNS.items()}


def records_to_data_frame(records: Iterable[Record]) -> pandas.DataFrame:
    pandas = import_optional("pandas", "tables")
    return pandas.DataFrame([record_row(record) for record in records], columns=list(COLUMNS))


def records_to_arrow_table(records: Iterable[Record]) -> pyarrow.Table:
    pyarrow = import_optional("pyarrow", "tables")
    types = {"seed": pyarrow.int64(), "version": pyarrow.int64(), "value": pyarrow.float64(), "raw": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in COLUMNS])
    return pyarrow.Table.from_pylist([record_row(record) for record in records], schema=schema)


def mean_scores_html_table(results: Results) -> str:
    """Mean of each metric, a row per model: with the number of scored clips where some have no score."""
    metrics = [metric for metric in results.metrics if results.lacking(metric) is None]
    head = "".join(f"<th>{escape(name)}</th>" for name in ("model", "clips", *metrics))
    rows = []
    for model, part in results.groups("model").items():
        cells = [escape(str(model)), str(len(part.cases))]
        for metric in metrics:
            cell = part.cell(metric)
            mean = "–" if cell.mean is None else f"{cell.mean:.4g}"
            cells.append(mean if cell.n == cell.of else f"{mean} <small>({cell.n} of {cell.of})</small>")
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
