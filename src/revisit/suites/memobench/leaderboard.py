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
from functools import cache
from pathlib import Path

import numpy as np

from revisit.core import METRICS, MediaError, UsageError
from revisit.core.grouping import group_items
from revisit.core.text import join_names, parse_json_or_none, read_package_yaml
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.media.text_files import csv_text, read_csv_table
from revisit.results import leaderboards as boards
from revisit.suites.board_rows import board_row_of_printed_line
from revisit.suites.memobench.exports import LEADERBOARD, PUBLIC_FILES, PublicColumn
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import lowercase_letters_and_digits

COLUMNS = tuple(
    boards.BoardColumn(column.metric, column.title, column.higher_is_better, column.decimals)
    for column in LEADERBOARD.values()
)
# column of an eval file -> ours
AUTOMATED = {
    name: column.metric
    for name, column in LEADERBOARD.items()
    if not column.metric.startswith(("memo_ors", "memo_vqa"))
}
IMAGE_REWARD = "ImageRewardScore"  # the public script takes the column of this name with _pct, on 0-100, where it is
PERCENT = "_pct"
STALE_ANSWERS = "Lingbot"  # a folder of answers that the public script passes over
MOST_BYTES = 64 << 20
FILE_NAMES = {"eval": r"eval_.*\.csv", "ors": r"ors_scores\.csv", "vqa": r".+-\d+\.csv|vqa_scores\.csv"}


def boards_of(run: boards.RunFacts, subset: str = "") -> list[boards.Board]:
    """The board of a run, its first columns those of the benchmark."""
    return [boards.board_of_run(run, COLUMNS, subset)]


def board_of_files(folder: Path, subset: str = "") -> boards.Board | None:
    """Means over the clips in all result files of the public scripts below a folder, one row per model.

    None where there are no such files. Folders whose names differ in case and punctuation only are one model.
    """
    result_files = _find_result_files(folder)
    return _board_from_result_files(result_files, folder, subset) if result_files else None


def board_from_public_folders(
    eval_dir: Path | None, ors_dir: Path | None, vqa_dir: Path | None, subset: str = "", *, merge: bool = False
) -> boards.Board:
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
    >>> board = board_from_public_folders(Path("outputs"), Path("ors_results"), None)
    >>> Path("leaderboard.csv").write_text(board_as_public_csv(board))
    """
    places = {"eval": eval_dir, "ors": ors_dir, "vqa": vqa_dir}
    folders = {kind: place for kind, place in places.items() if place is not None and place.is_dir()}
    result_files = [file for kind, place in folders.items() for file in _find_result_files(place, (kind,))]
    if not result_files:
        folder_names = " and ".join(printable_line(str(place)) for place in places.values() if place is not None)
        raise UsageError(
            f"{folder_names or 'no folder'}: no result files of the public scripts; expected <model>/eval_*.csv, "
            "<model>/ors_scores.csv or <model>/<Scene>-<n>.csv"
        )
    return _board_from_result_files(result_files, next(iter(folders.values())), subset, public=not merge)


def _board_from_result_files(
    result_files: Sequence[tuple[str, Path]], folder: Path, subset: str, *, public: bool = False
) -> boards.Board:
    """Means over the clips in result files, one row per model; those that are `public` are read as the script does."""
    values: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)  # (model, column) -> clip -> value
    names: dict[str, str] = {}
    repeated = 0
    stale: list[Path] = []
    for kind, path in result_files:
        if public and kind == "vqa" and path.parent.name == STALE_ANSWERS:
            stale.append(path.parent)
            continue
        model = _model_name_of_result_file(path)
        # The public script knows a model by its folder in small letters, and eight models by other spellings, too.
        key = PUBLIC_FILES["spellings"].get(model, model.lower()) if public else canonical_model_key(model)
        names.setdefault(key, PUBLIC_FILES["names"].get(key, key) if public else model)
        with raise_media_errors_naming_file(path):
            rows = {"eval": _read_eval_clip_rows, "ors": _read_ors_clip_rows, "vqa": _read_vqa_clip_rows}[kind](path)
        for clip, part, numbers in rows:
            if subset and part.lower() != subset.lower():
                continue
            for column, value in numbers.items():
                repeated += clip in values[key, column]
                values[key, column][clip] = value
    # A clip that another model has in its files, and this one lacks, counts as one of its clips without a value.
    everybody = {c.key: list(dict.fromkeys(clip for key in names for clip in values[key, c.key])) for c in COLUMNS}
    board_rows, lacks = [], []
    for key, model in sorted(names.items()):
        mine = {c.key: values[key, c.key] for c in COLUMNS if values[key, c.key]}
        cells = {c.key: _mean_cell_over_clips(mine.get(c.key, {}), everybody[c.key]) for c in COLUMNS}
        board_rows.append(boards.BoardRow(model, printable_line(folder.name or str(folder)), cells))
        if most := max((len(everybody[column]) - len(clips) for column, clips in mine.items()), default=0):
            lacks.append(f"{printable_line(model)} {most}")
    remarks = ["numbers as in the files; their networks and versions are not recorded"]
    remarks += [f"{place}: passed over, as the public script does; rename it to count it" for place in stale[:1]]
    if lacks:
        remarks.append(
            f"models lack clips that others have ({join_names(lacks)}), and each mean is over a model's own clips"
        )
    if repeated:
        remarks.append(f"{repeated} cells are in more than one file; the last file by name counts")
    if public:
        remarks += [*_similar_model_name_sentences(names), *_camera_rescaling_sentences(board_rows)]
    title = f"memobench, files of the public scripts{', ' + subset if subset else ''}"
    return boards.Board(title, "upstream files", COLUMNS, tuple(board_rows), "; ".join(remarks))


def _mean_cell_over_clips(values: Mapping[str, float | None], clips: Iterable[str]) -> boards.BoardCell:
    """The mean of what files have of a model, over clips of which it may lack some."""
    if not values:
        return boards.cell_without_counts(None, reason="no file has it")
    in_order = [values.get(clip) for clip in clips]
    count = sum(value is not None for value in in_order)
    total = float(np.sum([value or 0.0 for value in in_order]))  # as pandas: the last digit depends on the order
    return boards.BoardCell(count, len(in_order), total / count if count else None)


def _similar_model_name_sentences(names: Mapping[str, str]) -> list[str]:
    """A sentence for each group of rows whose names differ in case and punctuation only."""
    groups = group_items(sorted(names), canonical_model_key)
    alike = [" and ".join(printable_line(names[key]) for key in keys) for keys in groups.values() if len(keys) > 1]
    what = (
        "look like one model and have a row each, as the public script has it; name their folders alike, or add --merge"
    )
    return [f"{spellings} {what}" for spellings in alike]


def _camera_rescaling_sentences(rows: Iterable[boards.BoardRow]) -> list[str]:
    """A sentence on models whose camera score the public script takes for a share, and multiplies by 100."""
    low = [row.model for row in rows if (mean := row.cells["memo_camera"].mean) is not None and mean < 1]
    who = ", ".join(map(printable_line, low))
    return [f"CamCtrl of {who} is below 1 as in the files; the public script shows a hundred times that"] if low else []


def board_as_public_csv(board: boards.Board, decimals: int = 4, sort: str = "") -> str:
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
    rows = []
    for row in boards.sort_rows_best_first(board, sort) if sort else board.rows:
        means = ((row.cells[column.metric].mean, column.factor) for column in LEADERBOARD.values())
        rows.append([row.model, *("" if mean is None else f"{factor * mean:.{decimals}f}" for mean, factor in means)])
    return csv_text(["Model", *LEADERBOARD], rows, "\n")


# A saved table of earlier versions: head -> its column. In `LEADERBOARD` a value is multiplied by the factor.
TITLED_TABLE = {column.title: column._replace(factor=1) for column in LEADERBOARD.values()}


def read_saved_board(path: Path) -> boards.Board:
    """The board of a saved table: one of the public script, of `board_as_public_csv`, or with earlier titles.

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
    with raise_media_errors_naming_file(path):
        head, rows = _read_header_and_rows(path, "Model")
        form = _columns_of_saved_table(head)
    problems = []
    board_rows = []
    for row in rows:
        cells = {}
        for name, column in form.items():
            value, problem = _parse_saved_cell(column, row.get(name, ""))
            cells[column.metric] = boards.cell_without_counts(value, reason=problem)
            if problem:
                problems.append(f"{name} of {printable_line(row['Model'])} {problem}, and has no value here")
        board_rows.append(boards.BoardRow(row["Model"], path.name, cells))
    unknown = [printable_line(name) for name in head if name != "Model" and name not in form]
    remarks = ["the number of clips is not saved", *problems]
    if unknown:
        remarks.append(f"not read, because the benchmark has no such column: {', '.join(unknown)}")
    return boards.Board("memobench, a saved table", "as saved", COLUMNS, tuple(board_rows), "; ".join(remarks))


def _columns_of_saved_table(head: Sequence[str]) -> Mapping[str, PublicColumn]:
    """The form of a table with these columns; those of both cannot be told apart where they share a name."""
    shared = LEADERBOARD.keys() & TITLED_TABLE.keys()
    public, titled = (set(head) & form.keys() - shared for form in (LEADERBOARD, TITLED_TABLE))
    if public and titled:
        raise MediaError(
            f"it has {min(public)}, as the public script names columns, and {min(titled)}, as tables show them; keep "
            "the names of one kind, because ORS is in percent beside the first and from 0 to 1 beside the second"
        )
    if not public and not titled and not shared & set(head):
        raise MediaError(f"it has no column of the benchmark; expected some of {', '.join(LEADERBOARD)}")
    return TITLED_TABLE if titled else LEADERBOARD


def _parse_saved_cell(column: PublicColumn, text: str) -> tuple[float | None, str]:
    """The value of a cell, and what is wrong with it."""
    if not text or text.lower() == "nan":
        return None, ""
    value = _finite_number_or_none(text)
    if value is None:
        return None, f"is {printable_line(text, 40)!r}, which is no number"
    low, high = (None if end is None else column.factor * end for end in METRICS[column.metric].range)
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"{low or 0:g} or more" if high is None else f"{low or 0:g} to {high:g}"
        return None, f"is {value:g}, but can be {limits} only"
    return value / column.factor, ""


def _find_result_files(folder: Path, kinds: Sequence[str] = tuple(FILE_NAMES)) -> list[tuple[str, Path]]:
    """Result files below a folder, at most four levels down, in the order of their names."""
    result_files = []
    for depth in range(5):
        for path in folder.glob("/".join(["*"] * depth + ["*.csv"])):
            if any(part.endswith("_old") for part in path.relative_to(folder).parts[:-1]):
                continue
            result_files += [(kind, path) for kind in kinds if re.fullmatch(FILE_NAMES[kind], path.name)]
    return sorted(result_files, key=lambda item: (item[0], item[1].name, str(item[1])))


def _model_name_of_result_file(path: Path) -> str:
    """The folder that a file lies in, unless it is the scripts' own folder for all models."""
    parent = path.parent.resolve().name
    return "unnamed" if parent in ("outputs", "ors_results", "vqa_results") else parent


def canonical_model_key(model: str) -> str:
    """What the spellings of a model's name have in common: `MyModel` and `my-model` are one."""
    plain = lowercase_letters_and_digits(model)
    return PUBLIC_FILES["aliases"].get(plain, plain) or model


ClipRows = list[tuple[str, str, Mapping[str, float | None]]]  # clip, part of the dataset, values


def _read_eval_clip_rows(path: Path) -> ClipRows:
    head, rows = _read_header_and_rows(path, "id")
    source = {name: name + PERCENT if name == IMAGE_REWARD and name + PERCENT in head else name for name in AUTOMATED}
    clips: ClipRows = []
    for row in rows:
        values = {ours: _finite_number_or_none(row.get(source[theirs])) for theirs, ours in AUTOMATED.items()}
        clips.append((row["id"], row.get("data_type", ""), values))
    return clips


def _read_ors_clip_rows(path: Path) -> ClipRows:
    return [
        (row["clip_id"], row.get("data_type", ""), {"memo_ors": _finite_number_or_none(row.get("ors"))})
        for row in _read_header_and_rows(path, "clip_id")[1]
    ]


def _read_vqa_clip_rows(path: Path) -> ClipRows:
    rows: ClipRows = []
    for row in _read_header_and_rows(path, "score")[1]:
        scores = parse_json_or_none(row["score"])
        if not isinstance(scores, dict):
            raise MediaError(f"its score is {row['score'][:40]!r}; expected an object with a share per dimension")
        shares = {f"memo_vqa_{short}": _finite_number_or_none(scores.get(name)) for short, name in DIMENSIONS.items()}
        values = {metric_id: None if share is None else 100 * share for metric_id, share in shares.items()}
        scene = row.get("scene", "")
        rows.append((f"{scene}-{row.get('video_id', '')}", "real" if scene.lower() == "real" else "synthetic", values))
    return rows


def _read_header_and_rows(path: Path, needed: str) -> tuple[list[str], list[dict[str, str]]]:
    return read_csv_table(path, (needed,), "a result file of the public scripts", MOST_BYTES)


def _finite_number_or_none(cell: object) -> float | None:
    """A finite number, or None for an empty cell and anything else."""
    try:
        number = float(cell) if isinstance(cell, str | int | float) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


MAIN, SUPPLEMENT = ("2", "3"), ("S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10")


ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"


def published_boards(supplement: bool) -> list[boards.Board]:
    """The tables of the paper, and of its supplement if they are asked for."""
    return [board_of_paper_table(table) for table in (*MAIN, *(SUPPLEMENT if supplement else ()))]


@cache
def board_of_paper_table(table: str) -> boards.Board:
    """A table of the paper as a board; each number as it is printed."""
    content = read_package_yaml(__package__, "published.yaml")
    printed = content["tables"][table]
    better = {"higher": True, "lower": False, "none": None}
    columns = tuple(boards.BoardColumn(key, title, better[which]) for key, title, which in printed["columns"])
    rows = tuple(
        board_row_of_printed_line(model, "paper", columns, str(line)) for model, line in printed["rows"].items()
    )
    protocol = f"{content['source']}, Table {table} ({ANOTHER_PROTOCOL})"
    title = f"Published: {printed['title']}"
    return boards.Board(title, protocol, columns, rows, printed.get("note", ""), as_printed=True)
