"""A camera script over a given number of frames: what a clip of that length was asked to do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.core import UsageError
from revisit.geometry.camera_script import Step, camera_path
from revisit.geometry.poses import resample, trajectory


def timed_path(steps: Sequence[Step], frames: int | None = None) -> np.ndarray:
    """Camera-to-world poses (frames, 4, 4) of a script, from the origin.

    `@40,@40` has 81 frames: the first view, then 40 and 40. Some tools count the frames of both ends into each step
    and write `@40,@41` for 81 frames; where the frames add up so, that is how it is read, and the turning point is
    seen twice. Any other number of frames is reached by interpolation along the path.
    """
    if frames is not None and frames < 2:
        raise UsageError(f"a camera path has at least 2 frames, not {frames}")
    if frames == sum(step.frames for step in steps) and all(step.frames > 1 for step in steps):
        return _ends_counted(steps)
    c2w = camera_path(steps)
    if frames is None or len(c2w) == frames:
        return c2w
    return resample(trajectory(c2w), np.linspace(0, len(c2w) - 1, frames)).c2w


def _ends_counted(steps: Sequence[Step]) -> np.ndarray:
    poses: list[np.ndarray] = []
    for step in steps:
        start = poses[-1] if poses else None
        poses.extend(camera_path([Step(step.moves, step.frames - 1)], start))
    return np.stack(poses)
