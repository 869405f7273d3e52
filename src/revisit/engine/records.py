"""Records: an append-only JSONL file, one line per answer; the last line for a question counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

Record = dict[str, Any]


def question(record: Record) -> tuple[str, str, str]:
    """What a record answers: (case, "metric" or "gate", id)."""
    kind = "gate" if "gate" in record else "metric"
    return record["case"], kind, record[kind]


def read_records(path: Path) -> Iterator[Record]:
    """Whole lines of a record file; a line torn by a kill is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue


def latest(path: Path) -> dict[tuple[str, str, str], Record]:
    """The newest record of each question."""
    return {question(record): record for record in read_records(path)}


class RecordWriter:
    """Appends records, each in one write, after cutting off a line that an earlier kill left torn."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> RecordWriter:
        self._mend()
        self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.file)

    def append(self, record: Record) -> None:
        os.write(self.file, (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode())

    def _mend(self) -> None:
        if not self.path.is_file():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half of it."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text in one step, its line ends as they are."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(text.encode())
    temporary.replace(path)
