"""The paper's tables as numbers.

They were made by an unknown version of the public evaluator, with networks that are not those of our lite set, over
clips that are not stated per cell: another protocol. They are shown on separate boards and never ranked with other
runs.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from revisit.results.boards import Board, Column, Row, printed

MAIN, SUPPLEMENT = ("2", "3"), ("S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10")
ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"


def published_boards(supplement: bool) -> list[Board]:
    """The tables of the paper, and of its supplement if they are asked for."""
    return [published(table) for table in (*MAIN, *(SUPPLEMENT if supplement else ()))]


@cache
def published(table: str) -> Board:
    """A table of the paper as a board; each number as it is printed."""
    content: dict[str, Any] = yaml.safe_load((files(__package__) / "published.yaml").read_text(encoding="utf-8"))
    found = content["tables"][table]
    better = {"higher": True, "lower": False, "none": None}
    columns = tuple(Column(key, title, better[which]) for key, title, which in found["columns"])
    rows = []
    for model, line in found["rows"].items():
        cells = {
            column.key: printed(float(text), text) for column, text in zip(columns, str(line).split(), strict=True)
        }
        rows.append(Row(model, "paper", cells))
    protocol = f"{content['source']}, Table {table} ({ANOTHER_PROTOCOL})"
    return Board(
        f"Published: {found['title']}", protocol, columns, tuple(rows), str(found.get("note", "")), as_printed=True
    )
