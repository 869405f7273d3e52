"""Metadata: when the object leaves and returns in the ground truth, and what each clip is about.

Both spreadsheets (`Synthetic_ExitReenter.xlsx`, `Real_ExitReenter.xlsx`) and their CSV exports are read, with the
column names of either. Files come from outside: they are opened read-only, formulas are not evaluated, and a file that
is too large, unpacks to too much or declares entities is refused before anything in it is parsed.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import join_names
from revisit.datasets.clips import first_file
from revisit.media.text_files import read_csv_cells
from revisit.suites.memobench.names import (
    REAL,
    SYNTHETIC,
    ClipName,
    canonical_scene_name,
    lowercase_letters_and_digits,
    parse_clip_name,
)

SHEETS = {SYNTHETIC: "Synthetic_ExitReenter", REAL: "Real_ExitReenter"}
SELECTED = "Real_Selected"
METADATA = {SYNTHETIC: "synthetic_metadata.csv", REAL: "real_metadata.csv"}
COLUMNS = {  # what we call it -> its headings, written without case, spaces and signs
    "clip": ("videofolder", "id", "videoid"),
    "exits": ("exits", "exit"),
    "returns": ("reenter", "reenters"),
    "skip": ("skip",),
    "prompt": ("prompt",),
}
FEWEST_FRAMES = 5  # of a clip with three phases; with fewer, the return would lie behind the last frame
NEEDED = ("clip", "exits", "returns")
MARKS = "video_folder, exits, re-enter (synthetic clips) or id, exit, reenter (real clips)"

MOST_BYTES = 16 << 20  # of a sheet; 360 rows are some tens of kilobytes
MOST_UNPACKED = 64 << 20
MOST_MEMBERS = 1000
MOST_ROWS = 100_000
MOST_COLUMNS = 200


@dataclass(frozen=True)
class Marks:
    """What a sheet says of one clip: the frames of the ground truth at which the object leaves and returns."""

    exits: int
    returns: int
    prompt: str = ""

    def phases_in_clip_of_length(self, true_frames: int, clip_frames: int) -> tuple[int, int] | None:
        """(first hidden frame, first returned frame) of a clip of `clip_frames` frames; None where it is too short.

        The marks are carried over by the share of the length, rounded half to even, and kept apart: at least two frames
        before the object leaves, two while it is hidden, and one after it has returned.
        """
        if clip_frames < FEWEST_FRAMES:
            return None
        hidden = max(2, min(round(self.exits / true_frames * clip_frames), clip_frames - 4))
        return hidden, max(hidden + 2, min(round(self.returns / true_frames * clip_frames), clip_frames - 1))

    @property
    def are_ordered(self) -> bool:
        """Whether the object returns after it leaves."""
        return self.exits < self.returns

    def problem_sentence(self, true_frames: int, *, ordered: bool = True) -> str | None:
        """What is wrong with the marks, as a sentence, or None; `ordered` asks for a return after the exit."""
        inside = all(0 <= mark <= true_frames for mark in (self.exits, self.returns))
        if inside and (self.are_ordered or not ordered):
            return None
        return (
            f"the sheet says that the object leaves at frame {self.exits} and returns at {self.returns}, "
            f"but the ground truth has {true_frames} frames; expected 0 <= leaves < returns <= {true_frames}"
        )


@dataclass(frozen=True)
class MarksSheet:
    """The rows of a sheet; those that cannot be used, with the reason; and those that it marks to be skipped."""

    file: str
    marks: Mapping[ClipName, Marks] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)  # clip, or row -> sentence
    skipped: frozenset[ClipName] = frozenset()


def prompt_from_metadata_or_sheet(facts: Mapping[str, str], marks: Marks | None) -> str:
    """The prompt of a clip, from its row of the metadata, or from that of the sheet."""
    return facts.get("prompt") or (marks.prompt if marks else "")


def find_xlsx_or_csv(folders: Sequence[Path], stem: str) -> Path | None:
    """The xlsx or csv file of this name in the first folder that has one; an xls file is refused."""
    for folder in folders:
        if (path := first_file((folder / f"{stem}.xlsx", folder / f"{stem}.csv"))) is not None:
            return path
        if (folder / f"{stem}.xls").is_file():
            raise UsageError(
                f"{stem}.xls: the old Excel format is not read; open it, and save it as {stem}.xlsx or .csv"
            )
    return None


def read_marks_sheet(path: Path, subset: str | None = None) -> MarksSheet:
    """The marks of all clips of a sheet, of one split or of any; a row that cannot be used costs only its clip."""
    marks: dict[ClipName, Marks] = {}
    unusable: dict[str, str] = {}
    skipped = set()
    for number, cells in iter_numbered_table_rows(path, [COLUMNS[name] for name in NEEDED], MARKS):
        row = {name: next((cells[head] for head in heads if head in cells), "") for name, heads in COLUMNS.items()}
        if not any(row.values()):
            continue
        name = _parse_clip_cell(row["clip"], subset)
        where = f"row {number} of {path.name}"
        if name is None:
            example = "7" if subset == REAL else "Barnyard_001"
            unusable[where] = f"{where} has the clip {row['clip'][:60]!r}; expected a name such as {example}"
        elif row["skip"].lower() == "yes":
            skipped.add(name)
        elif name in marks:
            unusable[where] = f"{where} lists {name.id} again; the first row counts"
        else:
            exits, returns = parse_integer_cell(row["exits"]), parse_integer_cell(row["returns"])
            if exits is None or returns is None:
                cells_text = f"{row['exits'][:40]!r} and {row['returns'][:40]!r}"
                unusable[name.id] = f"{where}: exit and re-entry are {cells_text}; expected two frame numbers"
            else:
                marks[name] = Marks(exits, returns, row["prompt"])
    return MarksSheet(path.name, marks, unusable, frozenset(skipped))


def read_available_real_clips(path: Path) -> set[ClipName]:
    """The real clips that a selection marks as available."""
    rows = iter_numbered_table_rows(path, [("id",), ("availability",)], "ID and Availability")
    available = (_parse_clip_cell(row["id"], REAL) for _, row in rows if row["availability"].lower() == "yes")
    return {name for name in available if name is not None}


def read_metadata_rows_by_clip(path: Path, subset: str) -> dict[ClipName, dict[str, str]]:
    """Clip -> its row of the metadata: subject, prompt, and the path of its first frame."""
    scenes = [("scene",)] if subset == SYNTHETIC else []
    expected = "scene, video_id, subject, exr_path, prompt" if scenes else "video_id, subject, prompt"
    metadata = {}
    for _, facts in iter_numbered_table_rows(path, [("videoid",), *scenes], expected):
        number = parse_integer_cell(facts["videoid"])
        if number is not None:
            metadata[ClipName(subset, canonical_scene_name(facts["scene"]) if scenes else "", number)] = facts
    return metadata


def find_and_read_metadata(folders: list[Path]) -> dict[ClipName, dict[str, str]]:
    """Clip -> subject, prompt and first frame, from the CSV files in the first folders that have them."""
    metadata: dict[ClipName, dict[str, str]] = {}
    for subset, file in METADATA.items():
        if (path := first_file(folder / file for folder in folders)) is not None:
            metadata |= read_metadata_rows_by_clip(path, subset)
    return metadata


def read_prompts_by_clip(path: Path) -> dict[ClipName, str]:
    """Clip -> its prompt, from a CSV file that names clips as any of the dataset's sheets does."""
    prompts = {}
    for _, facts in iter_numbered_table_rows(path, [COLUMNS["clip"], ("prompt",)], "video_folder or id, and prompt"):
        head = next(head for head in COLUMNS["clip"] if head in facts)
        scene, clip = facts.get("scene", "") if head == "videoid" else "", facts[head]
        real = not scene and parse_integer_cell(clip) is not None  # a clip that is called by a number alone
        name = _parse_clip_cell(f"{scene}_{clip}" if scene else clip, REAL if real else None)
        if name is not None and facts.get("prompt") and facts.get("skip", "").lower() != "yes":
            prompts[name] = facts["prompt"]
    return prompts


def iter_numbered_table_rows(
    path: Path, needed_heading_groups: Iterable[Sequence[str]], expected_columns_text: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells of each row that is not blank; headings are written without case, spaces and signs.

    Of each group of headings in `needed_heading_groups` one must be there; `expected_columns_text` says which.
    """
    rows = iter_spreadsheet_rows(path)
    first = next(rows, ())
    heads = [lowercase_letters_and_digits(_stripped_cell_text(cell)) for cell in first]
    if not all(any(head in heads for head in group) for group in needed_heading_groups):
        heads_text = join_names([_stripped_cell_text(cell)[:30] for cell in first], 13)
        raise UsageError(f"{path.name} has the columns {heads_text or 'none'}; expected {expected_columns_text}")
    for number, row in enumerate(rows, start=2):
        cells = dict(zip_longest(heads, map(_stripped_cell_text, row[: len(heads)]), fillvalue=""))
        if any(cells.values()):
            yield number, cells


def iter_spreadsheet_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """Rows of an xlsx or csv file, headings first."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise UsageError(f"{path.name} is larger than {MOST_BYTES >> 20} MiB, the most that is allowed for a sheet")
    rows = _iter_xlsx_rows(path) if path.suffix.lower() == ".xlsx" else _iter_csv_rows(path)
    for number, row in enumerate(rows):
        if number > MOST_ROWS:
            raise UsageError(f"{path.name} has more than {MOST_ROWS} rows, the most that is allowed for a sheet")
        yield tuple(row[:MOST_COLUMNS])


def _iter_csv_rows(path: Path) -> Iterator[Sequence[Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not UTF-8 text; export the sheet as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        yield from read_csv_cells(text, delimiter)
    except csv.Error as error:
        raise UsageError(f"{path.name} is not a CSV file ({error}); export the sheet again") from None


def _iter_xlsx_rows(path: Path) -> Iterator[Sequence[Any]]:
    from openpyxl import load_workbook

    try:
        _refuse_unsafe_xlsx(path)
        with closing(load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # what the file says of its own size need not be true
            yield from sheet.iter_rows(max_row=MOST_ROWS + 2, max_col=MOST_COLUMNS, values_only=True)
    except UsageError:
        raise
    except Exception as error:  # a hostile or damaged file fails in ways that openpyxl does not name
        raise UsageError(
            f"{path.name} cannot be read as a spreadsheet ({type(error).__name__}); save it again as xlsx or as CSV"
        ) from None


def _refuse_unsafe_xlsx(path: Path) -> None:
    """Refuse a file that would unpack to more than a sheet is, or that declares entities."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > MOST_MEMBERS or total > MOST_UNPACKED:
            raise UsageError(
                f"{path.name} unpacks to {total >> 20} MiB in {len(members)} parts, more than is allowed for a sheet; "
                "it is not opened"
            )
        for member in members:
            if member.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(member):
                what = "declares XML entities, which spreadsheets do not need"
                raise UsageError(f"{path.name} {what}; it is not opened")


def _parse_clip_cell(cell: Any, subset: str | None) -> ClipName | None:
    number = parse_integer_cell(cell)
    if subset == REAL and number is not None and number >= 0:
        return ClipName(REAL, "", number)
    return parse_clip_name(_stripped_cell_text(cell), subset)


def parse_integer_cell(cell: Any) -> int | None:
    """The whole number of a cell, whether it is written 7, 7.0 or "7"; None for anything else."""
    try:
        value = float(_stripped_cell_text(cell))
        return int(value) if abs(value) < 1e9 else None
    except ValueError:
        return None


def _stripped_cell_text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()
