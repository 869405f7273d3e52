"""The metrics of the suite, and which measure of WRBench's table each of them is."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core import METRICS

COLUMNS = {  # measure of the published table -> its metric
    "precision": "wr_camera_precision",
    "alignment": "wr_camera_alignment",
    "hold": "wr_static_hold",
    "integrity": "wr_integrity",
    "visible_spatial": "wr_visible_spatial",
    "visible_state": "wr_visible_state",
    "returned_spatial": "wr_returned_spatial",
    "returned_state": "wr_returned_state",
}
# What may be asked where the published measure cannot be had -> (the measure it is like, its metric). It is another
# measure with a column of its own: odometry is no pose network, and other descriptors are not DINOv2.
STAND_INS = {
    "precision_odometry": ("precision", "wr_camera_precision"),
    "alignment_odometry": ("alignment", "wr_camera_alignment"),
    "hold_odometry": ("hold", "wr_static_hold"),
    "precision_network": ("precision", "wr_camera_precision"),
    "alignment_network": ("alignment", "wr_camera_alignment"),
    "hold_network": ("hold", "wr_static_hold"),
    "integrity_network": ("integrity", "wr_integrity"),
    "integrity_lite": ("integrity", "visual_integrity_lite"),
}
DIAGNOSED = (
    "camera_difference",
    "appearance_difference",
    "target_difference",
)  # chapters that compare with a reference


def metrics() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    asked = [*COLUMNS.values(), *(id for _, id in STAND_INS.values())]
    known = [id for id in dict.fromkeys(asked) if id in METRICS]
    further = [
        id for id in METRICS if ("wrbench" in METRICS[id].suites or METRICS[id].family in DIAGNOSED) and id not in known
    ]
    return [*known, *further]
