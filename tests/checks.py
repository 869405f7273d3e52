"""When the tests that the checklist names last passed: recorded by `make checks`, so that nobody types a date."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.timing import name_of

RECORD = Path(__file__).parents[1] / "docs/checklist/runs.json"
passed: dict[str, bool] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-checks", action="store_true", help=f"Write the day of tests that pass to {RECORD.name}.")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-checks") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "record-checks")


class Recorder:
    """Writes the day as tests end, so that a run which is stopped keeps what it has."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            name = name_of(report.nodeid)
            if report.skipped:
                return
            passed[name] = passed.get(name, True) and report.passed
            self._write()

    def _write(self) -> None:
        known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
        today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        known |= {name: today for name, good in passed.items() if good}
        for name, good in passed.items():
            if not good:
                known.pop(name, None)
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
