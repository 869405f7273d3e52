"""From a camera script to the path a clip is asked to follow: OpenCV camera-to-world, first frame at the origin.

Scripts that are often asked for have names (presets.yaml).

The path compiled here is what a clip is judged against. What a generator is fed may be stronger or coarser (gains,
tokens, sampled poses); that belongs to its payload and never changes the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import UsageError
from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import Axes, Step, camera_path_of_length, parse_script
from revisit.geometry.poses import Trajectory, make_trajectory
from revisit.geometry.rotations import axis_angle_of_rotation, rotation_from_axis_angle, yaw_pitch_of_rotation

FIELD_OF_VIEW = 60.0  # degrees across, where nothing else is known
PRESET_FRAMES = 81
PRESETS: dict[str, tuple[str, str]] = read_package_yaml(__package__, "presets.yaml")  # name -> script, what it is


@dataclass(frozen=True, eq=False)
class CameraPlan:
    """A compiled script: its steps, the path, and the camera it is meant for."""

    script: str
    steps: tuple[Step, ...]
    path: Trajectory  # with intrinsics in pixels
    size: tuple[int, int]  # width, height
    fps: float

    def __len__(self) -> int:
        return len(self.path)

    @property
    def yaw_degrees(self) -> np.ndarray:
        """Degrees to the right of the first view, frame by frame."""
        return np.degrees(np.unwrap(np.radians(yaw_pitch_of_rotation(self.path.rotations)[0])))

    @property
    def farthest_signed_yaw_degrees(self) -> float:
        """The signed yaw farthest from the first view: negative is left."""
        return float(self.yaw_degrees[np.argmax(np.abs(self.yaw_degrees))])


def compile_script(
    script: str,
    *,
    frames: int | None = None,
    size: tuple[int, int] = (832, 480),
    fps: float = 16,
    axes: Axes = "heading",
) -> CameraPlan:
    """The path of a script, at `frames` frames if they are given (see `camera_path_of_length`)."""
    steps = parse_script(script)
    c2w = camera_path_of_length(steps, frames, axes=axes)
    path = make_trajectory(c2w, intrinsics=np.tile(intrinsics(size), (len(c2w), 1, 1)))
    return CameraPlan(script, steps, path, size, fps)


def intrinsics(size: tuple[int, int]) -> np.ndarray:
    """K in pixels of a camera with square pixels and its axis through the middle of the picture."""
    width, height = size
    focal = width / (2 * np.tan(np.radians(FIELD_OF_VIEW / 2)))
    return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])


def amplify_path(c2w: np.ndarray, *, rotation: float, translation: float) -> np.ndarray:
    """A path for a generator that answers too weakly: turns and ways from the first pose, times their gains."""
    path = np.array(c2w, dtype=float)
    before = np.zeros(3)
    for pose in path:
        axis, degrees = axis_angle_of_rotation(pose[:3, :3])
        # 200 degrees look like 160 the other way, and 380 like 20: what is nearest to the pose before is meant.
        if not degrees and before.any():
            axis = before / np.linalg.norm(before)
        degrees += 360 * round((before @ axis - degrees) / 360)
        before = degrees * axis
        pose[:3, :3] = rotation_from_axis_angle(axis, rotation * degrees)
        pose[:3, 3] *= translation
    return path


def limit_translation_per_axis(c2w: np.ndarray, limit: float) -> np.ndarray:
    """The path with the way along each axis kept within a limit."""
    path = np.array(c2w, dtype=float)
    path[:, :3, 3] = np.clip(path[:, :3, 3], -limit, limit)
    return path


def preset_script(name: str, *, degrees: float = 60, metres: float = 0.5, frames: int = PRESET_FRAMES) -> str:
    """The script of a preset over so many frames; an even number cannot be told from the script alone."""
    if name not in PRESETS:
        raise UsageError(f"unknown camera preset {name!r}; choose one of {', '.join(PRESETS)}")
    if frames < 5:
        raise UsageError(f"a preset needs at least 5 frames, such as 81, not {frames}")
    words = {"degrees": degrees, "metres": metres, "circle": 2 * np.pi}
    counts = {"whole": frames, "out": frames // 2, "back": frames // 2, "steps": frames - 1}
    return PRESETS[name][0].format(**counts, **{word: f"{value:.12g}" for word, value in words.items()})
