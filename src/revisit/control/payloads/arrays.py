"""Arrays: poses as npz members, in three conventions.

- world-to-camera with intrinsics in pixels, both with a leading batch axis;
- camera-to-world rows of 12 numbers, relative to the first pose, of every fourth frame (one per latent frame);
- camera-to-world with Blender's camera axes (y up, z backward).
"""

from __future__ import annotations

import io
import zipfile

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.family import Delivered, Family, PayloadError, every, relative
from revisit.geometry.poses import InvalidPoses, as_4x4, check_rigid, from_opengl, invert, to_opengl

LATENT_STRIDE = 4  # frames per latent frame of the usual video autoencoders


def write_w2c(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """`w2c` (1, N, 4, 4) and `intrinsics` (1, N, 3, 3)."""
    assert plan.path.intrinsics is not None
    return _pack(w2c=invert(c2w)[None], intrinsics=plan.path.intrinsics[None])


def read_w2c(content: bytes) -> Delivered:
    """The path of such a file."""
    w2c = member(content, "w2c", 4)
    return Delivered(np.arange(w2c.shape[1]), relative(invert(_poses(w2c[0]))))


def write_relative(plan: CameraPlan, c2w: np.ndarray, *, stride: int = LATENT_STRIDE) -> bytes:
    """`camera` (1, M, 12) and `frame` (M,)."""
    frames = every(plan, stride)
    return _pack(camera=relative(c2w)[frames][:, :3].reshape(1, -1, 12), frame=frames)


def read_relative(content: bytes) -> Delivered:
    """The sampled path of such a file."""
    rows = member(content, "camera", 3)
    frames = member(content, "frame", 1).astype(int)
    if rows.shape[2] != 12 or len(frames) != rows.shape[1]:
        raise PayloadError(f"`camera` has shape {rows.shape} and `frame` {frames.shape}; expected (1, M, 12) and (M,)")
    return Delivered(frames, relative(_poses(rows[0].reshape(-1, 3, 4))))


def write_blender(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """`c2w` (N, 4, 4) with Blender's axes and `intrinsics` (N, 3, 3)."""
    assert plan.path.intrinsics is not None
    return _pack(c2w=to_opengl(c2w), intrinsics=plan.path.intrinsics)


def read_blender(content: bytes) -> Delivered:
    """The path of such a file."""
    c2w = from_opengl(_poses(member(content, "c2w", 3)))
    return Delivered(np.arange(len(c2w)), relative(c2w))


def _pack(**members: np.ndarray) -> bytes:
    file = io.BytesIO()
    kinds = {name: np.float32 if array.dtype.kind == "f" else np.int64 for name, array in members.items()}
    np.savez(file, **{name: array.astype(kinds[name]) for name, array in members.items()})  # type: ignore[arg-type]
    return file.getvalue()


def member(content: bytes, name: str, axes: int) -> np.ndarray:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            found = np.asarray(file[name])
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        raise PayloadError(f"the file is no npz with a member {name!r}") from error
    if found.ndim != axes or not found.size:
        raise PayloadError(f"`{name}` has shape {found.shape}; expected {axes} axes, none of them empty")
    return found


def _poses(matrices: np.ndarray) -> np.ndarray:
    try:
        full = as_4x4(matrices)
        check_rigid(full)
    except InvalidPoses as error:
        raise PayloadError(str(error)) from error
    return full


W2C_ARRAYS = Family(
    "w2c_arrays", "World-to-camera arrays", ".npz",
    "w2c (1, N, 4, 4), intrinsics (1, N, 3, 3) in pixels", write_w2c, read_w2c,
)  # fmt: skip
RELATIVE_ROWS = Family(
    "relative_rows", "Relative 3x4 poses per latent frame", ".npz",
    "camera (1, M, 12): camera-to-world of every 4th frame, relative to the first; frame (M,)",
    write_relative, read_relative,
)  # fmt: skip
BLENDER_NPZ = Family(
    "blender_npz", "Camera-to-world with Blender's axes", ".npz",
    "c2w (N, 4, 4) with y up and z backward, intrinsics (N, 3, 3) in pixels", write_blender, read_blender,
)  # fmt: skip
