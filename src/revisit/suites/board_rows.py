"""Rows of boards: numbers as a paper prints them, and the models of a run with its baselines and its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from revisit.core.cases import CEILING, FLOOR
from revisit.results import Results
from revisit.results.leaderboards import BoardCell, BoardColumn, BoardRow, cell_without_counts


def board_row_of_printed_line(
    model: str, source: str, columns: Sequence[BoardColumn], line: str, group: str = ""
) -> BoardRow:
    """The row of a model whose numbers stand in a line, each as it is printed."""
    texts = zip(columns, line.split(), strict=True)
    cells = {column.key: cell_without_counts(float(text), text) for column, text in texts}
    return BoardRow(model, source, cells, group)


def board_rows_of_models(
    results: Results,
    source: str,
    cells: Callable[[Results], Mapping[str, BoardCell]],
    names: Mapping[str, str] | None = None,
) -> list[BoardRow]:
    """A row for each model, the floors marked, and one for the truth; `names` are those that boards print."""
    rows = [
        BoardRow((names or {}).get(model, model), source, cells(part), role=FLOOR if model in results.floors else "")
        for model, part in results.groups("model").items()
    ]
    if results.truths:
        rows.append(BoardRow(results.truth_name, source, cells(results.truth), role=CEILING))
    return rows
