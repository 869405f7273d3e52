"""Boards as text: markdown, LaTeX and CSV. Names of models are escaped in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import count

from revisit.core.text import printable_text, read_package_yaml
from revisit.media.text_files import csv_text
from revisit.results.display import direction_arrow
from revisit.results.leaderboards import Board, BoardColumn, mark_best_and_second_rows, sort_rows_best_first

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
