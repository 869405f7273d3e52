"""The turn of the true camera: how far a clip was asked to look away. A description to sort clips by, not a score.

Evidence: `TruePoseTrack`, the dataset's poses. The net turn is the angle between the first and the last view; a camera
that goes out and comes back has none, so the facts hold the farthest turn from the first view, too, and the turn in the
frame in which the object is back, where the dataset marks it.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Score, Series, Unscored, metric
from revisit.evidence.camera import TruePoseTrack
from revisit.geometry.rotations import angle_between_rotations


@metric(
    id="true_turn", version=2, title="Turn of the true camera", unit="degrees", range=(0, 180), higher_is_better=None,
    needs=(Case, TruePoseTrack), suites=("memobench",), paper="arXiv:2606.27537 section 3.4", upstream="TotalGT_RotDeg",
    blind_to=("everything the model did",),
)  # fmt: skip
def true_turn(case: Case, truth: TruePoseTrack) -> Score | Unscored:
    """Angle between the first and the last view of the true camera; the facts hold the farthest view in between."""
    if len(truth.c2w) < 2:
        return Unscored("too_short", f"a turn needs at least two poses; the true camera has {len(truth.c2w)}")
    rotation = truth.c2w[:, :3, :3]
    away = np.asarray(angle_between_rotations(rotation[0], rotation))
    units = Series(frame=truth.frame, value=away)
    facts = {"farthest": float(away.max()), "poses": len(rotation)}
    marks = case.annotations.get("gt_phases")
    if marks:
        facts["at_return"] = float(away[int(np.argmin(np.abs(truth.frame - int(marks[1]))))])
    return Score(float(away[-1]), units=units, facts=facts)
