"""Which metrics the suite asks, and which measure of WRBench's table each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from revisit.core import METRICS, Case, Record, Rejected
from revisit.results import Results

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
    "integrity_network": ("integrity", "wr_integrity"),
    "integrity_lite": ("integrity", "visual_integrity_lite"),
}
ODOMETRY = "odometry"
DINOV2 = "dinov2"


def metric_of(measure: str) -> str:
    """The metric that a measure or a stand-in is read from."""
    return STAND_INS[measure][1] if measure in STAND_INS else COLUMNS[measure]


def by_measure(results: Results) -> Results:
    """The scores under the name of their measure or stand-in, and the gates as they are.

    Clips whose inputs may have shown the return have no returned measures.
    """

    def renamed(record: Record) -> Record | None:
        name = measure_of(record) if record.scored else None
        if name is None or (name.startswith("returned") and leaks(record.case)):
            return record if record.is_gate else None
        return replace(record, question=name)

    return results.mapped(renamed)


def leaks(entry: Case | Rejected) -> bool:
    """Whether the inputs of a clip may have shown what comes back."""
    return isinstance(entry, Case) and bool(entry.annotations.get("leaks"))


def measure_of(record: Record) -> str | None:
    """The measure or stand-in that a score belongs to, by its metric and by who made its evidence."""
    id, facts = record.question, record.facts
    if facts.get("poses_from") == ODOMETRY:
        return next((name for name, (_, of) in STAND_INS.items() if of == id and name.endswith(ODOMETRY)), None)
    if id == "visual_integrity_lite":
        return "integrity_lite"
    if id == "wr_integrity" and not str(facts.get("described_by") or DINOV2).startswith(DINOV2):
        return "integrity_network"
    return next((name for name, of in COLUMNS.items() if of == id), None)


DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # chapters that compare with a reference


def metrics() -> Sequence[str]:
    """Ids of the metrics of this suite, in the order of the tables; a plugin's come last."""
    asked = [*COLUMNS.values(), *(id for _, id in STAND_INS.values())]
    known = [id for id in dict.fromkeys(asked) if id in METRICS]
    further = [
        id for id in METRICS if ("wrbench" in METRICS[id].suites or METRICS[id].family in DIAGNOSED) and id not in known
    ]
    return [*known, *further]
