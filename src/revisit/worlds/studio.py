"""Studio: pictures of one world from any pose."""

from __future__ import annotations

import numpy as np

from revisit.worlds.render import Camera, intrinsics_from_fov
from revisit.worlds.world import World, WorldView


class Studio:
    """Pictures of a room from any pose, each pose rendered once."""

    def __init__(self, world: World, size: tuple[int, int]) -> None:
        self.world, self.size, self.K = world, size, intrinsics_from_fov(size, world.fov)
        self.pictures: dict[bytes, np.ndarray] = {}

    def render_picture(self, pose: np.ndarray) -> np.ndarray:
        key = (np.round(pose, 9) + 0.0).tobytes()
        if key not in self.pictures:
            state = self.world.first_state
            self.pictures[key] = WorldView(self.world, Camera(self.K, pose, self.size)).shot(state).rgb
        return self.pictures[key]
