"""Boards as text: markdown, LaTeX, CSV and a page of HTML that sorts. Names of models are escaped in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape as _escape

from revisit.core.text import printable_text
from revisit.media.text_files import csv_text
from revisit.results.leaderboards import Board, BoardCell, BoardColumn, BoardRow, marked_rows, sorted_rows

ARROWS = {True: "↑", False: "↓", None: ""}
CSV_COLUMNS = (
    "board", "protocol", "source", "model", "column", "metric", "column_protocol", "value", "n", "of", "low", "high",
    "reason",
)  # fmt: skip
SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  table.querySelectorAll("th").forEach((head, place) => head.addEventListener("click", () => {
    const body = table.tBodies[0], number = head.dataset.better !== undefined;
    const down = head.dataset.down = head.dataset.down === "yes" ? "no" : "yes";
    const first = (head.dataset.better === "lower") === (down === "yes") ? 1 : -1;
    const key = row => number ? parseFloat(row.cells[place].dataset.value) : row.cells[place].textContent;
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (!number) return (down === "yes" ? 1 : -1) * x.localeCompare(y);
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return first * (x - y);
    };
    [...body.rows].sort(order).forEach(row => body.append(row));
  }));
}
"""
STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 2rem; } th, td { padding: .3rem .6rem; text-align: right; }
th { cursor: pointer; border-bottom: 2px solid #444; } td { border-bottom: 1px solid #ddd; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } .n, .note { color: #666; font-size: 85%; }
.best { font-weight: bold; } .second { text-decoration: underline; } div { overflow-x: auto; }
th:first-child, td:first-child { position: sticky; left: 0; background: #fff; }
"""


def escape(text: str, quote: bool = True) -> str:
    """Text that is only text in HTML."""
    return _escape(printable_text(text), quote)


def head(column: BoardColumn) -> str:
    """The head of a column: its title and which way is better."""
    return f"{column.title} {ARROWS[column.higher_is_better]}".strip()


def as_markdown(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A section with a table per board; the best of a column is bold, the second underlined."""
    parts = []
    for board in boards:
        rows = sorted_rows(board, by)
        lines = [f"### {_md(board.title)}", "", f"Protocol: {_md(board.protocol)}", ""]
        lines.append(f"| model | source | {' | '.join(_md(head(column)) for column in board.columns)} |")
        lines.append("|:---|:---|" + "---:|" * len(board.columns))
        marks = {"best": "**{}**", "second": "<u>{}</u>"}
        for row, cells in zip(rows, _marked(board, rows, marks, _md, interval), strict=True):
            lines.append(f"| {_md(row.shown)} | {_md(row.source)} | {' | '.join(cells)} |")
        parts.append("\n".join([*lines, *(["", _md(board.note)] if board.note else [])]))
    return "\n\n".join(parts) + "\n"


def as_latex(boards: Sequence[Board], by: str = "", interval: bool = False) -> str:
    """A table environment per board, the best bold and the second underlined; needs the package booktabs."""
    parts = []
    for board in boards:
        rows = sorted_rows(board, by)
        caption = ". ".join(part for part in (board.title, f"Protocol: {board.protocol}", board.note) if part)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}"]
        lines += [rf"\begin{{tabular}}{{ll{'r' * len(board.columns)}}}", r"\toprule"]
        lines.append(" & ".join(["Model", "Source", *(_tex(head(column)) for column in board.columns)]) + r" \\")
        lines.append(r"\midrule")
        marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
        for row, cells in zip(rows, _marked(board, rows, marks, _tex, interval), strict=True):
            lines.append(" & ".join([_tex(row.shown), _tex(row.source), *cells]) + r" \\")
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
                labels = [board.title, board.protocol, row.source, row.shown, column.title, column.key, column.protocol]
                lines.append([*labels, *numbers, cell.reason])
    return csv_text(CSV_COLUMNS, lines, "\n")


def as_html(boards: Sequence[Board], by: str = "") -> str:
    """A page that opens from disk; a click on a head sorts its table, the better ones first."""
    parts = []
    for board in boards:
        rows = sorted_rows(board, by)
        marks = {column.key: marked_rows(board, rows, column) for column in board.columns}
        heads = "".join(map(_head, board.columns))
        body = "".join(
            f"<tr><td>{escape(row.shown)}</td><td>{escape(row.source)}</td>"
            + "".join(_td(row.cell(column), column, marks[column.key].get(place, "")) for column in board.columns)
            + "</tr>"
            for place, row in enumerate(rows)
        )
        parts.append(
            f"<h2>{escape(board.title)}</h2><p>Protocol: {escape(board.protocol)}</p>"
            f"<div><table><thead><tr><th>model</th><th>source</th>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
            f'<p class="note">{escape(board.note)}</p>'
        )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Leaderboard</title>'
        f"<style>{STYLE}</style></head><body><h1>Leaderboard</h1>{''.join(parts)}<script>{SCRIPT}</script></body></html>\n"
    )


def _head(column: BoardColumn) -> str:
    better = {True: "higher", False: "lower", None: ""}[column.higher_is_better]
    tooltip = f"{column.key} {column.protocol}".strip()
    return f'<th data-better="{better}" title="{escape(tooltip)}">{escape(head(column))}</th>'


def _td(cell: BoardCell, column: BoardColumn, mark: str) -> str:
    number, _, count = cell.shown(column.decimals).partition(" ")
    value = "" if cell.mean is None else repr(cell.mean)
    tooltip = cell.reason or (f"95 %: {cell.interval[0]:.4g} to {cell.interval[1]:.4g}" if cell.interval else "")
    text = f'<span class="{mark}">{escape(number)}</span>' if mark else escape(number)
    count = f' <span class="n">{count}</span>' if count else ""
    return f'<td data-value="{value}" title="{escape(tooltip)}">{text}{count}</td>'


def _marked(
    board: Board,
    rows: Sequence[BoardRow],
    marks: Mapping[str, str],
    clean: Callable[[str], str],
    interval: bool = False,
) -> list[list[str]]:
    """Cells of all rows as text, the best and the second of each column marked; `interval` adds both ends."""
    marks_of = {column.key: marked_rows(board, rows, column) for column in board.columns}
    rows_of_text = []
    for place, row in enumerate(rows):
        texts = [(column, clean(row.cell(column).shown(column.decimals, interval))) for column in board.columns]
        rows_of_text.append(
            [marks.get(marks_of[column.key].get(place, ""), "{}").format(text) for column, text in texts]
        )
    return rows_of_text


def _md(text: str) -> str:
    return "".join(f"\\{c}" if c in "|*_`[]\\" else c for c in escape(printable_text(text), quote=False))


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    special |= {
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
    }  # after the end of a row they would be its options
    special |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "–": "--", "−": "$-$"}
    return "".join(special.get(c) or (f"\\{c}" if c in "&%$#_{}" else c) for c in printable_text(text))
