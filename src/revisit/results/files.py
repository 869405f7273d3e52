"""Files of a run: records.jsonl, append-only, a line per answer, of which the last for a question counts; and cases.

Every line has a schema number. Lines without one are from before reasons had kinds; they are read, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from revisit.core import Case, Clip, Reason, Record, Target, UsageError
from revisit.core.texts import parse_json

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
        reason = Reason(**reason)
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


_OF_STATE = {"closed": "gate_closed", "unsure": "undecided", "failed": "failed"}


def question(line: Line) -> Question:
    """What a line answers."""
    kind = "gate" if "gate" in line else "metric"
    return line["case"], kind, line[kind]


def read_lines(path: Path) -> Iterator[Line]:
    """Whole lines of a record file; a line torn by a kill is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                try:
                    content = parse_json(line)
                except ValueError:
                    continue
                if isinstance(content, dict) and _is_answer(content):
                    yield content


def _is_answer(line: Line) -> bool:
    """Whether a line says what was asked of which case and what came of it; a damaged one is asked again."""
    asked = line.get("gate", line.get("metric"))
    return all(isinstance(said, str) for said in (line.get("case"), asked, line.get("status"), line.get("key")))


def latest(path: Path) -> dict[Question, Line]:
    """The newest line of each question."""
    return {question(line): line for line in read_lines(path)}


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
        os.write(self.file, (json.dumps(to_line(record), ensure_ascii=False, allow_nan=False) + "\n").encode())

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
    facts = asdict(case)
    for name in ("clip", "reference"):
        if facts[name] is not None:
            facts[name]["path"] = str(facts[name]["path"])
    facts["artifacts"] = {name: str(path) for name, path in case.artifacts.items()}
    return facts
