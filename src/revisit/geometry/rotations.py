"""Rotations as 3x3 matrices, in numpy only. Every angle is in degrees.

Axes are OpenCV's: x right, y down, z forward. A positive yaw turns the view to the right (about the
vertical), a positive pitch lifts it, and a rotation maps camera directions to world directions.
Functions take one matrix or a stack of them in the leading axes, unless they say otherwise.
"""

from __future__ import annotations

import numpy as np


def rotation_from_axis_angle(axis: np.ndarray | tuple[float, float, float], degrees: float | np.ndarray) -> np.ndarray:
    """The rotation about an axis of any length but zero, by the right-hand rule (Rodrigues); one for every angle."""
    vector = np.asarray(axis, dtype=float)
    x, y, z = (vector / np.sqrt(vector.dot(vector))).tolist()
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.radians(degrees)[..., None, None]
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def axis_angle_of_rotation(rotation: np.ndarray) -> tuple[np.ndarray, float]:
    """Unit axis and angle (0 to 180) of one rotation; the axis of no rotation is x."""
    sine_axis = _axis_times_twice_sine(rotation)
    degrees = float(_rotation_angle(rotation, sine_axis))
    if degrees < 1e-9:
        return np.array([1.0, 0.0, 0.0]), 0.0
    if degrees < 179:
        return sine_axis / np.linalg.norm(sine_axis), degrees
    # Near half a turn the sine vanishes; the symmetric part then holds the axis, up to its sign.
    outer = (rotation + rotation.T) / 2 - np.cos(np.radians(degrees)) * np.eye(3)
    axis = outer[:, int(np.argmax(np.diag(outer)))]
    axis = axis / np.linalg.norm(axis)
    return (-axis if axis @ sine_axis < 0 else axis), degrees


def rotation_from_yaw_pitch(yaw: float, pitch: float) -> np.ndarray:
    """The rotation of a level camera turned right by `yaw`, then lifted by `pitch`."""
    return rotation_from_axis_angle((0, 1, 0), yaw) @ rotation_from_axis_angle((1, 0, 0), pitch)


def yaw_pitch_of_rotation(rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the optical axis points: degrees to the right and degrees up. Roll is ignored."""
    x, y, z = np.moveaxis(np.asarray(rotation)[..., :, 2], -1, 0)
    return np.degrees(np.arctan2(x, z)), np.degrees(np.arctan2(-y, np.hypot(x, z)))


def angle_between_rotations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angle of the rotation that takes `first` to `second`, 0 to 180, exact for tiny angles too."""
    between = np.swapaxes(first, -1, -2) @ second
    return _rotation_angle(between, _axis_times_twice_sine(between))


def _rotation_angle(rotation: np.ndarray, sine_axis: np.ndarray) -> np.ndarray:
    """Angle of a rotation, 0 to 180, from its trace and its axis times twice the sine."""
    cosine = np.trace(rotation, axis1=-2, axis2=-1) - 1
    return np.degrees(np.arctan2(np.linalg.norm(sine_axis, axis=-1), cosine))


def slerp(first: np.ndarray, second: np.ndarray, t: float) -> np.ndarray:
    """The rotation a share `t` of the way from `first` to `second` along the shortest arc."""
    axis, degrees = axis_angle_of_rotation(first.T @ second)
    return first @ rotation_from_axis_angle(axis, t * degrees)


def scale_turns_from_first(rotation: np.ndarray, share: float) -> np.ndarray:
    """A path (N, 3, 3) in which every turn from its first frame is made by this share of its angle.

    Angles go on beyond half a turn: of the two ways to write a rotation, the one nearer to that of the frame before
    is taken. So a path that was amplified beyond 180 degrees can be made small again.
    """
    turned = rotation[0].T @ rotation
    last = np.zeros(3)
    rotations = []
    for one in turned:
        axis, degrees = axis_angle_of_rotation(one)
        if degrees < 1e-9 and last.any():
            axis = last / np.linalg.norm(last)
        vectors = [axis * (degrees + 360 * k) for k in range(-3, 4)]
        last = min(vectors, key=lambda vector: float(np.linalg.norm(vector - last)))
        size = float(np.linalg.norm(last))
        rotations.append(rotation[0] @ (rotation_from_axis_angle(last, share * size) if size > 0 else np.eye(3)))
    return np.stack(rotations)


def rotations_from_quaternions(quaternion: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) of quaternions (..., 4) in the order w x y z, of any length but zero."""
    q = np.asarray(quaternion, dtype=float)
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternions_of_rotations(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) in the order w x y z, with w >= 0.

    The columns of 4·q·qᵀ are written in terms of the matrix; the longest one is q without cancellation,
    also at half a turn.
    """
    r = np.asarray(rotation, dtype=float)
    outer = np.empty((*r.shape[:-2], 4, 4))
    outer[..., 0, 0] = 1 + np.trace(r, axis1=-2, axis2=-1)
    outer[..., 0, 1:] = outer[..., 1:, 0] = _axis_times_twice_sine(r)
    outer[..., 1:, 1:] = r + np.swapaxes(r, -1, -2) + np.eye(3) * (2 - outer[..., 0, 0])[..., None, None]
    longest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(outer, longest[..., None, None], axis=-1)[..., 0]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., :1] < 0, -q, q)


def _axis_times_twice_sine(rotation: np.ndarray) -> np.ndarray:
    """The axis times twice the sine of the angle: the antisymmetric part of a rotation."""
    r = np.asarray(rotation)
    return r[..., (2, 0, 1), (1, 2, 0)] - r[..., (1, 2, 0), (2, 0, 1)]


def smooth_rotations(rotations: np.ndarray, sigma: float) -> np.ndarray:
    """(N, 3, 3) rotations, each the mean of its neighbours with Gaussian weights of `sigma` frames.

    The mean is the rotation nearest to the weighted sum of matrices (the chordal one). Beyond its ends the path goes on
    as it came, mirrored in its last view, so that an even turn stays what it is up to the ends.
    """
    count = len(rotations)
    reach = min(int(np.ceil(4 * sigma)), count - 1)
    if reach < 1:
        return rotations
    first, last = rotations[0], rotations[-1]
    before = first @ np.swapaxes(rotations[reach:0:-1], 1, 2) @ first
    after = last @ np.swapaxes(rotations[-2 : -2 - reach : -1], 1, 2) @ last
    longer = np.concatenate([before, rotations, after])
    weight = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    sums = np.stack([np.tensordot(weight, longer[k : k + 2 * reach + 1], axes=1) for k in range(count)])
    u, _, v = np.linalg.svd(sums)
    u[:, :, 2] *= np.sign(np.linalg.det(u @ v))[:, None]
    return np.asarray(u @ v)
