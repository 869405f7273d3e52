"""The metrics of the suite: every metric that lists it, memory first."""

from __future__ import annotations

from revisit.core import METRICS

# The order in which families are shown; a plugin's family comes last.
FAMILIES = (
    "target_return", "returning", "outcome", "fidelity", "appearance", "integrity", "motion", "camera_path", "cuts",
    "drift",
)  # fmt: skip


def metrics() -> list[str]:
    """Ids of the metrics of this suite, in the order of the tables."""

    def position(id: str) -> tuple[int, str]:
        family = METRICS[id].family
        return (FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), id)

    return sorted((id for id in METRICS if "folder" in METRICS[id].suites), key=position)
