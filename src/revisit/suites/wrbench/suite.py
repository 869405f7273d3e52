"""The suite `wrbench`: does the camera obey, and is the subject right when it returns (docs/wrbench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.wrbench.describe import DATASET
from revisit.suites.wrbench.evaluator import write_manifest_sidecars
from revisit.suites.wrbench.exports import export
from revisit.suites.wrbench.jobs import jobs
from revisit.suites.wrbench.leaderboard import boards_of, published_boards
from revisit.suites.wrbench.metrics import metrics
from revisit.suites.wrbench.read import read, recognises, settings
from revisit.suites.wrbench.summary import summarise

WRBENCH = suite(
    Suite(
        "wrbench", read_card(__package__), read, recognises, metrics, summarise,
        export=export, settings=settings, boards=boards_of, published=published_boards, jobs=jobs, dataset=DATASET,
        accompany=write_manifest_sidecars,
    )
)  # fmt: skip
