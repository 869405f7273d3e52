"""The suite `folder`: any folder or JSONL manifest of videos."""

from revisit.core import METRICS
from revisit.core.suites import Suite, read_card, suite
from revisit.results.tables import standard_summary
from revisit.suites.folder.datasets import read
from revisit.suites.folder.jobs import jobs
from revisit.suites.folder.questions import settings
from revisit.suites.folder.read import recognises

# The order in which families are shown; a plugin's family comes last.
FAMILIES = (
    "target_return", "returning", "outcome", "fidelity", "appearance", "integrity", "motion", "camera_path", "cuts",
    "drift",
)  # fmt: skip


def metrics() -> list[str]:
    """Ids of the metrics of this suite, in the order of the tables."""

    def position(metric_id: str) -> tuple[int, str]:
        family = METRICS[metric_id].family
        return (FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), metric_id)

    return sorted((metric_id for metric_id in METRICS if "folder" in METRICS[metric_id].suites), key=position)


FOLDER = suite(
    Suite("folder", read_card(__package__), read, recognises, metrics, standard_summary, settings=settings, jobs=jobs)
)
