"""The checklist of what the benchmarks have: typed rows, tests that exist, recorded days, a page up to date."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def checklist():
    spec = importlib.util.spec_from_file_location("checklist", PROJECT / "docs/checklist.py")
    assert spec and spec.loader
    module = sys.modules["checklist"] = importlib.util.module_from_spec(spec)  # where its types look for each other
    spec.loader.exec_module(module)
    return module


def test_every_named_test_exists(checklist):
    assert checklist.absent() == []
    assert all(re.fullmatch(r"([a-z]+/)*test_\w+\.py::test_\w+", test) for test in checklist.named_tests())


def test_every_row_is_checked_but_for_ten_at_most(checklist):
    rows = [row for one in checklist.benchmarks() for row in one.rows]
    assert len(rows) > 150
    without = [row for row in rows if row.unchecked]
    assert len(without) <= checklist.MOST_UNCHECKED and all(len(row.unchecked) > 20 for row in without)
    for one in checklist.benchmarks():
        names = [row.what for row in one.rows]
        assert len(set(names)) == len(names), one.benchmark
        assert {row.kind for row in one.rows} == set(checklist.KINDS), one.benchmark


def test_tables_and_figures_of_the_papers_are_all_there(checklist):
    """The numbers of the papers' tables and figures, counted in the papers themselves."""
    wanted = {
        "MBench": [f"Table {k}" for k in range(1, 7)] + [f"Figure {k}" for k in range(1, 11)],
        "MemoBench": [f"Table {k}" for k in range(1, 4)] + [f"Table S{k}" for k in range(1, 11)]
        + [f"Figure {k}" for k in range(1, 8)] + [f"Figure S{k}" for k in range(1, 18)],
        "WRBench": [f"Table {k}" for k in range(1, 18)] + [f"Figure {k}" for k in range(1, 17)],
        "MIND": [f"Table {k}" for k in range(1, 4)] + [f"Figure {k}" for k in range(1, 9)],
    }  # fmt: skip
    for one in checklist.benchmarks():
        named = {name for row in one.rows for name in numbered(row.what)}
        assert not set(wanted[one.benchmark]) - named, one.benchmark


def numbered(what: str) -> set[str]:
    """Tables and figures that a row is about: `Figures 5 to 7, S11 to S16` names nine."""
    found = re.match(r"(Table|Figure)s? (.*?)(?: \(|$)", what)
    if found is None:
        return set()
    names = set()
    for part in re.split(r", | and ", found[2]):
        ends = re.fullmatch(r"(S?)(\d+)(?: to S?(\d+))?", part.strip())
        if ends is not None:
            first, last = int(ends[2]), int(ends[3] or ends[2])
            names |= {f"{found[1]} {ends[1]}{k}" for k in range(first, last + 1)}
    return names


def test_days_are_those_of_recorded_runs(checklist):
    days = checklist.runs()
    assert all(date.fromisoformat(day) <= date.today() for day in days.values())
    named = checklist.named_tests()
    without = [test for test in named if test not in days]
    assert len(without) <= len(named) // 10, f"run `make checks`: {', '.join(without[:5])}"


def test_the_page_says_what_the_rows_say(checklist):
    page = (PROJECT / "docs/checklist.md").read_text(encoding="utf-8")
    assert page == checklist.page(), "run `make docs`"
    assert "not checked" in page and "| 2" in page


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"what": "a", "kind": "metric", "where": "b"}, "names tests, or says why"),
        ({"what": "a", "kind": "metric", "where": "b", "tests": ["t"]}, "what is ours"),
        ({"what": "a", "kind": "tables", "where": "b", "unchecked": "no"}, "kind"),
        ({"what": "a", "kind": "table", "where": "b", "unchecked": "no", "test": "x"}, "test"),
        ({"what": "a", "kind": "table", "where": "b", "unchecked": "no", "tests": ["x"]}, "names tests, or says why"),
    ],
)
def test_a_row_that_is_not_whole_is_refused(checklist, row, says):
    with pytest.raises(ValidationError, match=says):
        checklist.Row(**row)


def test_a_run_records_what_passes_and_forgets_what_fails(tmp_path, monkeypatch):
    from tests import checks

    record = tmp_path / "runs.json"
    record.write_text(json.dumps({"test_a.py::test_old": "2020-01-01", "test_a.py::test_bad": "2020-01-01"}))
    monkeypatch.setattr(checks, "RECORD", record)
    monkeypatch.setattr(checks, "passed", {})

    class Report:
        def __init__(self, name: str, outcome: str, when: str = "call") -> None:
            self.nodeid, self.when, self.outcome = f"tests/test_a.py::{name}", when, outcome
            self.passed, self.failed, self.skipped = (outcome == kind for kind in ("passed", "failed", "skipped"))

    recorder = checks.Recorder()
    for name, outcome in [("test_new[1]", "passed"), ("test_new[2]", "passed"), ("test_bad[1]", "passed"),
                          ("test_bad[2]", "failed"), ("test_idle", "skipped")]:  # fmt: skip
        recorder.pytest_runtest_logreport(Report(name, outcome))  # type: ignore[arg-type]
    recorder.pytest_runtest_logreport(Report("test_new[1]", "passed", "teardown"))  # type: ignore[arg-type]
    found = json.loads(record.read_text())
    assert found.keys() == {"test_a.py::test_old", "test_a.py::test_new"}
    assert found["test_a.py::test_old"] == "2020-01-01" < found["test_a.py::test_new"] <= date.today().isoformat()
