"""Camera paths from files of other programs, read safely into a Trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.geometry import formats
from revisit.geometry.poses import InvalidPoses, Trajectory
from revisit.media import load_npz
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import read_text

TEXT: dict[str, Callable[[str], Trajectory]] = {
    "tum": formats.parse_tum,
    "kitti": formats.parse_kitti,
    "realestate10k": formats.parse_realestate10k,
    "colmap": formats.parse_colmap,
    "transforms": formats.parse_transforms,
    "unreal": formats.parse_unreal,
    "c2w_document": formats.parse_c2w_document,
    "camera_table": formats.parse_camera_table,
}
ARRAYS: dict[str, Callable[[Mapping[str, np.ndarray]], Trajectory]] = {
    "vipe": formats.from_vipe,
    "da3": formats.from_depth_anything,
    "mapanything": formats.from_mapanything,
    "vggt": formats.from_vggt,
    "w2c": lambda arrays: formats.from_w2c_array(_only_array(arrays)),
    "c2w": lambda arrays: formats.from_c2w_array(_only_array(arrays)),
}
AUTO = ("auto", "auto_c2w")  # by the content; the second takes arrays that nothing names for camera-to-world
READERS: dict[str, Callable[[Any], Trajectory]] = {**TEXT, **ARRAYS}
FORMATS = (*AUTO, *READERS)


def read_poses(path: Path, format: str = "auto") -> Trajectory:
    """The trajectory in a file. `auto` recognises the format by the content; bare matrices by the file's name."""
    return read_poses_and_format(path, format)[0]


def read_poses_and_format(path: Path, format: str = "auto") -> tuple[Trajectory, str]:
    """The trajectory in a file, and the name of the format that it was read as."""
    if format not in FORMATS:
        raise UsageError(f"there is no pose format called {format!r}; choose one of {', '.join(FORMATS)}")
    arrays = load_npz(path) if format in ARRAYS or (format in AUTO and path.suffix in (".npz", ".npy")) else None
    with raise_media_errors_naming_file(path):
        content: Any = read_text(path) if arrays is None else arrays
        if format in AUTO:
            format = _pose_format_of_text(content) if arrays is None else _pose_format_of_arrays(content, format)
        return READERS[format](content), format


def _pose_format_of_text(text: str) -> str:
    if text.lstrip().startswith("{"):
        marks = {'"frames"': "transforms", '"c2w"': "c2w_document"}
        return next((format for mark, format in marks.items() if mark in text), "unreal")
    if "loc_x" in text.partition("\n")[0]:
        return "camera_table"
    lines = (line.split() for line in text.split("\n", 1000))
    words = next((words for words in lines if words and not words[0].startswith("#")), [])
    if words and "://" in words[0]:
        return "realestate10k"
    columns = {8: "tum", 10: "colmap", 12: "kitti", 19: "realestate10k"}
    if len(words) not in columns:
        raise InvalidPoses(
            f"its first data line has {len(words)} fields; pose files have 8 (TUM), 10 (COLMAP), 12 (KITTI) or 19 "
            "(RealEstate10K): name the format if it is one of these"
        )
    return columns[len(words)]


def _pose_format_of_arrays(arrays: Mapping[str, np.ndarray], format: str) -> str:
    makers = {"data": "vipe", "extrinsics": "da3", "extrinsic": "vggt", "camera_poses": "mapanything"}
    for name, maker in {**makers, "cam_c2w": "mapanything"}.items():
        if name in arrays and (len(arrays) > 1 or name == "cam_c2w"):
            return maker
    if len(arrays) == 1:
        (name,) = arrays
        if "w2c" in name:
            return "w2c"
        if "c2w" in name or name == "poses" or format == "auto_c2w":
            return "c2w"
    raise InvalidPoses(
        f"its arrays are called {', '.join(sorted(arrays)) or 'nothing'}; it is unclear whether they are "
        "camera-to-world or world-to-camera: give the format c2w or w2c, or rename the file, such as poses_w2c.npy"
    )


def _only_array(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if len(arrays) != 1:
        raise InvalidPoses(f"it has {len(arrays)} arrays; expected one of shape (N, 4, 4)")
    return next(iter(arrays.values()))
