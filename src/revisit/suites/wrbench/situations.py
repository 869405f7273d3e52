"""Situations: the row of the funnel that a clip belongs to, from a disobedient camera to a correct return.

What the camera was asked comes first; only of a clip that looked away is it asked what came back: by the diagnosis
where a reference shows the truth, else by the judge's answers (docs/wrbench.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from revisit.core import Record
from revisit.diagnosis.diagnose import can_diagnose, diagnose
from revisit.diagnosis.kinds import Scores
from revisit.diagnosis.rules import NO_TURN, WHOLE_TURN, camera_asked_to_rest, degrees_and_share_turned

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

JUDGED = "wr_reobservation"  # the gate of the judge
OF_KIND = {  # what a finding makes of a clip that came back
    "state_reset": RESET,
    "state_frozen": RESET,
    "teleport": ELSEWHERE,
    "duplicate": DOUBLED,
    "vanish": GONE,
}
EVEN = 0.5  # a judge's mean probability of the right answer: above it, right is likelier
HOLDS = 0.5  # static hold from which a camera counts as resting: 2.5 degrees at the most


def classify_situation(answers: Mapping[str, Record]) -> str:
    """The situation of one clip, from its answers by metric or gate."""
    scores = Scores(answers)
    if camera_asked_to_rest(scores):
        return HELD if scores.get("wr_static_hold", default=1.0) >= HOLDS else STIRRED
    diagnosis = diagnose(answers) if can_diagnose(answers) else None
    findings = {finding.kind: finding for finding in diagnosis.findings} if diagnosis else {}
    opened = {check for check, record in answers.items() if record.status == "open"}
    if disobeyed := _camera_failure_situation(scores, opened, set(findings)):
        return disobeyed
    if "partial_return" in findings:
        return NEVER_RETURNED
    if after_return := [finding for kind, finding in findings.items() if kind in OF_KIND]:
        return OF_KIND[max(after_return, key=lambda finding: finding.confidence).kind]
    if diagnosis is not None and not OF_KIND.keys() & diagnosis.untold.keys():
        return RIGHT  # the reference told what became of the subject
    if JUDGED in opened and scores.is_scored("wr_returned_spatial") and scores.is_scored("wr_returned_state"):
        if scores.get("wr_returned_spatial") < EVEN:
            return ELSEWHERE
        return RIGHT if scores.get("wr_returned_state") >= EVEN else RESET
    labels = {scores.gate_label(gate) for gate in ("view_return", "target_return", JUDGED)}
    if labels & {"hidden, not returned", "left, not returned"}:
        return NEVER_RETURNED
    return RETURNED if labels & {"hidden, returned", "left, returned"} else UNKNOWN


def _camera_failure_situation(scores: Scores, opened: set[str], finding_kinds: set[str]) -> str | None:
    """What became of a turn that was asked for and left the subject in view; None where the clip looked away."""
    turned = degrees_and_share_turned(scores)
    if turned is not None and turned[0] >= NO_TURN and turned[1] < 0:
        return WRONG_SIDE
    moved = scores.records.get("camera_moved")
    if (moved is not None and moved.status == "closed") or (turned is not None and turned[0] < NO_TURN):
        return NEVER_TURNED
    stays = scores.gate_label("view_return") == "never left" or scores.gate_label("target_return") == "never hidden"
    if opened & {"target_return", JUDGED} or not (stays or {"frozen_camera", "timid_camera"} & finding_kinds):
        return None
    if turned is not None:
        return UNDER_TURNED if turned[1] < WHOLE_TURN else STAYED
    if "frozen_camera" in finding_kinds:
        return NEVER_TURNED
    return UNDER_TURNED if "timid_camera" in finding_kinds else STAYED
