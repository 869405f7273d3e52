"""Two views: how well matching pixels and depths fit the poses of two cameras.

Pixels are (N, 2) arrays, x right and y down, pixel centres whole numbers; camera 2 is given relative to camera 1, so
that a point X seen by camera 1 is at R @ X + t for camera 2. What is measured of matches is one value per match, in
pixels of the images the intrinsics belong to (Hartley and Zisserman, 2nd ed., sections 9.6, 11.4 and 12.2). Depth is
along the optical axis, (height, width); values that are not positive are holes.
"""

from __future__ import annotations

import numpy as np

from revisit.geometry.poses import InvalidPoses, invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations

AT_INFINITY = 1e-12  # fourth coordinate of a unit vector: further away than doubles can tell
SAMPLED_POSES = 16
COMPARED = 12  # pairs of poses that decide on the convention
TELLING = 12.0  # degrees of motion that tell most: views still share most of what they see; a wrong reading is far off
FARTHEST = 40.0  # degrees: further apart, views have little in common
LEAST_SHARED = 0.2  # of the pixels; where fewer meet, a reading of the poses has failed
THIN = 48  # pixels on the longer side that are compared
CLEAR_RATIO = 0.7  # the better reading must disagree at most this share of the worse: noise hits both alike
CLEAR_MARGIN = 0.003  # and lead by this share of the depth, which is what half floats and nearest pixels blur


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


def project_pixels_to_second_view(
    depth: np.ndarray, k1: np.ndarray, k2: np.ndarray, rotation: np.ndarray, translation: np.ndarray, step: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """((h, w, 2) pixels in view 2, (h, w) depths there) of the pixels of view 1; every `step`-th in both directions."""
    rows, columns = depth.shape
    x, y = np.meshgrid(np.arange(0, columns, step, dtype=float), np.arange(0, rows, step, dtype=float))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(k1).T
    moved = rays * depth[::step, ::step, None] @ rotation.T + translation
    z = moved[..., 2]
    front = np.where(z > 1e-9, z, 1.0)
    pixels = (moved / front[..., None]) @ k2.T
    return np.where((z > 1e-9)[..., None], pixels[..., :2], -1e6), z


def sample_nearest_depth(depth: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Depth of the nearest pixel; 0 outside the picture."""
    rows, columns = depth.shape
    x, y = (np.rint(pixels[..., k]) for k in (0, 1))
    inside = (x >= 0) & (y >= 0) & (x < columns) & (y < rows)
    sampled = depth[np.where(inside, y, 0).astype(int), np.where(inside, x, 0).astype(int)]
    return np.where(inside, sampled, 0)


def median_depth_disagreement(
    depths: tuple[np.ndarray, np.ndarray], ks: tuple[np.ndarray, np.ndarray], pose: tuple[np.ndarray, np.ndarray]
) -> float:
    """Median relative difference of depth where two views see one point; 1 where they hardly share any."""
    step = max(1, max(depths[0].shape) // THIN)
    pixels, z = project_pixels_to_second_view(depths[0], ks[0], ks[1], *pose, step)
    there = sample_nearest_depth(depths[1], pixels)
    shared = (there > 0) & (depths[0][::step, ::step] > 0)
    if shared.mean() < LEAST_SHARED:
        return 1.0
    return float(np.median(np.abs(z - there)[shared] / np.maximum(z, there)[shared]))


def depth_disagreement_by_convention(
    matrices: np.ndarray, intrinsics: np.ndarray, depth: np.ndarray
) -> tuple[float, float]:
    """Disagreement of depth (taken as world-to-camera, taken as camera-to-world), over pairs that moved a little."""
    rows = np.unique(np.linspace(0, len(matrices) - 1, min(SAMPLED_POSES, len(matrices))).round().astype(int))
    scale = float(np.median(depth[rows[0]][depth[rows[0]] > 0]))
    turn = angle_between_rotations(matrices[rows][:, None, :3, :3], matrices[rows][None, :, :3, :3])
    distance = np.linalg.norm(matrices[rows][:, None, :3, 3] - matrices[rows][None, :, :3, 3], axis=2) / scale
    i, j = np.triu_indices(len(rows), 1)
    motion = (turn + np.degrees(distance))[i, j]
    order = np.argsort(np.abs(motion - TELLING), kind="stable")[:COMPARED]
    order = order[motion[order] <= FARTHEST]
    if not len(order):
        return 0.0, 0.0
    errors = []
    for c2w in (invert_rigid_poses(matrices), matrices):
        disagreements = []
        for a, b in zip(rows[i[order]], rows[j[order]], strict=True):
            pair = (depth[a], depth[b]), (intrinsics[a], intrinsics[b])
            disagreements.append(median_depth_disagreement(*pair, relative_pose(c2w[a], c2w[b])))
        errors.append(float(np.median(disagreements)))
    return errors[0], errors[1]


def is_clearly_less(better: float, worse: float) -> bool:
    """Whether one reading of the poses agrees with the depth and the other does not."""
    return better <= CLEAR_RATIO * worse and worse - better >= CLEAR_MARGIN
