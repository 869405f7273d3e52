"""Arrays: poses as members of an npz, or as npy files in a folder, each as one loader wants them."""

from __future__ import annotations

import numpy as np

from revisit.control.payloads.family import (
    LATENT_STRIDE,
    STILL,
    Files,
    LoadedPath,
    PayloadRequest,
    accumulate_poses,
    keys_for_path,
    latent_frame_numbers,
    load_array_as_float,
    loaded_path_of_all_frames,
    npy_bytes,
    npz_bytes,
    poses_relative_to_first,
    require_level_path,
)
from revisit.geometry.poses import invert_rigid_poses

# Blender's world (x right, y ahead, z up) of OpenCV's (x right, y down, z ahead), and its camera (y up, z backward).
BLENDER_WORLD = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
BLENDER_CAMERA = np.diag([1.0, -1, -1, 1])
LINGBOT_PICTURE = (832, 480)  # its intrinsics are pixels of this picture, whatever the clip's size
GEN3C_PICTURE = (1280, 704)


def write_w2c_npz(ask: PayloadRequest) -> dict[str, bytes]:
    return {
        "npz": npz_bytes(
            w2c=invert_rigid_poses(ask.c2w)[None], intrinsics=ask.intrinsics_of_every_frame(ask.plan.size)[None]
        )
    }


def read_w2c_npz(files: Files, frame_count: int) -> LoadedPath:
    return loaded_path_of_all_frames(invert_rigid_poses(load_array_as_float(files["npz"], "w2c")[0]))


def write_multiview_npz(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(w2cs_all=invert_rigid_poses(ask.c2w), Ks_all=ask.intrinsics_of_every_frame(GEN3C_PICTURE))}


def read_multiview_npz(files: Files, frame_count: int) -> LoadedPath:
    return loaded_path_of_all_frames(invert_rigid_poses(load_array_as_float(files["npz"], "w2cs_all")))


def write_blender_npz(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(extrinsics=BLENDER_WORLD @ ask.c2w @ BLENDER_CAMERA)}


def read_blender_npz(files: Files, frame_count: int) -> LoadedPath:
    return loaded_path_of_all_frames(BLENDER_WORLD.T @ load_array_as_float(files["npz"], "extrinsics") @ BLENDER_CAMERA)


def write_npz_with_first_pose_twice(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(poses_c2w=np.concatenate([ask.c2w[:1], ask.c2w]))}


def read_npz_with_first_pose_twice(files: Files, frame_count: int) -> LoadedPath:
    c2w = poses_relative_to_first(load_array_as_float(files["npz"], "poses_c2w"))
    return LoadedPath(np.arange(len(c2w) - 1), c2w[1:])


def write_pose_folder(ask: PayloadRequest) -> dict[str, bytes]:
    lens = _focal_and_centre(ask.intrinsics_for_size(ask.picture or ask.plan.size))
    return {"poses.npy": npy_bytes(ask.c2w), "intrinsics.npy": npy_bytes(lens)}


def read_pose_folder(files: Files, frame_count: int) -> LoadedPath:
    return loaded_path_of_all_frames(load_array_as_float(files["poses.npy"]))


def write_latent_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """poses.npy (N, 4, 4) camera-to-world and intrinsics.npy (N, 4) in pixels of 832x480."""
    lens = _focal_and_centre(ask.intrinsics_for_size(LINGBOT_PICTURE))
    return {"poses.npy": npy_bytes(ask.c2w), "intrinsics.npy": npy_bytes(np.tile(lens, (len(ask.c2w), 1)))}


def read_latent_folder(files: Files, frame_count: int) -> LoadedPath:
    """One pose per latent frame; the loader divides the ways between them by the longest, so their shape counts."""
    c2w = _read_latent_poses(files)
    steps = invert_rigid_poses(c2w[:-1]) @ c2w[1:]
    longest = float(np.linalg.norm(steps[:, :3, 3], axis=1).max(initial=0.0))
    if longest <= STILL:
        return LoadedPath(latent_frame_numbers(4 * len(c2w) - 3), c2w)
    steps[:, :3, 3] /= longest
    return LoadedPath(latent_frame_numbers(4 * len(c2w) - 3), accumulate_poses(steps), ways="shape")


def write_keys_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """The same two files, and action.npy (N, 4): w a s d held, 0 or 1, the same from one latent frame to the next."""
    # Keys are pressed along the heading that was asked for, not along the amplified one.
    c2w = ask.plan.path.c2w
    require_level_path(c2w)
    marks = latent_frame_numbers(len(c2w))
    keys = np.repeat(keys_for_path(c2w[marks])[:, [0, 2, 1, 3]], LATENT_STRIDE, axis=0)
    padding = np.zeros((len(c2w) - len(keys), 4))
    return {**write_latent_folder(ask), "action.npy": npy_bytes(np.concatenate([keys, padding]))}


def read_keys_folder(files: Files, frame_count: int) -> LoadedPath:
    """Turns are those of the poses, and ways those of every fourth row of keys, one step each along the heading."""
    c2w = _read_latent_poses(files)
    w, a, s, d = load_array_as_float(files["action.npy"])[::LATENT_STRIDE][: len(c2w) - 1].T
    moves = np.stack([d - a, w - s], axis=1)
    c2w[:, :3, 3] = 0
    frames = latent_frame_numbers(LATENT_STRIDE * len(c2w) - 3)
    return LoadedPath(frames, c2w, ways="shape", moves=moves, key=1.0) if moves.any() else LoadedPath(frames, c2w)


def _read_latent_poses(files: Files) -> np.ndarray:
    c2w = load_array_as_float(files["poses.npy"])
    return poses_relative_to_first(c2w[latent_frame_numbers(len(c2w))])


def _focal_and_centre(lens: np.ndarray) -> np.ndarray:
    """fx, fy, cx, cy."""
    return lens[[0, 1, 0, 1], [0, 1, 2, 2]]
