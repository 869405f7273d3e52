"""How much processor time every test takes: recorded by `make times`, so that nobody has to mark tests by hand.

What is recorded as slow has the mark `slow`, which `make fast` leaves out; and the files that take longest come first,
so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

RECORD = Path(__file__).with_name("times.json")
SLOW = 0.1  # seconds
TOLD = 0.1  # shorter ones are not worth a line

spent_on: dict[Any, float] = {}  # fixtures that several tests share -> seconds
recorded: dict[str, float] = {}
BEGUN = pytest.StashKey[tuple[float, set[Any]]]()


def processor_time() -> float:
    """Seconds of this process and of all it started that have ended."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def name_of(nodeid: str) -> str:
    """File and function; the parameters of a test take turns, and count as the longest of them."""
    return nodeid.removeprefix("tests/").partition("[")[0]


def known_times() -> dict[str, float]:
    """The record: tests by their names, seconds."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-times", action="store_true", help=f"Write the processor time of tests to {RECORD.name}.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    times = known_times()
    whole: Counter[str] = Counter()
    for item in items:
        seconds = times.get(name_of(item.nodeid), 0.0)
        whole[item.path.name] += seconds  # type: ignore[assignment]
        if seconds >= SLOW and item.get_closest_marker("fast") is None:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: -whole[item.path.name])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    before = processor_time()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            spent_on[fixturedef] = processor_time() - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[BEGUN] = processor_time(), set(spent_on)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test counts as if it ran alone, with all that it shares with others."""
    result = yield
    begun, known = item.stash[BEGUN]
    used = {shared for several in item._fixtureinfo.name2fixturedefs.values() for shared in several}
    made = sum(seconds for shared, seconds in spent_on.items() if shared not in known)
    alone = processor_time() - begun - made + sum(spent_on.get(shared, 0.0) for shared in used)
    item.user_properties.append(("seconds", alone))
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        name = name_of(report.nodeid)
        recorded[name] = max(recorded.get(name, 0.0), float(dict(report.user_properties).get("seconds", 0.0)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--record-times") and not hasattr(session.config, "workerinput"):
        times = known_times() | recorded  # what did not run now keeps its time
        told = {name: round(seconds, 1) for name, seconds in sorted(times.items()) if seconds >= TOLD}
        RECORD.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
