"""Boards as text: markdown, LaTeX and CSV. Names of models are escaped in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import count

from revisit.core.text import printable_text
from revisit.media.text_files import csv_text
from revisit.results.display import arrow
from revisit.results.leaderboards import Board, BoardColumn, BoardRow, marked_rows, sorted_rows

CSV_COLUMNS = (
    "board", "protocol", "source", "model", "column", "metric", "column_protocol", "value", "n", "of", "low", "high",
    "reason",
)  # fmt: skip


def head(column: BoardColumn) -> str:
    """The head of a column: its title and which way is better."""
    return f"{column.title} {arrow(column.higher_is_better)}".strip()


def as_markdown(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A section with a table per board; the best of a column is bold, the second underlined."""
    parts = []
    for board in boards:
        rows = sorted_rows(board, by)
        lines = [f"### {_md(board.title)}", "", f"Protocol: {_md(board.protocol)}", ""]
        lines.append(f"| model | source | {' | '.join(_md(head(column)) for column in board.columns)} |")
        lines.append("|:---|:---|" + "---:|" * len(board.columns))
        marks = {"best": "**{}**", "second": "<u>{}</u>"}
        for row, cells in zip(rows, _marked_texts(board, rows, marks, _md, interval), strict=True):
            lines.append(f"| {_md(row.label)} | {_md(row.source)} | {' | '.join(cells)} |")
        parts.append("\n".join([*lines, *(["", _md(board.note)] if board.note else [])]))
    return "\n\n".join(parts) + "\n"


def as_latex(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A table environment per board, with caption and label, best bold and second underlined; needs booktabs."""
    parts = []
    for board, label in zip(boards, _labels(boards), strict=True):
        rows = sorted_rows(board, by)
        caption = ". ".join(part for part in (board.title, f"Protocol: {board.protocol}", board.note) if part)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}", rf"\label{{{label}}}"]
        lines += [rf"\begin{{tabular}}{{ll{'r' * len(board.columns)}}}", r"\toprule"]
        lines.append(" & ".join(["Model", "Source", *(_tex(head(column)) for column in board.columns)]) + r" \\")
        lines.append(r"\midrule")
        marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
        for row, cells in zip(rows, _marked_texts(board, rows, marks, _tex, interval), strict=True):
            lines.append(" & ".join([_tex(row.label), _tex(row.source), *cells]) + r" \\")
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


def as_csv(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """One line per cell, so that numbers of two protocols never stand in one column."""
    lines = []
    for board in boards:
        for row in sorted_rows(board, by):
            for column in board.columns:
                cell = row.cell(column)
                low, high = cell.interval or (None, None)
                counts = (cell.n, cell.of) if cell.of else (None, None)
                numbers = ["" if value is None else repr(value) for value in (cell.mean, *counts, low, high)]
                labels = [board.title, board.protocol, row.source, row.label, column.title, column.key, column.protocol]
                lines.append([*labels, *numbers, cell.reason])
    return csv_text(CSV_COLUMNS, lines, "\n")


def _marked_texts(
    board: Board, rows: Sequence[BoardRow], marks: Mapping[str, str], clean: Callable[[str], str], interval: bool
) -> list[list[str]]:
    """Cells of all rows as text, the best and the second of each column marked; `interval` adds both ends."""
    marks_of = {column.key: marked_rows(board, rows, column) for column in board.columns}
    rows_of_text: list[list[str]] = []
    for place, row in enumerate(rows):
        rows_of_text.append([])
        for column in board.columns:
            pattern = marks.get(marks_of[column.key].get(place, ""), "{}")
            rows_of_text[-1].append(pattern.format(clean(row.cell(column).to_text(column.decimals, interval))))
    return rows_of_text


def _labels(boards: Sequence[Board]) -> list[str]:
    """`tab:folder` for each board, by its title; what bears one title is numbered from the second on."""
    names: list[str] = []
    for board in boards:
        slug = "-".join(re.findall(r"[a-z0-9]+", board.title.lower())) or "board"
        candidates = (f"tab:{slug}{f'-{k}' if k > 1 else ''}" for k in count(1))
        names.append(next(name for name in candidates if name not in names))
    return names


def _md(text: str) -> str:
    return "".join(f"\\{c}" if c in "|*_`[]\\" else c for c in escape(printable_text(text), quote=False))


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    special |= {"[": "{[}", "]": "{]}", "*": "{*}"}  # after the end of a row they would be its options
    special |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "–": "--", "−": "$-$"}
    return "".join(special.get(c) or (f"\\{c}" if c in "&%$#_{}" else c) for c in printable_text(text))
