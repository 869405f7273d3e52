"""Tokens: runs of letters, one for each latent frame after the first: `j*10,l*9`.

j and l turn left and right, i and k look up and down, by 3 degrees; w and s go ahead and back, a and d left and right,
u and dn up and down, by 0.08. There is no letter for rest: a path may only rest in the end, and only where the loader
fills what is missing with the last pose (`padded`). A path that the letters do not follow within one of them is
refused. They stand alone in a line, or in a JSON list of samples with `caption`, `image` and `trajectory`. `degrees`
and `metres` say how far a letter goes, and `rest` which letter rests, for a copy of the model that was changed so.
"""

from __future__ import annotations

import json
import re
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import LATENT_STRIDE, Files, LoadedPath, PayloadError, PayloadRequest
from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations, axis_angle_of_rotation, rotation_from_axis_angle

# letter -> (axis that it turns about or goes along, sign): x right, y down, z ahead
TURNS = {"j": (1, -1), "l": (1, 1), "i": (0, 1), "k": (0, -1)}
WAYS = {"w": (2, 1), "s": (2, -1), "a": (0, -1), "d": (0, 1), "u": (1, -1), "dn": (1, 1)}
DEGREES, METRES = 3.0, 0.08
REST = ""
RUN = re.compile(r"([a-z]+)\*(\d+)")


def write_tokens(
    ask: PayloadRequest, *, padded: bool = False, degrees: float = DEGREES, metres: float = METRES, rest: str = ""
) -> dict[str, bytes]:
    """The runs of a path."""
    moves = _pose_by_letter(degrees, metres, rest)
    marks = family.latent_frame_numbers(len(ask.c2w))
    target = ask.c2w[marks]
    moving = [_length_in_tokens(ask.c2w[a : b + 1], degrees, metres) >= 0.5 for a, b in pairwise(marks)]
    used = len(moving) - moving[::-1].index(True) if any(moving) else 0
    used = len(moving) if rest and not padded else used
    letters: list[str] = []
    at = np.eye(4)
    for pose in target[1 : used + 1]:
        off = {name: _pose_distance_in_tokens(at @ move, pose, degrees, metres) for name, move in moves.items()}
        letters.append(min(off, key=lambda name: round(off[name], 9)))
        at = at @ moves[letters[-1]]
    path = family.accumulate_poses([*(moves[letter] for letter in letters), *[np.eye(4)] * (len(moving) - used)])
    steps = invert_rigid_poses(target[:-1]) @ target[1:]
    pairs = zip((moves[letter] for letter in letters), steps, strict=False)
    against = any(_progress_in_tokens(move, step, degrees, metres) < -0.5 for move, step in pairs)
    turn = angle_between_rotations(path[:, :3, :3], target[:, :3, :3]).max()
    distance = _position_distances(path, target).max()
    rests = not rest and (not all(moving[:used]) or (used < len(moving) and not padded))
    if rests or against or turn > degrees * 1.001 or distance > metres * 1.001:
        frames = 10 * LATENT_STRIDE
        raise PayloadError(
            f"a token goes {degrees:g} degrees or {metres:g} metres in {LATENT_STRIDE} frames, no more and no less"
            f"{'' if rest else ', and none rests' + (' but in the end' if padded else '')}, and either turns or "
            f"moves: ask for {10 * degrees:g} degrees or {10 * metres:g} metres in {frames} frames"
        )
    runs = ",".join(f"{name}*{len(list(run))}" for name, run in groupby(letters)) or "w*0"
    return {"txt": f"{runs}\n".encode()}


def write_token_list(ask: PayloadRequest, **options: Any) -> dict[str, bytes]:
    """The runs of a path in a list of one sample."""
    runs = write_tokens(ask, **options)["txt"].decode().strip()
    return {"json": json.dumps([{"caption": ask.prompt, "image": ask.image, "trajectory": runs}], indent=1).encode()}


def read_tokens(
    files: Files,
    frame_count: int,
    *,
    degrees: float = DEGREES,
    metres: float = METRES,
    rest: str = "",
    **options: object,
) -> LoadedPath:
    """The path that the runs lead along, one pose per latent frame."""
    runs = json.loads(files["json"])[0]["trajectory"] if "json" in files else files["txt"].decode()
    letters = [letter for letter, number in RUN.findall(runs) for _ in range(int(number))]
    count_tokens = len(family.latent_frame_numbers(frame_count)) - 1
    moves = {**_pose_by_letter(degrees, metres, rest), REST: np.eye(4)}
    letters = [*letters, *[REST] * (count_tokens - len(letters))][:count_tokens]
    return LoadedPath(
        family.latent_frame_numbers(frame_count), family.accumulate_poses(moves[letter] for letter in letters)
    )


read_token_list = read_tokens


def _pose_by_letter(degrees: float, metres: float, rest: str) -> dict[str, np.ndarray]:
    """Letter -> the pose it leads to from where the camera is."""
    poses = {name: np.eye(4) for name in (*([rest] if rest else []), *TURNS, *WAYS)}
    for name, (axis, sign) in TURNS.items():
        poses[name][:3, :3] = rotation_from_axis_angle(tuple(np.eye(3)[axis]), sign * degrees)
    for name, (axis, sign) in WAYS.items():
        poses[name][axis, 3] = sign * metres
    return poses


def _pose_distance_in_tokens(pose: np.ndarray, target: np.ndarray, degrees: float, metres: float) -> float:
    turn = float(angle_between_rotations(pose[:3, :3], target[:3, :3]))
    return turn / degrees + float(np.linalg.norm(pose[:3, 3] - target[:3, 3])) / metres


def _length_in_tokens(c2w: np.ndarray, degrees: float, metres: float) -> float:
    """How long a piece of a path is, in tokens."""
    turns = angle_between_rotations(c2w[:-1, :3, :3], c2w[1:, :3, :3]).sum()
    return float(max(turns / degrees, _position_distances(c2w[:-1], c2w[1:]).sum() / metres))


def _progress_in_tokens(move: np.ndarray, step: np.ndarray, degrees: float, metres: float) -> float:
    """How far a step goes the way of a move, in tokens; below zero is against it."""
    axis, angle = axis_angle_of_rotation(move[:3, :3])
    turn_axis, turn_degrees = axis_angle_of_rotation(step[:3, :3])
    return float(turn_degrees * (turn_axis @ axis) / degrees if angle else step[:3, 3] @ move[:3, 3] / metres**2)


def _position_distances(path: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.linalg.norm(path[:, :3, 3] - target[:, :3, 3], axis=1)
