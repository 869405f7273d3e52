"""Neighbouring frames, whole frames by CLIP ViT-B/32, and points of frames with depth, carried to the next one.

Depth and poses of these points come from the file beside the clip (Depth Anything 3's, at three frames a second). Of
every frame 5000 are drawn, always the same ones: the public evaluator draws others in every run.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import ANY_SET, Batch, ClipInfo, FrameStream, observer
from revisit.geometry.fold_pairs import frame_numbers_of_poses
from revisit.geometry.two_view import project_pixels_to_second_view, relative_pose, sample_nearest_depth
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.observers.geometry_file import Geometry, read_geometry
from revisit.suites.wbench.evidence import BackgroundVectors, NeighbourDifference, Reprojections

CLIP = "clip-vit-b-32-openai"
RATE = 2.0
POINTS = 5000
LEAST = 100  # points that two frames share
SEED = 0


def choose_two_frames_per_second(count: int, fps: float, **_: Any) -> np.ndarray:
    """Every so many frames that two of them are a second."""
    return np.arange(0, count, max(1, round(fps / RATE)))


@observer(
    id="paper.wb_background", version=1, kind="frame", makes=BackgroundVectors, choose=choose_two_frames_per_second,
    weights=(CLIP,),
    sets=("paper",),
)  # fmt: skip
def clip_background_vectors(batch: Batch) -> BackgroundVectors:
    """Vectors of frames by CLIP ViT-B/32 of OpenAI."""
    from revisit.networks import clip, runtime

    with runtime.inference(clip.HALF):
        vectors = clip.network(CLIP).images(runtime.channels_first_on_device(batch.rgb))
    return BackgroundVectors(batch.index, runtime.to_numpy(vectors), CLIP)


@observer(id="lite.wb_neighbours", version=1, kind="sequence", makes=NeighbourDifference, sets=(ANY_SET,))
def observe_neighbour_difference(clip: ClipInfo) -> FrameStream:
    """Mean absolute difference of each frame from the one before it, over pixels and channels."""
    import cv2

    rows: list[tuple[int, float]] = []
    before: np.ndarray | None = None
    while (frame := (yield)) is not None:
        if before is not None:
            rows.append((frame.index, float(np.mean(cv2.mean(cv2.absdiff(frame.rgb, before))[:3])) / 255))
        before = frame.rgb
    index, difference = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    return NeighbourDifference(index.astype(np.int64), difference)


@observer(
    id="lite.wb_reprojections", version=1, kind="sequence", makes=Reprojections, inputs=("artifacts.da3",),
    sets=(ANY_SET,),
)  # fmt: skip
def observe_reprojections(clip: ClipInfo, path: Path, *, convention: str = "auto", seed: int = SEED) -> FrameStream:
    """Colours and depths of points of each frame against those where they land in the next one."""
    import cv2

    geometry = read_geometry(path, convention)
    with raise_media_errors_naming_file(path):
        numbers, _ = frame_numbers_of_poses(len(geometry.c2w), geometry.frame, clip.count)
    row_of = {int(number): row for row, number in enumerate(numbers)}
    pictures: dict[int, np.ndarray] = {}
    while (frame := (yield)) is not None:
        if frame.index in row_of:
            size = geometry.width, geometry.height
            pictures[row_of[frame.index]] = cv2.resize(frame.rgb, size, interpolation=cv2.INTER_AREA)
    refused = geometry.refused or ("" if geometry.depth is not None else "the file has no depth")
    rows = [] if refused else [pair for pair in pairwise(range(len(numbers))) if set(pair) <= pictures.keys()]
    errors = [_reprojection_errors_of_pair(geometry, pictures, a, b, np.random.default_rng([seed, a])) for a, b in rows]
    valid = [k for k, error in enumerate(errors) if error is not None]
    table = np.array([errors[k] for k in valid], dtype=float).reshape(-1, 3)
    first, second = (np.array([numbers[rows[k][side]] for k in valid], dtype=np.int64) for side in (0, 1))
    return Reprojections(first, second, table[:, 0], table[:, 1], table[:, 2].astype(np.int64), refused, geometry.maker)


def _reprojection_errors_of_pair(
    geometry: Geometry, pictures: dict[int, np.ndarray], a: int, b: int, rng: np.random.Generator
) -> tuple[float, float, int] | None:
    """Squared error of colours, median relative error of depths, and how many points both frames share."""
    assert geometry.depth is not None
    pose = relative_pose(geometry.c2w[a], geometry.c2w[b])
    pixels, z = project_pixels_to_second_view(geometry.depth[a], geometry.intrinsics[a], geometry.intrinsics[b], *pose)
    there = sample_nearest_depth(geometry.depth[b], pixels)
    shared = np.flatnonzero(((geometry.depth[a] > 0) & (there > 0) & (z > 0)).ravel())
    shared = rng.permutation(shared)[:POINTS]
    if len(shared) < LEAST:
        return None
    at = np.rint(pixels.reshape(-1, 2)[shared]).astype(int)
    colours = pictures[a].reshape(-1, 3)[shared].astype(float), pictures[b][at[:, 1], at[:, 0]].astype(float)
    mse = float((((colours[0] - colours[1]) / 255) ** 2).mean())
    depth = float(np.median(np.abs(z.ravel()[shared] - there.ravel()[shared]) / there.ravel()[shared]))
    return mse, depth, len(shared)
