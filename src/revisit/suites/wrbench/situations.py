"""Situations: the one row of the funnel that a clip lands in, from a camera that disobeyed to a right return.

What the camera was asked comes first: one that was asked to rest, and rests, is right; one that was asked to turn may
have turned in full, in part, to the wrong side or not at all. Only of a clip that looked away is it asked what came
back. With a reference that shows the truth, the diagnosis tells that. Without one, the judge's answers do: a subject
that is back where it should be and as it should be, or back and reset. Where neither knows, it says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from revisit.diagnosis.alone import NO_TURN, WHOLE_TURN, asked_to_rest, turned_share
from revisit.diagnosis.diagnose import Diagnosis, can_diagnose, diagnose
from revisit.diagnosis.signs import Scores
from revisit.suites.tables import Record

HELD = "held as asked"
STIRRED = "moved, though asked to rest"
NEVER_TURNED = "camera never turned"
WRONG_SIDE = "turned to the wrong side"
UNDER_TURNED = "under-turned"
STAYED = "turned, nothing left the view"
NEVER_RETURNED = "turned, never returned"
RIGHT = "returned in the right state"
RESET = "returned reset"
ELSEWHERE = "returned elsewhere"
DOUBLED = "duplicated"
GONE = "returned without the subject"
RETURNED = "returned, not judged"
UNKNOWN = "cannot tell"
SITUATIONS = (
    HELD, STIRRED, NEVER_TURNED, WRONG_SIDE, UNDER_TURNED, STAYED, NEVER_RETURNED, RIGHT, RESET, ELSEWHERE, DOUBLED,
    GONE, RETURNED, UNKNOWN,
)  # fmt: skip

OF_KIND = {  # what a finding makes of a clip that came back
    "state_reset": RESET,
    "state_frozen": RESET,
    "teleport": ELSEWHERE,
    "duplicate": DOUBLED,
    "vanish": GONE,
}
EVEN = 0.5  # a judge's mean probability of the right answer: above it, right is likelier
HOLDS = 0.5  # static hold from which a camera counts as resting: 2.5 degrees at the most


def situation(records: Sequence[Record]) -> str:
    """The situation of one clip."""
    gates = {record["gate"]: record for record in records if "gate" in record}
    scores = Scores(records)
    if asked_to_rest(scores, gates):
        return HELD if scores.of("wr_static_hold", default=1.0) >= HOLDS else STIRRED
    made = diagnose(records) if can_diagnose(records) else None
    found = {finding.kind: finding for finding in made.findings} if made else {}
    disobeyed = _disobeyed(scores, gates, set(found))
    if disobeyed:
        return disobeyed
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
    labels = {gates.get(gate, {}).get("label") for gate in ("view_return", "target_return", "wr_reobservation")}
    if labels & {"hidden, not returned", "left, not returned"}:
        return NEVER_RETURNED
    return RETURNED if labels & {"hidden, returned", "left, returned"} else UNKNOWN


def _disobeyed(scores: Scores, gates: dict[str, Record], found: set[str]) -> str | None:
    """What became of a turn that was asked for and left the subject in view; None where the clip looked away."""
    turned = turned_share(scores)
    if turned is not None and turned[0] >= NO_TURN and turned[1] < 0:
        return WRONG_SIDE
    moved, view, target = (gates.get(gate, {}) for gate in ("camera_moved", "view_return", "target_return"))
    hidden = "open" in (target.get("status"), gates.get("wr_reobservation", {}).get("status"))
    if moved.get("status") == "closed" or (turned is not None and turned[0] < NO_TURN):
        return NEVER_TURNED
    stays = view.get("label") == "never left" or target.get("label") == "never hidden"
    if hidden or not (stays or {"frozen_camera", "timid_camera"} & found):
        return None
    if turned is not None:
        return UNDER_TURNED if turned[1] < WHOLE_TURN else STAYED
    return NEVER_TURNED if "frozen_camera" in found else UNDER_TURNED if "timid_camera" in found else STAYED


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
