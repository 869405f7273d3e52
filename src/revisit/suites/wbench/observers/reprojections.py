"""Points of each frame with depth, carried to the next one: do colours and depths agree there?

Depth and poses come from the file beside the clip (Depth Anything 3's, at three frames a second). Of every frame 5000
points are drawn, always the same ones: the public evaluator draws others in every run.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from revisit.core import ANY_SET, ClipInfo, FrameStream, observer
from revisit.geometry.depth_views import landing, sample_depth
from revisit.geometry.fold_pairs import frame_numbers
from revisit.geometry.two_view import relative_pose
from revisit.media.error_names import naming_clip
from revisit.observers.geometry_file import Geometry, read_geometry
from revisit.suites.wbench.evidence import Reprojections

POINTS = 5000
LEAST = 100  # points that two frames share
SEED = 0


@observer(
    id="lite.wb_reprojections", version=1, kind="sequence", makes=Reprojections, inputs=("artifacts.da3",),
    sets=(ANY_SET,),
)  # fmt: skip
def reprojections(clip: ClipInfo, path: Path, *, convention: str = "auto", seed: int = SEED) -> FrameStream:
    """Colours and depths of points of each frame against those where they land in the next one."""
    import cv2

    geometry = read_geometry(path, convention)
    with naming_clip(path):
        numbers, _ = frame_numbers(len(geometry.c2w), geometry.frame, clip.count)
    row_of = {int(number): row for row, number in enumerate(numbers)}
    pictures: dict[int, np.ndarray] = {}
    while (frame := (yield)) is not None:
        if frame.index in row_of:
            size = geometry.width, geometry.height
            pictures[row_of[frame.index]] = cv2.resize(frame.rgb, size, interpolation=cv2.INTER_AREA)
    refused = geometry.refused or ("" if geometry.depth is not None else "the file has no depth")
    rows = [] if refused else [pair for pair in pairwise(range(len(numbers))) if set(pair) <= pictures.keys()]
    errors = [_pair(geometry, pictures, a, b, np.random.default_rng([seed, a])) for a, b in rows]
    valid = [k for k, error in enumerate(errors) if error is not None]
    table = np.array([errors[k] for k in valid], dtype=float).reshape(-1, 3)
    first, second = (np.array([numbers[rows[k][side]] for k in valid], dtype=np.int64) for side in (0, 1))
    return Reprojections(first, second, table[:, 0], table[:, 1], table[:, 2].astype(np.int64), refused, geometry.maker)


def _pair(
    geometry: Geometry, pictures: dict[int, np.ndarray], a: int, b: int, rng: np.random.Generator
) -> tuple[float, float, int] | None:
    """Squared error of colours, median relative error of depths, and how many points both frames share."""
    assert geometry.depth is not None
    pose = relative_pose(geometry.c2w[a], geometry.c2w[b])
    pixels, z = landing(geometry.depth[a], geometry.intrinsics[a], geometry.intrinsics[b], *pose)
    there = sample_depth(geometry.depth[b], pixels)
    shared = np.flatnonzero(((geometry.depth[a] > 0) & (there > 0) & (z > 0)).ravel())
    shared = rng.permutation(shared)[:POINTS]
    if len(shared) < LEAST:
        return None
    at = np.rint(pixels.reshape(-1, 2)[shared]).astype(int)
    colours = pictures[a].reshape(-1, 3)[shared].astype(float), pictures[b][at[:, 1], at[:, 0]].astype(float)
    mse = float((((colours[0] - colours[1]) / 255) ** 2).mean())
    depth = float(np.median(np.abs(z.ravel()[shared] - there.ravel()[shared]) / there.ravel()[shared]))
    return mse, depth, len(shared)
