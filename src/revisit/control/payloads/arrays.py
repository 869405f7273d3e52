"""Arrays: poses as members of an npz, or as npy files in a folder, each as one loader wants them."""

from __future__ import annotations

import numpy as np

from revisit.control.payloads.family import (
    LATENT_STRIDE,
    STILL,
    Files,
    LoadedPath,
    PayloadRequest,
    chain_steps,
    frame_poses,
    keys_for_path,
    latents,
    load_array,
    npy_bytes,
    npz_bytes,
    relative_to_first,
    require_level,
)
from revisit.geometry.poses import invert

# Blender's world (x right, y ahead, z up) of OpenCV's (x right, y down, z ahead), and its camera (y up, z backward).
BLENDER_WORLD = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
BLENDER_CAMERA = np.diag([1.0, -1, -1, 1])
LINGBOT_PICTURE = (832, 480)  # its intrinsics are pixels of this picture, whatever the clip's size
GEN3C_PICTURE = (1280, 704)


def write_w2c(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(w2c=invert(ask.c2w)[None], intrinsics=ask.lenses(ask.plan.size)[None])}


def read_w2c(files: Files, count: int) -> LoadedPath:
    return frame_poses(invert(load_array(files["npz"], "w2c")[0]))


def write_multiview(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(w2cs_all=invert(ask.c2w), Ks_all=ask.lenses(GEN3C_PICTURE))}


def read_multiview(files: Files, count: int) -> LoadedPath:
    return frame_poses(invert(load_array(files["npz"], "w2cs_all")))


def write_blender(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(extrinsics=BLENDER_WORLD @ ask.c2w @ BLENDER_CAMERA)}


def read_blender(files: Files, count: int) -> LoadedPath:
    return frame_poses(BLENDER_WORLD.T @ load_array(files["npz"], "extrinsics") @ BLENDER_CAMERA)


def write_anchored(ask: PayloadRequest) -> dict[str, bytes]:
    return {"npz": npz_bytes(poses_c2w=np.concatenate([ask.c2w[:1], ask.c2w]))}


def read_anchored(files: Files, count: int) -> LoadedPath:
    c2w = relative_to_first(load_array(files["npz"], "poses_c2w"))
    return LoadedPath(np.arange(len(c2w) - 1), c2w[1:])


def write_folder(ask: PayloadRequest) -> dict[str, bytes]:
    lens = _focal_and_centre(ask.lens(ask.picture or ask.plan.size))
    return {"poses.npy": npy_bytes(ask.c2w), "intrinsics.npy": npy_bytes(lens)}


def read_folder(files: Files, count: int) -> LoadedPath:
    return frame_poses(load_array(files["poses.npy"]))


def write_latent_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """poses.npy (N, 4, 4) camera-to-world and intrinsics.npy (N, 4) in pixels of 832x480."""
    lens = _focal_and_centre(ask.lens(LINGBOT_PICTURE))
    return {"poses.npy": npy_bytes(ask.c2w), "intrinsics.npy": npy_bytes(np.tile(lens, (len(ask.c2w), 1)))}


def read_latent_folder(files: Files, count: int) -> LoadedPath:
    """One pose per latent frame; the loader divides the ways between them by the longest, so their shape counts."""
    c2w = _latent_poses(files)
    steps = invert(c2w[:-1]) @ c2w[1:]
    longest = float(np.linalg.norm(steps[:, :3, 3], axis=1).max(initial=0.0))
    if longest <= STILL:
        return LoadedPath(latents(4 * len(c2w) - 3), c2w)
    steps[:, :3, 3] /= longest
    return LoadedPath(latents(4 * len(c2w) - 3), chain_steps(steps), ways="shape")


def write_keys_folder(ask: PayloadRequest) -> dict[str, bytes]:
    """The same two files, and action.npy (N, 4): w a s d held, 0 or 1, the same from one latent frame to the next."""
    # Keys are pressed along the heading that was asked for, not along the amplified one.
    c2w = ask.plan.path.c2w
    require_level(c2w)
    marks = latents(len(c2w))
    keys = np.repeat(keys_for_path(c2w[marks])[:, [0, 2, 1, 3]], LATENT_STRIDE, axis=0)
    padding = np.zeros((len(c2w) - len(keys), 4))
    return {**write_latent_folder(ask), "action.npy": npy_bytes(np.concatenate([keys, padding]))}


def read_keys_folder(files: Files, count: int) -> LoadedPath:
    """Turns are those of the poses, and ways those of every fourth row of keys, one step each along the heading."""
    c2w = _latent_poses(files)
    w, a, s, d = load_array(files["action.npy"])[::LATENT_STRIDE][: len(c2w) - 1].T
    moves = np.stack([d - a, w - s], axis=1)
    c2w[:, :3, 3] = 0
    frames = latents(LATENT_STRIDE * len(c2w) - 3)
    return LoadedPath(frames, c2w, ways="shape", moves=moves, key=1.0) if moves.any() else LoadedPath(frames, c2w)


def _latent_poses(files: Files) -> np.ndarray:
    c2w = load_array(files["poses.npy"])
    return relative_to_first(c2w[latents(len(c2w))])


def _focal_and_centre(lens: np.ndarray) -> np.ndarray:
    """fx, fy, cx, cy."""
    return lens[[0, 1, 0, 1], [0, 1, 2, 2]]
