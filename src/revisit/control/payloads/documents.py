"""Documents: poses as JSON, one object per line, or one table keyed by the number of the latent frame."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.arrays import LATENT_STRIDE
from revisit.control.payloads.family import Delivered, Family, PayloadError, every, relative
from revisit.geometry.poses import InvalidPoses, from_w2c, invert


def write_lines(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """One line per frame: {"frame": k, "w2c": 4x4}."""
    rows = [json.dumps({"frame": k, "w2c": _numbers(pose)}) for k, pose in enumerate(invert(c2w))]
    return ("\n".join(rows) + "\n").encode()


def read_lines(content: bytes) -> Delivered:
    """The path of such lines."""
    rows = [_json(line) for line in content.splitlines() if line.strip()]
    return _delivered([(row, "w2c") for row in rows], [row.get("frame") for row in rows])


def write_table(plan: CameraPlan, c2w: np.ndarray, *, stride: int = LATENT_STRIDE) -> bytes:
    """{"0": {"frame": 0, "extrinsic": 4x4 world-to-camera, "K": 3x3 divided by width and height}, ...}."""
    assert plan.path.intrinsics is not None
    width, height = plan.size
    lens = plan.path.intrinsics[0] / [[width], [height], [1]]
    w2c = invert(c2w)
    table = {
        str(k): {"frame": int(frame), "extrinsic": _numbers(w2c[frame]), "K": _numbers(lens)}
        for k, frame in enumerate(every(plan, stride))
    }
    return json.dumps(table, indent=1).encode()


def read_table(content: bytes) -> Delivered:
    """The sampled path of such a table."""
    table = _json(content)
    rows = [table[key] for key in sorted(table, key=int)] if all(str(key).isdecimal() for key in table) else []
    return _delivered([(row, "extrinsic") for row in rows], [row.get("frame") for row in rows])


def _delivered(rows: list[tuple[Any, str]], frames: list[Any]) -> Delivered:
    try:
        w2c = np.array([row[name] for row, name in rows], dtype=float)
        c2w = from_w2c(w2c)
        return Delivered(np.array(frames, dtype=int), relative(c2w))
    except (InvalidPoses, KeyError, TypeError, ValueError) as error:
        raise PayloadError(f"the document holds no world-to-camera matrices with their frames: {error}") from error


def _json(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PayloadError(f"the document is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise PayloadError("the document holds no JSON object")
    return found


def _numbers(matrix: np.ndarray) -> list[list[float]]:
    return [[round(float(value), 12) for value in row] for row in matrix]


JSON_LINES = Family(
    "json_lines", "World-to-camera as JSON lines", ".jsonl", '{"frame": k, "w2c": 4x4} per frame',
    write_lines, read_lines,
)  # fmt: skip
POSE_TABLE = Family(
    "pose_table", "Table of poses per latent frame", ".json",
    '{"k": {"frame", "extrinsic": 4x4 world-to-camera, "K": 3x3 divided by width and height}}', write_table, read_table,
)  # fmt: skip
