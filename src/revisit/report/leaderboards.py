"""Boards as markdown, LaTeX, CSV and a page of HTML. Names of models are escaped in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from itertools import count
from urllib.parse import quote, urlencode

from revisit.core import METRICS
from revisit.core.text import printable_text, read_package_yaml
from revisit.media.text_files import csv_text
from revisit.results.display import direction_arrow
from revisit.results.leaderboards import Board, BoardColumn, BoardRow, mark_best_and_second_rows, sort_rows_best_first

# character -> how it is written, where a backslash will not do
LATEX = read_package_yaml("revisit.report", "latex.yaml")
CSV_COLUMNS = (
    "board", "protocol", "source", "model", "column", "metric", "column_protocol", "value", "n", "of", "low", "high",
    "reason",
)  # fmt: skip


def title_with_arrow(column: BoardColumn) -> str:
    """The head of a column: its title and which way is better."""
    return f"{column.title} {direction_arrow(column.higher_is_better)}".strip()


def as_markdown(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A section with a table per board; the best of a column is bold, the second underlined."""
    parts = []
    marks = {"best": "**{}**", "second": "<u>{}</u>"}
    for board in boards:
        heads, *rows = _table_texts(board, by, marks, _escape_markdown, interval)
        lines = [f"### {_escape_markdown(board.title)}", "", f"Protocol: {_escape_markdown(board.protocol)}", ""]
        lines += [f"| model | source | {' | '.join(heads)} |", "|:---|:---|" + "---:|" * len(heads)]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        parts.append("\n".join([*lines, *(["", _escape_markdown(board.note)] if board.note else [])]))
    return "\n\n".join(parts) + "\n"


def as_latex(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A table environment per board, with caption and label, best bold and second underlined; needs booktabs."""
    parts = []
    marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
    for board, label in zip(boards, _latex_labels(boards), strict=True):
        heads, *rows = _table_texts(board, by, marks, _escape_latex, interval)
        caption = ". ".join(part for part in (board.title, f"Protocol: {board.protocol}", board.note) if part)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{_escape_latex(caption)}}}", rf"\label{{{label}}}"]
        lines += [rf"\begin{{tabular}}{{ll{'r' * len(heads)}}}", r"\toprule"]
        lines += [" & ".join(["Model", "Source", *heads]) + r" \\", r"\midrule"]
        lines += [" & ".join(row) + r" \\" for row in rows]
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


def as_csv(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """One line per cell, so that numbers of two protocols never stand in one column."""
    lines = []
    for board in boards:
        for row in sort_rows_best_first(board, by):
            for column in board.columns:
                cell = row.cell(column)
                low, high = cell.interval or (None, None)
                counts = (cell.n, cell.of) if cell.of else (None, None)
                numbers = ["" if value is None else repr(value) for value in (cell.mean, *counts, low, high)]
                labels = [board.title, board.protocol, row.source, row.label, column.title, column.key, column.protocol]
                lines.append([*labels, *numbers, cell.reason])
    return csv_text(CSV_COLUMNS, lines, "\n")


def _table_texts(
    board: Board, by: str, marks: Mapping[str, str], clean: Callable[[str], str], interval: bool
) -> list[list[str]]:
    """Heads of the columns, and of each row its label, source and cells; `interval` adds both ends.

    The best and the second of each column are marked.
    """
    rows = sort_rows_best_first(board, by)
    table = [[clean(row.label), clean(row.source)] for row in rows]
    for column in board.columns:
        marked = mark_best_and_second_rows(board, rows, column)
        for place, row in enumerate(rows):
            pattern = marks.get(marked.get(place, ""), "{}")
            table[place].append(pattern.format(clean(row.cell(column).to_text(column.decimals, interval))))
    return [[clean(title_with_arrow(column)) for column in board.columns], *table]


def _latex_labels(boards: Sequence[Board]) -> list[str]:
    """`tab:folder` for each board, by its title; what bears one title is numbered from the second on."""
    names: list[str] = []
    for board in boards:
        slug = "-".join(re.findall(r"[a-z0-9]+", board.title.lower())) or "board"
        candidates = (f"tab:{slug}{f'-{k}' if k > 1 else ''}" for k in count(1))
        names.append(next(name for name in candidates if name not in names))
    return names


def _escape_markdown(text: str) -> str:
    return "".join(f"\\{c}" if c in "|*_`[]\\" else c for c in escape(printable_text(text), quote=False))


def _escape_latex(text: str) -> str:
    return "".join(LATEX.get(c) or (f"\\{c}" if c in "&%$#_{}" else c) for c in printable_text(text))


def as_html(
    boards: Sequence[Board],
    by: str = "",
    pages: Mapping[str, str] | None = None,
    provenance: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
) -> str:
    """A page that opens from disk: sortable, in light and dark, with links to the clips behind the numbers.

    A click on a heading sorts its table, the better ones first.

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
    from revisit.report.standalone import html_and_policy_of_template

    pages = pages or {}
    title = f"Leaderboard: {', '.join(dict.fromkeys(board.title for board in boards))}"
    content = {
        "tables": [_board_table(board, by) for board in boards],
        "by": by.lower(),
        "address": partial(_clips_address_or_empty, pages),
        "linked": any(row.source in pages for board in boards for row in board.rows),
        "provenance": provenance,
    }
    return html_and_policy_of_template("leaderboard.html", title, ("sort.js",), content)[0]


def _board_table(board: Board, by: str) -> dict[str, object]:
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
