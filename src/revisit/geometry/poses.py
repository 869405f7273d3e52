"""Poses: camera positions and orientations in one convention, and conversions from the others.

Everything inside Revisit is OpenCV camera-to-world: x right, y down, z forward; a pose maps a point seen by
the camera to the world, and its last column is the camera's centre. What comes in otherwise is converted
here and named: world-to-camera (the inverse), OpenGL, NeRF and Blender cameras (y up, z backward), and
Unreal (left-handed world, centimetres, degrees). The world may be turned in any way; only its handedness
and its unit matter. docs/poses.md describes each convention and file format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from revisit.core import InvalidEvidence
from revisit.geometry.rotations import rotation_from_axis_angle, rotation_from_yaw_pitch, slerp, yaw_pitch_of_rotation

Scale = Literal["metres", "unknown"]
TimeUnit = Literal["frames", "seconds"]
PixelUnit = Literal["pixels", "normalised"]

# Files with four decimals are off by 1e-4; a scale folded into the matrix, or mixed-up columns, by far more.
ORTHONORMAL = 1e-3
OPENGL_AXES = np.diag([1.0, -1.0, -1.0])  # its own inverse


class InvalidPoses(InvalidEvidence):
    """Poses that cannot be what they say they are; the message says which one, and what a valid one looks like."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Camera-to-world poses of one camera in the order of time; checked when it is made, read-only after."""

    c2w: np.ndarray  # (N, 4, 4) OpenCV axes
    times: np.ndarray  # (N,) frame numbers or seconds, never falling
    time_unit: TimeUnit = "frames"
    scale: Scale = "unknown"  # the unit of the centres
    intrinsics: np.ndarray | None = None  # (N, 3, 3)
    intrinsics_unit: PixelUnit = "pixels"  # normalised: divided by the width (first row) and height (second row)

    def __post_init__(self) -> None:
        c2w = to_4x4_poses(self.c2w)
        require_rigid_poses(c2w)
        times = to_float_array(self.times, "times")
        n = len(c2w)
        if times.shape != (n,):
            raise InvalidPoses(f"the times have shape {times.shape}; {n} poses need ({n},): one number for each")
        if not np.isfinite(times).all():
            raise InvalidPoses(f"the time of pose {np.argmax(~np.isfinite(times))} is not a finite number")
        if (np.diff(times) < 0).any():
            k = np.argmax(np.diff(times) < 0)
            raise InvalidPoses(
                f"time runs backwards from pose {k} ({times[k]:.6f}) to pose {k + 1} ({times[k + 1]:.6f}); "
                "sort the poses by time"
            )
        fields = {"c2w": c2w, "times": times}
        if self.intrinsics is not None:
            fields["intrinsics"] = _require_valid_intrinsics(self.intrinsics, n)
        for name, array in fields.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.c2w)

    @property
    def centres(self) -> np.ndarray:
        """Camera centres in the world, (N, 3)."""
        return self.c2w[:, :3, 3]

    @property
    def rotations(self) -> np.ndarray:
        """Rotations from camera to world, (N, 3, 3)."""
        return self.c2w[:, :3, :3]

    @property
    def w2c(self) -> np.ndarray:
        """World-to-camera matrices, (N, 4, 4)."""
        return invert_rigid_poses(self.c2w)

    def take(self, index: np.ndarray | slice) -> Trajectory:
        """The poses at the given positions."""
        intrinsics = None if self.intrinsics is None else self.intrinsics[index]
        return replace(self, c2w=self.c2w[index], times=self.times[index], intrinsics=intrinsics)


def make_trajectory(
    c2w: np.ndarray,
    times: np.ndarray | None = None,
    *,
    time_unit: TimeUnit = "frames",
    scale: Scale = "unknown",
    intrinsics: np.ndarray | None = None,
) -> Trajectory:
    """A Trajectory of camera-to-world matrices (N, 3, 4) or (N, 4, 4); without times, frames 0 to N-1.

    Intrinsics are in pixels.
    """
    poses = to_4x4_poses(c2w)
    times = np.arange(len(poses)) if times is None else times
    return Trajectory(poses, times, time_unit, scale, intrinsics)


def to_4x4_poses(poses: np.ndarray) -> np.ndarray:
    """A copy of poses (N, 3, 4) or (N, 4, 4) as (N, 4, 4) floats."""
    array = to_float_array(poses, "poses")
    if array.ndim != 3 or array.shape[1:] not in ((3, 4), (4, 4)) or not len(array):
        raise InvalidPoses(
            f"the poses have shape {array.shape}; expected (N, 4, 4) or (N, 3, 4): one matrix for each of N >= 1 frames"
        )
    if array.shape[1] == 4:
        return array
    full = np.tile(np.eye(4), (len(array), 1, 1))
    full[:, :3] = array
    return full


def make_rigid_poses(rotations: np.ndarray, centres: np.ndarray | float = 0.0) -> np.ndarray:
    """Poses (N, 4, 4) of rotations (N, 3, 3) with centres (N, 3), all at the origin by default."""
    poses = np.tile(np.eye(4), (len(rotations), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations, centres
    return poses


def to_float_array(values: np.ndarray, name: str) -> np.ndarray:
    """A copy of an array as floats."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.array(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidPoses(f"the {name} are not an array of real numbers") from error


def require_rigid_poses(poses: np.ndarray) -> None:
    """Raise InvalidPoses unless every matrix (N, 4, 4) is a rotation and a translation."""
    finite = np.isfinite(poses).all(axis=(1, 2))
    if not finite.all():
        raise InvalidPoses(f"pose {np.argmin(finite)} holds NaN or infinity; leave out frames without a pose")
    last_row_ok = np.abs(poses[:, 3] - [0, 0, 0, 1]).max(axis=1) <= ORTHONORMAL
    if not last_row_ok.all():
        k = np.argmin(last_row_ok)
        raise InvalidPoses(
            f"pose {k} ends in the row {poses[k, 3].tolist()} where [0, 0, 0, 1] is expected; is the matrix transposed?"
        )
    r = poses[:, :3, :3]
    off = np.abs(np.swapaxes(r, 1, 2) @ r - np.eye(3)).max(axis=(1, 2))
    if (off > ORTHONORMAL).any():
        k = np.argmax(off > ORTHONORMAL)
        raise InvalidPoses(
            f"the rotation of pose {k} is not orthonormal (off by {off[k]:.2g}, allowed are {ORTHONORMAL:g}); "
            "are the columns in another order, or is a scale folded into the matrix?"
        )
    mirrored = np.linalg.det(r) < 0
    if mirrored.any():
        raise InvalidPoses(
            f"pose {np.argmax(mirrored)} is mirrored: its determinant is -1, so it is not a rotation; "
            "convert left-handed axes (such as Unreal's) before making a trajectory"
        )


def invert_rigid_poses(poses: np.ndarray) -> np.ndarray:
    """Inverses of rigid transforms (..., 4, 4): camera-to-world from world-to-camera, and back."""
    back = np.zeros_like(poses)
    back[..., :3, :3] = np.swapaxes(poses[..., :3, :3], -1, -2)
    back[..., :3, 3] = -(back[..., :3, :3] @ poses[..., :3, 3:])[..., 0]
    back[..., 3, 3] = 1
    return back


def from_w2c(w2c: np.ndarray) -> np.ndarray:
    """Camera-to-world (N, 4, 4) of world-to-camera matrices (N, 3, 4) or (N, 4, 4)."""
    full = to_4x4_poses(w2c)
    require_rigid_poses(full)  # the transpose is the inverse of a rotation only
    return invert_rigid_poses(full)


def from_opengl(c2w: np.ndarray) -> np.ndarray:
    """Camera-to-world with OpenCV axes of one with OpenGL's (x right, y up, z backward); NeRF and Blender use these.

    Only the camera's axes change: its centre, and which way is up in the world, stay.
    """
    turned = to_4x4_poses(c2w)
    turned[:, :3, :3] = turned[:, :3, :3] @ OPENGL_AXES
    return turned


def from_unreal(position: np.ndarray, roll_pitch_yaw: np.ndarray) -> np.ndarray:
    """Camera-to-world (N, 4, 4) in metres of Unreal positions (N, 3, centimetres) and rotators (N, 3, degrees).

    Unreal: X forward, Y right, Z up, left-handed. Yaw turns right, pitch looks up, roll leans right. The world
    becomes (Y, -Z, X) / 100, so that a camera without rotation is the identity and the mirror is undone.
    """
    rotations = [
        rotation_from_yaw_pitch(yaw, pitch) @ rotation_from_axis_angle((0, 0, 1), roll)
        for roll, pitch, yaw in roll_pitch_yaw
    ]
    centres = np.stack([position[:, 1], -position[:, 2], position[:, 0]], axis=1) / 100
    return make_rigid_poses(np.reshape(rotations, (-1, 3, 3)), centres)


def to_unreal(c2w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(positions in centimetres, roll pitch yaw in degrees), each (N, 3), of camera-to-world poses in metres."""
    full = to_4x4_poses(c2w)
    x, y, z = full[:, :3, 3].T * 100
    yaw, pitch = yaw_pitch_of_rotation(full[:, :3, :3])
    level = np.stack([rotation_from_yaw_pitch(*angles) for angles in zip(yaw, pitch, strict=True)])
    residual = np.swapaxes(level, 1, 2) @ full[:, :3, :3]
    roll = np.degrees(np.arctan2(residual[:, 1, 0], residual[:, 0, 0]))
    return np.stack([z, x, -y], axis=1), np.stack([roll, pitch, yaw], axis=1)


def resample(path: Trajectory, times: np.ndarray) -> Trajectory:
    """The poses at other times: rotations along the shortest arc, centres and intrinsics in a straight line.

    Times outside the path are refused, since a camera's future is not known.
    """
    targets = to_float_array(times, "wanted times")
    first, last = path.times[0], path.times[-1]
    if targets.ndim != 1 or not targets.size:
        raise InvalidPoses(f"the wanted times have shape {targets.shape}; expected (M,): at least one number")
    if not ((targets >= first) & (targets <= last)).all():
        raise InvalidPoses(
            f"poses are wanted at times {targets.min():g} to {targets.max():g} and known from {first:g} to {last:g}; "
            "ask for times inside"
        )
    after = np.clip(np.searchsorted(path.times, targets, side="right"), 1, max(len(path) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(path) - 1)
    span = path.times[after] - path.times[before]
    share = np.divide(targets - path.times[before], span, out=np.zeros_like(targets), where=span > 0)

    def interpolate(matrices: np.ndarray) -> np.ndarray:
        weight = share[:, None, None]
        return (1 - weight) * matrices[before] + weight * matrices[after]

    c2w = interpolate(path.c2w)
    for k, (i, j, t) in enumerate(zip(before, after, share, strict=True)):
        c2w[k, :3, :3] = slerp(path.rotations[i], path.rotations[j], t)
    intrinsics = None if path.intrinsics is None else interpolate(path.intrinsics)
    return replace(path, c2w=c2w, times=targets, intrinsics=intrinsics)


def _require_valid_intrinsics(intrinsics: np.ndarray, n: int) -> np.ndarray:
    k = to_float_array(intrinsics, "intrinsics")
    if k.shape != (n, 3, 3):
        raise InvalidPoses(f"the intrinsics have shape {k.shape}; {n} poses need ({n}, 3, 3): one matrix for each")
    wrong = ~np.isfinite(k).all(axis=(1, 2))
    wrong |= (k[:, 0, 0] <= 0) | (k[:, 1, 1] <= 0) | (np.abs(k[:, 2] - [0, 0, 1]).max(axis=1) > ORTHONORMAL)
    if wrong.any():
        raise InvalidPoses(
            f"the intrinsics of pose {np.argmax(wrong)} are {k[np.argmax(wrong)].tolist()}; expected "
            "[[fx, 0, cx], [0, fy, cy], [0, 0, 1]] with focal lengths above zero"
        )
    return k
