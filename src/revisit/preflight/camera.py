"""Camera: turns that the picture shows (odometry) against turns that were asked for, by side and by amount.

Only turns are held to what was asked: the length of a way cannot be seen in one camera's pictures. The picture's field
of view is rarely known, so amounts are held to loose bounds; the side is not.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from revisit.core import OBSERVERS, Clip, RevisitError
from revisit.evidence.camera import CameraPath
from revisit.geometry.poses import make_rigid_poses
from revisit.geometry.rotations import yaw_pitch_of_rotation
from revisit.media import open_clip

ODOMETRY = "lite.odometry"
ASKED = 12.0  # degrees: turns that are smaller are not held to anything
REST = 1.0  # degrees: a camera that turns by less was asked to rest, if it does not go anywhere
UNREST = 15.0  # degrees by which a camera at rest must turn to be told
LEAST, MOST = 0.35, 2.8  # of the asked turn: the field of view may be off by as much
AGREES = 0.5  # of the correlation between both courses
RELIABLE = 0.6  # of the frames; the others say nothing


def turns_from_first_view(path: np.ndarray) -> np.ndarray:
    """Degrees (frames, 2) to the right of and above the first view."""
    yaw, pitch = yaw_pitch_of_rotation(path[0, :3, :3].T @ path[:, :3, :3])
    return np.column_stack([np.degrees(np.unwrap(np.radians(yaw))), pitch])


def camera_moves(path: np.ndarray | None) -> bool:
    """Whether a path goes anywhere at all."""
    return path is not None and (
        _largest_turn(turns_from_first_view(path)) > REST or bool(np.ptp(path[:, :3, 3], axis=0).max() > 0.02)
    )


def can_be_checked_by_odometry(path: np.ndarray | None) -> bool:
    """Whether odometry can say something of a path: one that turns, or one that rests."""
    return path is not None and (_largest_turn(turns_from_first_view(path)) >= ASKED or not camera_moves(path))


def camera_fault(clip: Path, path: np.ndarray) -> str | None:
    """What is wrong with the camera of a clip; empty where nothing is, None where its turns cannot be told."""
    try:
        odometry = OBSERVERS[ODOMETRY]
        inputs, params = odometry.split_inputs_and_parameters({})
        with open_clip(
            Clip(clip), wanted=partial(odometry.wanted_frame_numbers, inputs=inputs, params=params)
        ) as stream:
            estimate: CameraPath = odometry(stream)
    except RevisitError:
        return None
    requested = turns_from_first_view(path)
    turns = turns_from_first_view(make_rigid_poses(estimate.rotation))
    sure = np.asarray(estimate.reliable, dtype=bool)
    if len(turns) < 3 or sure.mean() < RELIABLE:
        return None
    times = estimate.index / max(int(estimate.index[-1]), 1) * (len(requested) - 1)
    requested = np.column_stack([np.interp(times, np.arange(len(requested)), column) for column in requested.T])
    rests = not camera_moves(path)
    if not rests and _largest_turn(requested[sure]) < ASKED:
        return None  # where it turned, odometry was lost
    return turn_fault(requested[sure], turns[sure], rests)


def turn_fault(requested: np.ndarray, estimate: np.ndarray, rests: bool) -> str:
    """What is wrong with turns (n, 2) that were seen where others were asked for; empty if nothing is."""
    want, got = _largest_turn(requested), _largest_turn(estimate)
    if rests:
        return f"it should rest and turns by {got:.0f} degrees" if got > UNREST else ""
    together = float((requested * estimate).sum())
    agrees = together / max(float(np.linalg.norm(requested) * np.linalg.norm(estimate)), 1e-9)
    gain = together / float((requested * requested).sum())
    if got >= LEAST * want:
        if agrees < AGREES:
            how = "it turns the other way" if agrees < -AGREES else "it goes another way"
            return f"{how}: {_farthest_turn_text(estimate)}, and {_farthest_turn_text(requested)} was asked for"
        if LEAST <= gain <= MOST:
            return ""
    return f"it turns by {got:.0f} degrees, and {want:.0f} were asked for"


def _largest_turn(turns: np.ndarray) -> float:
    return float(np.hypot(*turns.T).max())


def _farthest_turn_text(turns: np.ndarray) -> str:
    """The farthest turn, such as `40 degrees to the left`."""
    yaw, pitch = turns[np.hypot(*turns.T).argmax()]
    if abs(yaw) >= abs(pitch):
        return f"{abs(yaw):.0f} degrees to the {'right' if yaw > 0 else 'left'}"
    return f"{abs(pitch):.0f} degrees {'up' if pitch > 0 else 'down'}"
