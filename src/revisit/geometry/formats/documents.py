"""JSON documents with poses: transforms.json of NeRF tools, action files recorded in Unreal, and lists of matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from revisit.core.text import parse_json
from revisit.geometry.formats.text import frame_numbers_from_names, natural_sort_key
from revisit.geometry.poses import InvalidPoses, Trajectory, from_opengl, from_unreal, make_trajectory

MATRIX = "a transform_matrix of 4 rows of 4 numbers"


def parse_transforms(text: str) -> Trajectory:
    """The trajectory of a transforms.json: camera-to-world with OpenGL axes, as NeRF and Blender write them.

    Frames are sorted by file_path where all have one, and numbered by it. Intrinsics in pixels are taken from
    fl_x, fl_y, cx, cy or camera_angle_x with w and h; lens distortion is ignored.
    """
    document = _parse_json_object(text)
    frames = document.get("frames")
    if not isinstance(frames, list) or not frames or not all(isinstance(frame, dict) for frame in frames):
        raise InvalidPoses(f"the document has no list of frames; expected {{'frames': [...]}}, each with {MATRIX}")
    matrices = np.stack([_parse_4x4_matrix(frame.get("transform_matrix"), k) for k, frame in enumerate(frames)])
    order, times = list(range(len(frames))), np.arange(len(frames))
    names = [frame.get("file_path") for frame in frames]
    if all(isinstance(name, str) for name in names):
        order = sorted(order, key=lambda k: natural_sort_key(names[k]))
        times = frame_numbers_from_names([names[k] for k in order])
    lenses = [_intrinsic_matrix_or_none({**document, **frames[k]}) for k in order]
    intrinsics = None if any(lens is None for lens in lenses) else np.array(lenses)
    return make_trajectory(from_opengl(matrices[order]), times, intrinsics=intrinsics)


def parse_c2w_document(text: str) -> Trajectory:
    """The trajectory of {"c2w": matrices, "coordinate_convention": "opencv_c2w"}, as WRBench's tools write it."""
    document = _parse_json_object(text)
    convention = document.get("coordinate_convention", "opencv_c2w")
    if convention != "opencv_c2w":
        raise InvalidPoses(f"its coordinate_convention is {convention!r}; expected opencv_c2w")
    matrices = document.get("c2w")
    if not isinstance(matrices, list) or not matrices:
        raise InvalidPoses(
            f"the document has no list 'c2w'; expected {MATRIX.replace('a transform_matrix', 'matrices')}"
        )
    return make_trajectory(np.stack([_parse_4x4_matrix(one, k) for k, one in enumerate(matrices)]))


def parse_unreal(text: str) -> Trajectory:
    """The trajectory of an action file: {"data": rows}, see `from_unreal_rows`."""
    rows = _parse_json_object(text).get("data")
    if not isinstance(rows, list):
        raise InvalidPoses("the document has no list 'data'; expected one row per frame with actor_pos and actor_rpy")
    return from_unreal_rows(rows)


def from_unreal_rows(rows: Sequence[Mapping[str, object]]) -> Trajectory:
    """The trajectory, in metres, of rows with `time` (a frame number), `<who>_pos` and `<who>_rpy`.

    Positions are {x, y, z} in centimetres, rotations {x: roll, y: pitch, z: yaw} in degrees, in Unreal's axes.
    A third-person recording has a camera beside the actor; the camera is taken where there is one.
    """
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidPoses("there are no rows with poses; expected one object per frame with actor_pos and actor_rpy")
    who = "camera" if "camera_pos" in rows[0] else "actor"
    positions, angles, times = [], [], []
    for k, row in enumerate(rows):
        positions.append(_parse_xyz(row, k, f"{who}_pos", "in centimetres"))
        angles.append(_parse_xyz(row, k, f"{who}_rpy", "with roll, pitch, yaw in degrees"))
        times.append(_require_finite_number(row.get("time", k), f"row {k}: time", "a frame number"))
    return make_trajectory(from_unreal(np.array(positions), np.array(angles)), np.array(times), scale="metres")


def _parse_json_object(text: str) -> dict[str, Any]:
    try:
        document = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPoses(f"this is not a JSON document ({error}); expected an object in braces") from error
    if not isinstance(document, dict):
        raise InvalidPoses(f"the document is a {type(document).__name__}; expected an object in braces")
    return document


def _parse_4x4_matrix(value: object, frame: int) -> np.ndarray:
    rows = value if isinstance(value, list) else []
    if [len(row) if isinstance(row, list) else 0 for row in rows] != [4] * 4:
        raise InvalidPoses(f"frame {frame} has no pose; expected {MATRIX}")
    where = f"frame {frame}: the transform_matrix"
    return np.array([[_require_finite_number(x, where, "a number") for x in row] for row in rows])


def _intrinsic_matrix_or_none(values: Mapping[str, object]) -> list[list[float]] | None:
    """The intrinsic matrix in pixels, or None when the document does not say."""
    numbers = {
        name: _require_finite_number(values[name], name, "a number")
        for name in ("fl_x", "fl_y", "cx", "cy", "w", "h", "camera_angle_x")
        if values.get(name) is not None
    }
    if "fl_x" not in numbers and {"camera_angle_x", "w"} <= numbers.keys() and 0 < numbers["camera_angle_x"] < math.pi:
        numbers["fl_x"] = numbers["w"] / 2 / math.tan(numbers["camera_angle_x"] / 2)
    for name, half in (("cx", "w"), ("cy", "h")):
        if name not in numbers and half in numbers:
            numbers[name] = numbers[half] / 2
    if not {"fl_x", "cx", "cy"} <= numbers.keys():
        return None
    return [[numbers["fl_x"], 0, numbers["cx"]], [0, numbers.get("fl_y", numbers["fl_x"]), numbers["cy"]], [0, 0, 1]]


def _parse_xyz(row: Mapping[str, object], k: int, name: str, unit: str) -> list[float]:
    value = row.get(name)
    if not isinstance(value, Mapping) or not {"x", "y", "z"} <= value.keys():
        raise InvalidPoses(f"row {k} has no {name}; expected {{'x': ..., 'y': ..., 'z': ...}} {unit}")
    return [_require_finite_number(value[axis], f"row {k}: {name}.{axis}", "a number") for axis in "xyz"]


def _require_finite_number(value: object, where: str, expected: str) -> float:
    number = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # integers of hundreds of digits
            number = float(value)
    if not math.isfinite(number):
        raise InvalidPoses(f"{where} is {str(value)[:40]!r}; expected {expected}")
    return number
