"""Text files with one pose per line: TUM, KITTI, RealEstate10K and COLMAP's images.txt.

Lines that are empty or begin with # are skipped. Numbers are separated by spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from revisit.geometry.poses import InvalidPoses, Trajectory, from_w2c, make_trajectory
from revisit.geometry.rotations import rotations_from_quaternions

TUM = "timestamp tx ty tz qx qy qz qw"
KITTI = "the 12 numbers of a 3x4 matrix, row by row"
REALESTATE10K = "timestamp fx fy cx cy 0 0 and the 12 numbers of a 3x4 matrix, row by row"
COLMAP = "ID QW QX QY QZ TX TY TZ CAMERA NAME"
# Quaternions with four decimals are off by 1e-4; other columns taken for a quaternion by far more.
UNIT = 1e-2
LONGEST_NUMBER = 9  # longer ones are time stamps, not frame numbers


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
    intrinsics = np.tile(np.eye(3), (len(rows), 1, 1))
    intrinsics[:, [0, 1, 0, 1], [0, 1, 2, 2]] = rows[:, 1:5]
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
