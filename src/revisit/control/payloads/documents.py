"""Documents: poses as JSON, each as one loader wants them.

Unreal's axes are x ahead, y right, z up, in centimetres; a pose's columns are ahead, right, up and the position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from revisit.control.payloads.family import (
    Family,
    Files,
    LoadedPath,
    PayloadError,
    PayloadRequest,
    checked_poses,
    latents,
    numbers,
    parse_document,
    relative_to_first,
)
from revisit.geometry.poses import invert

UNREAL = np.array([[0.0, 0, 1], [1, 0, 0], [0, -1, 0]])  # Unreal's x, y, z of OpenCV's
CENTIMETRES = 100.0
CAMERA = "cam01"  # the first of ReCamMaster's ten names: --cam_type 1


def write_table(ask: PayloadRequest, *, lens: Sequence[float] | None = None) -> dict[str, bytes]:
    """{"0": {"extrinsic": 4x4 camera-to-world, "K": 3x3 divided}, ...}: a pose per latent frame, in their order."""
    width, height = ask.plan.size
    own = ask.lens(ask.plan.size)
    fx, fy = lens or (own[0, 0] / width, own[1, 1] / height)
    k = numbers(np.array([[fx, 0, 0.5], [0, fy, 0.5], [0, 0, 1]]))
    poses = ask.c2w[latents(len(ask.c2w))]
    return {"json": json.dumps({str(n): {"extrinsic": numbers(pose), "K": k} for n, pose in enumerate(poses)}).encode()}


def read_table(files: Files, count: int, *, lens: Sequence[float] | None = None) -> LoadedPath:
    """The poses in the order of the file, whatever their keys are called."""
    table = parse_document(files["json"])
    try:
        c2w = checked_poses([row["extrinsic"] for row in table.values()])
    except (AttributeError, KeyError, TypeError) as error:
        raise PayloadError("expected a JSON object of objects with `extrinsic`") from error
    return LoadedPath(latents(4 * len(c2w) - 3), relative_to_first(c2w))


def write_lines(ask: PayloadRequest) -> dict[str, bytes]:
    """poses.txt: a bare 4x4 world-to-camera array per line; intrinsics.txt: fx fy cx cy divided by width and height."""
    width, height = ask.plan.size
    lens = ask.lens(ask.plan.size)
    divided = (lens[0, 0] / width, lens[1, 1] / height, 0.5, 0.5)
    return {
        "poses.txt": "".join(json.dumps(numbers(pose)) + "\n" for pose in invert(ask.c2w)).encode(),
        "intrinsics.txt": (" ".join(f"{value:.12g}" for value in divided) + "\n").encode(),
    }


def read_lines(files: Files, count: int) -> LoadedPath:
    if len(files["intrinsics.txt"].split()) != 4:
        raise PayloadError("intrinsics.txt holds four numbers: fx fy cx cy, divided by width and height")
    c2w = invert(checked_poses([parse_document(line) for line in files["poses.txt"].splitlines() if line.strip()]))
    return LoadedPath(np.arange(len(c2w)), relative_to_first(c2w))


def write_scene(ask: PayloadRequest) -> dict[str, bytes]:
    """camera.json: `extrinsic` (N, 4, 4) world-to-camera and `intrinsic` (N, 3, 3) in pixels of the first picture."""
    lens = numbers(ask.lens(ask.picture or ask.plan.size))
    scene = {"intrinsic": [lens] * len(ask.c2w), "extrinsic": numbers(invert(ask.c2w))}
    return {"camera.json": json.dumps(scene).encode()}


def read_scene(files: Files, count: int) -> LoadedPath:
    scene = parse_document(files["camera.json"])
    if not isinstance(scene, dict) or "extrinsic" not in scene or "intrinsic" not in scene:
        raise PayloadError("expected a JSON object with `intrinsic` and `extrinsic`")
    c2w = invert(checked_poses(scene["extrinsic"]))
    return LoadedPath(np.arange(len(c2w)), relative_to_first(c2w))


def write_split(ask: PayloadRequest) -> dict[str, bytes]:
    """`cond_cam` and `tgt_cam`, each "0" to "76": 4x4 in Unreal's axes. The source is taken to rest at the start."""
    poses = [numbers(pose) for pose in _to_unreal(ask.c2w)]
    static = {str(k): poses[0] for k in range(len(poses))}
    return {
        "json": json.dumps({"cond_cam": static, "tgt_cam": {str(k): pose for k, pose in enumerate(poses)}}).encode()
    }


def read_split(files: Files, count: int) -> LoadedPath:
    cameras = parse_document(files["json"])
    try:
        matrices = [cameras["tgt_cam"][str(k)] for k in range(len(cameras["cond_cam"]))]
    except (KeyError, TypeError) as error:
        raise PayloadError("expected `cond_cam` and `tgt_cam` with a matrix per frame, counted from 0") from error
    c2w = _from_unreal(matrices)
    frames = latents(len(c2w))
    return LoadedPath(frames, relative_to_first(c2w)[frames])


def write_strings(ask: PayloadRequest) -> dict[str, bytes]:
    """`frame0`, `frame1`, ... -> `cam01` -> "[..] [..] [..] [..]", the four columns in Unreal's axes."""
    frames = {}
    for k, pose in enumerate(_to_unreal(ask.c2w)):
        columns = (" ".join(f"{value:.12g}" for value in column + 0.0) for column in pose.T)
        frames[f"frame{k}"] = {CAMERA: " ".join(f"[{column}]" for column in columns) + " "}
    return {"json": json.dumps(frames).encode()}


def read_strings(files: Files, count: int) -> LoadedPath:
    frames = parse_document(files["json"])
    try:
        groups = [re.findall(r"\[([^\]]*)\]", frames[f"frame{k}"][CAMERA]) for k in range(len(frames))]
        matrices = [np.array([group.split() for group in four], dtype=float).T for four in groups]
    except (KeyError, TypeError, ValueError) as error:
        raise PayloadError(f"expected frame0, frame1, ... with the four columns of {CAMERA} as a string") from error
    c2w = _from_unreal(matrices)
    frames_read = latents(len(c2w))
    return LoadedPath(frames_read, relative_to_first(c2w)[frames_read])


def _to_unreal(c2w: np.ndarray) -> np.ndarray:
    poses = np.tile(np.eye(4), (len(c2w), 1, 1))
    ahead, right, up = c2w[:, :3, 2], c2w[:, :3, 0], -c2w[:, :3, 1]
    poses[:, :3] = np.stack([ahead, right, up, CENTIMETRES * c2w[:, :3, 3]], axis=2)
    poses[:, :3] = UNREAL @ poses[:, :3]
    return poses


def _from_unreal(matrices: object) -> np.ndarray:
    try:
        poses = np.asarray(matrices, dtype=float)
        if poses.ndim != 3 or poses.shape[1:] != (4, 4):
            raise ValueError(f"their shape is {poses.shape}")
    except (TypeError, ValueError) as error:
        raise PayloadError(f"expected 4x4 matrices: {error}") from error
    axes = UNREAL.T @ poses[:, :3]
    c2w = np.tile(np.eye(4), (len(poses), 1, 1))
    columns = [axes[..., 1], -axes[..., 2], axes[..., 0], axes[..., 3] / CENTIMETRES]
    c2w[:, :3] = np.stack(columns, axis=2)
    return checked_poses(c2w)


POSE_TABLE = Family(
    "pose_table", "Table of poses per latent frame", ("json",),
    '{"0": {"extrinsic": 4x4 camera-to-world, "K": 3x3 divided}, ...}, in the order of time', write_table, read_table,
    options=("lens",),
)  # fmt: skip
POSE_LINES = Family(
    "pose_lines", "World-to-camera, a line each", ("poses.txt", "intrinsics.txt"),
    "poses.txt: a 4x4 array per line; intrinsics.txt: fx fy cx cy divided by width and height",
    write_lines, read_lines, folder=True,
)  # fmt: skip
SCENE_JSON = Family(
    "scene_json", "World-to-camera of a scene", ("camera.json",),
    "camera.json: intrinsic (N, 3, 3) in pixels of the first picture, extrinsic (N, 4, 4) world-to-camera",
    write_scene, read_scene, folder=True, pictured=True,
)  # fmt: skip
SPLIT_JSON = Family(
    "split_json", "Unreal poses of the source and the clip", ("json",),
    'cond_cam and tgt_cam, each {"0": 4x4, ...}: camera-to-world in Unreal axes, centimetres', write_split, read_split,
)  # fmt: skip
UNREAL_STRINGS = Family(
    "unreal_strings", "Unreal poses as strings", ("json",),
    '{"frame0": {"cam01": "[..] [..] [..] [..] "}, ...}: columns of camera-to-world in Unreal axes, centimetres',
    write_strings, read_strings,
)  # fmt: skip
