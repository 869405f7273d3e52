"""What WBench's metrics share: what their cards say, and the turns of a case among the poses of its clip."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import Case, NoScore
from revisit.evidence.camera import PoseTrack
from revisit.suites.wbench.metrics.actions import CameraAction, parse_action

PAPER = "WBench (arXiv 2605.25874)"
CARD: dict[str, Any] = {  # of most metrics
    "unit": "score", "range": (0, 1), "higher_is_better": True, "suites": ("wbench",), "paper": PAPER,
}  # fmt: skip
LEAST = 2  # poses of a turn


@dataclass(frozen=True)
class RequestedTurns:
    """The turns of a case that ask something of the camera, and where each begins and ends among the poses."""

    actions: list[CameraAction]
    bounds: list[tuple[int, int]]
    last: tuple[int, int]  # of the clip's last turn
    from_file: bool  # whether turns.json says where turns end; otherwise they are of equal length


def find_requested_turns(case: Case, track: PoseTrack, upstream: bool) -> RequestedTurns:
    """The turns of a case among the poses of its clip."""
    texts: Sequence[str] = case.annotations.get("actions") or ()
    actions = [parse_action(text) for text in texts]
    if not any(actions):
        raise NoScore("does_not_apply", "the case asks nothing of the camera")
    ends = None if upstream else case.annotations.get("turn_frames")
    count = len(track.frame)
    if ends is not None and len(ends) == len(texts) + 1:
        # Poses may be of every second frame or so: their numbers are brought to those of the clip's frames.
        number = track.frame * (ends[-1] / (float(track.frame.max(initial=0)) + 1))
        edges = np.searchsorted(number, np.asarray(ends, dtype=float) - 1e-6).tolist()
        bounds = list(itertools.pairwise(edges))
    else:
        each = count // len(texts)  # as the public evaluator cuts them; what is left over belongs to no turn
        bounds = [(k * each, (k + 1) * each) for k in range(len(texts))]
    if any(end - start < LEAST for start, end in bounds):
        raise NoScore("too_short", f"{count} poses are too few for {len(texts)} turns of at least {LEAST}")
    chosen = [bound for action, bound in zip(actions, bounds, strict=True) if action is not None]
    return RequestedTurns([action for action in actions if action], chosen, bounds[-1], ends is not None)
