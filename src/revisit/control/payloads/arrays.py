"""Arrays: poses as members of an npz, or as npy files in a folder, each as one loader wants them."""

from __future__ import annotations

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import LATENT_STRIDE, STILL, Files, LoadedPath, PayloadRequest
from revisit.geometry.poses import invert_rigid_poses

# Blender's world (x right, y ahead, z up) of OpenCV's (x right, y down, z ahead), and its camera (y up, z backward).
BLENDER_WORLD = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
BLENDER_CAMERA = np.diag([1.0, -1, -1, 1])
LINGBOT_PICTURE = (832, 480)  # its intrinsics are pixels of this picture, whatever the clip's size
GEN3C_PICTURE = (1280, 704)


def write_w2c_arrays(ask: PayloadRequest) -> dict[str, bytes]:
    lenses = np.tile(ask.intrinsics_for_size(ask.plan.size), (1, len(ask.c2w), 1, 1))
    return family.npz_payload(w2c=invert_rigid_poses(ask.c2w)[None], intrinsics=lenses)


def read_w2c_arrays(files: Files, frame_count: int) -> LoadedPath:
    return family.loaded_path_of_all_frames(invert_rigid_poses(family.load_array_as_float(files["npz"], "w2c")[0]))


def write_multiview_npz(ask: PayloadRequest) -> dict[str, bytes]:
    lenses = np.tile(ask.intrinsics_for_size(GEN3C_PICTURE), (len(ask.c2w), 1, 1))
    return family.npz_payload(w2cs_all=invert_rigid_poses(ask.c2w), Ks_all=lenses)


def read_multiview_npz(files: Files, frame_count: int) -> LoadedPath:
    return family.loaded_path_of_all_frames(invert_rigid_poses(family.load_array_as_float(files["npz"], "w2cs_all")))


def write_blender_npz(ask: PayloadRequest) -> dict[str, bytes]:
    return family.npz_payload(extrinsics=BLENDER_WORLD @ ask.c2w @ BLENDER_CAMERA)


def read_blender_npz(files: Files, frame_count: int) -> LoadedPath:
    extrinsics = family.load_array_as_float(files["npz"], "extrinsics")
    return family.loaded_path_of_all_frames(BLENDER_WORLD.T @ extrinsics @ BLENDER_CAMERA)


def write_anchored_npz(ask: PayloadRequest) -> dict[str, bytes]:
    return family.npz_payload(poses_c2w=np.concatenate([ask.c2w[:1], ask.c2w]))


def read_anchored_npz(files: Files, frame_count: int) -> LoadedPath:
    c2w = family.poses_relative_to_first(family.load_array_as_float(files["npz"], "poses_c2w"))
    return LoadedPath(np.arange(len(c2w) - 1), c2w[1:])


def write_pose_folder(ask: PayloadRequest) -> dict[str, bytes]:
    lens = _focal_and_centre(ask.intrinsics_for_size(ask.picture or ask.plan.size))
    return {"poses.npy": family.npy_bytes(ask.c2w), "intrinsics.npy": family.npy_bytes(lens)}


def read_pose_folder(files: Files, frame_count: int) -> LoadedPath:
    return family.loaded_path_of_all_frames(family.load_array_as_float(files["poses.npy"]))


def write_latent_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """poses.npy (N, 4, 4) camera-to-world and intrinsics.npy (N, 4) in pixels of 832x480."""
    lens = _focal_and_centre(ask.intrinsics_for_size(LINGBOT_PICTURE))
    lenses = np.tile(lens, (len(ask.c2w), 1))
    return {"poses.npy": family.npy_bytes(ask.c2w), "intrinsics.npy": family.npy_bytes(lenses)}


def read_latent_folder(files: Files, frame_count: int) -> LoadedPath:
    """One pose per latent frame; the loader divides the ways between them by the longest, so their shape counts."""
    c2w = _read_latent_poses(files)
    steps = invert_rigid_poses(c2w[:-1]) @ c2w[1:]
    longest = float(np.linalg.norm(steps[:, :3, 3], axis=1).max(initial=0.0))
    if longest <= STILL:
        return LoadedPath(family.latent_frame_numbers(4 * len(c2w) - 3), c2w)
    steps[:, :3, 3] /= longest
    return LoadedPath(family.latent_frame_numbers(4 * len(c2w) - 3), family.accumulate_poses(steps), ways="shape")


def write_keys_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """The same two files, and action.npy (N, 4): w a s d held, 0 or 1, the same from one latent frame to the next."""
    # Keys are pressed along the heading that was asked for, not along the amplified one.
    c2w = ask.plan.path.c2w
    family.require_level_path(c2w)
    marks = family.latent_frame_numbers(len(c2w))
    keys = np.repeat(family.keys_for_path(c2w[marks])[:, [0, 2, 1, 3]], LATENT_STRIDE, axis=0)
    padding = np.zeros((len(c2w) - len(keys), 4))
    return {**write_latent_folder(ask), "action.npy": family.npy_bytes(np.concatenate([keys, padding]))}


def read_keys_folder(files: Files, frame_count: int) -> LoadedPath:
    """Turns are those of the poses, and ways those of every fourth row of keys, one step each along the heading."""
    c2w = _read_latent_poses(files)
    w, a, s, d = family.load_array_as_float(files["action.npy"])[::LATENT_STRIDE][: len(c2w) - 1].T
    moves = np.stack([d - a, w - s], axis=1)
    c2w[:, :3, 3] = 0
    frames = family.latent_frame_numbers(LATENT_STRIDE * len(c2w) - 3)
    return LoadedPath(frames, c2w, ways="shape", moves=moves, key=1.0) if moves.any() else LoadedPath(frames, c2w)


def _read_latent_poses(files: Files) -> np.ndarray:
    c2w = family.load_array_as_float(files["poses.npy"])
    return family.poses_relative_to_first(c2w[family.latent_frame_numbers(len(c2w))])


def _focal_and_centre(lens: np.ndarray) -> np.ndarray:
    """fx, fy, cx, cy."""
    return lens[[0, 1, 0, 1], [0, 1, 2, 2]]
