"""Files of a run: records.jsonl, append-only, a line per answer, of which the last for a question counts; and cases.

Every line has a schema number. Lines without one are from before reasons had kinds; they are read, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from revisit.core import Case, Clip, Reason, Record, Target, UsageError
from revisit.core.texts import parse_json
from revisit.media.files import append, replacing

SCHEMA = 2
Line = dict[str, Any]  # a record as its line has it
Question = tuple[str, str, str]  # case, "metric" or "gate", id
_FACTS_OF_CASE = ("model", "sample", "subset", "condition", "seed")  # in each line, for who reads the file alone


def to_line(record: Record) -> Line:
    """The content of a record's line."""
    line: Line = {
        "schema": SCHEMA,
        "case": record.case.id,
        **{name: getattr(record.case, name) for name in _FACTS_OF_CASE},
        "gate" if record.is_gate else "metric": record.question,
        "version": record.version,
        "protocol": record.protocol,
        "key": record.key,
        "status": record.status,
    }
    if record.scored:
        line |= {"score": record.value, "raw": record.raw}
    if record.label:
        line["label"] = record.label
    if record.reason is not None:
        line["reason"] = asdict(record.reason)
    line["facts"] = record.facts
    if record.units:
        line |= {"n_units": record.n_units, "units": record.units}
    return line | {"seconds": record.seconds}


def from_line(line: Line, case: Case) -> Record:
    """The record of a line."""
    if line.get("schema", 1) > SCHEMA:
        raise UsageError(
            f"the run was written by a newer Revisit (records of schema {line['schema']}); this one reads {SCHEMA}"
        )
    reason = line.get("reason") or None
    if isinstance(reason, Mapping):
        reason = _reason(reason["kind"], reason["sentence"])
    elif reason is not None:
        reason = Reason(_OF_STATE.get(line["status"], "unsorted"), reason)
    return Record(
        case,
        line["gate"] if "gate" in line else line["metric"],
        "gate" in line,
        line["status"],
        line.get("score"),
        line.get("raw"),
        line.get("label", ""),
        reason,
        line.get("facts") or {},
        line.get("version", 0),
        line.get("protocol", ""),
        line.get("key", ""),
        line.get("units", ""),
        line.get("n_units", 0),
        line.get("seconds", 0.0),
    )


@lru_cache(maxsize=4096)
def _reason(kind: str, sentence: str) -> Reason:
    """A reason; thousands of clips share a few."""
    return Reason(kind, sentence)


_OF_STATE = {"closed": "gate_closed", "unsure": "undecided", "failed": "failed"}


def question(line: Line) -> Question | None:
    """What a line answers; None where it does not say what came of it, as a damaged one, which is asked again."""
    kind = "gate" if "gate" in line else "metric"
    case, asked = line.get("case"), line.get(kind)
    whole = isinstance(case, str) and isinstance(asked, str)
    if whole and isinstance(line.get("status"), str) and isinstance(line.get("key"), str):
        return str(case), kind, str(asked)
    return None


class Lines:
    """The newest line of each question of a record file. `refresh` reads on where it stopped before.

    Every line has a stamp, so that who made something of it can tell whether it has changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest: dict[Question, Line] = {}
        self.stamps: dict[Question, bytes] = {}
        self.read, self._file = 0, -1  # bytes taken in, of which file
        self.refresh()

    @property
    def state(self) -> tuple[int, int]:
        """Changes when lines were taken in."""
        return self._file, self.read

    def refresh(self) -> Lines:
        """Take in what was appended since; a file that is another one by now is read anew."""
        if not self.path.is_file():
            return self
        with self.path.open("rb") as file:
            now = os.fstat(file.fileno())
            if now.st_ino != self._file or now.st_size < self.read:
                self.newest, self.stamps, self.read = {}, {}, 0
            self._file = now.st_ino
            file.seek(self.read)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]  # a last line without an end is torn by a kill, or about to be written
        self.read += len(new)
        for raw, line in _parsed(new.splitlines(keepends=True)):
            if isinstance(line, dict) and (about := question(line)) is not None:
                self.newest[about] = line
                self.stamps[about] = hashlib.blake2b(raw, digest_size=16).digest()
        return self


def _parsed(lines: list[bytes]) -> Iterable[tuple[bytes, Line]]:
    """Lines with their content; what is no JSON, such as a line torn by a kill, is left out."""
    try:
        return zip(lines, parse_json(b"[" + b",".join(lines) + b"]"), strict=True)  # in one go, which is twice as fast
    except ValueError:
        return _one_by_one(lines)


def _one_by_one(lines: list[bytes]) -> Iterator[tuple[bytes, Line]]:
    for raw in lines:
        with suppress(ValueError):
            yield raw, parse_json(raw)


def latest(path: Path) -> dict[Question, Line]:
    """The newest line of each question."""
    return Lines(path).newest


class RecordWriter:
    """Appends records, those of a case in one write; a line that a kill left torn is cut off first.

    `writing` is held meanwhile, where other processes may append, too.
    """

    def __init__(self, path: Path, writing: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self.path, self.writing = path, writing

    def __enter__(self) -> RecordWriter:
        self.file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.file)

    def append(self, *records: Record) -> None:
        lines = [json.dumps(to_line(record), ensure_ascii=False, allow_nan=False) + "\n" for record in records]
        with self.writing():
            self._mend()
            append(self.file, "".join(lines).encode())

    def _mend(self) -> None:
        """Cut off a line that a kill left torn."""
        end = os.lseek(self.file, 0, os.SEEK_END)
        if end == 0 or os.pread(self.file, 1, end - 1) == b"\n":
            return
        content = self.path.read_bytes()
        os.ftruncate(self.file, content.rfind(b"\n") + 1)


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half of it."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_rows(path: Path, content: Mapping[str, Any]) -> None:
    """The same for what has thousands of entries: one on each line, which is quick to write and to search."""
    write_text(path, rows_of(content))


def rows_of(content: Mapping[str, Any]) -> str:
    """The text that `write_rows` writes."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def rows(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(text, value)) + "\n ]"
        if isinstance(value, dict) and value:
            return "{\n  " + ",\n  ".join(f"{text(name)}: {text(item)}" for name, item in value.items()) + "\n }"
        return text(value)

    return "{\n " + ",\n ".join(f"{text(name)}: {rows(value)}" for name, value in content.items()) + "\n}\n"


def write_text(path: Path, text: str) -> None:
    """Write text in one step, its line ends as they are."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def case_from_json(entry: Mapping[str, Any]) -> Case:
    """The case of an entry of plan.json."""
    facts = {name: value for name, value in entry.items() if name in Case.__dataclass_fields__}
    for name in ("clip", "reference"):
        if facts.get(name) is not None:
            facts[name] = Clip(**{**facts[name], "path": Path(facts[name]["path"])})
    if facts.get("target") is not None:
        given = facts["target"]
        pairs = {name: tuple(given[name]) for name in ("box", "point") if given.get(name) is not None}
        facts["target"] = Target(given["name"], **pairs)
    if facts.get("phases") is not None:
        facts["phases"] = tuple(facts["phases"])
    return Case(**{**facts, "artifacts": {name: Path(path) for name, path in entry["artifacts"].items()}})


def case_to_json(case: Case) -> dict[str, Any]:
    """The entry of plan.json for a case."""
    facts = dict(vars(case))
    for name in ("clip", "reference", "target"):
        facts[name] = None if facts[name] is None else dict(vars(facts[name]))
    for name in ("clip", "reference"):
        if facts[name] is not None:
            facts[name]["path"] = str(facts[name]["path"])
    facts["artifacts"] = {name: str(path) for name, path in case.artifacts.items()}
    return facts
