"""Files: written completely or not at all, and opened only if they are no pipes or devices."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from revisit.core import MediaError

UNFINISHED = ".writing-"  # how names of files begin that are being written, or that a kill left so


@contextmanager
def atomic_write_path(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; the file takes its place when the block ends well, and vanishes when not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Processes of other machines may have the same number, and write beside this one.
    temporary = path.with_name(f"{UNFINISHED}{os.getpid()}-{threading.get_ident()}-{path.stem[-40:]}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: Path, text: str) -> None:
    """Write text in one step, its line ends as they are: readers see the old file or the new one, never half of it."""
    with atomic_write_path(path) as temporary:
        temporary.write_bytes(text.encode())


def try_lock_file(file: IO[Any]) -> bool:
    """Whether this process alone may go on: not where another holds the file, but where no file can be locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def write_json_lines(path: Path, rows: Iterable[Any], *, ascii: bool = False) -> None:
    """Write one JSON object per line; in ASCII, where not every text can be written in UTF-8."""
    write_text_atomically(path, "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows))


def open_regular_file(path: Path) -> BinaryIO:
    """The file, open. Pipes and devices are refused: they would block or never end."""
    if not path.is_file():
        raise MediaError(
            "this is neither a regular file nor a folder" if path.exists() else "there is no such file or folder"
        )
    return path.open("rb", buffering=0)


def append_all_or_nothing(file: int, data: bytes) -> None:
    """Append to an open file: all of it, or nothing where the disk is full."""
    before = os.fstat(file).st_size
    written = 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
    except OSError:
        if os.fstat(file).st_size == before + written:  # nobody else has written to it meanwhile
            os.ftruncate(file, before)
        raise


def free_disk_bytes(place: Path) -> int:
    """Bytes that are free where a file or folder is, or would be."""
    while not place.exists():
        place = place.absolute().parent
    return shutil.disk_usage(place).free


def file_exists(path: Path | str) -> bool:
    """Whether a file is there; a name that is too long, or no name at all, is none.

    Of tens of thousands of names, making a `Path` of each takes as long as the asking.
    """
    return os.path.isfile(path)  # noqa: PTH113
