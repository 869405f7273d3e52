"""Angles: three lines of keyframes: pitch and yaw in degrees, and the way along the line of sight.

The loader draws straight lines through two or three keyframes, evenly spread over the clip, and smooths more of them
away; so three are written. A positive pitch looks down there. It can say a turn on the spot (with the loader's
--rotation_only, or no displacement) or a straight way ahead, in units of the scene's depth, and nothing sideways.
"""

from __future__ import annotations

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import STILL, Files, LoadedPath, PayloadError, PayloadRequest
from revisit.geometry.poses import make_rigid_poses

FRAMES_LATE = 2  # how many frames' worth of motion the straight lines may be off


def write_angles(ask: PayloadRequest) -> dict[str, bytes]:
    """The three lines of a path that goes one way, or one way and then another, half the clip each."""
    yaw, pitch = family.unrolled_yaw_and_pitch(ask.c2w, "pitch and yaw cannot express")
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
    c2w = make_rigid_poses(family.level_rotations(yaw, -pitch))
    moves = not yaw.any() and not pitch.any() and bool(forward.any())
    if moves:
        c2w[:, 2, 3] = forward
    return LoadedPath(np.arange(frame_count), c2w, ways="shape" if moves else "metres")
