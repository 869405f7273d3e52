"""A camera script over a given number of frames: what a clip of that length was asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from revisit.core import UsageError
from revisit.geometry.camera_script import LONGEST, Step, camera_path
from revisit.geometry.poses import resample, trajectory

Axes = Literal["heading", "first_view"]


def script_frames(steps: Sequence[Step]) -> int:
    """Frames of the clip that a script asks for.

    Clips of video generators have an odd number of frames. A script whose frames add up to an odd number names all of
    them (`static@81`, `@40,@41`); one that adds up to an even number leaves out the first view (`@40,@40` is 81 too).
    """
    total = sum(step.frames for step in steps)
    return total if total % 2 and _can_count_ends(steps) else total + 1


def timed_path(steps: Sequence[Step], frames: int | None = None, *, axes: Axes = "heading") -> np.ndarray:
    """Camera-to-world poses (frames, 4, 4) of a script, from the origin; without `frames`, as many as it asks for.

    `@40,@40` has 81 frames: the first view, then 40 and 40. Where the frames of a script add up to those of the clip
    (`@40,@41` for 81), both ends of a step count, and the turning point is seen twice. Any other number of frames is
    reached by interpolation along the path. Ways go along and across the heading that the camera has then, or, as
    WRBench's public code has it, along the axes of the first view.
    """
    frames = script_frames(steps) if frames is None else frames
    if not 2 <= frames <= LONGEST:
        raise UsageError(f"a camera path has 2 to {LONGEST} frames, not {frames}")
    total = sum(step.frames for step in steps)
    c2w = _ends_counted(steps) if frames == total and _can_count_ends(steps) else camera_path(steps)
    if axes == "first_view":
        c2w[:, :3, 3] = _along_first_view(steps, frames == len(c2w) == total)
    if len(c2w) == frames:
        return c2w
    return resample(trajectory(c2w), np.linspace(0, len(c2w) - 1, frames)).c2w


def _can_count_ends(steps: Sequence[Step]) -> bool:
    return all(step.frames > 1 for step in steps)


def _ends_counted(steps: Sequence[Step]) -> np.ndarray:
    """Poses in which every step begins with the pose that the one before ended in."""
    c2w = camera_path([Step(step.moves, step.frames - 1) for step in steps])
    ends = np.cumsum([0, *(step.frames - 1 for step in steps)])
    return np.concatenate([c2w[begin : end + 1] for begin, end in pairwise(ends)])


def _along_first_view(steps: Sequence[Step], ends_counted: bool) -> np.ndarray:
    """Centres (n, 3) of a camera whose ways are told in the axes of its first view."""
    at, centres = np.zeros(3), [] if ends_counted else [np.zeros(3)]
    for step in steps:
        motion = np.array([step.total("right"), -step.total("up"), step.total("forward")])
        share = np.linspace(0, 1, step.frames) if ends_counted else np.arange(1, step.frames + 1) / step.frames
        centres.extend(at + motion * part for part in share)
        at = at + motion
    return np.stack(centres)
