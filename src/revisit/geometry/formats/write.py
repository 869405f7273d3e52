"""Writers: a Trajectory as the text of a TUM, KITTI or COLMAP file, exact to the last digit of a double."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from revisit.geometry.poses import Trajectory
from revisit.geometry.rotations import quaternions_of_rotations


def format_tum(path: Trajectory) -> str:
    """Text of a TUM file: time tx ty tz qx qy qz qw, camera-to-world."""
    xyzw = quaternions_of_rotations(path.rotations)[:, [1, 2, 3, 0]]
    return _number_lines_text(np.column_stack([path.times, path.centres, xyzw]))


def format_kitti(path: Trajectory) -> str:
    """Text of a KITTI file: the 3x4 camera-to-world matrix of each pose, row by row; times are not kept."""
    return _number_lines_text(path.c2w[:, :3].reshape(-1, 12))


def format_colmap(path: Trajectory) -> str:
    """Text of COLMAP's images.txt, without points, for images named `frame_000000.jpg` after the frame's number.

    A trajectory in seconds has no frame numbers; its images are counted from 0.
    """
    numbers = path.times.astype(int)
    numbered = path.time_unit == "frames" and (numbers == path.times).all() and (np.diff(numbers, prepend=-1) > 0).all()
    frames = numbers if numbered else np.arange(len(path))
    rows = zip(frames, quaternions_of_rotations(path.w2c[:, :3, :3]), path.w2c[:, :3, 3], strict=True)
    lines = [
        f"{k} {_exact_numbers_text([*quaternion, *position])} 1 frame_{frame:06d}.jpg\n"
        for k, (frame, quaternion, position) in enumerate(rows, start=1)
    ]
    return "# IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME\n" + "\n".join(lines) + "\n"


def _number_lines_text(rows: np.ndarray) -> str:
    return "".join(f"{_exact_numbers_text(row)}\n" for row in rows)


def _exact_numbers_text(numbers: Iterable[float]) -> str:
    return " ".join(repr(float(number)) for number in numbers)
