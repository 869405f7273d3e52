"""Camera requests: the requested camera path, from a script or from a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Case, Unscored, UsageError, derived
from revisit.evidence.camera import RequestedCamera, TruePoseTrack
from revisit.evidence.frames import FrameFacts
from revisit.geometry.camera_script import Step, camera_path_of_length, parse_script
from revisit.geometry.poses import make_trajectory, resample
from revisit.geometry.rotations import angle_between_rotations, scale_turns_from_first

SIDEWAYS = {"truck", "pan"}  # moves along the camera's own right
STILL_TURN, STILL_WAY = 0.01, 1e-6  # degrees and units of a path: what single precision leaves of a camera that rests


@dataclass(frozen=True, eq=False)
class CameraRequest:
    """What a script asks of a camera."""

    steps: tuple[Step, ...]
    kind: str  # yaw | sideways | static | other

    def requested_poses(self, frames: int, rule: str = "corrected") -> np.ndarray:
        """Camera-to-world poses over so many frames; the public code moves along the axes of the first view."""
        return camera_path_of_length(self.steps, frames, axes="first_view" if rule == "upstream" else "heading")


def camera_request_of_case(case: Case) -> CameraRequest | Unscored:
    """The request of a case, or why there is none."""
    if not case.camera:
        return Unscored("no_camera", "no camera script or path was given for this case")
    try:
        steps = parse_script(case.camera)
    except UsageError as error:
        return Unscored("unreadable", f"the camera script cannot be read: {error}")
    kinds = {move.kind for step in steps for move in step.moves}
    kind = "static" if not kinds else "yaw" if "yaw" in kinds else "sideways" if kinds <= SIDEWAYS else "other"
    return CameraRequest(steps, kind)


@derived(makes=RequestedCamera, needs=(Case, FrameFacts), optional=(TruePoseTrack,), version=1)
def derive_requested_camera(case: Case, frames: FrameFacts, track: TruePoseTrack | None) -> RequestedCamera | Unscored:
    """What the camera was asked to do in each frame: the path that came as a file, else that of the script.

    A file may hold a pose for every few frames only; the path between them is interpolated.
    """
    count = frames.frame_count
    if count < 2:
        return Unscored("too_short", f"a path needs at least two frames; the clip has {count}")
    if track is None or len(track.c2w) < 2:
        request = camera_request_of_case(case)
        if isinstance(request, Unscored):
            return request
        steps = sum(step.frames for step in request.steps)
        return RequestedCamera(request.requested_poses(count), request.kind, (steps, steps + 1))
    poses = track.c2w.copy()
    poses[:, :3, :3] = scale_turns_from_first(poses[:, :3, :3], 1 / float(case.annotations.get("turn_gain") or 1))
    start = poses[0, :3, 3].copy()
    poses[:, :3, 3] = start + (poses[:, :3, 3] - start) / float(case.annotations.get("way_gain") or 1)
    path = resample(make_trajectory(poses), np.linspace(0, len(poses) - 1, count)).c2w
    return RequestedCamera(path, kind_of_path(path), (len(poses),), track.c2w)


def kind_of_path(path: np.ndarray) -> str:
    """What a path (N, 4, 4) asks for, as the kind of a script."""
    translation = (path[:, :3, 3] - path[0, :3, 3]) @ path[0, :3, :3]
    if abs(value_farthest_from_zero(relative_yaw(path[:, :3, :3]))) > STILL_TURN:
        return "yaw"
    if float(angle_between_rotations(path[0, :3, :3], path[:, :3, :3]).max()) > STILL_TURN:
        return "other"
    sideways, other_axes = float(np.abs(translation[:, 0]).max()), float(np.abs(translation[:, 1:]).max())
    return "static" if max(sideways, other_axes) < STILL_WAY else "sideways" if other_axes < STILL_WAY else "other"


def relative_yaw(rotation: np.ndarray) -> np.ndarray:
    """Degrees to the right of the first view, -180 to 180."""
    turned = rotation[0].T @ rotation
    return np.degrees(np.arctan2(turned[:, 0, 2], turned[:, 0, 0]))


def value_farthest_from_zero(values: np.ndarray) -> float:
    """The value farthest from 0, with its sign."""
    return float(values[np.argmax(np.abs(values))])
