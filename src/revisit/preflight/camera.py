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
from revisit.geometry.poses import rigid_poses
from revisit.geometry.rotations import to_yaw_pitch
from revisit.media import open_clip

ODOMETRY = "lite.odometry"
ASKED = 12.0  # degrees: turns that are smaller are not held to anything
REST = 1.0  # degrees: a camera that turns by less was asked to rest, if it does not go anywhere
UNREST = 15.0  # degrees by which a camera at rest must turn to be told
LEAST, MOST = 0.35, 2.8  # of the asked turn: the field of view may be off by as much
AGREES = 0.5  # of the correlation between both courses
RELIABLE = 0.6  # of the frames; the others say nothing


def requested_turns(path: np.ndarray) -> np.ndarray:
    """Degrees (frames, 2) to the right of and above the first view."""
    yaw, pitch = to_yaw_pitch(path[0, :3, :3].T @ path[:, :3, :3])
    return np.column_stack([np.degrees(np.unwrap(np.radians(yaw))), pitch])


def moves(path: np.ndarray | None) -> bool:
    """Whether a path goes anywhere at all."""
    return path is not None and (
        _peak(requested_turns(path)) > REST or bool(np.ptp(path[:, :3, 3], axis=0).max() > 0.02)
    )


def is_checked(path: np.ndarray | None) -> bool:
    """Whether odometry can say something of a path: one that turns, or one that rests."""
    return path is not None and (_peak(requested_turns(path)) >= ASKED or not moves(path))


def camera_fault(clip: Path, path: np.ndarray) -> str | None:
    """What is wrong with the camera of a clip; empty where nothing is, None where its turns cannot be told."""
    try:
        odometry = OBSERVERS[ODOMETRY]
        inputs, params = odometry.arguments({})
        with open_clip(Clip(clip), wanted=partial(odometry.wanted, inputs=inputs, params=params)) as stream:
            estimate: CameraPath = odometry(stream)
    except RevisitError:
        return None
    requested = requested_turns(path)
    turns = requested_turns(rigid_poses(estimate.rotation))
    sure = np.asarray(estimate.reliable, dtype=bool)
    if len(turns) < 3 or sure.mean() < RELIABLE:
        return None
    times = estimate.index / max(int(estimate.index[-1]), 1) * (len(requested) - 1)
    requested = np.column_stack([np.interp(times, np.arange(len(requested)), column) for column in requested.T])
    rests = not moves(path)
    if not rests and _peak(requested[sure]) < ASKED:
        return None  # where it turned, odometry was lost
    return compare_turns(requested[sure], turns[sure], rests)


def compare_turns(requested: np.ndarray, estimate: np.ndarray, rests: bool) -> str:
    """What is wrong with turns (n, 2) that were seen where others were asked for; empty if nothing is."""
    want, got = _peak(requested), _peak(estimate)
    if rests:
        return f"it should rest and turns by {got:.0f} degrees" if got > UNREST else ""
    together = float((requested * estimate).sum())
    agrees = together / max(float(np.linalg.norm(requested) * np.linalg.norm(estimate)), 1e-9)
    gain = together / float((requested * requested).sum())
    if got < LEAST * want:
        return f"it turns by {got:.0f} degrees, and {want:.0f} were asked for"
    if agrees < -AGREES:
        return f"it turns the other way: {_words(estimate)}, and {_words(requested)} was asked for"
    if agrees < AGREES:
        return f"it goes another way: {_words(estimate)}, and {_words(requested)} was asked for"
    if not LEAST <= gain <= MOST:
        return f"it turns by {got:.0f} degrees, and {want:.0f} were asked for"
    return ""


def _peak(turns: np.ndarray) -> float:
    return float(np.hypot(*turns.T).max())


def _words(turns: np.ndarray) -> str:
    """The farthest turn, such as `40 degrees to the left`."""
    yaw, pitch = turns[np.hypot(*turns.T).argmax()]
    if abs(yaw) >= abs(pitch):
        return f"{abs(yaw):.0f} degrees to the {'right' if yaw > 0 else 'left'}"
    return f"{abs(pitch):.0f} degrees {'up' if pitch > 0 else 'down'}"
