"""The suite `folder`: any folder or JSONL manifest of videos."""

from pathlib import Path

from revisit.core import METRICS
from revisit.core.suites import Suite, read_card, suite
from revisit.results.tables import standard_summary
from revisit.suites.folder.datasets import read
from revisit.suites.folder.jobs import folder_generation_jobs
from revisit.suites.folder.questions import folder_parameters_from_options

# The order in which families are shown; a plugin's family comes last.
FAMILIES = (
    "target_return", "returning", "outcome", "fidelity", "appearance", "integrity", "motion", "camera_path", "cuts",
    "drift",
)  # fmt: skip


def folder_metric_ids() -> list[str]:
    """Ids of the metrics of this suite, in the order of the tables."""
    places = {family: place for place, family in enumerate(FAMILIES)}
    ids = [metric_id for metric_id in METRICS if "folder" in METRICS[metric_id].suites]  # in the order of the alphabet
    return sorted(ids, key=lambda metric_id: places.get(METRICS[metric_id].family, len(places)))


FOLDER = suite(
    Suite(
        "folder",
        read_card(__package__),
        read,
        Path.exists,  # this suite is the fallback for what no benchmark claims
        folder_metric_ids,
        standard_summary,
        settings=folder_parameters_from_options,
        jobs=folder_generation_jobs,
    )
)
