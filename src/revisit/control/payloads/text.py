"""Camera text: RealEstate10K's lines, as CameraCtrl and its descendants read them.

An address, then one line per frame: time in microseconds, fx fy cx cy divided by the picture's width and height,
two zeros, and the 3x4 world-to-camera matrix row by row: 19 columns.
"""

from __future__ import annotations

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.family import Delivered, Family, PayloadError, relative
from revisit.geometry.formats import parse_realestate10k
from revisit.geometry.poses import InvalidPoses, invert

ADDRESS = "https://example.org/camera-script"  # the first line names a source; readers skip it


def write(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """The text of a path."""
    assert plan.path.intrinsics is not None
    width, height = plan.size
    lines = [ADDRESS]
    for k, (pose, matrix) in enumerate(zip(invert(c2w), plan.path.intrinsics, strict=True)):
        lens = [matrix[0, 0] / width, matrix[1, 1] / height, matrix[0, 2] / width, matrix[1, 2] / height]
        numbers = [*lens, 0, 0, *pose[:3].ravel()]
        lines.append(" ".join([str(round(k * 1e6 / plan.fps)), *(f"{number:.12g}" for number in numbers)]))
    return ("\n".join(lines) + "\n").encode()


def read(content: bytes) -> Delivered:
    """The path of such a text."""
    try:
        path = parse_realestate10k(content.decode())
    except (InvalidPoses, UnicodeDecodeError) as error:
        raise PayloadError(f"the camera text cannot be read: {error}") from error
    return Delivered(np.arange(len(path)), relative(path.c2w))


CAMERA_TEXT = Family(
    "camera_text", "Camera text of 19 columns", ".txt",
    "time fx fy cx cy 0 0 + 3x4 world-to-camera; intrinsics divided by width and height", write, read,
)  # fmt: skip
