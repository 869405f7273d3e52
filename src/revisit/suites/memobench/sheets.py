"""Sheets: when the object leaves and returns in the ground truth, and what each clip is about.

Both spreadsheets (`Synthetic_ExitReenter.xlsx`, `Real_ExitReenter.xlsx`) and their CSV exports are read, with the
column names of either. Files come from outside: they are opened read-only, formulas are not evaluated, and a file that
is too large, unpacks to too much or declares entities is refused before anything in it is parsed.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.suites.memobench.names import REAL, SYNTHETIC, ClipName, parse_clip, scene_name

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
NEEDED = ("clip", "exits", "returns")

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


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet; those that cannot be used, with the reason; and those that it marks to be skipped."""

    file: str
    marks: Mapping[ClipName, Marks] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)  # clip, or row -> sentence
    skipped: frozenset[ClipName] = frozenset()


def find_table(folders: Sequence[Path], stem: str) -> Path | None:
    """The xlsx or csv file of this name in the first folder that has one; an xls file is refused."""
    for folder in folders:
        for suffix in (".xlsx", ".csv"):
            if (folder / f"{stem}{suffix}").is_file():
                return folder / f"{stem}{suffix}"
        if (folder / f"{stem}.xls").is_file():
            raise UsageError(
                f"{stem}.xls: the old Excel format is not read; open it in a spreadsheet program and save it as "
                f"{stem}.xlsx or {stem}.csv beside it"
            )
    return None


def read_marks(path: Path, subset: str | None = None) -> Sheet:
    """The marks of all clips of a sheet, of one split or of any; a row that cannot be used costs only its clip."""
    rows = list(read_table(path))
    columns = _columns(path, rows)
    marks: dict[ClipName, Marks] = {}
    unusable: dict[str, str] = {}
    skipped = set()
    for number, row in enumerate(rows[1:], start=2):
        cells = {name: row[at] if at < len(row) else None for name, at in columns.items()}
        if all(_text(cell) == "" for cell in cells.values()):
            continue
        name = _clip(cells["clip"], subset)
        where = f"row {number} of {path.name}"
        if name is None:
            example = "7" if subset == REAL else "Barnyard_001"
            unusable[where] = f"{where} has the clip {_text(cells['clip'])[:60]!r}; expected a name such as {example}"
        elif _text(cells.get("skip")).lower() == "yes":
            skipped.add(name)
        elif name in marks:
            unusable[where] = f"{where} lists {name.id} again; the first row counts"
        else:
            exits, returns = _whole(cells["exits"]), _whole(cells["returns"])
            if exits is None or returns is None:
                shown = f"{_text(cells['exits'])[:40]!r} and {_text(cells['returns'])[:40]!r}"
                unusable[name.id] = f"{where}: exit and re-entry are {shown}; expected two frame numbers"
            else:
                marks[name] = Marks(exits, returns, _text(cells.get("prompt")))
    return Sheet(path.name, marks, unusable, frozenset(skipped))


def read_selected(path: Path) -> set[ClipName]:
    """The real clips that a selection marks as available."""
    rows = list(read_table(path))
    heads = [_plain(cell) for cell in rows[0]] if rows else []
    if "id" not in heads or "availability" not in heads:
        raise UsageError(f"{path.name} has the columns {_listed(rows)}; expected ID and Availability")
    at, available = heads.index("id"), heads.index("availability")
    chosen = [row for row in rows[1:] if len(row) > max(at, available) and _text(row[available]).lower() == "yes"]
    return {name for row in chosen if (name := _clip(row[at], REAL)) is not None}


def read_metadata(path: Path, subset: str) -> dict[ClipName, dict[str, str]]:
    """Clip -> its row of the metadata: subject, prompt, and the path of its first frame."""
    rows = list(read_table(path))
    heads = [_text(cell) for cell in rows[0]] if rows else []
    if "video_id" not in heads or (subset == SYNTHETIC and "scene" not in heads):
        wanted = "scene, video_id, subject, exr_path, prompt" if subset == SYNTHETIC else "video_id, subject, prompt"
        raise UsageError(f"{path.name} has the columns {_listed(rows)}; expected {wanted}")
    found = {}
    for row in rows[1:]:
        facts = {head: _text(cell) for head, cell in zip(heads, row, strict=False)}
        number = _whole(facts.get("video_id"))
        if number is not None:
            scene = scene_name(facts["scene"]) if subset == SYNTHETIC else ""
            found[ClipName(subset, scene, number)] = facts
    return found


def read_prompts(path: Path) -> dict[ClipName, str]:
    """Clip -> its prompt, from a CSV file that names clips as any of the dataset's sheets does."""
    rows = list(read_table(path))
    heads = [_plain(cell) for cell in rows[0]] if rows else []
    clip = next((head for head in COLUMNS["clip"] if head in heads), None)
    if clip is None or "prompt" not in heads:
        raise UsageError(f"{path.name} has the columns {_listed(rows)}; expected video_folder or id, and prompt")
    found = {}
    for row in rows[1:]:
        facts = {head: _text(cell) for head, cell in zip(heads, row, strict=False)}
        scene = facts.get("scene", "") if clip == "videoid" else ""
        name = _clip(f"{scene}_{facts[clip]}" if scene else facts[clip], None if scene else _split(facts[clip]))
        if name is not None and facts.get("prompt") and facts.get("skip", "").lower() != "yes":
            found[name] = facts["prompt"]
    return found


def _split(clip: str) -> str | None:
    """A clip that is called by a number alone is a real one."""
    return REAL if _whole(clip) is not None else None


def read_table(path: Path) -> Iterator[tuple[Any, ...]]:
    """Rows of an xlsx or csv file, headings first."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise UsageError(f"{path.name} is larger than {MOST_BYTES >> 20} MiB, the most that is allowed for a sheet")
    rows = _xlsx(path) if path.suffix.lower() == ".xlsx" else _csv(path)
    for number, row in enumerate(rows):
        if number > MOST_ROWS:
            raise UsageError(f"{path.name} has more than {MOST_ROWS} rows, the most that is allowed for a sheet")
        yield tuple(row[:MOST_COLUMNS])


def _csv(path: Path) -> Iterator[Sequence[Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not UTF-8 text; export the sheet as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise UsageError(f"{path.name} is not a CSV file ({error}); export the sheet again") from None


def _xlsx(path: Path) -> Iterator[Sequence[Any]]:
    _check_archive(path)
    from openpyxl import load_workbook

    try:
        book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # what the file says of its own size need not be true
            yield from sheet.iter_rows(max_row=MOST_ROWS + 2, max_col=MOST_COLUMNS, values_only=True)
        finally:
            book.close()
    except UsageError:
        raise
    except Exception as error:  # a hostile or damaged file fails in ways that openpyxl does not name
        raise UsageError(
            f"{path.name} cannot be read as a spreadsheet ({type(error).__name__}); save it again as xlsx or as CSV"
        ) from None


def _check_archive(path: Path) -> None:
    """Refuse what is no xlsx file, or one that would unpack to more than a sheet is."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if len(members) > MOST_MEMBERS or total > MOST_UNPACKED:
                raise UsageError(
                    f"{path.name} unpacks to {total >> 20} MiB in {len(members)} parts, more than is allowed for a "
                    "sheet; it is not opened"
                )
            for member in members:
                if member.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(member):
                    raise UsageError(
                        f"{path.name} declares XML entities, which spreadsheets do not need; it is not opened"
                    )
    except UsageError:
        raise
    except Exception:  # as below
        raise UsageError(f"{path.name} is not an xlsx file; save it again as xlsx or as CSV") from None


def _columns(path: Path, rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """Our name of a column -> its place."""
    heads = [_plain(cell) for cell in rows[0]] if rows else []
    found = {name: heads.index(head) for name, known in COLUMNS.items() for head in reversed(known) if head in heads}
    if any(name not in found for name in NEEDED):
        raise UsageError(
            f"{path.name} has the columns {_listed(rows)}; expected video_folder, exits, re-enter (synthetic clips) or "
            "id, exit, reenter (real clips)"
        )
    return found


def _clip(cell: Any, subset: str | None) -> ClipName | None:
    number = _whole(cell)
    if subset == REAL and number is not None and number >= 0:
        return ClipName(REAL, "", number)
    return parse_clip(_text(cell), subset)


def _whole(cell: Any) -> int | None:
    """The whole number of a cell, whether it is written 7, 7.0 or "7"; None for anything else."""
    try:
        value = float(_text(cell))
        return int(value) if abs(value) < 1e9 else None
    except ValueError:
        return None


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _plain(cell: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", _text(cell).lower())


def _listed(rows: Sequence[Sequence[Any]]) -> str:
    shown = ", ".join(_text(cell)[:30] for cell in (rows[0] if rows else ())[:12])
    return shown or "none"
