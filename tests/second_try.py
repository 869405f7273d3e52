"""Tests in a browser get a second try: what another program does in time is not only ours to say on a busy machine.

A second try is never silent: the end of the run lists every test that needed one, with the reason.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

FIRST_FAILURE = "failed at first"
second_tries: dict[str, str] = {}


def in_a_browser(item: pytest.Item) -> bool:
    """Whether the test's file drives a browser."""
    return hasattr(getattr(item, "module", None), "chromium")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not in_a_browser(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failure = next((report for report in reports if report.failed), None)
    if failure is not None:
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        reason = failure.longreprtext.strip().splitlines()[-1] if failure.longreprtext else ""
        for report in reports:
            report.user_properties.append((FIRST_FAILURE, reason))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    reason = dict(report.user_properties).get(FIRST_FAILURE)
    if reason is not None:
        second_tries[report.nodeid] = str(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if second_tries:
        terminalreporter.section("second tries")
        for name, reason in second_tries.items():
            terminalreporter.line(f"{name} failed at first: {reason}")
