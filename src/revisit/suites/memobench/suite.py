"""The suite `memobench`: visible, disappeared, reappeared (docs/memobench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.memobench.describe import DATASET
from revisit.suites.memobench.exports import export
from revisit.suites.memobench.jobs import jobs
from revisit.suites.memobench.leaderboard import board_of_files, boards_of, published_boards
from revisit.suites.memobench.metrics import suite_metric_ids
from revisit.suites.memobench.read import is_memobench_source, read
from revisit.suites.memobench.summary import summarise

MEMOBENCH = suite(
    Suite(
        "memobench", read_card(__package__), read, is_memobench_source, suite_metric_ids, summarise,
        export=export, boards=boards_of, board_of_files=board_of_files, published=published_boards, jobs=jobs,
        dataset=DATASET,
    )
)  # fmt: skip
