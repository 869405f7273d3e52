"""The suite `mind`: long-context memory, return, and action accuracy against recordings from Unreal (docs/mind.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.mind.describe import DATASET
from revisit.suites.mind.jobs import jobs
from revisit.suites.mind.leaderboard import boards_of
from revisit.suites.mind.measures import metrics
from revisit.suites.mind.read import read, recognises
from revisit.suites.mind.result import export
from revisit.suites.mind.summary import summarise

MIND = suite(
    Suite(
        "mind", read_card(__package__), read, recognises, metrics, summarise,
        export=export, boards=boards_of, jobs=jobs, dataset=DATASET,
    )
)  # fmt: skip
