"""Files of a run: records.jsonl, append-only, a line per answer, of which the last for a question counts; and cases.

Every line has a schema number.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import lru_cache
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from revisit.core import Case, Clip, Reason, Record, Rejected, Target, UsageError
from revisit.core.records import Status
from revisit.core.text import parse_json
from revisit.media.files import append_all_or_nothing, write_text_atomically
from revisit.results.file_types import CaseEntry, Details, RejectedEntry

SCHEMA = 2
Line = dict[str, Any]  # a record as its line has it
FACTS_OF_CASE = ("model", "sample", "subset", "condition", "seed")  # in each line, for who reads the file alone


def record_to_line(record: Record) -> Line:
    """The content of a record's line."""
    line: Line = {
        "schema": SCHEMA,
        "case": record.case.id,
        **{name: getattr(record.case, name) for name in FACTS_OF_CASE},
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


class ReasonLine(msgspec.Struct, gc=False):
    """A reason that was read."""

    kind: str
    sentence: str


class RecordLine(msgspec.Struct, gc=False):
    """A line that was read. A line in which one of these is missing or of another type is damaged, and asked again."""

    case: str
    status: Status
    key: str
    metric: str | None = None
    gate: str | None = None
    schema: int = SCHEMA
    score: float | int | None = None
    raw: float | int | None = None
    label: str = ""
    reason: ReasonLine | None = None
    facts: Details = msgspec.field(default_factory=dict)
    version: int = 0
    protocol: str = ""
    units: str = ""
    n_units: int = 0
    seconds: float = 0.0

    @property
    def question(self) -> str:
        return self.metric or self.gate or ""


def record_from_line(line: RecordLine, case: Case) -> Record:
    """The record of a line."""
    if line.schema > SCHEMA:
        raise UsageError(
            f"the run was written by a newer Revisit (records of schema {line.schema}); this one reads {SCHEMA}"
        )
    reason = _reason(line.reason.kind, line.reason.sentence) if line.reason is not None else None
    return Record(
        case, line.question, line.gate is not None, line.status, line.score, line.raw, line.label,
        reason, line.facts, line.version, line.protocol, line.key, line.units, line.n_units, line.seconds,
    )  # fmt: skip


_reason = lru_cache(maxsize=4096)(Reason)  # thousands of clips share a few


class RecordLines:
    """The newest line of each question of a record file. `read_appended_lines` reads on where it stopped before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest: dict[str, dict[str, RecordLine]] = {}  # case -> metric or gate -> its line
        self._digests: dict[str, hashlib._Hash] = {}  # case -> the running digest of its lines
        self.read, self._file = 0, -1  # bytes taken in, of which file
        self.read_appended_lines()

    @property
    def file_and_bytes_read(self) -> tuple[int, int]:
        """Changes when lines were taken in."""
        return self._file, self.read

    def read_appended_lines(self) -> RecordLines:
        """Take in what was appended since; a file that is another one by now is read anew."""
        if not self.path.is_file():
            return self
        with self.path.open("rb") as file:
            now = os.fstat(file.fileno())
            if now.st_ino != self._file or now.st_size < self.read:
                self.newest, self._digests, self.read = {}, {}, 0
            self._file = now.st_ino
            file.seek(self.read)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]  # a last line without an end is torn by a kill, or about to be written
        self.read += len(new)
        new, answers, ends = parse_intact_lines(new)
        done = 0
        for case, some in groupby(answers, attrgetter("case")):  # answers of a case lie together
            mine = self.newest.setdefault(case, {})
            before = done
            for answer in some:
                mine[answer.metric or answer.gate or ""] = answer
                done += 1
            text = memoryview(new)[ends[before] : ends[done]]
            self._digests.setdefault(case, hashlib.sha256()).update(text)
        return self

    def digest_of_case_lines(self, case: str) -> str:
        """Of all lines about a case: another one when there are others by now."""
        return self._digests[case].hexdigest() if case in self._digests else ""


def parse_intact_lines(text: bytes) -> tuple[bytes, list[RecordLine], list[int]]:
    """Lines, what each says, and where they begin and end; those that are none, such as one torn by a kill, go."""
    with suppress(ValueError, RecursionError):
        answers = _DECODER.decode_lines(text)
        ends = _line_boundaries(np.frombuffer(text, np.uint8))
        if len(answers) + 1 == len(ends) and None not in {answer.metric or answer.gate for answer in answers}:
            return text, answers, ends
    intact = []
    for raw in text.splitlines(keepends=True):
        with suppress(ValueError):
            intact.append((raw, decode_line(parse_json(raw))))
    ends = [0, *accumulate(len(raw) for raw, _ in intact)]
    return b"".join(raw for raw, _ in intact), [answer for _, answer in intact], ends


def _line_boundaries(text: np.ndarray) -> list[int]:
    """Where lines begin and end, found piece by piece: a mask of the whole file would not fit into the processor."""
    starts = range(0, len(text), 1 << 18)
    places = [np.flatnonzero(text[start : start + (1 << 18)] == ord("\n")) + start + 1 for start in starts]
    return [0, *(np.concatenate(places).tolist() if places else ())]


def decode_line(line: Line) -> RecordLine:
    """What a line says; ValueError for a damaged one."""
    answer = _DECODER.decode(json.dumps(line))
    if answer.metric is None and answer.gate is None:
        raise ValueError("it is about no question")
    return answer


_DECODER = msgspec.json.Decoder(RecordLine)


class RecordWriter:
    """Appends records, those of a case in one write; a line that a kill left torn is cut off first.

    `writing` is held meanwhile, where other processes may append, too; `size` bytes of the file were read before.
    """

    def __init__(
        self, path: Path, writing: Callable[[], AbstractContextManager[None]] = nullcontext, size: int = 0
    ) -> None:
        self.path, self.writing = path, writing
        self._known, self._others = size, False  # bytes that were read or are ours; whether others wrote between them

    def __enter__(self) -> RecordWriter:
        self.file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.file)

    def append(self, *records: Record) -> None:
        lines = [json.dumps(record_to_line(record), ensure_ascii=False, allow_nan=False) + "\n" for record in records]
        with self.writing():
            self._cut_torn_line()
            self._others |= os.lseek(self.file, 0, os.SEEK_END) != self._known
            append_all_or_nothing(self.file, "".join(lines).encode())
            self._known = os.lseek(self.file, 0, os.SEEK_END)

    def is_only_writer(self) -> bool:
        """Whether all that was appended is ours: who wrote it need not read it."""
        with self.path.open("rb") as file:  # opened anew, because network file systems look at the size then
            return not self._others and os.fstat(file.fileno()).st_size == self._known

    def _cut_torn_line(self) -> None:
        """Cut off a line that a kill left torn."""
        end = os.lseek(self.file, 0, os.SEEK_END)
        if end == 0 or os.pread(self.file, 1, end - 1) == b"\n":
            return
        content = self.path.read_bytes()
        os.ftruncate(self.file, content.rfind(b"\n") + 1)


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half of it."""
    write_text_atomically(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_json_rows(path: Path, content: Details) -> None:
    """The same for what has thousands of entries: one on each line, which is quick to write and to search."""
    text = json_rows_text(content)
    write_text_atomically(path, text)


def json_rows_text(content: Details) -> str:
    """The text that `write_json_rows` writes."""

    def encode_json(value: Any) -> str:
        return msgspec.json.encode(value, enc_hook=to_builtin_type).decode()

    def entries(items: Mapping[str, Any], encode: Callable[[Any], str], margin: str) -> str:
        return f",\n{margin}".join(f"{encode_json(name)}: {encode(item)}" for name, item in items.items())

    def one_entry_per_line(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(encode_json, value)) + "\n ]"
        if isinstance(value, dict) and value:
            return "{\n  " + entries(value, encode_json, "  ") + "\n }"
        return encode_json(value)

    return "{\n " + entries(content, one_entry_per_line, " ") + "\n}\n"


def to_builtin_type(value: Any) -> Any:
    """Numbers and texts of other types, such as those of numpy."""
    for kind in (float, int, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be written")


def case_from_json(entry: Details) -> Case:
    """The case of an entry of plan.json."""
    facts = {name: value for name, value in entry.items() if name in Case.__dataclass_fields__}
    for name in ("clip", "reference"):
        if facts.get(name) is not None:
            facts[name] = Clip(**{**facts[name], "path": Path(facts[name]["path"])})
    if facts.get("target") is not None:
        box = facts["target"]
        pairs = {name: tuple(box[name]) for name in ("box", "point") if box.get(name) is not None}
        facts["target"] = Target(box["name"], **pairs)
    if facts.get("phases") is not None:
        facts["phases"] = tuple(facts["phases"])
    return Case(**{**facts, "artifacts": {name: Path(path) for name, path in entry["artifacts"].items()}})


def case_to_json(case: Case) -> CaseEntry:
    """The entry of plan.json for a case."""
    facts = dict(vars(case))
    for name in ("clip", "reference", "target"):
        facts[name] = None if facts[name] is None else dict(vars(facts[name]))
    for name in ("clip", "reference"):
        if facts[name] is not None:
            facts[name]["path"] = str(facts[name]["path"])
            if not facts[name]["decoding"]:
                del facts[name]["decoding"]
    facts["artifacts"] = {name: str(path) for name, path in case.artifacts.items()}
    return facts


def rejected_to_json(entry: Rejected) -> RejectedEntry:
    """The entry of plan.json for a clip that is missing or was refused."""
    return asdict(entry)
