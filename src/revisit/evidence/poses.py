"""Poses: camera paths from files or pose networks, of the clip and of what it should have shown, and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="pose_track")
@dataclass(frozen=True)
class PoseTrack:
    """Where the camera of a clip was, frame by frame. OpenCV camera-to-world: x right, y down, z ahead."""

    frame: Annotated[Array, "N"]  # frame numbers in the clip
    c2w: Annotated[Array, "N, 4, 4"]
    metres: bool  # whether lengths are metres; otherwise their unit is the file's own
    source: str  # who made it, where the file says so; else its format, such as colmap or vipe


@evidence(id="true_pose_track")
@dataclass(frozen=True)
class TruePoseTrack:
    """Where the camera should have been: as PoseTrack, with the frame numbers of its own file."""

    frame: Annotated[Array, "N"]
    c2w: Annotated[Array, "N, 4, 4; finite"]
    metres: bool
    source: str
