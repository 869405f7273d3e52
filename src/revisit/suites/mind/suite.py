"""The suite `mind`: long-context memory, return, and action accuracy against recordings from Unreal (docs/mind.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.results.leaderboards import Board, RunFacts, board_of_run
from revisit.suites.mind.dataset import DATASET, mind_generation_jobs
from revisit.suites.mind.metrics import mind_metric_ids
from revisit.suites.mind.read import TESTS, is_mind_source, read
from revisit.suites.mind.summary import (
    export_mind_results,
    paper_boards_by_perspective,
    published_mind_boards,
    summarise,
)


def mind_run_boards(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of all clips, those of the tests that the run has, and the paper's; or that of one part."""
    board = board_of_run(run, subset=subset)
    if subset:
        return [board]
    present = {entry.condition for entry in run.results.entries}
    parts = [board_of_run(run, subset=test) for test in TESTS if test in present]
    return [board, *(part for part in parts if part.columns), *paper_boards_by_perspective(run)]


MIND = suite(
    Suite(
        "mind", read_card(__package__), read, is_mind_source, mind_metric_ids, summarise,
        export=export_mind_results, boards=mind_run_boards, published=published_mind_boards,
        jobs=mind_generation_jobs, dataset=DATASET,
    )
)  # fmt: skip
