"""Tables of a camera track with named columns: Unreal's export as MemoBench ships it, `camera_full{n}.csv`.

Columns loc_x, loc_y, loc_z (Unreal's units), rot_x, rot_y, rot_z (radians) and, optionally, fx, fy, cx, cy (pixels), a
row per frame. The camera to world is [Rz Ry Rx | loc] diag(1, -1, -1, 1), where every elementary rotation turns against
the right-handed sense: Rz(a) = [[cos a, sin a, 0], [-sin a, cos a, 0], [0, 0, 1]]. The last factor turns a camera that
looks along -z into OpenCV's.
"""

from __future__ import annotations

import csv

import numpy as np

from revisit.core.text import join_names
from revisit.geometry.formats.arrays import to_intrinsic_matrices
from revisit.geometry.poses import InvalidPoses, Trajectory, make_rigid_poses, make_trajectory

PLACE, TURN, LENS = ("loc_x", "loc_y", "loc_z"), ("rot_x", "rot_y", "rot_z"), ("fx", "fy", "cx", "cy")
TO_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])


def parse_camera_table(text: str) -> Trajectory:
    """The trajectory of a table with the columns loc_x .. rot_z, one row per frame."""
    try:
        rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidPoses(f"this is not a CSV file ({error})") from None
    heads = [cell.strip().lower() for cell in rows[0]] if rows else []
    missing = [name for name in (*PLACE, *TURN) if name not in heads]
    if missing or len(rows) < 2:
        columns = join_names(heads, 13) or "no columns"
        raise InvalidPoses(
            f"the table has {max(len(rows) - 1, 0)} rows of {columns}; expected {', '.join((*PLACE, *TURN))} and one "
            "row per frame"
        )
    place, angles = _number_columns(rows, heads, PLACE), _number_columns(rows, heads, TURN)
    axes = ((2, 0, 1), (1, 2, 0), (0, 1, 2))
    z, y, x = (_left_handed_rotations(angles[:, axis], first, second) for axis, first, second in axes)
    has_lens = all(name in heads for name in LENS)
    intrinsics = to_intrinsic_matrices(_number_columns(rows, heads, LENS), len(place)) if has_lens else None
    return make_trajectory(make_rigid_poses(z @ y @ x, place) @ TO_OPENCV, intrinsics=intrinsics)


def _left_handed_rotations(angle: np.ndarray, first: int, second: int) -> np.ndarray:
    """Rotations (N, 3, 3) from the second axis towards the first: against the right-handed sense."""
    rotations = np.tile(np.eye(3), (len(angle), 1, 1))
    rotations[:, first, first] = rotations[:, second, second] = np.cos(angle)
    rotations[:, first, second], rotations[:, second, first] = np.sin(angle), -np.sin(angle)
    return rotations


def _number_columns(rows: list[list[str]], heads: list[str], names: tuple[str, ...]) -> np.ndarray:
    at = [heads.index(name) for name in names]
    values = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            values.append([float(row[k]) for k in at])
        except (ValueError, IndexError):
            raise InvalidPoses(f"line {number} has no number in each of {', '.join(names)}") from None
    numbers = np.array(values)
    if not np.isfinite(numbers).all():
        raise InvalidPoses(f"a value of {', '.join(names)} is not finite; expected numbers")
    return numbers
