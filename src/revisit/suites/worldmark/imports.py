"""Geometry of a clip and ratings of it, from files: networks that do not run here.

geometry   an npz of VGGT-Omega, or of another network, with extrinsics, intrinsics and depth (docs/poses.md), and
           `conf` (N, H, W) where it tells how sure it is; or the public evaluator's omega_c3_1s_shard*.json
ratings    the public evaluator's qalign_shard*.json: {"<model>__<name>": {"qalign_quality": 3.9, ...}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, observer
from revisit.geometry.poses import invert_rigid_poses
from revisit.media import array_shapes_in_npz, load_npz
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import read_json_object
from revisit.observers.geometry_file import read_geometry
from revisit.suites.worldmark.evidence import GeometryError, VideoRating
from revisit.suites.worldmark.observers import ALL_SETS

GRID = 16  # pixels from one compared point to the next
LEAST_SURE = 0.3  # quantile of the confidence below which points do not count
SAME_DEPTH = (0.7, 1.4)  # of two depths of one point: outside, one hides the other
LEAST_POINTS = 5
VGGT, ONE_ALIGN = "vggt-omega", "onealign"


@observer(
    id="import.geometry_error", version=1, kind="file", makes=GeometryError, artifact="geometry",
    inputs=("model", "annotations"), sets=ALL_SETS,
)  # fmt: skip
def read_geometry_error(path: Path, model: str, annotations: Mapping[str, Any]) -> GeometryError:
    """How far the points of each frame are from what the others reconstruct there."""
    if path.suffix == ".json":
        entry = read_result_entry(path, model, annotations)
        with raise_media_errors_naming_file(path):
            median = _require_number(entry, "global_median_e", missing=np.nan)
            shared = _require_number(entry, "covis_ratio", 0.0)
            return GeometryError(np.zeros(0, np.int64), np.zeros(0), median, shared, VGGT)
    geometry = read_geometry(path)
    with raise_media_errors_naming_file(path):
        if geometry.depth is None or geometry.refused:
            raise MediaError(geometry.refused or "it has no depth, and points cannot be compared without")
        names = [name for name in ("conf", "depth_conf") if name in array_shapes_in_npz(path)]
        sure = np.asarray(load_npz(path, members=names[:1])[names[0]]) if names else np.ones(geometry.depth.shape)
        sure = sure.reshape(geometry.depth.shape)
        errors, shared = point_errors_and_visible_share(geometry.c2w, geometry.intrinsics, geometry.depth, sure)
    index = geometry.frame if len(geometry.frame) else np.arange(len(errors))
    all_errors = np.concatenate([*errors, np.zeros(0)])
    medians = np.array([np.median(one) if len(one) else np.nan for one in errors])
    overall = float(np.median(all_errors)) if len(all_errors) else float("nan")
    return GeometryError(index, medians, overall, shared, geometry.maker)


def point_errors_and_visible_share(
    c2w: np.ndarray, intrinsics: np.ndarray, depth: np.ndarray, confidence: np.ndarray
) -> tuple[list[np.ndarray], float]:
    """Errors of the points of each frame in all others, in median depths, and the share that both frames see.

    Examples
    --------
    >>> lens = np.tile(np.array([[32.0, 0, 32], [0, 32.0, 24], [0, 0, 1]]), (2, 1, 1))
    >>> wall = np.full((2, 48, 64), 2.0)
    >>> errors, shared = point_errors_and_visible_share(np.tile(np.eye(4), (2, 1, 1)), lens, wall, np.ones_like(wall))
    >>> float(errors[0].max()), shared
    (0.0, 1.0)
    """
    count, height, width = depth.shape
    y, x = np.mgrid[:height, :width].astype(np.float64)
    w2c, scale = invert_rigid_poses(c2w), float(np.median(depth[depth > 1e-6]))
    least = float(np.quantile(confidence, LEAST_SURE))
    focal, centre = intrinsics[:, [0, 1], [0, 1]], intrinsics[:, :2, 2]

    def pixels_to_world(k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        z = depth[k, rows, columns].astype(np.float64)
        rays = (np.stack([columns, rows], axis=1) - centre[k]) / focal[k]
        return np.asarray(np.c_[rays * z[:, None], z] @ c2w[k, :3, :3].T + c2w[k, :3, 3])

    rows, columns = (grid[::GRID, ::GRID].ravel().astype(np.int64) for grid in (y, x))
    errors: list[np.ndarray] = []
    visible, inside_all = 0, 0
    for i in range(count):
        good = (confidence[i, rows, columns] >= least) & (depth[i, rows, columns] > 0)
        points = pixels_to_world(i, rows[good], columns[good])
        mine = [np.zeros(0)]
        for j in range(count):
            if i == j:
                continue
            local = points @ w2c[j, :3, :3].T + w2c[j, :3, 3]
            front = np.maximum(local[:, 2:], 1e-6)
            place = np.floor(local[:, :2] / front * focal[j] + centre[j])
            inside = (local[:, 2] > 1e-6) & (place >= 0).all(axis=1) & (place < (width, height)).all(axis=1)
            if inside.sum() < LEAST_POINTS:
                continue
            inside_all += int(inside.sum())
            at = place[inside].astype(np.int64)
            there = depth[j, at[:, 1], at[:, 0]]
            ratio = local[inside, 2] / np.maximum(there, 1e-6)
            both = (ratio > SAME_DEPTH[0]) & (ratio < SAME_DEPTH[1]) & (confidence[j, at[:, 1], at[:, 0]] >= least)
            visible += int(both.sum())
            if both.sum() >= LEAST_POINTS:
                other = pixels_to_world(j, at[both, 1], at[both, 0])
                mine.append(np.linalg.norm(points[inside][both] - other, axis=1) / scale)
        errors.append(np.concatenate(mine))
    return errors, visible / max(inside_all, 1)


@observer(
    id="import.video_rating", version=1, kind="file", makes=VideoRating, artifact="ratings",
    inputs=("model", "annotations"), sets=ALL_SETS,
)  # fmt: skip
def read_video_rating(path: Path, model: str, annotations: Mapping[str, Any]) -> VideoRating:
    """OneAlign's ratings of quality and aesthetics."""
    entry = read_result_entry(path, model, annotations)
    with raise_media_errors_naming_file(path):
        quality, aesthetic = (_require_number(entry, f"qalign_{part}") for part in ("quality", "aesthetic"))
        return VideoRating(quality, aesthetic, int(_require_number(entry, "n_frames", 0.0)), ONE_ALIGN)


def read_result_entry(path: Path, model: str, annotations: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a result file of the public evaluator says of a clip."""
    key = f"{model}__{annotations.get('name', '')}"
    with raise_media_errors_naming_file(path):
        content = read_json_object(path, '{"<model>__<image>_<action>": {...}}')
        entry = content.get(key)
        if not isinstance(entry, dict):
            raise MediaError(f"it has no entry {key!r}")
        return entry


def _require_number(entry: Mapping[str, Any], name: str, missing: float | None = None) -> float:
    value = missing if entry.get(name) is None else entry[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MediaError(f"its {name} is {str(value)[:40]!r}; expected a number")
    return float(value)
