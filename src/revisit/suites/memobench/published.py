"""The paper's tables as numbers, and what they say about each other.

They were made by the public evaluator at a state nobody can name, with networks that are not those of our lite set,
over clips that are not stated per cell: another protocol. They are shown on boards of their own and never ranked with
anybody's runs.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from revisit.results.boards import Board, Column, Row, printed

MAIN, SUPPLEMENT = ("2", "3"), ("S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10")
REAL_CLIPS = 164
ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"


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
    return Board(f"Published: {found['title']}", protocol, columns, tuple(rows), str(found.get("note", "")))


def value(table: str, model: str, column: str) -> float | None:
    """A printed number, or None where the table does not have it."""
    row = next((row for row in published(table).rows if row.model == model), None)
    cell = row.cells.get(column) if row else None
    return cell.mean if cell else None


def implied_real_camera_score(model: str, real: int = REAL_CLIPS) -> float | None:
    """The mean camera score on real clips that Tables 2 (all clips) and S8 (synthetic ones) together imply."""
    all_clips, synthetic, n = value("2", model, "CamCtrl"), value("S8", model, "CamCtrl"), value("S8", model, "n")
    if all_clips is None or synthetic is None or n is None:
        return None
    return (all_clips * (n + real) - synthetic * n) / real


def inconsistencies() -> list[str]:
    """Sentences on printed numbers that cannot be right together, or that sit oddly beside each other."""
    found = []
    for model in (row.model for row in published("S8").rows):
        implied = implied_real_camera_score(model)
        if implied is not None and implied < 0:
            found.append(
                f"{model}: CamCtrl of Table 2 and of Table S8 imply a mean of {implied:.1f} on the {REAL_CLIPS} real "
                "clips, and the score is never below 0"
            )
    for better, worse in _pairs():
        found.append(f"Table S8: {better} has the smaller rotation error, and {worse} the higher CamCtrl by 5 or more")
    for row in published("S6").rows:
        for name, sign in (("PSNR", 1), ("SSIM", 1), ("LPIPS", -1)):
            whole = value("2", row.model, name)
            visible, returned = (row.cells[f"{name}_{phase}"].mean for phase in "VR")
            if (
                whole is None
                or visible is None
                or returned is None
                or sign * returned <= sign * whole <= sign * visible
            ):
                continue
            found.append(f"{row.model}: {name} of Table 2 ({whole:g}) lies outside both phases of Table S6")
    return found


def _pairs(margin: float = 5.0) -> list[tuple[str, str]]:
    """Models of Table S8 with the same clips of which the one with the larger error has the clearly higher score."""
    rows = [row for row in published("S8").rows if row.cells["n"].mean == 159]
    return [
        (one.model, other.model)
        for one in rows
        for other in rows
        if (one.cells["ATE"].mean or 0) < (other.cells["ATE"].mean or 0)
        and (one.cells["CamCtrl"].mean or 0) + margin <= (other.cells["CamCtrl"].mean or 0)
    ]
