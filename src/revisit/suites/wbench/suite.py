"""The suite `wbench`: navigation turn by turn, loops, consistency, and what judges say (docs/wbench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.wbench.metrics import wbench_metric_ids
from revisit.suites.wbench.read import is_wbench_source, read
from revisit.suites.wbench.summary import board_of_report_files, published_wbench_boards, summarise, wbench_run_boards

WBENCH = suite(
    Suite(
        "wbench", read_card(__package__), read, is_wbench_source, wbench_metric_ids, summarise,
        boards=wbench_run_boards,
        board_of_files=board_of_report_files, published=published_wbench_boards,
    )
)  # fmt: skip
