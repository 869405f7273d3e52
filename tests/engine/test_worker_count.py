"""How many processes observe and score where nobody says how many."""

from __future__ import annotations

import os

import pytest

from revisit.core import UsageError
from revisit.core.concurrency import cores
from revisit.engine import worker_count
from revisit.engine.worker_count import MOST_WORKERS, observing_worker_count, require_worker_count, scoring_worker_count


@pytest.mark.parametrize(
    "count, jobs, with_host, expected",
    [
        (2, 10, False, 2),  # one a core
        (8, 3, False, 3),  # no more than clips
        (64, 1000, False, MOST_WORKERS),
        (8, 100, True, 6),  # a host of networks keeps two busy
        (2, 100, True, 1),  # and one is always left
        (4, 0, False, 0),
    ],
)
def test_without_a_request_there_is_one_for_each_free_core(monkeypatch, count, jobs, with_host, expected) -> None:
    monkeypatch.setattr(worker_count, "cores", lambda: count)
    assert observing_worker_count(None, jobs, with_host) == expected


def test_a_request_is_kept_but_for_clips_that_are_not_there() -> None:
    assert observing_worker_count(0, 5, False) == 0
    assert observing_worker_count(3, 5, True) == 3
    assert observing_worker_count(9, 5, False) == 5
    with pytest.raises(UsageError, match="not -1"):
        require_worker_count(-1)


def test_cores_are_those_that_this_process_may_use(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7, 9}, raising=False)
    assert cores() == 3


def test_a_few_cases_are_scored_in_this_process() -> None:
    assert [scoring_worker_count(4, cases) for cases in (1, 7, 8, 31, 1000)] == [0, 0, 1, 3, 4]
