"""The suite `mind`: long-context memory, return, and action accuracy against recordings from Unreal (docs/mind.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.results.leaderboards import Board, RunFacts, board_of_run
from revisit.suites.mind.describe import DATASET
from revisit.suites.mind.jobs import jobs
from revisit.suites.mind.metrics import metrics
from revisit.suites.mind.paper_table import paper_boards, published
from revisit.suites.mind.read import TESTS, read, recognises
from revisit.suites.mind.result_json import export
from revisit.suites.mind.summary import summarise


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of all clips, those of the tests that the run has, and the paper's; or that of one part."""
    board = board_of_run(run, subset=subset)
    if subset:
        return [board]
    present = {entry.condition for entry in run.results.entries}
    parts = [board_of_run(run, subset=test) for test in TESTS if test in present]
    return [board, *(part for part in parts if part.columns), *paper_boards(run)]


MIND = suite(
    Suite(
        "mind", read_card(__package__), read, recognises, metrics, summarise,
        export=export, boards=boards_of, published=published, jobs=jobs, dataset=DATASET,
    )
)  # fmt: skip
