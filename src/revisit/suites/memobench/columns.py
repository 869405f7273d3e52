"""The columns of the public files, in their order: names, titles, and where a record has the number."""

from __future__ import annotations

from typing import Any, NamedTuple

from revisit.core.text import read_package_yaml

Place = tuple[str, ...]  # of a number in the facts of a record
SCORE: Place = ()  # the score itself


class PublicColumn(NamedTuple):
    """A column: our metric, its short title, and how its number is taken from a record."""

    metric: str
    title: str = ""
    place: Place = SCORE
    factor: float = 1  # what the public files multiply it by
    decimals: int | None = None  # None: on a board by the rule for all numbers
    higher_is_better: bool = True


def _column_from_yaml_row(row: dict[str, Any]) -> PublicColumn:
    return PublicColumn(**{**row, "place": tuple(row.get("place", SCORE))})


PUBLIC_FILES = read_package_yaml(__package__, "public_files.yaml")
LEADERBOARD = {name: _column_from_yaml_row(row) for name, row in PUBLIC_FILES["leaderboard"].items()}
EVAL_COLUMNS = {name: row and _column_from_yaml_row(row) for name, row in PUBLIC_FILES["eval"].items()}
ORS_COLUMNS = {name: row and _column_from_yaml_row(row) for name, row in PUBLIC_FILES["ors"].items()}
