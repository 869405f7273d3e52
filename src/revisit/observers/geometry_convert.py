"""Converts poses, intrinsics and depth from other programs into the npz file that geometry metrics read.

Sources: Depth Anything 3 (extrinsics, intrinsics, depth), VGGT (extrinsic, intrinsic, depth), MapAnything (cam_c2w or
camera_poses, intrinsics, depth_z), ViPE (data, inds; intrinsics in a file of their own), COLMAP (images.txt; intrinsics
in cameras.txt), and every other format of docs/poses.md. Poses are written world-to-camera in single floats, depth in
half floats; no pictures are written, since the clip has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, UsageError
from revisit.geometry.formats import to_intrinsic_matrices
from revisit.geometry.poses import Trajectory, from_w2c, invert_rigid_poses, to_4x4_poses
from revisit.media import load_npz, save_npz
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.observers.geometry_file import IN_WORDS, READ, Geometry, geometry_from_arrays
from revisit.observers.poses import pose_format_of_file, read_poses

HALF_MOST = 65504.0  # the largest half float
# Files that carry everything: who makes them, the name of the poses, whether these are world-to-camera, and the names
# of intrinsics and depth.
COMPLETE = (
    ("vggt", "extrinsic", True, ("intrinsic",), ("depth",)),
    ("mapanything", "cam_c2w", False, ("intrinsics", "intrinsic"), ("depth_z", "depth")),
    ("mapanything", "camera_poses", False, ("intrinsics", "intrinsic"), ("depth_z", "depth")),
)
# Parameters of COLMAP's camera models, as places of fx, fy, cx, cy; distortion is left out.
COLMAP_MODELS = {
    "SIMPLE_PINHOLE": (0, 0, 1, 2), "PINHOLE": (0, 1, 2, 3), "SIMPLE_RADIAL": (0, 0, 1, 2), "RADIAL": (0, 0, 1, 2),
    "OPENCV": (0, 1, 2, 3),
}  # fmt: skip


def convert_geometry_file(
    source: Path,
    out: Path,
    *,
    format: str = "auto",
    intrinsics: str | None = None,
    depth: Path | None = None,
    size: tuple[int, int] | None = None,
    convention: str = "auto",
) -> dict[str, Any]:
    """Write the geometry of `source` to `out`, and return what is known about it.

    `intrinsics` is a file (ViPE's npz, COLMAP's cameras.txt) or four numbers "fx,fy,cx,cy"; `depth` an npz with the
    array depth; `size` the width and height that the intrinsics are for, where that is not the depth's grid.
    """
    arrays, producer = _read_arrays_and_producer(source, format)
    if intrinsics is not None:
        lens, own = _read_intrinsics_and_size(intrinsics, len(arrays["extrinsics"]))
        arrays["intrinsics"] = lens
        size = size or own
    if depth is not None:
        arrays["depth"] = load_npz(depth, members=("depth",))["depth"]
    if size is not None:
        arrays["size"] = np.array(size)
    with raise_media_errors_naming_file(source):
        if "intrinsics" not in arrays:
            raise MediaError("it has no intrinsics; give them with --intrinsics (a file or fx,fy,cx,cy)")
        if arrays.pop("normalised", np.array(False)):
            if size is None:
                raise MediaError("its intrinsics are relative to the picture size; give the size with --size")
            arrays["intrinsics"] = arrays["intrinsics"] * np.array([[size[0]], [size[1]], [1.0]])
        geometry = geometry_from_arrays(arrays, convention)
        if geometry.refused:
            raise MediaError(f"{geometry.refused}; here: pass --convention")
    save_npz(out, geometry_arrays(geometry, producer))
    return {
        "poses": len(geometry.c2w),
        "producer": producer,
        "convention": IN_WORDS[geometry.convention],
        "said_by": geometry.found,
        "grid": [geometry.width, geometry.height],
        "depth": geometry.depth is not None,
        "megabytes": round(out.stat().st_size / 1e6, 2),
    }


def geometry_arrays(geometry: Geometry, producer: str) -> dict[str, np.ndarray]:
    """The arrays of our file: world-to-camera, single floats, depth in half floats where it fits."""
    arrays = {
        "extrinsics": invert_rigid_poses(geometry.c2w)[:, :3].astype(np.float32),
        "intrinsics": geometry.intrinsics.astype(np.float32),
        "size": np.array([geometry.width, geometry.height]),
        "convention": np.array("w2c_opencv"),
        "producer": np.array(producer),
    }
    if len(geometry.frame):
        arrays["frame_indices"] = geometry.frame
    if geometry.depth is not None:
        fits = geometry.depth.max() < HALF_MOST
        arrays["depth"] = geometry.depth.astype(np.float16 if fits else np.float32)
    return arrays


def _read_arrays_and_producer(source: Path, format: str) -> tuple[dict[str, np.ndarray], str]:
    """(arrays under the names of our file, who made them)."""
    complete = {maker for maker, *_ in COMPLETE}
    if source.suffix == ".npz" and format in {"auto", "da3", *complete}:
        arrays = load_npz(source)
        if {"extrinsics", "intrinsics"} <= arrays.keys() and format in ("auto", "da3"):
            maker = arrays.get("producer", np.array("da3")).item()
            return {name: array for name, array in arrays.items() if name in READ}, printable_line(str(maker), 60)
        for maker, poses, w2c, lenses, depths in COMPLETE:
            if format in ("auto", maker) and poses in arrays:
                with raise_media_errors_naming_file(source):
                    return _arrays_from_network_output(arrays, poses, w2c, lenses, depths), maker
        if format in complete:
            raise MediaError(f"{source.name}: it has {', '.join(sorted(arrays))}, so it is not a {format} file")
    path = read_poses(source, format)
    return _arrays_from_trajectory(path), pose_format_of_file(source) if format == "auto" else format


def _arrays_from_network_output(
    arrays: Mapping[str, np.ndarray], poses: str, w2c: bool, lenses: tuple[str, ...], depths: tuple[str, ...]
) -> dict[str, np.ndarray]:
    matrices = arrays[poses][0] if arrays[poses].ndim == 4 else arrays[poses]  # networks keep an axis of batches
    c2w = from_w2c(matrices) if w2c else to_4x4_poses(matrices)
    arrays_out = {"extrinsics": c2w, "convention": np.array("c2w_opencv")}
    lens = next((arrays[name] for name in lenses if name in arrays), None)
    if lens is not None:
        arrays_out["intrinsics"] = lens[0] if lens.ndim == 4 else lens
    depth = next((arrays[name] for name in depths if name in arrays), None)
    if depth is not None:
        n = len(c2w)
        arrays_out["depth"] = depth[0] if depth.ndim > 3 and depth.shape[:2] == (1, n) else depth
    if "frame_indices" in arrays:
        arrays_out["frame_indices"] = arrays["frame_indices"]
    return arrays_out


def _arrays_from_trajectory(path: Trajectory) -> dict[str, np.ndarray]:
    arrays = {"extrinsics": np.array(path.c2w), "convention": np.array("c2w_opencv")}
    if path.intrinsics is not None:
        arrays["intrinsics"] = np.array(path.intrinsics)
        arrays["normalised"] = np.array(path.intrinsics_unit == "normalised")
    whole_numbers = bool((path.times == np.round(path.times)).all() and (np.diff(path.times) > 0).all())
    if path.time_unit == "frames" and whole_numbers:
        arrays["frame_indices"] = path.times.astype(np.int64)
    return arrays


def _read_intrinsics_and_size(text: str, n: int) -> tuple[np.ndarray, tuple[int, int] | None]:
    """(intrinsics (N, 3, 3), width and height they are for, where the file says so)."""
    path = Path(text)
    if path.suffix in (".npz", ".npy"):
        arrays = load_npz(path)
        values = arrays.get("data", next(iter(arrays.values())))
        with raise_media_errors_naming_file(path):
            return np.array(to_intrinsic_matrices(values, n)), None
    if path.suffix == ".txt":
        with raise_media_errors_naming_file(path):
            lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
            cameras = [words for words in lines if words and not words[0].startswith("#")]
            if len(cameras) != 1 or cameras[0][1] not in COLMAP_MODELS:
                raise MediaError(
                    f"it has {len(cameras)} cameras; expected one, of the models {', '.join(COLMAP_MODELS)}"
                )
            words = cameras[0]
            numbers = [float(word) for word in words[4:]]
            values = np.array([numbers[k] for k in COLMAP_MODELS[words[1]]])
            return np.array(to_intrinsic_matrices(values, n)), (int(words[2]), int(words[3]))
    try:
        values = np.array([float(word) for word in text.split(",")])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (4,):
        raise UsageError(
            f"--intrinsics takes a file (npz, cameras.txt) or fx,fy,cx,cy, not {printable_line(text, 60)!r}"
        )
    return np.array(to_intrinsic_matrices(values, n)), None
