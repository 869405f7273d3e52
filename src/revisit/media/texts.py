"""Text files from outside: size-limited, UTF-8, with or without a byte order mark."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from revisit.core import MediaError
from revisit.core.texts import parse_json
from revisit.media.files import replacing

MOST_BYTES = 256 << 20
WRITTEN = "docProps/core.xml"  # the part of a spreadsheet that says when it was written
HOUR = re.compile(rb">\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ<")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file of bounded size."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise MediaError(f"it is larger than {most >> 20} MiB, the most that is allowed")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MediaError("it is not a UTF-8 text file") from None


def csv_rows(text: str) -> csv.DictReader[str]:
    """The rows of a CSV file by column; a cell may be longer than the library's default of 128 KiB."""
    csv.field_size_limit(MOST_BYTES)
    return csv.DictReader(io.StringIO(text, newline=""))


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], newline: str = "\r\n") -> str:
    """CSV with a head, its line ends in it."""
    made = io.StringIO(newline="")
    csv.writer(made, lineterminator=newline).writerows([columns, *rows])
    return made.getvalue()


def write_sheet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a spreadsheet (xlsx) with a head; the same bytes for the same rows."""
    from openpyxl import Workbook

    book = Workbook()
    page = book.active
    assert page is not None
    for row in (columns, *rows):
        page.append(list(row))
    dated = io.BytesIO()
    book.save(dated)
    with replacing(path) as temporary, ZipFile(dated) as parts, ZipFile(temporary, "w") as undated:
        for name in parts.namelist():
            part = parts.read(name)
            if name == WRITTEN:
                part = HOUR.sub(b">1980-01-01T00:00:00Z<", part)
            undated.writestr(ZipInfo(name), part, ZIP_DEFLATED)


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """The object in a JSON file; `expected` says what a good file holds."""
    try:
        content = parse_json(read_text(path))
    except (ValueError, RecursionError) as error:
        raise MediaError(f"this is not a JSON document ({error}); expected {expected}") from None
    if not isinstance(content, dict):
        raise MediaError(f"found a {type(content).__name__}; expected {expected}")
    return content
