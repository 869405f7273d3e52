"""Did the camera look away (docs/target-gate.md)? Questions of memory are asked only of clips in which it did.

A target can also be out of sight while the camera rests: somebody covers it, or it walks out of the picture. Whether
that is remembered is another question, and a camera that rests would win it. So a target that was hidden and came back
counts only where the camera looked away, unless the case itself says that something in the scene hides the target: its
script draws a screen or turns the light down, or its annotation `hidden_by` names what does.

The cues are those of the view gate and the motion of the whole picture; where they do not agree the answer is
"cannot tell".

The phases of a clip, which say when the first view was hidden and when it was back, come with the case or are those
that the view gate found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from revisit.core import Case, GateResult, Unscored, derived, gate
from revisit.evidence.frames import CasePhases, FrameFacts
from revisit.evidence.motion import FlowStats
from revisit.evidence.views import ViewLinks, ViewPhases, ViewRelations
from revisit.metrics import view_gate
from revisit.metrics.camera import CameraRequest, camera_request_of_case
from revisit.metrics.margins import UNSURE, add_confidence_or_make_unsure
from revisit.metrics.motion import camera_moved

LOOKS_AWAY, NEVER_LOOKS_AWAY, IN_SCENE = "looks away", "never looks away", "hidden in the scene"
IN_SCENE_MOVES = ("screen", "lights")  # of a camera script: what hides the target without the camera
CAMERA = "camera"  # the value of the annotation `hidden_by` that stands for the usual
OUT = 0.2  # share of the target's box inside the frame, at most, where its place has left it
FAR = 0.5  # widths that the picture must have moved where only a chain of frames says that the view is gone
GRID = 10  # points a side by which the place of the target is followed


def scene_cause_of_hiding(case: Case) -> str:
    """What hides the target where the case says that it is not the camera; else nothing."""
    noted = str(case.annotations.get("hidden_by") or "").strip()
    if noted:
        return "" if noted.lower() == CAMERA else noted
    request = camera_request_of_case(case)
    steps = request.steps if isinstance(request, CameraRequest) else ()
    moves = {move.kind for step in steps for move in step.moves}
    return next((kind for kind in IN_SCENE_MOVES if kind in moves), "")


@gate(
    id="look_away", version=2, title="Camera looks away",
    needs=(Case, ViewLinks, ViewRelations, ViewPhases, FlowStats),
)  # fmt: skip
def look_away(
    case: Case, links: ViewLinks, relations: ViewRelations, phases: ViewPhases, flow: FlowStats
) -> GateResult:
    """Open where the camera's motion took a quarter of the first view, or the target's place, out of the frame.

    Closed where the camera rests or hardly turns, whatever became of the target; open without asking where the case
    says that something in the scene hides the target. `confidence` is that of `margins.py`.
    """
    if cause := scene_cause_of_hiding(case):
        return GateResult("open", IN_SCENE, facts={"hidden_by": cause})
    if len(links.index) < 3:
        return GateResult(
            "unsure", UNSURE, f"only {len(links.index)} frames: looking away and back needs at least three"
        )
    box = None if case.target is None else case.target.box
    motion = camera_moved(flow)
    assert isinstance(motion, GateResult)
    say = partial(_look_away_verdict, links, motion, box)

    def verdicts_at_other_thresholds(steps: int) -> Iterator[GateResult]:
        for relations, phases, share in view_gate.readings_at_other_thresholds(links, steps):
            yield say(relations, phases, 1 / share)

    return add_confidence_or_make_unsure(say(relations, phases), verdicts_at_other_thresholds)


def _look_away_verdict(
    links: ViewLinks,
    motion: GateResult,
    box: tuple[float, float, float, float] | None,
    relations: ViewRelations,
    phases: ViewPhases,
    factor: float = 1.0,
) -> GateResult:
    """The verdict by one reading of the cues; `factor` is that of the share of the target that may stay inside."""
    away = phases.phase == view_gate.AWAY
    lost = view_gate.strip_lost_to_turns(relations)
    facts = {
        "lost_strip": round(float(np.nan_to_num(lost, nan=1.0)[phases.phase != view_gate.UNKNOWN].max(initial=0.0)), 3),
        "excursion": round(float(motion.facts.get("excursion", 0.0)), 3),
    }
    unsure = partial(GateResult, "unsure", UNSURE, facts=facts)
    rests = motion.state == "closed"
    by_motion = bool(np.isfinite(lost[away]).any())
    slid_out = box is not None and not away.any() and _target_place_left_frame(relations, box, factor * OUT)
    if by_motion or (slid_out and motion.state == "open"):
        if rests or motion.label == "hardly moves":
            return unsure(
                "cues disagree: the first view seems to leave the frame, but the picture as a whole moves by only "
                f"{facts['excursion']:.1%} of its width"
            )
        if by_motion and not (away & relations.seen[0]).any() and facts["excursion"] < FAR:
            return unsure(
                "only a chain of frames says that the first view left, and something that grows in front of a camera "
                f"that rests makes one, too: the picture as a whole moves by only {facts['excursion']:.1%} of its width"
            )
        return GateResult("open", LOOKS_AWAY, facts={**facts, "by": "the target's place" if slid_out else "the view"})
    if rests or view_gate.is_view_covered(links, relations, away):
        return GateResult("closed", NEVER_LOOKS_AWAY, "the camera never looks away: it rests", facts)
    if away.any():
        reason = "no motion joins what follows to the first view: a cut, a picture that dissolves, or too fast a turn"
        return unsure(reason)
    if float((phases.phase == view_gate.UNKNOWN).mean()) > view_gate.MOSTLY_UNKNOWN:
        return unsure("the first view is hardly recognised in the clip, so nobody knows whether the camera looks away")
    reason = f"the camera never looks away: at most {facts['lost_strip']:.0%} of the first view leave the frame"
    return GateResult("closed", NEVER_LOOKS_AWAY, reason, facts)


def _target_place_left_frame(relations: ViewRelations, box: tuple[float, float, float, float], most: float) -> bool:
    """Whether the camera's motion takes the target's first place out of the frame, for more than a doubtful sample."""
    x0, y0, x1, y1 = box
    at = (np.arange(GRID) + 0.5) / GRID
    x, y = (g.ravel() for g in np.meshgrid(x0 + at * (x1 - x0), y0 + at * (y1 - y0)))
    moved = np.asarray(relations.warp[0], float) @ np.stack([x, y, np.ones_like(x)])
    depth = np.where(np.abs(moved[:, 2]) < 1e-9, 1e-9, moved[:, 2])
    u, v = moved[:, 0] / depth, moved[:, 1] / depth
    inside = ((u >= 0) & (u <= 1) & (v >= 0) & (v <= 1)).mean(axis=1)
    out = np.isfinite(relations.lost[0]) & (inside <= most)
    return bool(view_gate.drop_uncertain_single_samples(out, relations.confidence[0] >= view_gate.SURE).any())


@derived(makes=CasePhases, needs=(Case, FrameFacts), optional=(ViewPhases,), version=1)
def case_phases(case: Case, frames: FrameFacts, views: ViewPhases | None) -> CasePhases | Unscored:
    """The phases given with the case, or else those that the view gate found."""
    if case.phases is not None:
        hidden, returned = case.phases
        if not len(frames.index):
            return Unscored("too_short", "the clip has no frames")
        if returned > frames.index[-1]:
            return Unscored(
                "mismatch", f"the return is given as frame {returned}, but the last frame is {frames.index[-1]}"
            )
        return CasePhases(hidden, returned, "given")
    if views is None:
        return Unscored("no_phases", "no phases were given, and the observer set has no observer that finds them")
    away, back = np.flatnonzero(views.phase == view_gate.AWAY), np.flatnonzero(views.phase == view_gate.RETURNED)
    if not len(away) or not len(back):
        return Unscored("no_phases", "no phases were given, and the first view does not leave and return")
    return CasePhases(int(views.index[away[0]]), int(views.index[back[0]]), "view gate")
