"""Phases: which frames show the first view, which hide it, and which show it again."""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Unscored, derived
from revisit.evidence.frames import CasePhases, FrameFacts
from revisit.evidence.views import ViewPhases

AWAY, RETURNED = 1, 2  # as ViewPhases numbers them


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
    away, back = np.flatnonzero(views.phase == AWAY), np.flatnonzero(views.phase == RETURNED)
    if not len(away) or not len(back):
        return Unscored("no_phases", "no phases were given, and the first view does not leave and return")
    return CasePhases(int(views.index[away[0]]), int(views.index[back[0]]), "view gate")
