"""The suite `wbench`: navigation turn by turn, loops, consistency, and what judges say (docs/wbench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.wbench.leaderboard import board_of_files, boards_of, published
from revisit.suites.wbench.metrics import metrics
from revisit.suites.wbench.read import read, recognises
from revisit.suites.wbench.summary import summarise

WBENCH = suite(
    Suite(
        "wbench", read_card(__package__), read, recognises, metrics, summarise, boards=boards_of,
        board_of_files=board_of_files, published=published,
    )
)  # fmt: skip
