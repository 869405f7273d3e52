"""Scorers: processes that score cases while others are observed.

What one process scores is little beside what one observes, but not beside what sixteen do. Metrics that another
process cannot import, such as those of a notebook's cell, are scored here.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager
from pathlib import Path

from revisit.core import GATES, METRICS, Gate, Metric, Record
from revisit.core.observer import single_threaded_libraries
from revisit.engine.cache import EvidenceCache
from revisit.engine.score import CaseScorer, ScoringInput, score_case
from revisit.engine.worker_processes import end_with_parent, guard_child_start

CheckReference = tuple[bool, str, int, str]  # whether it is a gate, id, version, module
Done = Callable[[list[Record]], None]


class Scorers(AbstractContextManager["Scorers"]):
    """So many processes that score; with 0, cases are scored at once, in this one."""

    def __init__(self, processes: int, cache: EvidenceCache, units: Path) -> None:
        self.cache, self.units = cache, units
        context = multiprocessing.get_context("spawn")  # OpenCV and libav do not survive a fork
        self._pool = ProcessPoolExecutor(processes, context, end_with_parent, (os.getpid(),)) if processes else None
        self._pending: dict[Future[list[Record]], tuple[ScoringInput, Sequence[Metric | Gate], Done]] = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def submit_case(self, scoring_input: ScoringInput, checks: Sequence[Metric | Gate], done: Done) -> None:
        """Score a case; `done` is given the records, at once or from `collect`."""
        references = [(isinstance(check, Gate), check.id, check.version, check.fn.__module__) for check in checks]
        if self._pool is None or any(module == "__main__" for *_, module in references):
            done(self._score_in_this_process(scoring_input, checks))
            return
        try:
            with guard_child_start():
                scored = self._pool.submit(_score_case_in_worker, scoring_input, references, self.cache, self.units)
        except RuntimeError:  # all of its processes are lost with one that was killed
            done(self._score_in_this_process(scoring_input, checks))
            return
        self._pending[scored] = scoring_input, checks, done

    def collect(self, all: bool = False) -> None:
        """Hand over what is scored by now, or everything."""
        while self._pending:
            ready, _ = wait(self._pending, None if all else 0, FIRST_COMPLETED)
            for scored in ready:
                scoring_input, checks, done = self._pending.pop(scored)
                lost = scored.exception() is not None  # a process that was killed, or that does not know a metric
                done(self._score_in_this_process(scoring_input, checks) if lost else scored.result())
            if not all:
                return

    def _score_in_this_process(self, scoring_input: ScoringInput, checks: Sequence[Metric | Gate]) -> list[Record]:
        with single_threaded_libraries():  # as in a process of its own; threads for small matrices only wait
            return score_case(CaseScorer(scoring_input, self.cache), checks, self.units)


def _score_case_in_worker(
    scoring_input: ScoringInput, references: Sequence[CheckReference], cache: EvidenceCache, units: Path
) -> list[Record]:
    return score_case(CaseScorer(scoring_input, cache), [_load_check(*one) for one in references], units)


def _load_check(is_gate: bool, id: str, version: int, module: str) -> Metric | Gate:
    registry = GATES if is_gate else METRICS
    if id not in registry:
        importlib.import_module(module)  # of a plugin that registered itself in the parent process only
    check: Metric | Gate = registry[id]
    if check.version != version:
        raise LookupError(f"{id} has another version here")
    return check
