"""Diagnoses of real clips against notes made by eye, from a run that has the clips with and without their references.

    python benchmarks/diagnosis_real.py RUN NOTES [--store RECORDS.json]

Cases are called <scene>/<model>/ref, beside the reference, and <scene>/<model>/alone. NOTES is a file of
`noted_kinds.py`. `--store` writes the answers that a diagnosis reads, for tests. Printed is JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from noted_kinds import compare, read_noted_kinds

import revisit
from revisit.core import Record
from revisit.diagnosis.diagnose import diagnose
from revisit.diagnosis.kinds import READ

SITUATIONS = ("ref", "alone")


def short_name(case_id: str) -> str:
    """The name of a case without its model and seed."""
    return case_id.partition("@")[0]


def stored(record: Record) -> dict[str, object]:
    """What a diagnosis reads of a record, with three decimals."""

    def rounded(value: object) -> object:
        if isinstance(value, float):
            return round(value, 3)
        if isinstance(value, Mapping):
            return {name: rounded(inner) for name, inner in value.items()}
        return value

    line: dict[str, object] = {"gate": True, "label": record.label} if record.is_gate else {}
    line["status"] = record.status
    if record.value is not None:
        line |= {"value": rounded(float(record.value)), "raw": rounded(record.raw)}
    if record.reason is not None:
        line["reason"] = record.reason.kind
    facts = {name: value for name, value in record.facts.items() if name not in ("sentence", "gate")}
    return {**line, "facts": rounded(facts)} if facts else line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    results, notes = revisit.load(options.run), read_noted_kinds(options.notes)
    answers = {short_name(case.id): results.of(case) for case in results.cases}
    if options.store:
        table = {name: {q: stored(r) for q, r in of.items() if q in READ} for name, of in sorted(answers.items())}
        lines = [f"{json.dumps(name)}: {json.dumps(of)}" for name, of in table.items()]
        options.store.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    figures = {}
    for situation in SITUATIONS:
        ending = f"/{situation}"
        diagnoses = {name.removesuffix(ending): diagnose(of) for name, of in answers.items() if name.endswith(ending)}
        figures[situation] = compare(diagnoses, notes)._asdict()
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
