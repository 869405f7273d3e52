"""The metrics of the suite, and which measure of WRBench's table each of them is."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core import METRICS
from revisit.core.text import read_package_yaml

_TABLE = read_package_yaml("revisit.suites.wrbench", "measures.yaml")
_MEASURES: dict[str, dict[str, str]] = {**_TABLE["measures"], **_TABLE["stand_ins"]}
TITLES = {name: facts["title"] for name, facts in _MEASURES.items()}
COLUMNS = {name: facts["metric"] for name, facts in _MEASURES.items() if "like" not in facts}
STAND_INS = {name: (facts["like"], facts["metric"]) for name, facts in _MEASURES.items() if "like" in facts}
DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # chapters that compare with a reference


def wrbench_metric_ids() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    candidates = [*COLUMNS.values(), *(metric_id for _, metric_id in STAND_INS.values())]
    further = [id for id in METRICS if "wrbench" in METRICS[id].suites or METRICS[id].family in DIAGNOSED]
    return [id for id in dict.fromkeys([*candidates, *further]) if id in METRICS]
