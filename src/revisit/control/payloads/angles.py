"""Angles: three lines of numbers, one per frame each: pitch and yaw in degrees, and the way along the line of sight.

It can say turns on the spot, and a straight way ahead or back; a path that moves sideways, or turns while it
moves, is refused.
"""

from __future__ import annotations

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.family import Delivered, Family, PayloadError, relative
from revisit.geometry.rotations import from_yaw_pitch, geodesic, to_yaw_pitch

EXACT = 1e-6


def write(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """The three lines of a path."""
    path = relative(c2w)
    yaw, pitch = to_yaw_pitch(path[:, :3, :3])
    yaw = np.degrees(np.unwrap(np.radians(yaw)))
    turned = np.stack([from_yaw_pitch(*angles) for angles in zip(yaw, pitch, strict=True)])
    if float(geodesic(turned, path[:, :3, :3]).max()) > 1e-4:
        raise PayloadError("the path rolls, which pitch and yaw cannot say; choose another payload")
    along = path[:, 2, 3]
    if np.abs(path[:, :2, 3]).max() > EXACT or (np.ptp(along) > EXACT and max(np.ptp(yaw), np.ptp(pitch)) > EXACT):
        raise PayloadError(
            "the path moves sideways, or turns while it moves, which pitch, yaw and a displacement cannot say; "
            "choose another payload"
        )
    return "".join(" ".join(f"{value:.9g}" for value in line) + "\n" for line in (pitch, yaw, along)).encode()


def read(content: bytes) -> Delivered:
    """The path of three lines."""
    try:
        pitch, yaw, along = (np.array(line.split(), dtype=float) for line in content.decode().strip().split("\n"))
        c2w = np.tile(np.eye(4), (len(yaw), 1, 1))
        for pose, angles in zip(c2w, zip(yaw, pitch, strict=True), strict=True):
            pose[:3, :3] = from_yaw_pitch(*angles)
        c2w[:, 2, 3] = along
    except ValueError as error:
        raise PayloadError(
            f"expected three lines of equally many numbers (pitch, yaw, displacement): {error}"
        ) from error
    return Delivered(np.arange(len(c2w)), relative(c2w))


ANGLES = Family(
    "angles", "Pitch, yaw and displacement per frame", ".txt",
    "three lines: pitch and yaw in degrees, displacement along the first line of sight", write, read,
)  # fmt: skip
