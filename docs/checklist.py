"""The checklist: everything that the benchmarks print, take and write, our command for it, and how it was checked.

`checklist/<benchmark>.yaml` has a row for each; `checklist/runs.json` says when each named test last passed, which
`make checks` records. `python docs/checklist.py` prints the tests that the rows name.
"""

from __future__ import annotations

import ast
import json
import sys
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

HERE = Path(__file__).parent
ROWS, RUNS = HERE / "checklist", HERE / "checklist/runs.json"
TESTS = HERE.parent / "tests"
KINDS = ("metric", "table", "figure", "flag", "file")
MOST_UNCHECKED = 10  # over all benchmarks


class Row(BaseModel):
    """One thing of a benchmark."""

    model_config = ConfigDict(extra="forbid")

    what: str = Field(min_length=1)
    kind: Literal["metric", "table", "figure", "flag", "file"]
    where: str = Field(min_length=1)  # in the paper, its supplement, the README, the data
    ours: str = ""  # the command, or where it stands here
    checked: str = ""  # how, and against what
    tests: list[str] = Field(default_factory=list)  # file and function, below tests/
    unchecked: str = ""  # why there is no test

    @model_validator(mode="after")
    def _whole(self) -> Row:
        if bool(self.tests) == bool(self.unchecked):
            raise ValueError(f"{self.what}: a row names tests, or says why there is none")
        if self.tests and not (self.ours and self.checked):
            raise ValueError(f"{self.what}: a row with a test says what is ours and how it was checked")
        return self


class Benchmark(BaseModel):
    """The rows of a benchmark."""

    model_config = ConfigDict(extra="forbid")

    benchmark: str
    sources: str
    rows: list[Row] = Field(min_length=1)


def benchmarks() -> list[Benchmark]:
    """All benchmarks, in the order of their files."""
    return [Benchmark(**yaml.safe_load(path.read_text(encoding="utf-8"))) for path in sorted(ROWS.glob("*.yaml"))]


def named_tests() -> list[str]:
    """The tests that rows name, each once."""
    return list(dict.fromkeys(test for one in benchmarks() for row in one.rows for test in row.tests))


@cache
def functions(file: str) -> frozenset[str]:
    """The tests that a file holds."""
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def absent() -> list[str]:
    """Named tests that are not there."""
    return [test for test in named_tests() if test.partition("::")[2] not in functions(test.partition("::")[0])]


def runs() -> dict[str, str]:
    """Test -> the day it last passed."""
    return json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.is_file() else {}


def page() -> str:
    """The page."""
    known, days = benchmarks(), runs()
    rows = [row for one in known for row in one.rows]
    without = [(one.benchmark, row) for one in known for row in one.rows if row.unchecked]
    text = "# What the benchmarks have, and how ours was checked\n\nWritten by `make docs` from `docs/checklist/`. "
    text += "Every metric, table, figure, flag and file of MBench, MemoBench, MIND and WRBench, listed from their "
    text += "papers (supplements included) and pages; our command for it; what it was checked against; and the test. "
    text += "The day is that of the last run in which the row's tests passed, as `make checks` recorded it.\n\n"
    text += "| benchmark | " + " | ".join(f"{kind}s" for kind in KINDS) + " | rows | tests | not checked |\n"
    text += "|---|" + "---:|" * (len(KINDS) + 3) + "\n"
    for one in known:
        counts = [sum(row.kind == kind for row in one.rows) for kind in KINDS]
        tests = len({test for row in one.rows for test in row.tests})
        figures = [*counts, len(one.rows), tests, sum(bool(row.unchecked) for row in one.rows)]
        text += f"| {one.benchmark} | " + " | ".join(map(str, figures)) + " |\n"
    text += f"\n{len(rows)} rows, {len(named_tests())} tests. Not checked are {len(without)} of them:\n\n"
    text += "".join(f"- {benchmark}, {_cell(row.what)}: {row.unchecked}\n" for benchmark, row in without)
    for one in known:
        text += f"\n## {one.benchmark}\n\nFrom {one.sources}.\n"
        for kind in KINDS:
            mine = [row for row in one.rows if row.kind == kind]
            if mine:
                text += f"\n### {one.benchmark}: {kind}s\n\n"
                text += "| what | where | ours | checked against | last check | test |\n|---|---|---|---|---|---|\n"
                text += "".join(_line(row, days) for row in mine)
    return text


def _line(row: Row, days: dict[str, str]) -> str:
    if row.unchecked:
        return f"| {_cell(row.what)} | {_cell(row.where)} | {_cell(row.ours)} | not checked | – | – |\n"
    passed = [days[test] for test in row.tests if test in days]
    day = min(passed) if len(passed) == len(row.tests) else "–"
    names = "<br>".join(f"`{test}`" for test in row.tests)
    cells = map(_cell, (row.what, row.where, row.ours, row.checked))
    return f"| {' | '.join(cells)} | {day} | {names} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write("".join(f"tests/{test}\n" for test in named_tests()))
