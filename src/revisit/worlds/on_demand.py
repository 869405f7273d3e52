"""A generator that renders: the world of a sample, seen along the path that a job asks for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from revisit.worlds.places import make_world
from revisit.worlds.render import Camera, intrinsics_from_fov
from revisit.worlds.world import World, WorldView

STILL = np.eye(4)


@lru_cache(maxsize=1)
def _make_cached_world(seed: int) -> World:
    """Every other one is a yard; jobs of a sample come one after another, under one camera and the next."""
    return make_world(seed, "yard" if seed % 2 else "room", block=False)


def rendered_world_frames(job: Mapping[str, Any]) -> Iterator[np.ndarray]:
    """Frames of the room or yard that a sample's name stands for: it remembers all, but not the first frame."""
    name = zlib.crc32(str(job["sample"] or job["id"]).encode())
    place = _make_cached_world(name % 1000)
    width, height = job["size"]
    path = job["control"].get("path")
    poses = np.load(path, allow_pickle=False) if path else np.tile(STILL, (job["frames"], 1, 1))
    K = intrinsics_from_fov((height, width), place.fov)
    frames_by_pose: dict[bytes, np.ndarray] = {}
    for pose in poses:
        key = pose.round(9).tobytes()
        if key not in frames_by_pose:
            camera = Camera(K, place.start @ pose, (height, width))
            frames_by_pose[key] = WorldView(place, camera).shot(place.first_state).rgb
        yield frames_by_pose[key]
