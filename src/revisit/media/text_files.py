"""Text files from outside: size-limited, UTF-8, with or without a byte order mark."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from revisit.core import MediaError
from revisit.core.text import parse_json
from revisit.media.files import atomic_write_path

MOST_BYTES = 256 << 20
_FORMULA_SIGNS = tuple(
    "=+-@\t\r\n\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?%?"
_NUMBERS = re.compile(rf"(?:{_NUMBER}|[+-]?inf|[+-]?nan)(?:[ ,;]+{_NUMBER})*")
WRITTEN = "docProps/core.xml"  # the part of a spreadsheet that says when it was written
HOUR = re.compile(rb">\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ<")


def read_text(path: Path, max_bytes: int = MOST_BYTES) -> str:
    """The text of a file of bounded size."""
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise MediaError(f"it is larger than {max_bytes >> 20} MiB, the most that is allowed")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MediaError("it is not a UTF-8 text file") from None


def escape_formula_cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula; `unescape_formula_cell` gives the text back.

    A text gets an apostrophe in front where it begins with ``= + - @``, their full-width forms, a tab or a line end, as
    OWASP advises. Numbers stay as they are, also where they are written as text, and so do lone signs.

    Parameters
    ----------
    value
        What the cell holds: a text, or anything else that `csv` writes.

    Returns
    -------
    Any
        The same, or the text with an apostrophe in front.

    Examples
    --------
    >>> [escape_formula_cell(value) for value in ("=1+2", "-0.5", "wan")]
    ["'=1+2", '-0.5', 'wan']
    """
    if not isinstance(value, str) or not _starts_like_formula(value) or _NUMBERS.fullmatch(value):
        return value
    return f"'{value}"


def unescape_formula_cell(text: str) -> str:
    """The text of a cell that `escape_formula_cell` made."""
    return text[1:] if text.startswith("'") and _starts_like_formula(text) else text


def _starts_like_formula(text: str) -> bool:
    """Whether a text begins a formula, apostrophes in front of it aside: names may have some of their own."""
    content = text.lstrip("'")
    return content[:1] in _FORMULA_SIGNS and content not in ("", "+", "-")


class _PlainCells:
    """What `csv.DictReader` reads from: rows of the texts that were written with `csv_text`."""

    def __init__(self, text: str, delimiter: str = ",") -> None:
        csv.field_size_limit(MOST_BYTES)
        self._rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        return [unescape_formula_cell(cell) for cell in next(self._rows)]

    @property
    def line_num(self) -> int:
        return self._rows.line_num


def read_csv_cells(text: str, delimiter: str = ",") -> Iterator[list[str]]:
    """The rows of a CSV file, head and all, as the texts that were written with `csv_text`."""
    return _PlainCells(text, delimiter)


def csv_dict_reader(text: str) -> csv.DictReader[str]:
    """The rows of a CSV file by column; a cell may be longer than the library's default of 128 KiB."""
    rows = csv.DictReader(io.StringIO())
    rows.reader = cast(Any, _PlainCells(text))
    return rows


def read_csv_table(
    path: Path, needed: Iterable[str], expected: str, max_bytes: int = MOST_BYTES
) -> tuple[list[str], list[dict[str, str]]]:
    """Names of the columns of a CSV file, the needed ones among them, and its rows by column, without spaces around.

    `expected` says what a good file looks like.
    """
    reader = csv_dict_reader(read_text(path, max_bytes))
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if missing := [name for name in needed if name not in names]:
            raise MediaError(f"it has no column {', '.join(missing)}; expected {expected}")
        reader.fieldnames = names
        rows = [{name: (value or "").strip() for name, value in row.items() if name in names} for row in reader]
    except csv.Error as error:
        raise MediaError(f"it is not a CSV file ({error}); expected {expected}") from None
    return names, rows


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], newline: str = "\r\n") -> str:
    """CSV with a head, its line ends in it; no cell is a formula (`escape_formula_cell`)."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=newline)
    writer.writerows([escape_formula_cell(cell) for cell in row] for row in (columns, *rows))
    return buffer.getvalue()


def write_xlsx(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a spreadsheet (xlsx) with a head; the same bytes for the same rows. Texts are texts, never formulas."""
    from openpyxl import Workbook

    book = Workbook()
    page = book.active
    assert page is not None
    for row in (columns, *rows):
        page.append(list(row))
    for cell in (cell for line in page.iter_rows() for cell in line):
        if cell.data_type == "f":
            cell.data_type = "s"
    dated = io.BytesIO()
    book.save(dated)
    with atomic_write_path(path) as temporary, ZipFile(dated) as parts, ZipFile(temporary, "w") as undated:
        for name in parts.namelist():
            part = parts.read(name)
            if name == WRITTEN:
                part = HOUR.sub(b">1980-01-01T00:00:00Z<", part)
            undated.writestr(ZipInfo(name), part, ZIP_DEFLATED)


def read_json_object(path: Path, expected: str) -> dict[str, Any]:
    """The object in a JSON file; `expected` says what a good file holds."""
    try:
        content = parse_json(read_text(path))
    except (ValueError, RecursionError) as error:
        raise MediaError(f"this is not a JSON document ({error}); expected {expected}") from None
    if not isinstance(content, dict):
        raise MediaError(f"found a {type(content).__name__}; expected {expected}")
    return content
