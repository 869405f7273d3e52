"""Keys of MIND: the steps and turns that they lead an actor by, and the action file that tells of them.

w s a d walk, u n look up and down, l r look left and right; a frame's keys are the letters of those held in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.geometry.poses import invert_rigid_poses, make_rigid_poses, to_unreal
from revisit.geometry.rotations import rotation_from_axis_angle, rotation_from_yaw_pitch, yaw_pitch_of_rotation

CODES = {
    "w": ("ws", 1), "s": ("ws", 2), "a": ("ad", 1), "d": ("ad", 2), "u": ("ud", 1), "n": ("ud", 2), "l": ("lr", 1),
    "r": ("lr", 2),
}  # fmt: skip
STILL = 0.2  # of a usual step: what is less is no key
OPPOSITE = dict(zip("wsadunlr", "swdanurl", strict=True))
# The ten go-and-return files of the dataset, and the keys that are held on the way out.
MIRRORS = {
    "-w": "w", "-s": "s", "-a": "a", "-d": "d", "-u": "u", "-down": "n", "-wl": "wl", "-wr": "wr", "-sl": "sl",
    "-sr": "sr",
}  # fmt: skip


@dataclass(frozen=True)
class KeySteps:
    """What a key does in one frame."""

    metres: float = 0.05
    degrees: float = 2.0
    tilt: float = 1.0


@dataclass(frozen=True)
class Actor:
    """Where the actor stands (metres) and looks (degrees right and up)."""

    x: float = 0.0
    z: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0

    def move_one_frame(self, keys: str, steps: KeySteps) -> Actor:
        """The actor one frame later."""
        forward, right = ("w" in keys) - ("s" in keys), ("d" in keys) - ("a" in keys)
        heading = np.radians(self.yaw)
        return Actor(
            self.x + steps.metres * float(forward * np.sin(heading) + right * np.cos(heading)),
            self.z + steps.metres * float(forward * np.cos(heading) - right * np.sin(heading)),
            self.yaw + steps.degrees * (("r" in keys) - ("l" in keys)),
            self.pitch + steps.tilt * (("u" in keys) - ("n" in keys)),
        )

    def camera_pose(self, up: float = 0.0, behind: float = 0.0) -> np.ndarray:
        """Camera-to-world pose of an eye so many metres up, or of a camera so many metres behind it."""
        heading = np.radians(self.yaw)
        pose = np.eye(4)
        pose[:3, :3] = rotation_from_yaw_pitch(self.yaw, self.pitch)
        pose[:3, 3] = (self.x - behind * np.sin(heading), 0.0 - up, self.z - behind * np.cos(heading))
        return pose


def walk_with_keys(keys: Sequence[str], start: Actor, steps: KeySteps) -> list[Actor]:
    """The actor in every frame; the keys of the last frame lead out of the clip."""
    actors = [start]
    for keys_of_frame in keys[:-1]:
        actors.append(actors[-1].move_one_frame(keys_of_frame, steps))
    return actors


def infer_keys_from_path(c2w: np.ndarray) -> list[str]:
    """The keys that would lead along a path: what each step does along its own axes, where it does enough."""
    yaw, pitch = yaw_pitch_of_rotation(c2w[:, :3, :3])
    turn, tilt = np.diff(np.degrees(np.unwrap(np.radians(yaw)))), np.diff(pitch)
    level = make_rigid_poses(rotation_from_axis_angle((0, 1, 0), yaw), c2w[:, :3, 3])
    motion = (invert_rigid_poses(level[:-1]) @ level[1:])[:, :3, 3]
    keys = [""] * len(c2w)
    # Ways are compared with ways, so that a little slip beside a long stride is no key.
    stride = _median_moving_step(np.hypot(motion[:, 0], motion[:, 2]))
    for letters, change, usual in (
        ("ws", motion[:, 2], stride), ("da", motion[:, 0], stride), ("un", tilt, _median_moving_step(tilt)),
        ("rl", turn, _median_moving_step(turn)),
    ):  # fmt: skip
        for k, value in enumerate(change):
            if usual and abs(value) > STILL * usual:
                keys[k] += letters[0] if value > 0 else letters[1]
    return keys


def _median_moving_step(change: np.ndarray) -> float:
    """The size of a usual step; 0 where nothing moves."""
    moved = np.abs(change)[np.abs(change) > 1e-6]
    return float(np.median(moved)) if len(moved) else 0.0


def keys_out_and_back(out_keys: str, ticks: int) -> list[str]:
    """Keys out, and back the same way."""
    return [out_keys] * ticks + ["".join(OPPOSITE[key] for key in out_keys)] * ticks


def action_file_content(keys: Sequence[str], tracks: Mapping[str, np.ndarray], mark: int) -> dict[str, object]:
    """The content of an action.json: a row per frame with the keys held, and where the actor (and the camera) is."""
    rows: list[dict[str, object]] = [
        {"time": k, "ws": 0, "ad": 0, "ud": 0, "lr": 0, **{CODES[key][0]: CODES[key][1] for key in keys_of_frame}}
        for k, keys_of_frame in enumerate(keys)
    ]
    for who, poses in tracks.items():
        positions, angles = to_unreal(poses)
        for row, position, angle in zip(rows, positions.tolist(), angles.tolist(), strict=True):
            row |= {f"{who}_pos": dict(zip("xyz", position, strict=True))}
            row |= {f"{who}_rpy": dict(zip("xyz", angle, strict=True))}
    return {"mark_time": mark, "total_time": len(rows), "data": rows}
