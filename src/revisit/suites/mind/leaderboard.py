"""The boards of MIND from a run: one over all clips, and one per test, since each test asks something else."""

from __future__ import annotations

from revisit.results.boards import Board, RunFacts, board_of_run
from revisit.suites.mind.read import TESTS


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of all clips and those of the tests that the run has, or of one part of the dataset."""
    whole = board_of_run(run, subset=subset)
    if subset:
        return [whole]
    present = {entry.condition for entry in run.results.entries}
    parts = [board_of_run(run, subset=test) for test in TESTS if test in present]
    return [whole, *(part for part in parts if part.columns)]
