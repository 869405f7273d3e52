"""Boards: models in rows, measures in columns, one protocol. What is under two protocols is on two boards.

A cell says how many clips it rests on. There is no overall rank: columns have units of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """A measure: its key, what the head says, and which way is better."""

    key: str
    title: str
    higher_is_better: bool | None = True  # None: neither
    decimals: int | None = 2  # None: as many as a small number needs for three digits that mean something
    protocol: str = ""  # hash of everything that must be equal for two numbers in it to compare


@dataclass(frozen=True)
class Cell:
    """A mean with the clips it rests on, or no value and why."""

    value: float | None
    n: int | None = None  # clips that were scored; None where nobody said
    of: int | None = None  # clips there are
    interval: tuple[float, float] | None = None
    text: str = ""  # as printed, for numbers from a paper
    reason: str = ""  # why there is no value

    def shown(self, decimals: int | None) -> str:
        """`14.41`, with ` (3/4)` where it is known; a dash where there is no value."""
        number = "–" if self.value is None else self.text or _number(self.value, decimals)
        return number if self.n is None else f"{number} ({self.n}/{self.of})"


def _number(value: float, decimals: int | None) -> str:
    if decimals is None:
        return f"{value:.2f}" if value == 0 or abs(value) >= 1 else f"{value:#.3g}"
    return f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Row:
    """A model and where its numbers come from."""

    model: str
    source: str
    cells: Mapping[str, Cell] = field(default_factory=dict)

    def cell(self, column: Column) -> Cell:
        """The cell under a column; an empty one where there is none."""
        return self.cells.get(column.key, Cell(None))


@dataclass(frozen=True)
class Board:
    """Rows that may be compared with each other, column by column, and with no other board's."""

    title: str
    protocol: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    truths: Mapping[str, str] = field(default_factory=dict)  # clip -> digest of what it is compared with


def ordered(board: Board, by: str = "") -> list[Row]:
    """Rows from the best to the worst in one column, those without a value last; by name where none is given."""
    rows = sorted(board.rows, key=lambda row: (row.model.lower(), row.model, row.source))
    column = next(
        (column for column in board.columns if by.lower() in (column.key.lower(), column.title.lower())), None
    )
    if column is None:
        return rows

    def rank(row: Row) -> tuple[bool, float]:
        value = row.cell(column).value
        return value is None, 0.0 if value is None else -value if column.higher_is_better is not False else value

    return sorted(rows, key=rank)


def leaders(rows: Sequence[Row], column: Column) -> set[int]:
    """Positions of the best rows in a column; none where the rows rest on different numbers of clips.

    A mean over fewer clips may be better only because the hard ones are missing.
    """
    cells = [row.cell(column) for row in rows]
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2 or column.higher_is_better is None or len({(cell.n, cell.of) for cell in cells}) > 1:
        return set()
    best = max(values) if column.higher_is_better else min(values)
    return {position for position, cell in enumerate(cells) if cell.value == best}
