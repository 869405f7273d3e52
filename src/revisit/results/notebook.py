"""Results as a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from revisit.results.results import Results


def html_table(results: Results) -> str:
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
