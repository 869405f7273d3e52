"""MBench's rules: which reading of the paper is taken, and which frames are compared.

Every metric of the chapters mb_* takes `rule`:

- `corrected` (the default): the decisions of docs/mbench-metrics.md, where the paper is silent or contradicts itself;
- `paper`: as printed (arXiv 2606.00793, section 4 and appendix B).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from revisit.core import Case, Unscored, UsageError, derived, metric
from revisit.evidence.frames import FrameFacts
from revisit.geometry.fold_pairs import frame_numbers_of_poses, segment_or_out_and_back_pairs, symmetric_pairs
from revisit.suites.mbench.evidence import FoldPairs, GeometryTrack

# What the cards of the benchmark's scores have in common.
score_metric = partial(metric, unit="score", range=(0, 1), higher_is_better=True, suites=("mbench",))
RULES = ("corrected", "paper")
PAPER = "arXiv:2606.00793"


def check_rule(rule: str) -> str:
    """The rule, if there is such a one."""
    if rule not in RULES:
        raise UsageError(f"unknown rule {rule!r}; a protocol of the suite mbench sets one of {', '.join(RULES)}")
    return rule


def unscored_without_pairs(note: str, facts: Mapping[str, object] | None = None) -> Unscored:
    """Unscored, because no view is seen twice; the note says more where there is more to say."""
    return Unscored("no_return", "no pair of frames shows the same view twice" + (f": {note}" if note else ""), facts)


def first_median_depth_or_one(track: GeometryTrack) -> float:
    """The length that makes ways comparable between clips: the first frame's median depth; 1 where there is none."""
    first = float(track.median_depth[0]) if len(track.median_depth) else float("nan")
    return first if np.isfinite(first) and first > 0 else 1.0


@derived(makes=FoldPairs, needs=(Case, FrameFacts), optional=(GeometryTrack,), version=1)
def frame_pairs_out_and_back(
    case: Case, frames: FrameFacts, track: GeometryTrack | None, *, rule: str = "corrected"
) -> FoldPairs | Unscored:
    """Frames that see one view out and back; without poses, frames at equal times from both ends."""
    check_rule(rule)
    count = frames.frame_count
    if count < 2:
        return Unscored("too_short", "a pair needs two frames")
    if track is None or track.refused or not len(track.c2w):
        pairs = symmetric_pairs(count, note=(track.refused or "the file has no poses") if track else "no pose file")
        numbers, note = np.arange(count), ""
    else:
        numbers, note = frame_numbers_of_poses(len(track.c2w), track.frame, count)
        pairs = segment_or_out_and_back_pairs(
            track.c2w, numbers, count, case.annotations, first_median_depth_or_one(track), rule == "paper"
        )
    notes = "; ".join(text for text in (note, pairs.note) if text)
    turn = int(numbers[pairs.turnaround])
    return FoldPairs(numbers[pairs.row], numbers[pairs.other], pairs.distance, turn, pairs.how, notes)
