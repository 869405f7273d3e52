"""Situations: the one row of the funnel that a clip lands in, from a camera that never turned to a right return.

With a reference that shows the truth, the diagnosis tells what came back. Without one, the judge's answers do: a
subject that is back where it should be and as it should be, or back and reset. Where neither knows, it says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from revisit.diagnosis.diagnose import Diagnosis, can_diagnose, diagnose
from revisit.suites.tables import Record

NEVER_TURNED = "camera never turned"
NEVER_RETURNED = "turned, never returned"
RIGHT = "returned in the right state"
RESET = "returned reset"
ELSEWHERE = "returned elsewhere"
DOUBLED = "duplicated"
GONE = "returned without the subject"
UNKNOWN = "cannot tell"
SITUATIONS = (NEVER_TURNED, NEVER_RETURNED, RIGHT, RESET, ELSEWHERE, DOUBLED, GONE, UNKNOWN)

OF_KIND = {  # what a finding makes of a clip that came back
    "state_reset": RESET,
    "state_frozen": RESET,
    "teleport": ELSEWHERE,
    "duplicate": DOUBLED,
    "vanish": GONE,
}
EVEN = 0.5  # a judge's mean probability of the right answer: above it, right is likelier


def situation(records: Sequence[Record]) -> str:
    """The situation of one clip."""
    gates = {record["gate"]: record for record in records if "gate" in record}
    made = diagnose(records) if can_diagnose(records) else None
    found = {finding.kind: finding for finding in made.findings} if made else {}
    view = gates.get("view_return", {}).get("label")
    if gates.get("camera_moved", {}).get("status") == "closed" or view == "never left":
        return NEVER_TURNED
    if {"frozen_camera", "timid_camera"} & found.keys() and gates.get("target_return", {}).get("status") != "open":
        return NEVER_TURNED
    if "partial_return" in found:
        return NEVER_RETURNED
    known = [finding for kind, finding in found.items() if kind in OF_KIND]
    if known:
        return OF_KIND[max(known, key=lambda finding: finding.confidence).kind]
    if made is not None and _told(made):
        return RIGHT
    judged = _judged(records, gates)
    if judged != UNKNOWN:
        return judged
    target = gates.get("target_return", {}).get("label")
    if (
        "hidden, not returned" in (target, gates.get("wr_reobservation", {}).get("label"))
        or view == "left, not returned"
    ):
        return NEVER_RETURNED
    return NEVER_TURNED if target == "never hidden" else UNKNOWN


def _told(made: Diagnosis) -> bool:
    """Whether the reference told what became of the subject."""
    return not set(OF_KIND) & made.untold.keys()


def _judged(records: Sequence[Record], gates: dict[str, Record]) -> str:
    """What the judge's answers make of a clip whose return it could judge."""
    if gates.get("wr_reobservation", {}).get("status") != "open":
        return UNKNOWN
    scores = {
        record["metric"]: record.get("score")
        for record in records
        if record.get("status") == "scored" and "metric" in record
    }
    place, state = scores.get("wr_returned_spatial"), scores.get("wr_returned_state")
    if place is None or state is None:
        return UNKNOWN
    if place < EVEN:
        return ELSEWHERE
    return RIGHT if state >= EVEN else RESET
