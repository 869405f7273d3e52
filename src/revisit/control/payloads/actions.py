"""Actions: keys and mouse per frame, as game-like generators take them.

npz members, one row per frame after the first: `keyboard` (N-1, 4) for forward, back, left, right held or not,
`mouse` (N-1, 2) degrees up and to the right, and `speed` (2,) metres per frame while a key along or across is held.
One speed serves the whole clip, so a path that changes its speed is refused.
"""

from __future__ import annotations

import io

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.arrays import member
from revisit.control.payloads.family import Delivered, Family, PayloadError, relative
from revisit.geometry.rotations import axis_angle, geodesic, to_yaw_pitch

STILL = 1e-6  # metres per frame


def write(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """Keys, mouse and speeds of a path."""
    path = relative(c2w)
    yaw, pitch = to_yaw_pitch(path[:, :3, :3])
    yaw = np.degrees(np.unwrap(np.radians(yaw)))
    mouse = np.stack([np.diff(pitch), np.diff(yaw)], axis=1)
    along, across = _local_steps(path[:, :3, 3], yaw)
    speed = np.array([_one_speed(along, "ahead"), _one_speed(across, "sideways")])
    keyboard = np.stack([along > STILL, along < -STILL, across < -STILL, across > STILL], axis=1)
    made = _play(keyboard, mouse, speed)
    off = max(float(np.abs(made[:, :3, 3] - path[:, :3, 3]).max()), float(geodesic(made, path)[..., None].max()) / 57)
    if off > 1e-4:
        raise PayloadError("the path rolls or rises, which keys and a mouse cannot say; choose another payload")
    file = io.BytesIO()
    np.savez(file, keyboard=keyboard, mouse=mouse, speed=speed)
    return file.getvalue()


def read(content: bytes) -> Delivered:
    """The path that keys and mouse lead along."""
    keyboard, mouse = member(content, "keyboard", 2), member(content, "mouse", 2)
    speed = member(content, "speed", 1)
    if keyboard.shape[1] != 4 or mouse.shape != (len(keyboard), 2) or speed.shape != (2,):
        raise PayloadError(
            f"keyboard {keyboard.shape}, mouse {mouse.shape}, speed {speed.shape}; expected (n, 4), (n, 2), (2,)"
        )
    c2w = _play(keyboard.astype(bool), mouse, speed)
    return Delivered(np.arange(len(c2w)), c2w)


def _play(keyboard: np.ndarray, mouse: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Poses of a level walk: along and across the heading, which turns evenly during a frame."""
    held = keyboard.astype(float)
    along, across = (held[:, 0] - held[:, 1]) * speed[0], (held[:, 3] - held[:, 2]) * speed[1]
    pitch, yaw = np.concatenate([np.zeros((1, 2)), np.cumsum(mouse, axis=0)]).T
    c2w = np.tile(np.eye(4), (len(yaw), 1, 1))
    for k in range(len(yaw)):
        c2w[k, :3, :3] = axis_angle((0, 1, 0), yaw[k]) @ axis_angle((1, 0, 0), pitch[k])
        if k:
            middle, half = np.radians((yaw[k - 1] + yaw[k]) / 2), (yaw[k] - yaw[k - 1]) / 360
            ahead, right = [np.sin(middle), 0, np.cos(middle)], [np.cos(middle), 0, -np.sin(middle)]
            step = along[k - 1] * np.array(ahead) + across[k - 1] * np.array(right)
            c2w[k, :3, 3] = c2w[k - 1, :3, 3] + np.sinc(half) * step
    return c2w


def _local_steps(centres: np.ndarray, yaw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Way along and across the heading in each frame, as lengths of arc."""
    steps = np.diff(centres, axis=0)
    middle, bend = np.radians((yaw[1:] + yaw[:-1]) / 2), np.sinc(np.diff(yaw) / 360)
    along = (steps[:, 0] * np.sin(middle) + steps[:, 2] * np.cos(middle)) / bend
    across = (steps[:, 0] * np.cos(middle) - steps[:, 2] * np.sin(middle)) / bend
    return along, across


def _one_speed(steps: np.ndarray, way: str) -> float:
    moving = np.abs(steps[np.abs(steps) > STILL])
    if len(moving) and np.ptp(moving) > 1e-5 + 1e-4 * moving.max():
        raise PayloadError(
            f"the path moves {way} at {moving.min():.4g} to {moving.max():.4g} metres per frame; a key has one speed"
        )
    return float(moving.mean()) if len(moving) else 0.0


ACTIONS = Family(
    "actions", "Keys and mouse per frame", ".npz",
    "keyboard (N-1, 4) W S A D, mouse (N-1, 2) degrees up and right, speed (2,) metres per frame", write, read,
)  # fmt: skip
