"""Layout: where the table, the target's places, the block and the screen are, in every kind of place.

The camera stands at the origin and looks along z at a table in front of it. Angles are seen from there,
counted away from the side to which the camera turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.geometry.rotations import rotation_from_yaw_pitch

FOV = 62.0
EYE = 1.38  # metres above the floor
PITCH = -7.0

TABLE = (1.75, 0.75)  # metres wide and deep
# Both places are in the first view and leave it within 45 degrees; the outer one leaves it within 25.
SPOTS = (14.0, -3.5)
PERCH = -13.5
BLOCK = (0.24, 0.30, 0.24)  # width, height and depth of the block, metres
SCREEN = (1.30, 1.75)  # width and height
SCREEN_NEARER = 0.75  # metres from the middle of the table towards the camera


@dataclass(frozen=True)
class TableLayout:
    """The side to which the camera turns (1 right, -1 left), the table's height and distance, which spot is first."""

    side: int
    height: float
    distance: float
    swapped: bool

    @property
    def table_middle_x(self) -> float:
        """Where the middle of the table is across."""
        return self._x_at_angle(4.0)

    @property
    def target_places(self) -> tuple[tuple[float, float, float], ...]:
        """Where the target stands at first, and where it may be moved to."""
        spots = SPOTS[::-1] if self.swapped else SPOTS
        return tuple((self._x_at_angle(angle), -self.height - 0.001, self.distance - 0.05) for angle in spots)

    @property
    def block_top(self) -> tuple[float, float, float]:
        """The top of the block."""
        return self._x_at_angle(PERCH), -self.height - BLOCK[1] - 0.001, self.distance - 0.05

    def _x_at_angle(self, angle: float) -> float:
        return float(-self.side * self.distance * np.tan(np.radians(angle)))


def first_camera_pose() -> np.ndarray:
    """Camera-to-world pose of the first view."""
    start = np.eye(4)
    start[:3, :3] = rotation_from_yaw_pitch(0, PITCH)
    start[:3, 3] = (0, -EYE, 0)
    return start
