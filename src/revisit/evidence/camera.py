"""Camera: how the camera turned and where it went, as far as the picture tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="camera_path")
@dataclass(frozen=True)
class CameraPath:
    """The camera's turns relative to the first frame. Axes as in OpenCV: x right, y down, z ahead."""

    index: np.ndarray  # (N,) frame numbers
    time: np.ndarray  # (N,) seconds
    rotation: np.ndarray  # (N, 3, 3) camera to world; the world is the first camera
    direction: np.ndarray  # (N, 3) unit step from the last key frame, in the world; nan where not observable
    inliers: np.ndarray  # (N,) tracked points that the estimate explains
    quality: np.ndarray  # (N,) their share of the tracked points
    reliable: np.ndarray  # (N,) whether the turn since the sampled frame before is known
    field_of_view: float  # horizontal, degrees
    field_of_view_estimated: bool  # False: assumed


@evidence(id="seen_camera")
@dataclass(frozen=True)
class SeenCamera:
    """The clip's camera, from a file of poses where one was given, else as the picture shows it."""

    index: np.ndarray  # (N,) frame numbers
    rotation: np.ndarray  # (N, 3, 3) camera to world
    centre: np.ndarray | None  # (N, 3) in the source's own unit; None where only turns are known
    source: str  # the format of the file, or "odometry"
    field_of_view: float = 0.0  # degrees; 0 where the source does not rest on one
    field_of_view_estimated: bool = False


@evidence(id="asked_camera")
@dataclass(frozen=True)
class AskedCamera:
    """The camera path that a clip was asked to show, one pose for each of its frames."""

    c2w: np.ndarray  # (frames of the clip, 4, 4) without any generator's gain
    kind: str  # yaw | sideways | static | other
    frames: tuple[int, ...]  # how many frames the request itself may be said to have
    written: np.ndarray | None = None  # (M, 4, 4) the target as another tool wrote it, with that tool's gain
