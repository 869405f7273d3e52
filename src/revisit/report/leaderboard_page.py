"""Boards as one page of HTML: sortable, in light and dark, with links to the clips behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from revisit.core import METRICS
from revisit.core.text import printable_text
from revisit.report.standalone import standalone_page
from revisit.results.display import arrow
from revisit.results.leaderboards import Board, BoardColumn, BoardRow, marked_rows, sorted_rows
from revisit.web.templates import Context

FIRST = {True: "descending", False: "ascending", None: "descending"}


def as_html(
    boards: Sequence[Board],
    by: str = "",
    pages: Mapping[str, str] | None = None,
    provenance: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
) -> str:
    """A page that opens from disk; a click on a heading sorts its table, the better ones first.

    Parameters
    ----------
    boards
        Tables, one below the other.
    by
        Key or title of the column that rows are sorted by at first.
    pages
        Source of rows (the name of a run) -> address of the report with its clips, relative to the page.
    provenance
        Headings and rows of a table of where the rows come from, below all boards.

    Examples
    --------
    >>> column = BoardColumn("psnr", "PSNR")
    >>> as_html([Board("folder", "default", (column,), ())]).startswith("<!doctype html>")
    True
    """
    pages = pages or {}
    title = f"Leaderboard: {', '.join(dict.fromkeys(board.title for board in boards))}"
    content: Context = {
        "boards": [_board(board, by, pages) for board in boards],
        "linked": any(row.source in pages for board in boards for row in board.rows),
        "provenance": None
        if provenance is None
        else {"heads": provenance[0], "rows": [list(map(printable_text, row)) for row in provenance[1]]},
    }
    return standalone_page("leaderboard.html", title, ("sort.js",), content)[0]


def _board(board: Board, by: str, pages: Mapping[str, str]) -> Context:
    rows = sorted_rows(board, by)
    columns = [column for column in board.columns if any(row.cell(column).mean is not None for row in rows)]
    marks = {column.key: marked_rows(board, rows, column) for column in columns}
    sources = dict.fromkeys(row.source for row in rows)
    return {
        "title": printable_text(board.title),
        "protocol": printable_text(board.protocol),
        "note": printable_text(board.note),
        "empty": [_empty(column, rows) for column in board.columns if column not in columns],
        "source": printable_text(next(iter(sources))) if len(sources) == 1 else "",
        "heads": [
            {
                "title": printable_text(column.title),
                "tip": printable_text(f"{column.key} {column.protocol}".strip()),
                "arrow": arrow(column.higher_is_better),
                "first": FIRST[column.higher_is_better],
                "sorted": bool(by) and by.lower() in (column.key.lower(), column.title.lower()),
            }
            for column in columns
        ],
        "rows": [
            {
                "model": printable_text(row.label),
                "source": printable_text(row.source),
                "page": _clips(row, pages),
                "apart": bool(row.role),
                "cells": [
                    _cell(row, column, marks[column.key].get(place, ""), _clips(row, pages, column.key))
                    for column in columns
                ],
            }
            for place, row in enumerate(rows)
        ],
    }


def _empty(column: BoardColumn, rows: Sequence[BoardRow]) -> str:
    """A column in which nobody has a value, and why."""
    reasons = "; ".join(sorted({row.cell(column).reason for row in rows} - {""}))
    return printable_text(f"{column.title} ({reasons})" if reasons else column.title)


def _cell(row: BoardRow, column: BoardColumn, mark: str, page: str) -> Context:
    cell = row.cell(column)
    number, _, count = cell.to_text(column.decimals).partition(" ")
    interval = f"95 % interval {cell.interval[0]:.4g} to {cell.interval[1]:.4g}" if cell.interval else ""
    return {
        "value": "" if cell.mean is None else repr(cell.mean),
        "text": printable_text(number),
        "count": printable_text(count),
        "mark": mark,
        "tip": printable_text(cell.reason or interval),
        "page": page if cell.mean is not None else "",
    }


def _clips(row: BoardRow, pages: Mapping[str, str], metric: str = "") -> str:
    """The address of the clips of a model in a report, from the worst on where a metric is named."""
    if row.source not in pages or row.role == "ceiling":
        return ""
    query = {"model": row.model, **({"order": metric} if metric in METRICS else {})}
    return f"{pages[row.source]}#{urlencode(query, quote_via=quote)}"
