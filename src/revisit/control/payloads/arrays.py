"""Arrays: poses, or keys and mouse, as members of an npz or as npy files in a folder, each as one loader wants them.

Game-like generators hold keys and mouse in memory: one row per frame, which acts until the next. The public programs of
these models read no such file: a small converter must hand the arrays over.

- Matrix-Game 2: keyboard_cond (1, N, 4) forward, back, left, right; mouse_cond (1, N, 2) up and right, a rate of 0.1.
  Actions change every 4 frames. How many degrees its rate is, nobody says; so only the direction of a turn is told.
- Matrix-Game 3: keyboard (N, 6) w s a d and two unused; mouse (N, 2) up and right, 15 degrees per unit and frame, and
  under 0.02 ignored. Turns slower than that are made in pulses. A key has one speed, whose unit nobody says.

Keys are those that `keys_for_path` finds for the path: the fewest that explain it.
"""

from __future__ import annotations

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import LATENT_STRIDE, STILL, Files, LoadedPath, PayloadRequest
from revisit.geometry.poses import invert_rigid_poses, make_rigid_poses
from revisit.geometry.rotations import rotation_from_axis_angle

# Blender's world (x right, y ahead, z up) of OpenCV's (x right, y down, z ahead), and its camera (y up, z backward).
BLENDER_WORLD = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
BLENDER_CAMERA = np.diag([1.0, -1, -1, 1])
LINGBOT_PICTURE = (832, 480)  # its intrinsics are pixels of this picture, whatever the clip's size
GEN3C_PICTURE = (1280, 704)
MOUSE_RATE = 0.1  # of the mouse, as Matrix-Game 2 uses it
MOUSE_DEGREES = 15.0  # per unit of the mouse and frame
IGNORED = 0.02  # of the mouse; less does nothing
LEAST = 0.020001  # what is written at least: 0.02 itself is less than that in single precision
KEY, TWO_KEYS = 12.35, 8.73  # units per frame that one key goes, and each of two


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


def write_mouse_rates(ask: PayloadRequest) -> dict[str, bytes]:
    """`keyboard_cond` and `mouse_cond`, the same for 4 frames at a time."""
    yaw, pitch = _yaw_and_pitch_of_level_path(ask.c2w)
    edges = np.minimum(np.arange(0, len(yaw) + LATENT_STRIDE, LATENT_STRIDE), len(yaw) - 1)
    changes = np.stack([np.diff(pitch[edges]), np.diff(yaw[edges])], axis=1)
    mouse = MOUSE_RATE * np.sign(np.where(np.abs(changes) > STILL, changes, 0))
    keys = family.keys_for_path(ask.plan.path.c2w[edges])
    rows = [np.repeat(table, LATENT_STRIDE, axis=0)[: len(yaw)] for table in (keys, mouse)]
    return family.npz_payload(keyboard_cond=rows[0][None], mouse_cond=rows[1][None])


def read_mouse_rates(files: Files, frame_count: int) -> LoadedPath:
    """Where the keys lead; how far the mouse turns is not known."""
    keys = family.load_array_as_float(files["npz"], "keyboard_cond")[0]
    edges = np.minimum(np.arange(0, frame_count + LATENT_STRIDE - 1, LATENT_STRIDE), frame_count - 1)
    if not keys.any():
        return LoadedPath(edges, None)
    forward, back, left, right = keys[edges[:-1]].T
    return LoadedPath(edges, None, ways="shape", moves=np.stack([right - left, forward - back], axis=1), key=1.0)


def write_mouse_units(ask: PayloadRequest) -> dict[str, bytes]:
    """`keyboard` and `mouse`, frame by frame."""
    yaw, pitch = _yaw_and_pitch_of_level_path(ask.c2w)
    mouse = np.stack([_mouse_pulses(pitch), _mouse_pulses(yaw)], axis=1)
    keyboard = np.zeros((len(yaw), 6))
    path, heading = ask.plan.path.c2w, _pitch_and_yaw_of_mouse(mouse)[:, 1]
    keyboard[:-1, :4] = family.keys_for_path(path, two_key_speed=TWO_KEYS / KEY)
    amplified = not np.allclose(path[:, :3, :3], ask.c2w[:, :3, :3])
    off, scale = family.largest_distance_and_scale(
        path[:, :3, 3] - path[0, :3, 3], _positions_of_keys(keyboard, heading), shape_only=True
    )
    if not amplified and off > scale * KEY:
        # A frame goes along the heading that it begins with, which trails a fast turn: further keys make up for that.
        grounds = np.stack([rotation_from_axis_angle((0, 1, 0), angle)[::2, ::2] for angle in heading[:-1]])
        keyboard[:-1, :4] = family.keys_for_path(path, two_key_speed=TWO_KEYS / KEY, heading_rotations=grounds)
    return family.npz_payload(keyboard=keyboard, mouse=mouse)


def read_mouse_units(files: Files, frame_count: int) -> LoadedPath:
    """The path that keys and mouse lead along."""
    keyboard, mouse = (family.load_array_as_float(files["npz"], name) for name in ("keyboard", "mouse"))
    pitch, yaw = _pitch_and_yaw_of_mouse(mouse).T
    c2w = make_rigid_poses(family.rotations_without_roll(yaw, pitch))
    if not keyboard.any():
        return LoadedPath(np.arange(frame_count), c2w)
    c2w[:, :3, 3] = _positions_of_keys(keyboard, yaw)
    moves = _key_steps(keyboard)[:, ::2] / KEY
    return LoadedPath(np.arange(frame_count), c2w, ways="shape", moves=moves, key=KEY)


def _pitch_and_yaw_of_mouse(mouse: np.ndarray) -> np.ndarray:
    """Pitch and yaw (N, 2) that the mouse leads to."""
    turns = np.where(np.abs(mouse) < IGNORED, 0, mouse * MOUSE_DEGREES)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(turns[:-1], axis=0)])


def _positions_of_keys(keyboard: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Where the keys lead (N, 3), each frame along the heading that it begins with."""
    pairs = zip(yaw[:-1], _key_steps(keyboard), strict=True)
    steps = [rotation_from_axis_angle((0, 1, 0), angle) @ step for angle, step in pairs]
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def _key_steps(keyboard: np.ndarray) -> np.ndarray:
    """How far the keys go in each frame (N - 1, 3), to the right, down and ahead."""
    w, s, a, d = (keyboard[:-1, :4] > 0.5).astype(float).T
    right, forward = d - a, w - s
    speed = np.where((right != 0) & (forward != 0), TWO_KEYS, KEY)
    return np.stack([right * speed, np.zeros(len(w)), forward * speed], axis=1)


def _yaw_and_pitch_of_level_path(c2w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    family.require_level_path(c2w)
    return family.yaw_and_pitch_or_refuse_roll(c2w, "a mouse cannot do")


def _mouse_pulses(angle: np.ndarray) -> np.ndarray:
    """The mouse (N,) that follows an angle within half of the least turn that is noticed."""
    pulses, at = np.zeros(len(angle)), 0.0
    for k in range(len(angle) - 1):
        units = (angle[k + 1] - at) / MOUSE_DEGREES
        if abs(units) >= LEAST / 2:
            pulses[k] = np.copysign(max(abs(units), LEAST), units)
            at += pulses[k] * MOUSE_DEGREES
    return pulses
