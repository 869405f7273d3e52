"""The suite `folder`: any folder or JSONL manifest of videos."""

from revisit.core.suites import Suite, read_card, suite
from revisit.results.tables import standard_summary
from revisit.suites.folder.jobs import jobs
from revisit.suites.folder.metrics import metrics
from revisit.suites.folder.read import read, recognises

FOLDER = suite(
    Suite(
        "folder", read_card(__package__), read, recognises, metrics, standard_summary,
        jobs=jobs,
    )
)  # fmt: skip
