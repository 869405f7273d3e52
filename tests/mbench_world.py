"""A small room, filmed out and back from a slightly different place, with everything that is exactly known of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Clip
from revisit.evidence.frames import FrameFacts
from revisit.geometry.poses import invert_rigid_poses
from revisit.media import save_npz
from revisit.suites.mbench.evidence import GeometryTrack, ObjectRegion
from revisit.worlds.failures import FAILURES
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET

SIZE = (176, 304)  # height, width
HALF = 4  # frames out, and as many back
SIDEWAYS = 0.1  # metres to the right of the way out, on the way back


@dataclass(frozen=True)
class Room:
    """Frames, depth, masks and poses of the film, and the side to which the camera turned first."""

    film: Film
    rgb: tuple[np.ndarray, ...]
    depth: np.ndarray
    mask: np.ndarray
    turn: str

    @property
    def focal_at_504(self) -> float:
        return float(self.film.K[0, 0]) * 504 / SIZE[1]


@lru_cache(maxsize=1)
def room() -> Room:
    """The film: a turn by 50 degrees and back, the way back a step to the side and without any turn of its own."""
    world = make_world(0, "room", "gift")
    back = {"left": "right", "right": "left"}[world.turn]
    straight = play(world, f"yaw:{world.turn}:56@{HALF},yaw:{back}:56@{HALF}", size=SIZE, frames=2 * HALF + 1)
    poses = straight.poses.copy()
    aside = np.eye(4)
    aside[0, 3] = SIDEWAYS
    poses[HALF + 1 :] = poses[HALF + 1 :] @ aside
    film = straight.along(poses)
    shots = [film.truth(k) for k in range(len(film))]
    return Room(
        film,
        tuple(shot.rgb for shot in shots),
        np.stack([shot.depth for shot in shots]),
        np.stack([shot.mask == TARGET for shot in shots]),
        world.turn,
    )


def failing(name: str, strength: float) -> list[np.ndarray]:
    """Frames of the room as a model with one fault shows it."""
    return list(FAILURES[name].frames(room().film, strength, np.random.default_rng(0)))


def write_npz(path: Path, convention: str = "", *, w2c: bool = True, **other: Any) -> Path:
    """The file of a pose network for the room; `other` replaces arrays."""
    film = room().film
    arrays: dict[str, Any] = {
        "depth": room().depth.astype(np.float16),
        "extrinsics": (invert_rigid_poses(film.poses) if w2c else film.poses)[:, :3],
        "intrinsics": np.tile(film.K, (len(film), 1, 1)),
    }
    if convention:
        arrays["convention"] = np.array(convention)
    save_npz(path, {name: np.asarray(array) for name, array in (arrays | other).items() if array is not None})
    return path


def exact_region() -> ObjectRegion:
    """The target's own pixels."""
    mask = room().mask
    return ObjectRegion(np.arange(len(mask)), mask.any((1, 2)), np.zeros((len(mask), 4)), mask, "exact masks")


def track(c2w: np.ndarray, depth: float = 2.0, **other: Any) -> GeometryTrack:
    """A camera path as a file gives it."""
    n = len(c2w)
    lens = np.array([[400.0, 0, 251.5], [0, 400.0, 139.5], [0, 0, 1]])
    fields: dict[str, Any] = {
        "frame": np.zeros(0, int), "c2w": c2w, "intrinsics": np.tile(lens, (n, 1, 1)),
        "median_depth": np.full(n, depth), "width": 504, "height": 280, "convention": "w2c", "found": "the file",
        "error_w2c": 0.001, "error_c2w": 0.2, "refused": "", "maker": "a test",
    }  # fmt: skip
    return GeometryTrack(**(fields | other))


def case(**annotations: Any) -> Case:
    """A case of the suite with these annotations."""
    return Case("c", "mbench", "m", "s", Clip(Path("c.mp4")), annotations={"setting": "A", **annotations})


def frame_facts(count: int) -> FrameFacts:
    """Facts of a clip of so many frames."""
    return FrameFacts(
        np.arange(count), np.arange(count) / 16, np.zeros((count, 16), np.uint8), np.zeros(count), np.zeros(count),
        64, 48, 16.0,
    )  # fmt: skip
