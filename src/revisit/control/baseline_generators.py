"""Baseline generators, without a network: every suite runs end to end with them, and every table has its floors.

- `hold`: the first frame, held;
- `pan`: the first frame, turned as the camera is asked to turn; what is beyond its edges is its mirror image;
- `repeat`: the end of the context clip, or of the source video, once more.

Their rows are floors: a model that remembers anything does better. `worlds.on_demand` has one that renders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.jobs import JobRequest
from revisit.control.requested_path import intrinsics
from revisit.core import Clip, UsageError
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.media import open_clip

SWEEP = 30.0  # degrees out and back, where no path is requested


def repeat_first_frame(job: JobRequest) -> Iterator[np.ndarray]:
    """The first frame, in every frame."""
    first = _first_frame_or_grey(job)
    yield from (first for _ in range(job["frames"]))


def turn_first_frame(job: JobRequest) -> Iterator[np.ndarray]:
    """The first frame as a wall around the camera, mirrored beyond its left and right edge, under the asked turns."""
    import cv2

    first = _first_frame_or_grey(job)
    width, height = job["size"]
    K = intrinsics((width, height))
    edge = np.arctan(width / 2 / K[0, 0])
    x, y = np.meshgrid((np.arange(width) + 0.5 - K[0, 2]) / K[0, 0], (np.arange(height) + 0.5 - K[1, 2]) / K[1, 1])
    rays = np.stack([x, y, np.ones_like(x)], axis=-1)
    for turn in _requested_rotations(job):
        if np.abs(turn - np.eye(3)).max() < 1e-9:
            yield first
            continue
        X, Y, Z = np.moveaxis(rays @ turn.T, -1, 0)
        around = np.arctan2(X, Z)
        horizontal = np.tan(edge - np.abs((around + edge) % (4 * edge) - 2 * edge))  # back and forth between the edges
        up = Y / np.hypot(X, Z) * np.hypot(horizontal, 1)
        map_x, map_y = K[0, 0] * horizontal + K[0, 2] - 0.5, K[1, 1] * up + K[1, 2] - 0.5
        yield cv2.remap(
            first, map_x.astype(np.float32), map_y.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
        )


def repeat_last_seen_frames(job: JobRequest) -> Iterator[np.ndarray]:
    """The last frames of what was seen before, played once more; from the start again where they are too few."""
    import cv2

    context, source = job["inputs"]["context"], job["inputs"]["source_video"]
    if context:
        clip = Clip(Path(context["video"]), start=context["start"], count=context["frames"])
    elif source:
        clip = Clip(Path(source))
    else:
        raise UsageError("this job has neither a context clip nor a source video, so there is nothing to repeat")
    frame_count = int(job["frames"])
    with open_clip(clip, wanted=lambda count, _: np.arange(max(0, count - frame_count), count)) as stream:
        frames = [cv2.resize(frame.rgb, tuple(job["size"]), interpolation=cv2.INTER_AREA) for frame in stream]
    yield from islice((frame for _ in range(frame_count) for frame in frames), frame_count)


BASELINE_GENERATORS: dict[str, Callable[[JobRequest], Any]] = {
    "hold": repeat_first_frame,
    "pan": turn_first_frame,
    "repeat": repeat_last_seen_frames,
}


def _first_frame_or_grey(job: JobRequest) -> np.ndarray:
    """The first frame at the asked size; grey where the job has none, as a model without it knows nothing."""
    import cv2

    width, height = job["size"]
    if not job["inputs"]["image"]:
        return np.full((height, width, 3), 127, np.uint8)
    picture = cv2.imdecode(np.fromfile(job["inputs"]["image"], np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise UsageError(f"{job['inputs']['image']}: no picture that can be read")
    return np.ascontiguousarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)[..., ::-1])


def _requested_rotations(job: JobRequest) -> np.ndarray:
    """Rotations (frames, 3, 3) from the first view, as asked; out and back by a sweep where nothing was asked."""
    frames = int(job["frames"])
    path = job["control"].get("path")
    if not path:
        there = np.linspace(0, 2, frames)
        return np.stack([rotation_from_axis_angle((0, 1, 0), SWEEP * min(share, 2 - share)) for share in there])
    c2w = np.load(path, allow_pickle=False)
    return np.asarray(c2w[0, :3, :3].T @ c2w[:, :3, :3])
