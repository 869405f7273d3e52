"""Poses: camera paths from files or pose networks, of the clip and of what it should have shown, and actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="pose_track")
@dataclass(frozen=True)
class PoseTrack:
    """Where the camera of a clip was, frame by frame. OpenCV camera-to-world: x right, y down, z ahead."""

    frame: np.ndarray  # (N,) frame numbers in the clip
    c2w: np.ndarray  # (N, 4, 4)
    metres: bool  # whether lengths are metres; otherwise their unit is the file's own
    source: str  # who made it, where the file says so; else its format, such as colmap or vipe


@evidence(id="true_pose_track")
@dataclass(frozen=True)
class TruePoseTrack:
    """Where the camera should have been: as PoseTrack, with the frame numbers of its own file."""

    frame: np.ndarray
    c2w: np.ndarray
    metres: bool
    source: str


@evidence(id="action_track")
@dataclass(frozen=True)
class ActionTrack:
    """Keys held in each frame of a recording, as four axes: 0 neither, 1 the first, 2 the second of its two keys."""

    frame: np.ndarray  # (N,) frame numbers in the recording
    forward: np.ndarray  # (N,) 1 forward, 2 backward
    side: np.ndarray  # (N,) 1 left, 2 right
    tilt: np.ndarray  # (N,) 1 look up, 2 look down
    turn: np.ndarray  # (N,) 1 look left, 2 look right
