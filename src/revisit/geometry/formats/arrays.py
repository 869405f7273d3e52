"""Arrays with poses, as pose networks save them: ViPE, Depth Anything 3, MapAnything, and bare matrices.

Their worlds are turned and scaled in ways of their own (Depth Anything 3 does not even begin at the
identity), so the scale is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from revisit.geometry.poses import InvalidPoses, Trajectory, from_w2c, make_trajectory, to_4x4_poses, to_float_array


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
