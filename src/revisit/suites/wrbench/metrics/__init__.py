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
DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # chapters that compare with a reference


def metrics() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    candidates = [*COLUMNS.values(), *(metric_id for _, metric_id in STAND_INS.values())]
    published = [metric_id for metric_id in dict.fromkeys(candidates) if metric_id in METRICS]
    further = [
        metric_id
        for metric_id in METRICS
        if ("wrbench" in METRICS[metric_id].suites or METRICS[metric_id].family in DIAGNOSED)
        and metric_id not in published
    ]
    return [*published, *further]
