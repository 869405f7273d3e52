"""The leaderboard of MemoBench: its columns, and boards from result files of the public scripts (docs/leaderboard.md).

Result files are read whole: every eval file of a model, not only the newest; of two rows for one clip the one in the
file that is last by name counts. The paper's tables are another protocol, and never ranked with other runs.
The table of all models is a CSV file of a row per model, in the columns and units of the public script, both ways.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

import numpy as np

from revisit.core import METRICS, MediaError, UsageError
from revisit.core.text import json_or_none, package_yaml
from revisit.media.error_names import naming_clip, printable
from revisit.media.text_files import csv_rows, csv_text, read_text
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    RunFacts,
    board_of_run,
    printed_cell,
    sorted_rows,
)
from revisit.suites.board_rows import printed_row
from revisit.suites.memobench.columns import LEADERBOARD, PublicColumn
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import letters_and_digits

COLUMNS = tuple(
    BoardColumn(column.metric, column.title, column.higher_is_better, column.decimals)
    for column in LEADERBOARD.values()
)
# column of an eval file -> ours
EVAL = {
    name: column.metric
    for name, column in LEADERBOARD.items()
    if not column.metric.startswith(("memo_ors", "memo_vqa"))
}
IMAGE_REWARD = "ImageRewardScore"  # the public script takes the column of this name with _pct, on 0-100, where it is
PERCENT = "_pct"
# Folders that the public scripts use for one model, as letters and digits.
ALIASES = {"cogvideo": "cogvideox", "svc": "stablevirtualcamera", "matrixgame20": "matrixgame2"}
# Folder, in small letters -> the name that the public script shows.
PUBLIC_NAMES = {
    "lingbot-world": "LingBot-World", "wan2.2": "Wan2.2", "fantasy-world": "FantasyWorld",
    "matrix-game2": "Matrix-Game2", "stable-virtual-camera": "SVC", "open-sora": "Open-SoRA",
    "ltx-video": "LTX-Video", "cogvideo": "CogVideoX",
}  # fmt: skip
# Other folders of these that it knows, spelled just so.
PUBLIC_SPELLINGS = {
    "Lingbot": "lingbot-world", "FantasyWorld": "fantasy-world", "StableVirtualCamera": "stable-virtual-camera",
    "CogVideoX": "cogvideo",
}  # fmt: skip
STALE_ANSWERS = "Lingbot"  # a folder of answers that the public script passes over
MOST_BYTES = 64 << 20

ByClip = dict[str, dict[str, float]]  # clip -> column -> value


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of a run, its first columns those of the benchmark."""
    return [board_of_run(run, COLUMNS, subset)]


def board_of_files(folder: Path, subset: str = "") -> Board | None:
    """Means over the clips in all result files of the public scripts below a folder, one row per model.

    None where there are no such files. Folders whose names differ in case and punctuation only are one model.
    """
    result_files = _files(folder)
    return _board(result_files, folder, subset) if result_files else None


def public_board(
    eval_dir: Path | None, ors_dir: Path | None, vqa_dir: Path | None, subset: str = "", *, merge: bool = False
) -> Board:
    """The board that the public leaderboard makes of its three folders.

    Parameters
    ----------
    eval_dir, ors_dir, vqa_dir
        Folders with `<model>/eval_*.csv`, `<model>/ors_scores.csv` and `<model>/<Scene>-<n>.csv`, or None.
    subset
        `synthetic` or `real`; all clips by default.
    merge
        Count folders whose names differ in case and punctuation only as one model. The public script does so for
        eight models that it knows, and shows any other in small letters.

    Returns
    -------
    Board
        A row per model, in the order of the public script.

    Examples
    --------
    >>> board = public_board(Path("outputs"), Path("ors_results"), None)
    >>> Path("leaderboard.csv").write_text(as_csv(board))
    """
    places = {"eval": eval_dir, "ors": ors_dir, "vqa": vqa_dir}
    folders = {kind: place for kind, place in places.items() if place is not None and place.is_dir()}
    result_files = [file for kind, place in folders.items() for file in _files(place, (kind,))]
    if not result_files:
        folder_names = " and ".join(printable(str(place)) for place in places.values() if place is not None)
        raise UsageError(
            f"{folder_names or 'no folder'}: no result files of the public scripts; expected <model>/eval_*.csv, "
            "<model>/ors_scores.csv or <model>/<Scene>-<n>.csv"
        )
    if merge:
        return _board(result_files, next(iter(folders.values())), subset)
    left_out = [path for kind, path in result_files if kind == "vqa" and path.parent.name == STALE_ANSWERS]
    result_files = [(kind, path) for kind, path in result_files if path not in left_out]
    notes = [f"{left_out[0].parent}: passed over, as the public script does; rename it to count it"] if left_out else []
    return _board(result_files, next(iter(folders.values())), subset, public=True, notes=notes)


def _board(
    result_files: Sequence[tuple[str, Path]],
    folder: Path,
    subset: str,
    *,
    public: bool = False,
    notes: Iterable[str] = (),
) -> Board:
    """Means over the clips in result files, one row per model."""
    clips: dict[str, ByClip] = defaultdict(lambda: defaultdict(dict))
    clips_by_column: dict[tuple[str, str], dict[str, None]] = defaultdict(
        dict
    )  # (model, column) -> clips in its kind of file
    names: dict[str, str] = {}
    repeated = 0
    for kind, path in result_files:
        model = _model_of(path)
        key = public_key(model) if public else model_key(model)
        names.setdefault(key, PUBLIC_NAMES.get(key, key) if public else model)
        with naming_clip(path):
            rows = {"eval": _eval_rows, "ors": _ors_rows, "vqa": _vqa_rows}[kind](path)
        for clip, part, values in rows:
            if subset and part.lower() != subset.lower():
                continue
            for column, value in values.items():
                repeated += clip in clips_by_column[key, column]
                clips_by_column[key, column][clip] = None
                clips[key][clip].pop(column, None)
                if value is not None:
                    clips[key][clip][column] = value
    rows_of_board = [
        BoardRow(
            model,
            printable(folder.name or str(folder)),
            _cells(clips[key], {c.key: clips_by_column[key, c.key] for c in COLUMNS}),
        )
        for key, model in sorted(names.items())
    ]
    remarks = ["numbers as in the files; their networks and versions are not recorded", *notes]
    if repeated:
        remarks.append(f"{repeated} cells are in more than one file; the last file by name counts")
    if public:
        remarks += [*_similar_names(names), *_rescaling_note(rows_of_board)]
    title = f"memobench, files of the public scripts{', ' + subset if subset else ''}"
    return Board(title, "upstream files", COLUMNS, tuple(rows_of_board), "; ".join(remarks))


def _similar_names(names: Mapping[str, str]) -> list[str]:
    """A sentence for each group of rows whose names differ in case and punctuation only."""
    groups: dict[str, list[str]] = defaultdict(list)
    for key, name in sorted(names.items()):
        groups[model_key(key)].append(name)
    return [
        f"{' and '.join(map(printable, spellings))} look like one model and have a row each, as the public script has "
        "it; name their folders alike, or add --merge"
        for spellings in groups.values()
        if len(spellings) > 1
    ]


def _rescaling_note(rows: Iterable[BoardRow]) -> list[str]:
    """A sentence on models whose camera score the public script takes for a share, and multiplies by 100."""
    low = [row.model for row in rows if (mean := row.cells["memo_camera"].mean) is not None and mean < 1]
    who = ", ".join(map(printable, low))
    return [f"CamCtrl of {who} is below 1 as in the files; the public script shows a hundred times that"] if low else []


def as_csv(board: Board, decimals: int = 4, sort: str = "") -> str:
    """The table as the public script writes it: a row per model, its column names, ORS in percent.

    Parameters
    ----------
    board
        A board with the columns of the benchmark.
    decimals
        Digits behind the point: the public script writes 4 into files and prints 2.
    sort
        Title of a column; the best come first. By default the order of the board.

    Returns
    -------
    str
        CSV, which the public script's `--load` reads; what has no value is an empty cell.
    """
    columns = {column.key: column for column in board.columns}

    def cell(row: BoardRow, public: PublicColumn) -> str:
        mean = row.cell(columns[public.metric]).mean if public.metric in columns else None
        return "" if mean is None else f"{public.factor * mean:.{decimals}f}"

    models = sorted_rows(board, sort) if sort else board.rows
    rows = [[row.model, *(cell(row, public) for public in LEADERBOARD.values())] for row in models]
    return csv_text(["Model", *LEADERBOARD], rows, "\n")


@dataclass(frozen=True)
class TableForm:
    """A form of the saved table: the name of each column's head, and what a value is multiplied by for the file."""

    heads: Mapping[str, str]  # column -> head
    factors: Mapping[str, float]


PUBLIC_TABLE = TableForm(
    {column.metric: name for name, column in LEADERBOARD.items()},
    {column.metric: column.factor for column in LEADERBOARD.values()},
)
TITLED_TABLE = TableForm({column.key: column.title for column in COLUMNS}, {})  # that earlier versions saved


def read_csv(path: Path) -> Board:
    """The board of a saved table: one of the public script, of `as_csv`, or with the titles of earlier versions.

    Parameters
    ----------
    path
        A CSV file with a column `Model` and some of the benchmark's columns.

    Returns
    -------
    Board
        Its rows in the order of the file. The note names columns that are not the benchmark's, and cells that are no
        number or outside of what their measure can be, which have no value.
    """
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    with naming_clip(path):
        head, rows = _rows(path, "Model")
        form = _form_of(head)
    problems = []
    board_rows = []
    for row in rows:
        cells = {}
        for column in COLUMNS:
            text = row.get(form.heads[column.key], "").strip()
            value, problem = _cell_value(column, text, form.factors.get(column.key, 1))
            cells[column.key] = printed_cell(value, reason=problem)
            if problem:
                problems.append(
                    f"{form.heads[column.key]} of {printable(row['Model'])} {problem}, and has no value here"
                )
        board_rows.append(BoardRow(row["Model"], path.name, cells))
    unknown = [printable(name) for name in head if name != "Model" and name not in form.heads.values()]
    remarks = ["the number of clips is not saved", *problems]
    if unknown:
        remarks.append(f"not read, because the benchmark has no such column: {', '.join(unknown)}")
    return Board("memobench, a saved table", "as saved", COLUMNS, tuple(board_rows), "; ".join(remarks))


def _form_of(head: Sequence[str]) -> TableForm:
    """The form of a table with these columns; those of both cannot be told apart where they share a name."""
    shared = set(PUBLIC_TABLE.heads.values()) & set(TITLED_TABLE.heads.values())
    public, titled = (set(head) & set(form.heads.values()) - shared for form in (PUBLIC_TABLE, TITLED_TABLE))
    if public and titled:
        raise MediaError(
            f"it has {min(public)}, as the public script names columns, and {min(titled)}, as tables show them; keep "
            "the names of one kind, because ORS is in percent beside the first and from 0 to 1 beside the second"
        )
    if not public and not titled and not shared & set(head):
        raise MediaError(f"it has no column of the benchmark; expected some of {', '.join(LEADERBOARD)}")
    return TITLED_TABLE if titled else PUBLIC_TABLE


def _cell_value(column: BoardColumn, text: str, factor: float) -> tuple[float | None, str]:
    """The value of a cell, and what is wrong with it."""
    if not text or text.lower() == "nan":
        return None, ""
    value = _value(text)
    if value is None:
        return None, f"is {printable(text, 40)!r}, which is no number"
    low, high = METRICS[column.key].range
    if (low is not None and value < factor * low) or (high is not None and value > factor * high):
        limits = (
            f"{factor * (low or 0):g} to {factor * high:g}" if high is not None else f"{factor * (low or 0):g} or more"
        )
        return None, f"is {value:g}, but can be {limits} only"
    return value / factor, ""


def _cells(clips: ByClip, clips_by_column: Mapping[str, Mapping[str, None]]) -> dict[str, BoardCell]:
    cells = {}
    for key, those in clips_by_column.items():
        if not those:
            cells[key] = printed_cell(None, reason="no file has it")
            continue
        values = [clips[clip].get(key) for clip in those]
        cells[key] = BoardCell(sum(value is not None for value in values), len(those), _mean(values))
    return cells


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of those that are there, added up as pandas does: the last digit in a file depends on the order."""
    count = sum(value is not None for value in values)
    return float(np.sum([value or 0.0 for value in values])) / count if count else None


def _files(folder: Path, kinds: Sequence[str] = ("eval", "ors", "vqa")) -> list[tuple[str, Path]]:
    """Result files below a folder, at most four levels down, in the order of their names."""
    result_files = []
    for depth in range(5):
        for path in folder.glob("/".join(["*"] * depth + ["*.csv"])):
            if any(part.endswith("_old") for part in path.relative_to(folder).parts[:-1]):
                continue
            if re.fullmatch(r"eval_.*\.csv", path.name):
                result_files.append(("eval", path))
            elif path.name == "ors_scores.csv":
                result_files.append(("ors", path))
            elif re.fullmatch(r".+-\d+\.csv|vqa_scores\.csv", path.name):
                result_files.append(("vqa", path))
    return sorted(
        (one for one in result_files if one[0] in kinds), key=lambda item: (item[0], item[1].name, str(item[1]))
    )


def _model_of(path: Path) -> str:
    """The folder that a file lies in, unless it is the scripts' own folder for all models."""
    parent = path.parent.resolve().name
    return "unnamed" if parent in ("outputs", "ors_results", "vqa_results") else parent


def model_key(model: str) -> str:
    """What the spellings of a model's name have in common: `MyModel` and `my-model` are one."""
    plain = letters_and_digits(model)
    return ALIASES.get(plain, plain) or model


def public_key(model: str) -> str:
    """The folder of a model as the public script knows it: small letters, and its other spellings of eight models."""
    return PUBLIC_SPELLINGS.get(model, model.lower())


ClipRows = list[tuple[str, str, Mapping[str, float | None]]]  # clip, part of the dataset, values


def _eval_rows(path: Path) -> ClipRows:
    head, rows = _rows(path, "id")
    source = {name: name + PERCENT if name == IMAGE_REWARD and name + PERCENT in head else name for name in EVAL}
    return [
        (row["id"], row.get("data_type", ""), {ours: _value(row.get(source[theirs])) for theirs, ours in EVAL.items()})
        for row in rows
    ]


def _ors_rows(path: Path) -> ClipRows:
    return [
        (row["clip_id"], row.get("data_type", ""), {"memo_ors": _value(row.get("ors"))})
        for row in _rows(path, "clip_id")[1]
    ]


def _vqa_rows(path: Path) -> ClipRows:
    rows: ClipRows = []
    for row in _rows(path, "score")[1]:
        scores = json_or_none(row["score"])
        if not isinstance(scores, dict):
            raise MediaError(f"its score is {row['score'][:40]!r}; expected an object with a share per dimension")
        shares = {short: _value(scores.get(name)) for short, name in DIMENSIONS.items()}
        values = {f"memo_vqa_{short}": None if share is None else 100 * share for short, share in shares.items()}
        scene = row.get("scene", "")
        rows.append((f"{scene}-{row.get('video_id', '')}", "real" if scene.lower() == "real" else "synthetic", values))
    return rows


def _rows(path: Path, needed: str) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a file, and its rows by column."""
    reader = csv_rows(read_text(path, MOST_BYTES))
    if needed not in (reader.fieldnames or ()):
        raise MediaError(f"it has no column {needed}; expected a result file of the public scripts")
    head = [str(name) for name in reader.fieldnames or ()]
    return head, [{name: value or "" for name, value in row.items() if isinstance(name, str)} for row in reader]


def _value(cell: object) -> float | None:
    """A finite number, or None for an empty cell and anything else."""
    try:
        number = float(cell) if isinstance(cell, str | int | float) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


MAIN, SUPPLEMENT = ("2", "3"), ("S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10")


class PrintedTable(TypedDict, total=False):
    """A table of published.yaml."""

    title: str
    columns: list[tuple[str, str, str]]  # key, title, which is better
    rows: dict[str, str | float]  # model -> its numbers as printed


class Published(TypedDict):
    """The content of published.yaml."""

    source: str
    tables: dict[str, PrintedTable]


ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"


def published_boards(supplement: bool) -> list[Board]:
    """The tables of the paper, and of its supplement if they are asked for."""
    return [published_board(table) for table in (*MAIN, *(SUPPLEMENT if supplement else ()))]


@cache
def published_board(table: str) -> Board:
    """A table of the paper as a board; each number as it is printed."""
    content: Published = package_yaml(__package__, "published.yaml")
    printed_table = content["tables"][table]
    better = {"higher": True, "lower": False, "none": None}
    columns = tuple(BoardColumn(key, title, better[which]) for key, title, which in printed_table["columns"])
    rows = [printed_row(model, "paper", columns, str(line)) for model, line in printed_table["rows"].items()]
    protocol = f"{content['source']}, Table {table} ({ANOTHER_PROTOCOL})"
    return Board(
        f"Published: {printed_table['title']}",
        protocol,
        columns,
        tuple(rows),
        str(printed_table.get("note", "")),
        as_printed=True,
    )
