"""Boards as one page of HTML: sortable, in light and dark, with links to the clips behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote, urlencode

from revisit.core import METRICS
from revisit.report.standalone import html_and_policy_of_template
from revisit.results.leaderboards import Board, BoardRow, mark_best_and_second_rows, sort_rows_best_first
from revisit.web.templates import Context


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
    >>> from revisit.results.leaderboards import BoardColumn
    >>> column = BoardColumn("psnr", "PSNR")
    >>> as_html([Board("folder", "default", (column,), ())]).startswith("<!doctype html>")
    True
    """
    pages = pages or {}
    title = f"Leaderboard: {', '.join(dict.fromkeys(board.title for board in boards))}"
    content: Context = {
        "tables": [_board_table(board, by) for board in boards],
        "by": by.lower(),
        "address": partial(_clips_address_or_empty, pages),
        "linked": any(row.source in pages for board in boards for row in board.rows),
        "provenance": provenance,
    }
    return html_and_policy_of_template("leaderboard.html", title, ("sort.js",), content)[0]


def _board_table(board: Board, by: str) -> Context:
    """A board with its rows in order, and its columns by whether anybody has a value in them."""
    rows = sort_rows_best_first(board, by)
    columns = [column for column in board.columns if any(row.cell(column).mean is not None for row in rows)]
    empty = [column for column in board.columns if column not in columns]
    sources = {row.source for row in rows}
    return {
        "board": board,
        "rows": rows,
        "columns": columns,
        "marks": {column.key: mark_best_and_second_rows(board, rows, column) for column in columns},
        "empty": {column: sorted({reason for row in rows for reason in row.cell(column).reasons}) for column in empty},
        "source": sources.pop() if len(sources) == 1 else "",
    }


def _clips_address_or_empty(pages: Mapping[str, str], row: BoardRow, metric: str = "") -> str:
    """The address of the clips of a model in a report, from the worst on where a metric is named."""
    if row.source not in pages or row.role == "ceiling":
        return ""
    query = {"model": row.model, **({"order": metric} if metric in METRICS else {})}
    return f"{pages[row.source]}#{urlencode(query, quote_via=quote)}"
