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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, UsageError
from revisit.geometry.poses import invert_rigid_poses, require_rigid_poses, to_4x4_poses
from revisit.geometry.two_view import depth_disagreement_by_convention, is_clearly_less
from revisit.media import array_shapes_in_npz, load_npz
from revisit.media.error_names import printable_line, raise_media_errors_naming_file

READ = ("extrinsics", "intrinsics", "depth", "convention", "frame_indices", "size", "producer")  # not the pictures
OFF_CENTRE = 0.3  # a principal point further from the middle, in halves of the grid, belongs to another grid
IN_WORDS = {"w2c": "world-to-camera", "c2w": "camera-to-world"}


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
