"""Camera text: lines of 19 columns, as CameraCtrl and its descendants read them.

The first line is skipped unread by most readers and parsed by some, so the first row stands there twice. Then one row
per pose: time in microseconds, fx fy cx cy divided by the picture's size, two zeros, and the 3x4 world-to-camera
matrix row by row, parted by one blank.

- `assumes: [1280, 720]`: the reader takes the intrinsics for those of a picture of this shape and stretches them to the
  sample's. Without it they are divided by the sample's own width and height.
- `lens: [fx, fy]`: the model's own numbers, written as they are instead of those of the plan.
- `every: 3`: the reader keeps every third row.
- `inverted_turns: true`: a path that turns is written inverted, as WRBench does for GameCraft.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.control.payloads.family import (
    Family,
    Files,
    LoadedPath,
    PayloadError,
    PayloadRequest,
    checked_poses,
    relative_to_first,
)
from revisit.geometry.poses import invert, resample, trajectory
from revisit.geometry.rotations import to_yaw_pitch

COLUMNS = 19


def write(
    ask: PayloadRequest,
    *,
    assumes: Sequence[int] | None = None,
    lens: Sequence[float] | None = None,
    every: int = 1,
    inverted_turns: bool = False,
) -> dict[str, bytes]:
    """The text of a path."""
    c2w = resample(trajectory(ask.c2w), np.linspace(0, len(ask.c2w) - 1, (len(ask.c2w) - 1) * every + 1)).c2w
    inverted = inverted_turns and float(np.abs(to_yaw_pitch(c2w[:, :3, :3])[0]).max()) > 1e-6
    fx, fy = lens or _relative_focal_lengths(ask, assumes)
    rows = []
    for k, pose in enumerate(c2w if inverted else invert(c2w)):
        values = [fx, fy, 0.5, 0.5, 0, 0, *(pose[:3].ravel() + 0.0)]
        rows.append(
            " ".join([str(round(k * 1e6 / (ask.plan.fps * every))), *(f"{value:.12g}" for value in values)]) + "\n"
        )
    return {"txt": "".join([rows[0], *rows]).encode()}


def read(
    files: Files,
    count: int,
    *,
    assumes: Sequence[int] | None = None,
    lens: Sequence[float] | None = None,
    every: int = 1,
    inverted_turns: bool = False,
) -> LoadedPath:
    """The path that a reader takes from such a text: its first line is skipped, and every so many rows are kept."""
    try:
        rows = [[float(word) for word in line.split(" ")] for line in files["txt"].decode().splitlines()[1:]]
        table = np.array(rows, dtype=float)
        if table.ndim != 2 or table.shape[1] != COLUMNS:
            raise ValueError(f"the rows make a table of shape {table.shape}")
    except (UnicodeDecodeError, ValueError) as error:
        raise PayloadError(f"expected a line to skip and rows of {COLUMNS} numbers: {error}") from error
    c2w = invert(checked_poses(table[::every, 7:].reshape(-1, 3, 4)))
    return LoadedPath(np.arange(len(c2w)), relative_to_first(c2w))


def _relative_focal_lengths(ask: PayloadRequest, assumes: Sequence[int] | None) -> tuple[float, float]:
    """Focal lengths divided by the width and height that the reader multiplies them with."""
    width, height = (float(side) for side in ask.plan.size)
    lens = ask.lens(ask.plan.size)
    if assumes is not None:
        # The reader fits a picture of that shape over the sample, and so stretches the side that is cut.
        shape = assumes[0] / assumes[1]
        width, height = max(width, height * shape), max(height, width / shape)
    return float(lens[0, 0] / width), float(lens[1, 1] / height)


CAMERA_TEXT = Family(
    "camera_text", "Camera text of 19 columns", ("txt",),
    "a line to skip, then per row: time fx fy cx cy 0 0 + 3x4 world-to-camera; intrinsics divided", write, read,
    options=("assumes", "lens", "every", "inverted_turns"),
)  # fmt: skip
