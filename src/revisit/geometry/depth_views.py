"""Depth and two cameras: where the pixels of one view land in another, and whether both depths agree there.

Depth is along the optical axis, (height, width); values that are not positive are holes. Pixel centres are whole
numbers. Poses are camera-to-world unless a name says otherwise.
"""

from __future__ import annotations

import numpy as np

from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations
from revisit.geometry.two_view import relative_pose

SAMPLED_POSES = 16
COMPARED = 12  # pairs of poses that decide on the convention
TELLING = 12.0  # degrees of motion that tell most: views still share most of what they see; a wrong reading is far off
FARTHEST = 40.0  # degrees: further apart, views have little in common
LEAST_SHARED = 0.2  # of the pixels; where fewer meet, a reading of the poses has failed
THIN = 48  # pixels on the longer side that are compared
CLEAR_RATIO = 0.7  # the better reading must disagree at most this share of the worse: noise hits both alike
CLEAR_MARGIN = 0.003  # and lead by this share of the depth, which is what half floats and nearest pixels blur


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
