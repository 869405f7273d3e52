"""Two views: how well matching pixels fit the poses of two cameras.

Pixels are (N, 2) arrays, x right and y down; camera 2 is given relative to camera 1, so that a point X seen
by camera 1 is at R @ X + t for camera 2. Every function returns one value per match, in pixels of the images the
intrinsics belong to, except the Sampson distance, which is in pixels squared (Hartley and Zisserman, 2nd ed.,
sections 9.6, 11.4 and 12.2).
"""

from __future__ import annotations

import numpy as np

from revisit.geometry.poses import InvalidPoses, invert_rigid_poses

AT_INFINITY = 1e-12  # fourth coordinate of a unit vector: further away than doubles can tell


def relative_pose(first_c2w: np.ndarray, second_c2w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, t) that take points from camera 1 to camera 2, of two camera-to-world poses (4, 4)."""
    between = invert_rigid_poses(np.asarray(second_c2w, dtype=float)) @ first_c2w
    return between[:3, :3], between[:3, 3]


def fundamental(k1: np.ndarray, k2: np.ndarray, rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """F (3, 3) with x2ᵀ F x1 = 0 for pixels of one point.

    Two cameras in one place have no epipolar lines; that is refused, since F would be zero.
    """
    t = np.asarray(translation, dtype=float)
    if np.linalg.norm(t) < 1e-12:
        raise InvalidPoses("both cameras are in one place, so epipolar lines are not defined; use a pair that moved")
    x, y, z = t / np.linalg.norm(t)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.linalg.inv(k2).T @ cross @ rotation @ np.linalg.inv(k1)


def symmetric_epipolar_distance(x1: np.ndarray, x2: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Distance of each pixel to the line its partner draws in its image: the mean of both images."""
    first, second = (np.column_stack([x, np.ones(len(x))]) for x in (x1, x2))
    line1, line2 = second @ f, first @ f.T
    residual = (second * line2).sum(axis=1)  # x2ᵀ F x1
    lengths = [np.linalg.norm(line[:, :2], axis=1) for line in (line1, line2)]
    return np.abs(residual) * (1 / lengths[0] + 1 / lengths[1]) / 2


def projection_matrix(
    k: np.ndarray, rotation: np.ndarray | None = None, translation: np.ndarray | None = None
) -> np.ndarray:
    """The camera matrix K [R | t] (3, 4); without a pose, that of camera 1."""
    r = np.eye(3) if rotation is None else rotation
    t = np.zeros(3) if translation is None else translation
    return k @ np.column_stack([r, t])


def triangulate(x1: np.ndarray, x2: np.ndarray, p1: np.ndarray, p2: np.ndarray) -> np.ndarray:
    """Points (N, 3) in the frame of the camera matrices, by the direct linear transform.

    A match whose rays are parallel has its point at infinity, and gives infinite coordinates.
    """
    rows = [x[:, [k]] * p[2] - p[k] for x, p in ((x1, p1), (x2, p2)) for k in (0, 1)]
    homogeneous = np.linalg.svd(np.stack(rows, axis=1))[2][:, -1]
    depth = homogeneous[:, 3:]
    near = np.abs(depth) > AT_INFINITY
    return np.where(near, homogeneous[:, :3] / np.where(near, depth, 1), np.inf)


def reprojection_error(points: np.ndarray, pixels: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Distance of each pixel from where the camera matrix puts its point; infinite where the point is not in front."""
    finite = np.isfinite(points).all(axis=1)
    projected = np.column_stack([np.where(finite[:, None], points, 0), finite]) @ p.T
    front = finite & (projected[:, 2] > 0)
    at = projected[:, :2] / np.where(front, projected[:, 2], 1)[:, None]
    return np.where(front, np.linalg.norm(at - pixels, axis=1), np.inf)
