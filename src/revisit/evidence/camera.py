"""Camera: how it turned and moved as the video shows it, as files and pose networks say, and as it should have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="camera_path")
@dataclass(frozen=True)
class CameraPath:
    """The camera's turns relative to the first frame. Axes as in OpenCV: x right, y down, z ahead."""

    index: Annotated[Array, "N"]  # frame numbers
    time: Annotated[Array, "N"]  # seconds
    rotation: Annotated[Array, "N, 3, 3; finite"]  # camera to world; the world is the first camera
    direction: Annotated[Array, "N, 3"]  # unit step from the last key frame, in the world; nan where not observable
    inliers: Annotated[Array, "N"]  # tracked points that the estimate explains
    quality: Annotated[Array, "N"]  # their share of the tracked points
    reliable: Annotated[Array, "N"]  # whether the turn since the first frame is known, within about 15 degrees
    field_of_view: float  # horizontal, degrees
    field_of_view_estimated: bool  # False: assumed


@evidence(id="seen_camera")
@dataclass(frozen=True)
class ObservedCamera:
    """The clip's camera, from a file of poses where one was given, else as the picture shows it."""

    index: Annotated[Array, "N; rising"]  # frame numbers
    rotation: Annotated[Array, "N, 3, 3; finite"]  # camera to world
    centre: Annotated[Array | None, "N, 3; finite"]  # in the source's own unit; None where only turns are known
    source: str  # the format of the file, or "odometry"
    field_of_view: float = 0.0  # degrees; 0 where the source does not rest on one
    field_of_view_estimated: bool = False


@evidence(id="asked_camera")
@dataclass(frozen=True)
class RequestedCamera:
    """The camera path that a clip was asked to show, one pose for each of its frames."""

    c2w: Annotated[Array, "frames, 4, 4"]  # without any generator's gain
    kind: str  # yaw | sideways | static | other
    frames: tuple[int, ...]  # how many frames the request itself may be said to have
    written: Annotated[Array | None, "M, 4, 4"] = None  # the target as another tool wrote it, with that tool's gain


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
class TruePoseTrack(PoseTrack):
    """Where the camera should have been: as PoseTrack, with the frame numbers of its own file."""

    c2w: Annotated[Array, "N, 4, 4; finite"]
