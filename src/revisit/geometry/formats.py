"""Formats: camera paths as other programs write them, to and from a Trajectory.

Text and JSON come as a string, npz files as a mapping of arrays; no files are opened here. What a file gets wrong is
told in one sentence: where, what was found, and what was expected.

- Text files with one pose per line: TUM, KITTI, RealEstate10K and COLMAP's images.txt. Lines that are empty or begin
  with # are skipped, numbers are separated by spaces, and what is written is exact to the last digit of a double.
- Tables of a camera track with named columns, and JSON documents: transforms.json of NeRF tools, action files recorded
  in Unreal, and lists of matrices.
- Arrays as pose networks save them: ViPE, VGGT, Depth Anything 3, MapAnything, and bare matrices. Their worlds are
  turned and scaled in ways of their own (Depth Anything 3 does not even begin at the identity), so the scale is
  unknown.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core.text import join_names, parse_json
from revisit.geometry.poses import (
    InvalidPoses,
    Trajectory,
    from_opengl,
    from_unreal,
    from_w2c,
    make_rigid_poses,
    make_trajectory,
    to_4x4_poses,
    to_float_array,
)
from revisit.geometry.rotations import quaternions_of_rotations, rotations_from_quaternions

TUM = "timestamp tx ty tz qx qy qz qw"
KITTI = "the 12 numbers of a 3x4 matrix, row by row"
REALESTATE10K = "timestamp fx fy cx cy 0 0 and the 12 numbers of a 3x4 matrix, row by row"
COLMAP = "ID QW QX QY QZ TX TY TZ CAMERA NAME"
# Quaternions with four decimals are off by 1e-4; other columns taken for a quaternion by far more.
UNIT = 1e-2
LONGEST_NUMBER = 9  # longer ones are time stamps, not frame numbers
PLACE, TURN, LENS = ("loc_x", "loc_y", "loc_z"), ("rot_x", "rot_y", "rot_z"), ("fx", "fy", "cx", "cy")
TO_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])
MATRIX = "a transform_matrix of 4 rows of 4 numbers"


def parse_tum(text: str) -> Trajectory:
    """The trajectory of a TUM file: seconds, then camera-to-world as a position and a quaternion x y z w."""
    lines, rows = _parse_number_table(text, 8, TUM)
    rotation = _rotations_of_unit_quaternions(rows[:, [7, 4, 5, 6]], lines)
    return make_trajectory(_join_3x4_poses(rotation, rows[:, 1:4]), rows[:, 0], time_unit="seconds")


def parse_kitti(text: str) -> Trajectory:
    """The trajectory of a KITTI file: one camera-to-world matrix per line, and no times."""
    _, rows = _parse_number_table(text, 12, KITTI)
    return make_trajectory(rows.reshape(-1, 3, 4))


def parse_realestate10k(text: str) -> Trajectory:
    """The trajectory of a RealEstate10K file: microseconds, intrinsics as shares of the frame, world-to-camera.

    The address of the video in the first line may be missing.
    """
    first, _, following = text.partition("\n")
    body = f"\n{following}" if "://" in first else text  # the empty line keeps the count of lines right
    _, rows = _parse_number_table(body, 19, REALESTATE10K)
    intrinsics = to_intrinsic_matrices(rows[:, 1:5], len(rows))
    c2w = from_w2c(rows[:, 7:].reshape(-1, 3, 4))
    return Trajectory(c2w, rows[:, 0] / 1e6, "seconds", "unknown", intrinsics, "normalised")


def parse_colmap(text: str) -> Trajectory:
    """The trajectory of COLMAP's images.txt, sorted by name: world-to-camera as a quaternion w x y z and a position.

    Every image is followed by a line of its points, which may be empty or missing. Frame numbers are those in
    the names, where they have some.
    """
    images = sorted(_iterate_colmap_images(text), key=lambda image: natural_sort_key(image[0]))
    if not images:
        raise InvalidPoses(f"the file has no images; expected lines of {COLMAP}")
    names, lines, numbers = (list(column) for column in zip(*images, strict=True))
    twice = next((name for name, after in pairwise(names) if name == after), None)
    if twice is not None:
        raise InvalidPoses(f"the image {twice[:80]!r} occurs twice; expected one line per image")
    values = np.array(numbers)
    w2c = _join_3x4_poses(_rotations_of_unit_quaternions(values[:, :4], lines), values[:, 4:7])
    return make_trajectory(from_w2c(w2c), frame_numbers_from_names(names))


def _iterate_colmap_images(text: str) -> Iterator[tuple[str, int, list[float]]]:
    """(name, line, QW QX QY QZ TX TY TZ) of every image."""
    points_may_follow = False
    for line, words in _iterate_word_lines(text):
        if points_may_follow and len(words) % 3 == 0 and None not in map(_float_or_none, words):
            points_may_follow = False
            continue
        image = " ".join(words).split(" ", 9)
        if len(image) != 10:
            raise InvalidPoses(f"line {line} has {len(image)} fields; expected {COLMAP}")
        yield image[9], line, [_parse_finite_number(word, line, COLMAP) for word in image[1:8]]
        points_may_follow = True


def _parse_number_table(text: str, columns: int, layout: str) -> tuple[list[int], np.ndarray]:
    """(line of each row, numbers (N, columns))."""
    lines, rows = [], []
    for line, words in _iterate_word_lines(text):
        if len(words) != columns:
            raise InvalidPoses(f"line {line} has {len(words)} fields; expected {columns}: {layout}")
        lines.append(line)
        rows.append([_parse_finite_number(word, line, layout) for word in words])
    if not rows:
        raise InvalidPoses(f"the file has no poses; expected lines of {layout}")
    return lines, np.array(rows)


def _iterate_word_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, content in enumerate(text.split("\n"), start=1):
        words = content.split()
        if words and not words[0].startswith("#"):
            yield line, words


def _parse_finite_number(word: str, line: int, layout: str) -> float:
    value = _float_or_none(word)
    if value is None or not np.isfinite(value):
        raise InvalidPoses(f"line {line} has {word[:40]!r} where a finite number is expected; expected {layout}")
    return value


def _float_or_none(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _rotations_of_unit_quaternions(wxyz: np.ndarray, lines: list[int]) -> np.ndarray:
    length = np.linalg.norm(wxyz, axis=1)
    off = np.abs(length - 1) > UNIT
    if off.any():
        k = int(np.argmax(off))
        raise InvalidPoses(
            f"line {lines[k]} has a quaternion of length {length[k]:.4g}; expected 1: are the columns in another order?"
        )
    return rotations_from_quaternions(wxyz)


def _join_3x4_poses(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    return np.concatenate([rotation, translation[:, :, None]], axis=2)


def natural_sort_key(name: str) -> list[str | int]:
    """A key that sorts `frame_2` before `frame_10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def frame_numbers_from_names(names: Sequence[str]) -> np.ndarray:
    """Frame numbers (N,) of sorted names: the last number in each, or 0 to N-1 if these do not rise.

    A reconstruction leaves out images it could not place, so the position in a list says little.
    """
    matches = [re.search(r"([0-9]+)[^0-9/]*$", re.sub(r"\.[A-Za-z0-9]+$", "", name)) for name in names]
    texts = [match[1] for match in matches if match and len(match[1]) <= LONGEST_NUMBER]
    numbers = np.array([int(text) for text in texts])
    if len(texts) == len(names) and (np.diff(numbers) > 0).all():
        return numbers
    return np.arange(len(names))


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


def parse_camera_table(text: str) -> Trajectory:
    """The trajectory of a table with named columns: Unreal's export as MemoBench ships it, `camera_full{n}.csv`.

    Columns loc_x, loc_y, loc_z (Unreal's units), rot_x, rot_y, rot_z (radians) and, optionally, fx, fy, cx, cy
    (pixels), a row per frame. The camera to world is [Rz Ry Rx | loc] diag(1, -1, -1, 1), where every elementary
    rotation turns against the right-handed sense: Rz(a) = [[cos a, sin a, 0], [-sin a, cos a, 0], [0, 0, 1]]. The last
    factor turns a camera that looks along -z into OpenCV's.
    """
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


def from_w2c_array(
    w2c: np.ndarray, *, intrinsics: np.ndarray | None = None, times: np.ndarray | None = None
) -> Trajectory:
    """The trajectory of world-to-camera matrices (N, 3, 4) or (N, 4, 4), such as VGGT's extrinsics."""
    return from_c2w_array(from_w2c(w2c), intrinsics=intrinsics, times=times)


def from_c2w_array(
    c2w: np.ndarray, *, intrinsics: np.ndarray | None = None, times: np.ndarray | None = None
) -> Trajectory:
    """The trajectory of camera-to-world matrices; intrinsics in pixels, in any shape `to_intrinsic_matrices` takes."""
    poses = to_4x4_poses(c2w)
    lens = None if intrinsics is None else to_intrinsic_matrices(intrinsics, len(poses))
    return make_trajectory(poses, times, intrinsics=lens)


def from_vipe(arrays: Mapping[str, np.ndarray]) -> Trajectory:
    """The trajectory of a ViPE pose file: `data`, camera-to-world, and `inds`, the frame numbers."""
    return from_c2w_array(_require_array(arrays, "data", "ViPE"), times=_require_array(arrays, "inds", "ViPE"))


def from_depth_anything(arrays: Mapping[str, np.ndarray]) -> Trajectory:
    """The trajectory of a Depth Anything 3 file: `extrinsics`, and `intrinsics` in pixels of the processed frames.

    The network writes world-to-camera; people who convert it to camera-to-world keep the name. The array `convention`
    of the file says which it is; without it, it is taken as written by the network. `frame_indices` numbers the frames
    where only some were processed.
    """
    poses, lens = _require_array(arrays, "extrinsics", "Depth Anything 3"), arrays.get("intrinsics")
    build = from_c2w_array if _is_camera_to_world(arrays) else from_w2c_array
    return build(poses, intrinsics=lens, times=arrays.get("frame_indices"))


def from_vggt(arrays: Mapping[str, np.ndarray]) -> Trajectory:
    """The trajectory of a VGGT file: world-to-camera `extrinsic`, and `intrinsic` in pixels of the processed frames."""
    poses, lens = _without_batch_axis(_require_array(arrays, "extrinsic", "VGGT")), arrays.get("intrinsic")
    return from_w2c_array(poses, intrinsics=None if lens is None else _without_batch_axis(lens))


def _without_batch_axis(values: np.ndarray) -> np.ndarray:
    """Arrays of one clip; networks keep an axis of batches in front."""
    return values[0] if values.ndim == 4 and len(values) == 1 else values


def from_mapanything(arrays: Mapping[str, np.ndarray]) -> Trajectory:
    """The trajectory of a MapAnything file: `cam_c2w` or `camera_poses`, and `intrinsic` or `intrinsics` in pixels."""
    name = "camera_poses" if "camera_poses" in arrays else "cam_c2w"
    lens = arrays.get("intrinsic", arrays.get("intrinsics"))
    return from_c2w_array(_require_array(arrays, name, "MapAnything"), intrinsics=lens)


def to_intrinsic_matrices(values: np.ndarray, n: int) -> np.ndarray:
    """Matrices (N, 3, 3) of one or N matrices, or of one or N rows fx fy cx cy."""
    array = to_float_array(values, "intrinsics")
    if array.shape in ((4,), (n, 4)):
        matrices = np.tile(np.eye(3), (n, 1, 1))
        matrices[:, [0, 1, 0, 1], [0, 1, 2, 2]] = array
        return matrices
    if array.shape in ((3, 3), (n, 3, 3)):
        return np.broadcast_to(array, (n, 3, 3))
    raise InvalidPoses(
        f"the intrinsics have shape {array.shape}; {n} poses need (3, 3) or ({n}, 3, 3), "
        f"or fx fy cx cy as (4,) or ({n}, 4)"
    )


def _require_array(arrays: Mapping[str, np.ndarray], name: str, producer: str) -> np.ndarray:
    if name not in arrays:
        names = ", ".join(sorted(arrays)) or "no arrays"
        raise InvalidPoses(f"the file has {names}; a pose file of {producer} has an array called {name!r}")
    return arrays[name]


def _is_camera_to_world(arrays: Mapping[str, np.ndarray]) -> bool:
    value = np.asarray(arrays.get("convention", "w2c"))
    text = str(value.item()) if value.size == 1 else ""
    if not text.startswith(("w2c", "c2w")):
        raise InvalidPoses(f"the array 'convention' is {text[:40]!r}; expected 'w2c_opencv' or 'c2w_opencv'")
    return text.startswith("c2w")
