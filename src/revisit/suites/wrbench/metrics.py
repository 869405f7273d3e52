"""Which metrics the suite asks, and which measure of WRBench's table each of them is."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core import METRICS

COLUMNS = {  # measure of the table -> metrics that serve it, the paper's first
    "precision": ("wr_camera_precision",),
    "alignment": ("wr_camera_alignment",),
    "hold": ("wr_static_hold",),
    "integrity": ("wr_integrity", "visual_integrity_lite"),
    "visible_spatial": ("wr_visible_spatial",),
    "visible_state": ("wr_visible_state",),
    "returned_spatial": ("wr_returned_spatial",),
    "returned_state": ("wr_returned_state",),
}


DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # chapters that compare with a reference


def metrics() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    known = [id for ids in COLUMNS.values() for id in ids if id in METRICS]
    further = [
        id for id in METRICS if ("wrbench" in METRICS[id].suites or METRICS[id].family in DIAGNOSED) and id not in known
    ]
    return [*known, *further]
