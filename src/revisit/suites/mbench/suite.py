"""The suite `mbench`: entity, environment and causal consistency, by action (A) and by text (T) (docs/mbench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.mbench.describe import DATASET
from revisit.suites.mbench.exports import export
from revisit.suites.mbench.jobs import jobs
from revisit.suites.mbench.leaderboard import boards_of
from revisit.suites.mbench.names import suite_metric_ids
from revisit.suites.mbench.questions import TRIGGERS
from revisit.suites.mbench.read import is_mbench_dataset, read
from revisit.suites.mbench.summary import summarise

CARD = read_card(__package__)
CARD["people"]["triggers"] = TRIGGERS  # people are asked as the judge is

MBENCH = suite(
    Suite(
        "mbench", CARD, read, is_mbench_dataset, suite_metric_ids, summarise,
        export=export, boards=boards_of, jobs=jobs, dataset=DATASET,
    )
)  # fmt: skip
