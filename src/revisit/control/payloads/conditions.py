"""Conditions: keys and mouse per frame, as game-like generators hold them in memory.

One row per frame, which acts until the next. The public programs of these models read no such file: a small converter
must hand the arrays over.

- Matrix-Game 2: keyboard_cond (1, N, 4) forward, back, left, right; mouse_cond (1, N, 2) up and right, a rate of 0.1.
  Actions change every 4 frames. How many degrees its rate is, nobody says; so only the direction of a turn is told.
- Matrix-Game 3: keyboard (N, 6) w s a d and two unused; mouse (N, 2) up and right, 15 degrees per unit and frame, and
  under 0.02 ignored. Turns slower than that are made in pulses. A key has one speed, whose unit nobody says.
"""

from __future__ import annotations

import numpy as np

from revisit.control.payloads.family import (
    LATENT_STRIDE,
    STILL,
    Ask,
    Delivered,
    Family,
    Files,
    PayloadError,
    held,
    member,
    packed,
    turned,
)
from revisit.geometry.rotations import axis_angle, from_yaw_pitch, geodesic, to_yaw_pitch

RATE = 0.1  # of the mouse, as Matrix-Game 2 uses it
DEGREES = 15.0  # per unit of the mouse and frame
LEAST = 0.02  # of the mouse; less is ignored
KEY, TWO_KEYS = 12.35, 8.73  # units per frame that one key goes, and each of two


def write_rates(ask: Ask) -> dict[str, bytes]:
    """`keyboard_cond` and `mouse_cond`, the same for 4 frames at a time."""
    yaw, pitch = _angles(ask.c2w)
    edges = np.minimum(np.arange(0, len(yaw) + LATENT_STRIDE, LATENT_STRIDE), len(yaw) - 1)
    mouse = RATE * np.stack([np.sign(_told(np.diff(pitch[edges]))), np.sign(_told(np.diff(yaw[edges])))], axis=1)
    rows = [np.repeat(table, LATENT_STRIDE, axis=0)[: len(yaw)] for table in (held(ask.c2w[edges]), mouse)]
    return {"npz": packed(keyboard_cond=rows[0][None], mouse_cond=rows[1][None])}


def read_rates(files: Files, count: int) -> Delivered:
    """Nothing but that the arrays fit: the sizes of turns and ways are not known."""
    keys = member(files["npz"], "keyboard_cond", (1, count, 4))
    member(files["npz"], "mouse_cond", (1, count, 2))
    return Delivered(np.arange(count), None, ways="shape" if keys.any() else "metres")


def write_units(ask: Ask) -> dict[str, bytes]:
    """`keyboard` and `mouse`, frame by frame."""
    yaw, pitch = _angles(ask.c2w)
    keyboard = np.zeros((len(yaw), 6))
    keyboard[:-1, :4] = held(ask.c2w)
    mouse = np.stack([_pulses(pitch), _pulses(yaw)], axis=1)
    return {"npz": packed(keyboard=keyboard, mouse=mouse)}


def read_units(files: Files, count: int) -> Delivered:
    """The path that keys and mouse lead along."""
    keyboard, mouse = member(files["npz"], "keyboard", (count, 6)), member(files["npz"], "mouse", (count, 2))
    w, s, a, d = (keyboard[:, :4] > 0.5).astype(float).T
    turned = np.where(np.abs(mouse) < LEAST * (1 - 1e-6), 0, mouse * DEGREES)
    pitch, yaw = np.concatenate([np.zeros((1, 2)), np.cumsum(turned[:-1], axis=0)]).T
    c2w = np.tile(np.eye(4), (count, 1, 1))
    for k in range(count):
        c2w[k, :3, :3] = from_yaw_pitch(yaw[k], pitch[k])
        if k:
            ahead, right = w[k - 1] - s[k - 1], d[k - 1] - a[k - 1]
            speed = TWO_KEYS if ahead and right else KEY
            c2w[k, :3, 3] = c2w[k - 1, :3, 3] + speed * axis_angle((0, 1, 0), yaw[k - 1]) @ [right, 0, ahead]
    return Delivered(np.arange(count), c2w, ways="shape" if keyboard.any() else "metres")


def _angles(c2w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    yaw, pitch = to_yaw_pitch(c2w[:, :3, :3])
    yaw = np.degrees(np.unwrap(np.radians(yaw)))
    if np.abs(c2w[:, 1, 3]).max() > STILL or float(geodesic(turned(yaw, pitch), c2w[:, :3, :3]).max()) > 1e-4:
        raise PayloadError("the path rolls or rises, which keys and a mouse cannot express; choose another generator")
    return yaw, pitch


def _told(change: np.ndarray) -> np.ndarray:
    return np.where(np.abs(change) > STILL, change, 0)


def _pulses(angle: np.ndarray) -> np.ndarray:
    """The mouse (N,) that follows an angle: it turns when enough has gathered to be noticed."""
    made, at = np.zeros(len(angle)), 0.0
    for k in range(len(angle) - 1):
        units = (angle[k + 1] - at) / DEGREES
        if abs(units) >= LEAST:
            made[k] = units
            at = angle[k + 1]
    return made


RATES = Family(
    "mouse_rates", "Keys and mouse rates in memory", ("npz",),
    "keyboard_cond (1, N, 4) forward back left right; mouse_cond (1, N, 2) up and right, 0.1 or nothing",
    write_rates, read_rates,
)  # fmt: skip
UNITS = Family(
    "mouse_units", "Keys and mouse units in memory", ("npz",),
    "keyboard (N, 6) w s a d and two unused; mouse (N, 2) up and right, 15 degrees per unit and frame",
    write_units, read_units,
)  # fmt: skip
