"""Reads, checks and writes files with poses, intrinsics and depth of a clip (Depth Anything 3's results.npz).

An npz with

    extrinsics (N, 3, 4) or (N, 4, 4)   OpenCV axes; world-to-camera or camera-to-world
    intrinsics (N, 3, 3)                in pixels of the depth's grid, or of `size`
    depth (N, H, W)                     along the optical axis; not positive is a hole. May be missing
    convention                          "w2c_opencv" or "c2w_opencv". May be missing: depth then decides
    frame_indices (N,)                  numbers of the frames in the clip. May be missing
    size (2,)                           width and height that the intrinsics are for, where that is not the depth's grid
    producer                            who made it. May be missing

Files in the wild carry no convention, and both kinds go by the name `extrinsics`. Whichever lets the depths of
different frames agree is right; where neither does so clearly (a camera at rest), the reader refuses to guess.

`convert_geometry_file` makes such a file of poses, intrinsics and depth from other programs: Depth Anything 3
(extrinsics, intrinsics, depth), VGGT (extrinsic, intrinsic, depth), MapAnything (cam_c2w or camera_poses, intrinsics,
depth_z), ViPE (data, inds; intrinsics in a file of their own), COLMAP (images.txt; intrinsics in cameras.txt), and
every other format of docs/poses.md. Poses are written world-to-camera in single floats, depth in half floats; no
pictures are written, since the clip has them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, UsageError
from revisit.geometry.formats import to_intrinsic_matrices
from revisit.geometry.poses import Trajectory, from_w2c, invert_rigid_poses, require_rigid_poses, to_4x4_poses
from revisit.geometry.two_view import depth_disagreement_by_convention, is_clearly_less
from revisit.media import array_shapes_in_npz, load_npz, save_npz
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.observers.poses import read_poses_and_format

READ = ("extrinsics", "intrinsics", "depth", "convention", "frame_indices", "size", "producer")  # not the pictures
OFF_CENTRE = 0.3  # a principal point further from the middle, in halves of the grid, belongs to another grid
IN_WORDS = {"w2c": "world-to-camera", "c2w": "camera-to-world"}
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


@dataclass(frozen=True, eq=False)
class Geometry:
    """What such a file holds, in one convention and on one grid."""

    c2w: np.ndarray  # (N, 4, 4)
    intrinsics: np.ndarray  # (N, 3, 3)
    depth: np.ndarray | None  # (N, H, W) float32
    frame: np.ndarray  # (N,) or empty where the file does not number its frames
    width: int
    height: int
    convention: str
    found: str
    errors: tuple[float, float]  # disagreement of depth when read as w2c, as c2w; nan without depth
    refused: str  # why the convention could not be told; poses are then read as w2c and must not be used
    maker: str

    @property
    def median_depth(self) -> np.ndarray:
        """(N,) median depth of each frame; nan without depth."""
        if self.depth is None:
            return np.full(len(self.c2w), np.nan)
        return np.array([np.median(view[view > 0]) for view in self.depth], dtype=float)


def read_geometry(path: Path, convention: str = "auto") -> Geometry:
    """The geometry in an npz file; `convention` is w2c, c2w, or auto for what the file or its depth says."""
    if convention not in (*IN_WORDS, "auto"):
        raise UsageError(f"unknown pose convention {convention!r}; choose w2c, c2w or auto")
    names = array_shapes_in_npz(path)
    with raise_media_errors_naming_file(path):
        require_poses_and_intrinsics(names)
    arrays = load_npz(path, members=[name for name in READ if name in names])
    with raise_media_errors_naming_file(path):
        return geometry_from_arrays(arrays, convention)


def geometry_from_arrays(arrays: Mapping[str, np.ndarray], convention: str = "auto") -> Geometry:
    """The geometry in arrays by name, as this module's header lists them."""
    require_poses_and_intrinsics(arrays)
    matrices = to_4x4_poses(arrays["extrinsics"])
    require_rigid_poses(matrices)
    n = len(matrices)
    depth = None if "depth" not in arrays else _checked_depth(arrays["depth"], n)
    intrinsics, width, height = _intrinsics_on_depth_grid(
        np.asarray(arrays["intrinsics"], dtype=float), n, depth, arrays.get("size")
    )
    frame = np.ravel(arrays.get("frame_indices", np.zeros(0))).astype(np.int64)
    if len(frame) not in (0, n):
        raise MediaError(f"frame_indices has {len(frame)} numbers, but there are {n} poses; each pose needs one number")
    errors = (np.nan, np.nan) if depth is None else depth_disagreement_by_convention(matrices, intrinsics, depth)
    convention_name, decided_by, refused = _decide_convention(convention, _text_of_array(arrays, "convention"), errors)
    c2w = matrices if convention_name == "c2w" else invert_rigid_poses(matrices)
    maker = _text_of_array(arrays, "producer") or "not stated"
    return Geometry(c2w, intrinsics, depth, frame, width, height, convention_name, decided_by, errors, refused, maker)


def require_poses_and_intrinsics(names: Collection[str]) -> None:
    """Raise MediaError unless the arrays are there that such a file must have."""
    for name in ("extrinsics", "intrinsics"):
        if name not in names:
            raise MediaError(
                f"it has no array {name!r}, only {printable_line(', '.join(sorted(names)), 80) or 'none'}; expected "
                "extrinsics (N, 3, 4), intrinsics (N, 3, 3) and depth (N, H, W); "
                "`revisit import poses` makes such a file"
            )


def _checked_depth(values: np.ndarray, n: int) -> np.ndarray:
    depth = np.asarray(values[..., 0] if values.ndim == 4 and values.shape[3] == 1 else values, dtype=np.float32)
    if depth.ndim != 3 or len(depth) != n:
        raise MediaError(f"its depth has shape {depth.shape}; {n} poses need ({n}, H, W): one map per pose")
    for k, view in enumerate(depth):
        if not np.isfinite(view).all():
            raise MediaError(f"the depth of row {k} holds NaN or infinity; write 0 where there is none")
        if not (view > 0).any():
            raise MediaError(f"the depth of row {k} has no positive value; expected distances along the optical axis")
    return depth


def _intrinsics_on_depth_grid(
    intrinsics: np.ndarray, n: int, depth: np.ndarray | None, size: np.ndarray | None
) -> tuple[np.ndarray, int, int]:
    """(intrinsics on the grid of the depth, its width, its height)."""
    if intrinsics.shape == (3, 3):
        intrinsics = np.broadcast_to(intrinsics, (n, 3, 3))
    if intrinsics.shape != (n, 3, 3) or not np.isfinite(intrinsics).all() or (intrinsics[:, [0, 1], [0, 1]] <= 0).any():
        raise MediaError(
            f"its intrinsics have shape {intrinsics.shape} or values that are no lens; {n} poses need ({n}, 3, 3) of "
            "[[fx, 0, cx], [0, fy, cy], [0, 0, 1]] in pixels"
        )
    if size is not None and np.size(size) != 2:
        raise MediaError(f"its array 'size' has {np.size(size)} values; expected width and height")
    if depth is None and size is None:
        raise MediaError(
            "it has neither depth nor 'size', so the picture size of its intrinsics is unknown; add 'size'"
        )
    own = None if size is None else tuple(int(v) for v in np.ravel(size))
    height, width = depth.shape[1:] if depth is not None else (own or (0, 0))[::-1]
    lens = np.array(intrinsics)
    if own is not None and own != (width, height):
        scale = np.array([width / own[0], height / own[1]])
        lens[:, :2] *= scale[None, :, None]
        lens[:, :2, 2] += (scale - 1) / 2  # pixel centres are whole numbers on either grid
    centre = np.median(lens[:, :2, 2], axis=0)
    if (np.abs(centre / [width / 2, height / 2] - 1) > OFF_CENTRE).any():
        raise MediaError(
            f"its intrinsics have their principal point at ({centre[0]:.0f}, {centre[1]:.0f}) and its depth is "
            f"{width} x {height}: they are for different picture sizes; scale the intrinsics to the depth, or add an "
            "array 'size' with the width and height of the intrinsics"
        )
    return lens, int(width), int(height)


def _decide_convention(requested: str, stated: str, errors: tuple[float, float]) -> tuple[str, str, str]:
    """(w2c or c2w, who says so, why it cannot be told)."""
    as_w2c, as_c2w = errors
    clear = "w2c" if is_clearly_less(as_w2c, as_c2w) else "c2w" if is_clearly_less(as_c2w, as_w2c) else ""
    measured = f"depths of different frames differ by {as_w2c:.1%} when read as world-to-camera"
    measured += f" and {as_c2w:.1%} as camera-to-world"
    if requested != "auto":
        return requested, "the user", ""
    if stated:
        name = stated[:3].lower()
        if name not in IN_WORDS:
            raise MediaError(f"its convention is {stated[:40]!r}; expected 'w2c_opencv' or 'c2w_opencv'")
        if clear and clear != name:
            raise MediaError(
                f"it says that its poses are {IN_WORDS[name]}, but its depth says {IN_WORDS[clear]}: {measured}; "
                "correct 'convention', or set the reader's `convention`"
            )
        return name, "the file", ""
    if clear:
        return clear, "the depth", ""
    why = "it has no depth to check this with" if np.isnan(as_w2c) else measured
    return "w2c", "nobody", (
        f"it is unclear whether the poses are world-to-camera or camera-to-world: {why}; add an array 'convention' "
        "('w2c_opencv' or 'c2w_opencv') to the file"
    )  # fmt: skip


def _text_of_array(arrays: Mapping[str, np.ndarray], name: str) -> str:
    value: Any = arrays.get(name)
    return printable_line(str(np.asarray(value).item()), 120) if value is not None and np.size(value) == 1 else ""


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
        lens, own = _read_intrinsics_option(intrinsics, len(arrays["extrinsics"]))
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
    path, format_name = read_poses_and_format(source, format)
    return _arrays_from_trajectory(path), format_name


def _arrays_from_network_output(
    arrays: Mapping[str, np.ndarray],
    poses_name: str,
    w2c: bool,
    intrinsics_names: tuple[str, ...],
    depth_names: tuple[str, ...],
) -> dict[str, np.ndarray]:
    matrices = arrays[poses_name]
    matrices = matrices[0] if matrices.ndim == 4 else matrices  # networks keep an axis of batches
    c2w = from_w2c(matrices) if w2c else to_4x4_poses(matrices)
    arrays_out = {"extrinsics": c2w, "convention": np.array("c2w_opencv")}
    lens = next((arrays[name] for name in intrinsics_names if name in arrays), None)
    if lens is not None:
        arrays_out["intrinsics"] = lens[0] if lens.ndim == 4 else lens
    depth = next((arrays[name] for name in depth_names if name in arrays), None)
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


def _read_intrinsics_option(path_or_numbers: str, frames: int) -> tuple[np.ndarray, tuple[int, int] | None]:
    """(intrinsics (N, 3, 3), width and height they are for, where the file says so)."""
    path = Path(path_or_numbers)
    if path.suffix in (".npz", ".npy"):
        arrays = load_npz(path)
        values = arrays.get("data", next(iter(arrays.values())))
        with raise_media_errors_naming_file(path):
            return np.array(to_intrinsic_matrices(values, frames)), None
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
            return np.array(to_intrinsic_matrices(values, frames)), (int(words[2]), int(words[3]))
    try:
        values = np.array([float(word) for word in path_or_numbers.split(",")])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (4,):
        raise UsageError(
            f"--intrinsics takes a file (npz, cameras.txt) or fx,fy,cx,cy, not {printable_line(path_or_numbers, 60)!r}"
        )
    return np.array(to_intrinsic_matrices(values, frames)), None
