"""The leaderboard of MemoBench: its columns, and boards from result files of the public scripts (docs/leaderboard.md).

Result files are read whole: every eval file of a model, not only the newest; of two rows for one clip the one in the
file that is last by name counts. The paper's tables are another protocol, and never ranked with other runs.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from revisit.core import MediaError, UsageError
from revisit.core.texts import json_or_none
from revisit.media.names import in_clip, printable
from revisit.media.texts import csv_rows, csv_text, read_text
from revisit.results.boards import Board, BoardCell, Column, Row, RunFacts, board_of_run, printed
from revisit.suites.memobench.exports import LEADERBOARD
from revisit.suites.memobench.metrics.answers import DIMENSIONS

COLUMNS = (
    Column("memo_visual_quality", "VisQual"),
    Column("memo_motion_smoothness", "MotSmooth"),
    Column("memo_identity", "ObjConsist"),
    Column("memo_geo3d", "3DConsist"),
    Column("memo_camera", "CamCtrl"),
    Column("memo_image_reward", "ImgReward"),
    Column("memo_ors", "ORS", decimals=3),
    Column("memo_psnr", "PSNR"),
    Column("memo_ssim", "SSIM", decimals=3),
    Column("memo_lpips", "LPIPS", higher_is_better=False, decimals=3),
    Column("memo_vqa_if", "VQA-IF"),
    Column("memo_vqa_ob", "VQA-OB"),
    Column("memo_vqa_cm", "VQA-CM"),
    Column("memo_vqa_pa", "VQA-PA"),
)
# column of an eval file -> ours
EVAL = {name: id for name, (id, _, _) in LEADERBOARD.items() if not id.startswith(("memo_ors", "memo_vqa"))}
# Folders that the public scripts use for one model, as letters and digits.
ALIASES = {"cogvideo": "cogvideox", "svc": "stablevirtualcamera", "matrixgame20": "matrixgame2"}
MOST_BYTES = 64 << 20

ByClip = dict[str, dict[str, float]]  # clip -> column -> value


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of a run, its first columns those of the benchmark."""
    return [board_of_run(run, COLUMNS, subset)]


def board_of_files(folder: Path, subset: str = "") -> Board | None:
    """The board of a folder with result files of the public scripts; None where there are none."""
    return upstream_board(folder, subset) if _files(folder) else None


def upstream_board(folder: Path, subset: str = "", *more: Path) -> Board:
    """Means over the clips in all result files below a folder, or below several, one row per model."""
    clips: dict[str, ByClip] = defaultdict(lambda: defaultdict(dict))
    asked: dict[tuple[str, str], set[str]] = defaultdict(set)  # (model, column) -> clips in its kind of file
    names: dict[str, str] = {}
    repeated = 0
    for kind, path in [found for place in (folder, *more) for found in _files(place)]:
        model = _model_of(path)
        key = model_key(model)
        names.setdefault(key, model)
        with in_clip(path):
            read = {"eval": _eval_rows, "ors": _ors_rows, "vqa": _vqa_rows}[kind](path)
        for clip, part, values in read:
            if subset and part.lower() != subset.lower():
                continue
            for column, found in values.items():
                repeated += clip in asked[key, column]
                asked[key, column].add(clip)
                clips[key][clip].pop(column, None)
                if found is not None:
                    clips[key][clip][column] = found
    if not names:
        raise UsageError(
            f"{printable(str(folder))}: neither a run nor a folder with eval_*.csv, ors_scores.csv or vqa_results of "
            "the public scripts"
        )
    rows = [
        Row(
            model,
            printable(folder.name or str(folder)),
            _cells(clips[key], {c.key: asked[key, c.key] for c in COLUMNS}),
        )
        for key, model in sorted(names.items())
    ]
    notes = ["numbers as in the files; their networks and versions are not recorded"]
    if repeated:
        notes.append(f"{repeated} cells are in more than one file; the last file by name counts")
    title = f"memobench, files of the public scripts{', ' + subset if subset else ''}"
    return Board(title, "upstream files", COLUMNS, tuple(rows), "; ".join(notes))


def as_csv(board: Board) -> str:
    """A row per model with the public titles, to four decimals; what has no value is an empty cell."""
    means = [(row.model, [row.cell(column).mean for column in board.columns]) for row in board.rows]
    rows = [[model, *("" if value is None else f"{value:.4f}" for value in mine)] for model, mine in means]
    return csv_text(["Model", *(column.title for column in board.columns)], rows, "\n")


def read_csv(path: Path) -> Board:
    """The board of a file that `as_csv` wrote."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    with in_clip(path):
        rows = _rows(path, "Model")
    made = [
        Row(row["Model"], path.name, {column.key: printed(_value(row.get(column.title))) for column in COLUMNS})
        for row in rows
    ]
    return Board("memobench, a saved table", "as saved", COLUMNS, tuple(made), "the number of clips is not saved")


def _cells(clips: ByClip, asked: Mapping[str, set[str]]) -> dict[str, BoardCell]:
    made = {}
    for key, those in asked.items():
        values = [found[key] for found in clips.values() if key in found]
        if not those:
            made[key] = printed(None, reason="no file has it")
            continue
        made[key] = BoardCell(len(values), len(those), sum(values) / len(values) if values else None)
    return made


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Result files below a folder, at most four levels down, in the order of their names."""
    found = []
    for depth in range(5):
        for path in folder.glob("/".join(["*"] * depth + ["*.csv"])):
            if any(part.endswith("_old") for part in path.relative_to(folder).parts[:-1]):
                continue
            if re.fullmatch(r"eval_.*\.csv", path.name):
                found.append(("eval", path))
            elif path.name == "ors_scores.csv":
                found.append(("ors", path))
            elif re.fullmatch(r".+-\d+\.csv", path.name):
                found.append(("vqa", path))
    return sorted(found, key=lambda item: (item[0], item[1].name, str(item[1])))


def _model_of(path: Path) -> str:
    """The folder that a file lies in, unless it is the scripts' own folder for all models."""
    parent = path.parent.resolve().name
    return "unnamed" if parent in ("outputs", "ors_results", "vqa_results") else parent


def model_key(model: str) -> str:
    """What the spellings of a model's name have in common: `MyModel` and `my-model` are one."""
    plain = re.sub(r"[^a-z0-9]", "", model.lower())
    return ALIASES.get(plain, plain) or model


Found = list[tuple[str, str, Mapping[str, float | None]]]  # clip, part of the dataset, values


def _eval_rows(path: Path) -> Found:
    rows = _rows(path, "id")
    return [
        (row["id"], row.get("data_type", ""), {ours: _value(row.get(theirs)) for theirs, ours in EVAL.items()})
        for row in rows
    ]


def _ors_rows(path: Path) -> Found:
    return [
        (row["clip_id"], row.get("data_type", ""), {"memo_ors": _value(row.get("ors"))})
        for row in _rows(path, "clip_id")
    ]


def _vqa_rows(path: Path) -> Found:
    found: Found = []
    for row in _rows(path, "score"):
        scores = json_or_none(row["score"])
        if not isinstance(scores, dict):
            raise MediaError(f"its score is {row['score'][:40]!r}; expected an object with a share per dimension")
        shares = {short: _value(scores.get(name)) for short, name in DIMENSIONS.items()}
        values = {f"memo_vqa_{short}": None if share is None else 100 * share for short, share in shares.items()}
        found.append((f"{row.get('scene', '')}-{row.get('video_id', '')}", "synthetic", values))
    return found


def _rows(path: Path, needed: str) -> list[dict[str, str]]:
    reader = csv_rows(read_text(path, MOST_BYTES))
    if needed not in (reader.fieldnames or ()):
        raise MediaError(f"it has no column {needed}; expected a result file of the public scripts")
    return [{name: value or "" for name, value in row.items() if isinstance(name, str)} for row in reader]


def _value(cell: object) -> float | None:
    """A finite number, or None for an empty cell and anything else."""
    try:
        number = float(cell) if isinstance(cell, str | int | float) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
