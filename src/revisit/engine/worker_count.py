"""The default number of workers: processes that decode and observe clips, and processes that score."""

from __future__ import annotations

from revisit.core import UsageError
from revisit.core.concurrency import cores

MOST_WORKERS = 16  # by default
CORES_OF_HOST = 2  # that a host of networks keeps busy
CASES_PER_SCORER = 8  # few cases are scored in this process


def require_worker_count(requested: int | None) -> None:
    """Raise UsageError for less than no process."""
    if requested is not None and requested < 0:
        raise UsageError(f"--workers takes 0 (in this process) or a number of processes, not {requested}")


def observing_worker_count(requested: int | None, jobs: int, hosts: int) -> int:
    """Processes that decode: as many as were requested (--workers), else one for each core that no host keeps busy.

    Each host of networks, one per GPU, has one at least.
    """
    if requested is not None:
        return min(requested, jobs) if jobs else 0
    return min(max(1, hosts, min(cores() - CORES_OF_HOST * hosts, MOST_WORKERS)), jobs)


def scoring_worker_count(max_workers: int, cases: int) -> int:
    """Processes that score: none for a few cases."""
    return min(max_workers, cases // CASES_PER_SCORER)
