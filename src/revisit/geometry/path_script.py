"""A camera path as a script: the few steps of turns and ways that come close to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revisit.geometry.camera_script import Move, Step
from revisit.geometry.rotations import to_yaw_pitch

LEAST_DEGREES, LEAST_METRES = 0.05, 0.005  # what a step does not mention
DEGREES, METRES = 2.0, 0.1  # how far a step may stray from the path


def script_of(c2w: np.ndarray, knots: Sequence[int] = ()) -> str:
    """The script (`yaw:left:30@40,...`) of a path (N, 4, 4); it has a new step wherever the path bends, and at `knots`.

    Roll is left out, and so is what happens inside a step: the path itself says all.
    """
    yaw, pitch = (np.degrees(np.unwrap(np.radians(angle))) for angle in to_yaw_pitch(c2w[:, :3, :3]))
    where = np.column_stack([yaw / DEGREES, pitch / DEGREES, c2w[:, :3, 3] / METRES])
    ends = sorted({0, len(c2w) - 1, *(k for k in knots if 0 < k < len(c2w) - 1)})
    bends = sorted({k for first, last in pairwise(ends) for k in _bends(where, first, last)})
    steps = [_step(c2w, yaw, pitch, first, last) for first, last in pairwise(bends)]
    return ",".join(str(step) for step in steps) or "hold@1"


def _bends(where: np.ndarray, first: int, last: int) -> list[int]:
    """Rows between which straight lines stay close to the path (Douglas and Peucker)."""
    if last - first < 2:
        return [first, last]
    share = np.linspace(0, 1, last - first + 1)[:, None]
    away = np.linalg.norm(where[first : last + 1] - ((1 - share) * where[first] + share * where[last]), axis=1)
    worst = first + int(away.argmax())
    if away.max() <= 1:
        return [first, last]
    return [*_bends(where, first, worst)[:-1], *_bends(where, worst, last)]


def _step(c2w: np.ndarray, yaw: np.ndarray, pitch: np.ndarray, first: int, last: int) -> Step:
    """The moves from one row to another; ways along and across the heading halfway, as scripts have it."""
    motion = c2w[last, :3, 3] - c2w[first, :3, 3]
    turn = float(yaw[last] - yaw[first])
    middle = np.radians((yaw[first] + yaw[last]) / 2)
    chord = np.sinc(turn / 360) or 1.0  # an arc is longer than its chord
    forward = motion[0] * np.sin(middle) + motion[2] * np.cos(middle)
    sideways = motion[0] * np.cos(middle) - motion[2] * np.sin(middle)
    changes = [
        ("yaw", "right", "left", turn, LEAST_DEGREES),
        ("tilt", "up", "down", float(pitch[last] - pitch[first]), LEAST_DEGREES),
        ("dolly", "forward", "back", float(forward / chord), LEAST_METRES),
        ("truck", "right", "left", float(sideways / chord), LEAST_METRES),
        ("crane", "up", "down", float(-motion[1]), LEAST_METRES),
    ]
    moves = [
        Move(kind, one if x > 0 else other, round(abs(x), 3))
        for kind, one, other, x, least in changes
        if abs(x) > least
    ]
    return Step(tuple(moves), last - first)
