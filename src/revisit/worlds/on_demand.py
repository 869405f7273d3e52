"""A generator that renders: the world of a sample, seen along the path that a job asks for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from revisit.worlds.places import make_cached_world
from revisit.worlds.world import Studio


def rendered_world_frames(job: Mapping[str, Any]) -> Iterator[np.ndarray]:
    """Frames of the room or yard that a sample's name stands for: it remembers all, but not the first frame.

    Every other one is a yard; jobs of a sample come one after another, under one camera and the next.
    """
    seed = zlib.crc32(str(job["sample"] or job["id"]).encode()) % 1000
    place = make_cached_world(seed, "yard" if seed % 2 else "room", block=False)
    width, height = job["size"]
    path = job["control"].get("path")
    poses = np.load(path, allow_pickle=False) if path else np.tile(np.eye(4), (job["frames"], 1, 1))
    studio = Studio(place, (height, width))
    for pose in poses:
        yield studio.render_picture(place.start @ pose)
