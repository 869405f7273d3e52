"""The metrics of the suite by dimension: the columns of the published board, and those beside it."""

from __future__ import annotations

from revisit.core.text import read_package_yaml
from revisit.suites.wbench.metrics import consistency, judged, loops, navigation, quality  # noqa: F401 - they register

_PUBLISHED = read_package_yaml("revisit.suites.wbench", "published.yaml")
DIMENSIONS: dict[str, list[str]] = _PUBLISHED["dimensions"]


def wbench_metric_ids() -> list[str]:
    """Ids of the metrics of this suite."""
    return [*(metric for ids in DIMENSIONS.values() for metric in ids), *_PUBLISHED["further"]]
