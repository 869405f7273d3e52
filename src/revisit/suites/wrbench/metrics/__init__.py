"""The metrics of the suite, and which measure of WRBench's table each of them is."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core import METRICS
from revisit.core.text import read_package_yaml

FACTS = read_package_yaml("revisit.suites.wrbench", "measures.yaml")
_MEASURES: dict[str, dict[str, str]] = {**FACTS["measures"], **FACTS["stand_ins"]}
TITLES = {name: facts["title"] for name, facts in _MEASURES.items()}
METRIC_OF = {name: facts["metric"] for name, facts in _MEASURES.items()}
COLUMNS = {name: facts["metric"] for name, facts in _MEASURES.items() if "like" not in facts}
STAND_INS = {name: facts["like"] for name, facts in _MEASURES.items() if "like" in facts}
DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # chapters that compare with a reference


def wrbench_metric_ids() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    further = [id for id in METRICS if "wrbench" in METRICS[id].suites or METRICS[id].family in DIAGNOSED]
    return [id for id in dict.fromkeys([*METRIC_OF.values(), *further]) if id in METRICS]
