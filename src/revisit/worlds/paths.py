"""Paths: camera poses of a film, shortened, delayed or changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from revisit.geometry.rotations import angle_between_rotations, slerp
from revisit.worlds.film import Film


def distance_from_first_pose(poses: np.ndarray) -> np.ndarray:
    """How far every pose is from the first: metres and, for a turn of a radian, another metre."""
    turned = np.radians(angle_between_rotations(poses[0, :3, :3], poses[:, :3, :3]))
    return np.asarray(np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1) + turned)


def last_farthest_frame(film: Film) -> int:
    """The last frame in which the camera is as far away as it gets."""
    away = distance_from_first_pose(film.poses)
    return int(np.flatnonzero(away >= away.max() - 1e-6)[-1])


def interpolate_pose(start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    """The pose at a share of the way from one pose to another."""
    if share in (0, 1):
        return end if share else start
    pose = np.eye(4)
    pose[:3, :3] = slerp(start[:3, :3], end[:3, :3], share)
    pose[:3, 3] = (1 - share) * start[:3, 3] + share * end[:3, 3]
    return pose


def poses_at_times(poses: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The poses at times counted in frames."""
    first = np.minimum(times.astype(int), len(poses) - 2)
    pairs = zip(first.tolist(), times.tolist(), strict=True)
    return np.stack([interpolate_pose(poses[k], poses[k + 1], t - k) for k, t in pairs])


def pixel_directions_in_world(film: Film, frame: int) -> np.ndarray:
    """The direction (height, width, 3) in the world in which every pixel looks."""
    height, width = film.truth(frame).mask.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T.astype(np.float32)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    return np.asarray(rays @ film.poses[frame][:3, :3].T.astype(np.float32))


def film_from_poses(film: Film, poses: np.ndarray) -> Film:
    """The film from other poses, whose views are forgotten with it: the film would hold those of every strength."""
    return replace(film, _seen=dict(film._seen)).along(poses)
