"""Documents: a path as lines of text or as JSON, each as one loader wants them.

Camera text has 19 columns, as CameraCtrl and its descendants read them.
The first line is skipped unread by most readers and parsed by some, so the first row stands there twice. Then one row
per pose: time in microseconds, fx fy cx cy divided by the picture's size, two zeros, and the 3x4 world-to-camera
matrix row by row, parted by one blank.

- `assumes: [1280, 720]`: the reader takes the intrinsics for those of a picture of this shape and stretches them to the
  sample's. Without it they are divided by the sample's own width and height.
- `lens: [fx, fy]`: the model's own numbers, written as they are instead of those of the plan.
- `every: 3`: the reader keeps every third row.
- `inverted_turns: true`: a path that turns is written inverted, as WRBench does for GameCraft.

Angles are three lines of keyframes: pitch and yaw in degrees, and the way along the line of sight. The loader draws
straight lines through two or three keyframes, evenly spread over the clip, and smooths more of them away; so three are
written. A positive pitch looks down there. It can say a turn on the spot (with the loader's --rotation_only, or no
displacement) or a straight way ahead, in units of the scene's depth, and nothing sideways.

Unreal's axes are x ahead, y right, z up, in centimetres; a pose's columns are ahead, right, up and the position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import STILL, Files, LoadedPath, PayloadError, PayloadRequest
from revisit.geometry.poses import invert_rigid_poses, make_rigid_poses, make_trajectory, resample, to_4x4_poses
from revisit.geometry.rotations import yaw_pitch_of_rotation

UNREAL = np.array([[0.0, 0, 1, 0], [1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])  # Unreal's x, y, z of OpenCV's
CENTIMETRES = 100.0
FRAMES_LATE = 2  # how many frames' worth of motion the straight lines may be off
CAMERA = "cam01"  # the first of ReCamMaster's ten names: --cam_type 1


def write_camera_text(
    ask: PayloadRequest,
    *,
    assumes: Sequence[int] | None = None,
    lens: Sequence[float] | None = None,
    every: int = 1,
    inverted_turns: bool = False,
) -> dict[str, bytes]:
    """The text of a path."""
    c2w = resample(make_trajectory(ask.c2w), np.linspace(0, len(ask.c2w) - 1, (len(ask.c2w) - 1) * every + 1)).c2w
    inverted = inverted_turns and float(np.abs(yaw_pitch_of_rotation(c2w[:, :3, :3])[0]).max()) > 1e-6
    fx, fy = lens or _relative_focal_lengths(ask, assumes)
    rows = []
    for k, pose in enumerate(c2w if inverted else invert_rigid_poses(c2w)):
        values = [fx, fy, 0.5, 0.5, 0, 0, *(pose[:3].ravel() + 0.0)]
        time = str(round(k * 1e6 / (ask.plan.fps * every)))
        rows.append(" ".join([time, *(f"{value:.12g}" for value in values)]) + "\n")
    return {"txt": "".join([rows[0], *rows]).encode()}


def read_camera_text(files: Files, frame_count: int, *, every: int = 1, **options: object) -> LoadedPath:
    """The path that a reader takes from such a text: its first line is skipped, and every so many rows are kept."""
    table = np.array([line.split(" ") for line in files["txt"].decode().splitlines()[1:]], dtype=float)
    return family.loaded_path_of_all_frames(invert_rigid_poses(to_4x4_poses(table[::every, 7:].reshape(-1, 3, 4))))


def _relative_focal_lengths(ask: PayloadRequest, assumes: Sequence[int] | None = None) -> tuple[float, float]:
    """Focal lengths divided by the width and height that the reader multiplies them with."""
    width, height = (float(side) for side in ask.plan.size)
    lens = ask.intrinsics_for_size(ask.plan.size)
    if assumes is not None:
        # The reader fits a picture of that shape over the sample, and so stretches the side that is cut.
        shape = assumes[0] / assumes[1]
        width, height = max(width, height * shape), max(height, width / shape)
    return float(lens[0, 0] / width), float(lens[1, 1] / height)


def write_pose_table(ask: PayloadRequest, *, lens: Sequence[float] | None = None) -> dict[str, bytes]:
    """{"0": {"extrinsic": 4x4 camera-to-world, "K": 3x3 divided}, ...}: a pose per latent frame, in their order."""
    fx, fy = lens or _relative_focal_lengths(ask)
    k = family.rounded_nested_lists(np.array([[fx, 0, 0.5], [0, fy, 0.5], [0, 0, 1]]))
    poses = ask.c2w[family.latent_frame_numbers(len(ask.c2w))]
    rows = [{"extrinsic": family.rounded_nested_lists(pose), "K": k} for pose in poses]
    return family.json_payload({str(n): row for n, row in enumerate(rows)})


def read_pose_table(files: Files, frame_count: int, **options: object) -> LoadedPath:
    """The poses in the order of the file, whatever their keys are called."""
    c2w = np.array([row["extrinsic"] for row in json.loads(files["json"]).values()])
    return LoadedPath(family.latent_frame_numbers(4 * len(c2w) - 3), family.poses_relative_to_first(c2w))


def write_pose_lines(ask: PayloadRequest) -> dict[str, bytes]:
    """poses.txt: a bare 4x4 world-to-camera array per line; intrinsics.txt: fx fy cx cy divided by width and height."""
    rows = [json.dumps(matrix) + "\n" for matrix in family.rounded_nested_lists(invert_rigid_poses(ask.c2w))]
    lens = " ".join(f"{value:.12g}" for value in (*_relative_focal_lengths(ask), 0.5, 0.5)) + "\n"
    return {"poses.txt": "".join(rows).encode(), "intrinsics.txt": lens.encode()}


def read_pose_lines(files: Files, frame_count: int) -> LoadedPath:
    w2c = np.array([json.loads(line) for line in files["poses.txt"].splitlines()])
    return family.loaded_path_of_all_frames(invert_rigid_poses(w2c))


def write_scene_json(ask: PayloadRequest) -> dict[str, bytes]:
    """camera.json: `extrinsic` (N, 4, 4) world-to-camera and `intrinsic` (N, 3, 3) in pixels of the first picture."""
    lens = family.rounded_nested_lists(ask.intrinsics_for_size(ask.picture or ask.plan.size))
    scene = {"intrinsic": [lens] * len(ask.c2w), "extrinsic": family.rounded_nested_lists(invert_rigid_poses(ask.c2w))}
    return {"camera.json": json.dumps(scene).encode()}


def read_scene_json(files: Files, frame_count: int) -> LoadedPath:
    return family.loaded_path_of_all_frames(invert_rigid_poses(np.array(json.loads(files["camera.json"])["extrinsic"])))


def write_split_json(ask: PayloadRequest) -> dict[str, bytes]:
    """`cond_cam` and `tgt_cam`, each "0" to "76": 4x4 in Unreal's axes. The source is taken to rest at the start."""
    poses = [family.rounded_nested_lists(pose) for pose in _poses_in_unreal_axes(ask.c2w)]
    static = {str(k): poses[0] for k in range(len(poses))}
    return family.json_payload({"cond_cam": static, "tgt_cam": {str(k): pose for k, pose in enumerate(poses)}})


def read_split_json(files: Files, frame_count: int) -> LoadedPath:
    cameras = json.loads(files["json"])
    return _loaded_path_from_unreal([cameras["tgt_cam"][str(k)] for k in range(len(cameras["cond_cam"]))])


def write_unreal_strings(ask: PayloadRequest) -> dict[str, bytes]:
    """`frame0`, `frame1`, ... -> `cam01` -> "[..] [..] [..] [..]", the four columns in Unreal's axes."""
    frames = {}
    for k, pose in enumerate(_poses_in_unreal_axes(ask.c2w)):
        columns = (" ".join(f"{value:.12g}" for value in column + 0.0) for column in pose.T)
        frames[f"frame{k}"] = {CAMERA: " ".join(f"[{column}]" for column in columns) + " "}
    return family.json_payload(frames)


def read_unreal_strings(files: Files, frame_count: int) -> LoadedPath:
    frames = json.loads(files["json"])
    groups = [re.findall(r"\[([^\]]*)\]", frames[f"frame{k}"][CAMERA]) for k in range(len(frames))]
    return _loaded_path_from_unreal([np.array([group.split() for group in four], dtype=float).T for four in groups])


def write_angles(ask: PayloadRequest) -> dict[str, bytes]:
    """The three lines of a path that goes one way, or one way and then another, half the clip each."""
    yaw, pitch = family.yaw_and_pitch_or_refuse_roll(ask.c2w, "pitch and yaw cannot express")
    forward, aside = ask.c2w[:, 2, 3], np.abs(ask.c2w[:, :2, 3]).max()
    turns = max(np.abs(yaw).max(), np.abs(pitch).max()) > STILL
    if aside > STILL or (turns and np.abs(forward).max() > STILL):
        raise PayloadError(
            "the path moves sideways, or turns while it moves, which pitch, yaw and a displacement cannot express; "
            "choose another generator"
        )
    middle = (len(ask.c2w) - 1) / 2
    frames = np.arange(len(ask.c2w))
    lines = []
    for values in (-pitch, yaw, forward):
        keys = np.interp([0, middle, 2 * middle], frames, values)
        off = np.abs(np.interp(frames, [0, middle, 2 * middle], keys) - values).max()
        if off > FRAMES_LATE * np.abs(np.diff(values)).max() + STILL:
            raise PayloadError(
                "the path has more than two legs, or legs of unequal length; more than three keyframes, evenly spread, "
                "would be smoothed away by the loader"
            )
        lines.append(" ".join(f"{value:.12g}" for value in keys + 0.0) + "\n")
    return {"txt": "".join(lines).encode()}


def read_angles(files: Files, frame_count: int) -> LoadedPath:
    """The path of three lines over the clip's frames."""
    keyframes = [np.array(line.split(), dtype=float) for line in files["txt"].decode().splitlines()]
    share = np.linspace(0, 1, frame_count)
    pitch, yaw, forward = (np.interp(share, np.linspace(0, 1, len(keys)), keys) for keys in keyframes)
    c2w = make_rigid_poses(family.rotations_without_roll(yaw, -pitch))
    moves = not yaw.any() and not pitch.any() and bool(forward.any())
    if moves:
        c2w[:, 2, 3] = forward
    return LoadedPath(np.arange(frame_count), c2w, ways="shape" if moves else "metres")


def _poses_in_unreal_axes(c2w: np.ndarray) -> np.ndarray:
    poses = UNREAL @ c2w @ UNREAL.T
    poses[:, :3, 3] *= CENTIMETRES
    return poses


def _loaded_path_from_unreal(matrices: Sequence[Any]) -> LoadedPath:
    """What is read of poses in Unreal's axes: one for each latent frame."""
    poses = np.array(matrices)
    poses[:, :3, 3] /= CENTIMETRES
    frames = family.latent_frame_numbers(len(poses))
    return LoadedPath(frames, family.poses_relative_to_first(UNREAL.T @ poses @ UNREAL)[frames])
