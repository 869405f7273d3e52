"""Rooms: a closed room from a seed, with furniture along its walls.

The camera stands near the middle of the back wall and looks at the far wall. It turns to the side that the
seed chooses; everything is mirrored for the left.
"""

from __future__ import annotations

import numpy as np

from revisit.worlds import furniture as fu
from revisit.worlds import textures as tx
from revisit.worlds.layout import TableLayout
from revisit.worlds.light import Lamp
from revisit.worlds.setting import Setting, arrange_along_side, side_placements
from revisit.worlds.shapes import Thing, box, panel

PALETTES = fu.load_palettes("room")


def room_setting(seed: int) -> Setting:
    """The room of a seed, without its table."""
    rng = np.random.default_rng([seed, 11])
    palette = PALETTES[(seed + seed // len(PALETTES)) % len(PALETTES)]
    side = 1 if rng.random() < 0.5 else -1  # the camera turns right or left
    left, right = -rng.uniform(2.7, 3.3), rng.uniform(2.7, 3.3)
    near, far, high = -rng.uniform(1.3, 1.7), rng.uniform(4.1, 4.6), rng.uniform(2.65, 2.9)

    things: dict[str, Thing] = _floor_ceiling_and_walls(rng, palette, (left, right, near, far, high))
    for wall, side_of_room in side_placements(left, right, near, far).items():
        things |= arrange_along_side(
            rng,
            palette,
            side_of_room,
            fu.STANDING,
            fu.HANGING,
            name=f"{{}} ({wall} wall)",
            free=(0.75, 1.2, 0.65),
            gaps=(0.1, 0.3),
        )

    height, distance = rng.uniform(0.68, 0.78), rng.uniform(2.15, 2.35)
    lamp = Lamp(np.array([0.25 * (left + right), -high + 0.15, 1.3]), 0.45, (1.22, 1.14, 1.00), (0.38, 0.40, 0.44))
    layout = TableLayout(side, height, distance, bool(seed % 2))
    beams, rug = _ceiling_beams(seed, palette, left, right, far, high), ("rug", tx.rug(palette.colours))
    return Setting(f"{palette.name} living room", palette, things, lamp, layout, rng, rug, beams)


def _ceiling_beams(seed: int, palette: fu.Palette, left: float, right: float, far: float, high: float) -> Thing:
    """Beams under the ceiling, so that a camera that looks up sees where it is; they cast no shadow."""
    rng, wood = np.random.default_rng([seed, 12]), tx.wood(np.asarray(palette.wood) * 0.9, plank=0.08)
    beams = Thing()
    for z in np.arange(0.6, far - 0.2, 0.75):
        middle = (left + right) / 2 + rng.uniform(-0.1, 0.1)
        size, at = (right - left, 0.09, rng.uniform(0.16, 0.26)), (middle, high - 0.09, float(z))
        beams += box(rng, size, wood, at=at, skip="top left right")
    return Thing(beams.shapes)


def _floor_ceiling_and_walls(
    rng: np.random.Generator, palette: fu.Palette, extent: tuple[float, float, float, float, float]
) -> dict[str, Thing]:
    """Floor, ceiling and the four walls, each in its own paint."""
    left, right, near, far, high = extent
    over = 0.05  # panels reach a little past the corners, so that no ray slips out between two of them
    wide, long, tall = right - left + 2 * over, far - near + 2 * over, high + 2 * over
    ground = tuple(0.5 * np.asarray(palette.wall) + 0.5)
    soft = [np.asarray(c) * 0.35 + np.asarray(palette.wall) * 0.65 for c in palette.colours]
    strong = [np.asarray(c) * 0.5 + np.asarray(palette.other_wall) * 0.5 for c in palette.colours]
    paints = [
        tx.wallpaper(palette.wall, soft),
        tx.bricks(palette.other_wall, np.asarray(palette.wall) * 0.85),
        tx.wood(np.asarray(palette.wood) * 0.6 + 0.38, plank=0.2, along="y"),
        tx.wallpaper(palette.other_wall, strong),
    ]
    order = rng.permutation(4)
    far_wall, right_wall, near_wall, left_wall = (paints[i] for i in order)
    x0, x1, z0, z1, top = left - over, right + over, near - over, far + over, -high - over
    panels = {
        "floor": ((x0, 0, z1), (wide, 0, 0), (0, 0, -long), tx.wood(palette.floor)),
        "ceiling": ((x0, -high, z0), (wide, 0, 0), (0, 0, long), tx.plaster(ground, 0.02)),
        "far wall": ((x0, top, far), (wide, 0, 0), (0, tall, 0), far_wall),
        "right wall": ((right, top, z1), (0, 0, -long), (0, tall, 0), right_wall),
        "near wall": ((x1, top, near), (-wide, 0, 0), (0, tall, 0), near_wall),
        "left wall": ((left, top, z0), (0, 0, long), (0, tall, 0), left_wall),
    }
    return {name: Thing((panel(rng, *where_and_paint),)) for name, where_and_paint in panels.items()}
