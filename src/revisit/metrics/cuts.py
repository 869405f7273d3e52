"""Cuts: where a clip jumps to a different picture.

Evidence: `CutSignal` (classical vision), `ShotChanges` (a network). Their scales differ, so each has its own metric and
threshold. A world model should never cut: every cut is a failure.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.motion import CutSignal, ShotChanges


def find_cut_rows(score: np.ndarray, seconds: np.ndarray, threshold: float, least_seconds_apart: float) -> np.ndarray:
    """Rows of the cuts in order of time: high steps, none closer than `least_seconds_apart` to a higher one."""
    rows: list[int] = []
    for row in np.argsort(-score, kind="stable"):
        if score[row] >= threshold and all(abs(seconds[row] - seconds[cut]) >= least_seconds_apart for cut in rows):
            rows.append(int(row))
    return np.array(sorted(rows), dtype=np.int64)


@metric(
    id="scene_cuts", version=1, title="Scene cuts", unit="cuts", range=(0, None), higher_is_better=False,
    needs=(CutSignal,), suites=("folder",),
    responds_to=("scene cut",),
    blind_to=("slow morphs and fades", "cuts to an almost equal view", "a picture that decays", "frozen camera"),
)  # fmt: skip
def scene_cuts(signal: CutSignal, *, threshold: float = 0.5, apart: float = 0.5) -> Score | Unscored:
    """Number of places where the clip does not continue; a change that takes several frames counts once.

    The signal is 0 where a frame continues as its neighbourhood does and 1 where nothing continues; the
    threshold is the middle.
    """
    if not len(signal.index):
        return Unscored("too_short", "finding a cut needs at least two frames")
    rows = find_cut_rows(signal.score, signal.seconds, threshold, apart)
    units = Series(frame=signal.index[rows], seconds=signal.seconds[rows], value=signal.score[rows])
    return Score(len(rows), raw=float(signal.score.max()), units=units, facts={"frames": signal.index[rows].tolist()})


@metric(
    id="shot_changes", version=1, title="Shot changes", unit="cuts", range=(0, None), higher_is_better=False,
    needs=(ShotChanges,), suites=("folder",), paper="TransNetV2 (arXiv:2008.04838)",
    responds_to=("scene cut",), blind_to=("slow morphs", "cuts to an almost equal view", "frozen camera"),
)  # fmt: skip
def shot_changes(changes: ShotChanges, *, threshold: float = 0.5, apart: float = 0.5) -> Score | Unscored:
    """Number of places where a network trained on films sees one shot end and another begin.

    The threshold is the published one. It knows cuts and dissolves of films; a world that morphs in place is neither.
    """
    if not len(changes.index):
        return Unscored("too_short", "finding a cut needs at least two frames")
    rows = find_cut_rows(changes.probability, changes.seconds, threshold, apart)
    units = Series(frame=changes.index[rows], seconds=changes.seconds[rows], value=changes.probability[rows])
    during = float((changes.during >= threshold).mean())
    facts = {"frames": changes.index[rows].tolist(), "under_change": during, "network": changes.maker}
    return Score(len(rows), raw=float(changes.probability.max()), units=units, facts=facts)
