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


def metrics() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    known = [id for ids in COLUMNS.values() for id in ids if id in METRICS]
    return [*known, *(id for id in METRICS if "wrbench" in METRICS[id].suites and id not in known)]
