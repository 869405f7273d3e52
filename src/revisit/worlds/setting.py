"""Settings: the room or the yard of a seed, which is what a place is made of before its table and target are put in.

A room is closed and has furniture along its walls. The camera stands near the middle of the back wall and looks at the
far wall. It turns to the side that the seed chooses; everything is mirrored for the left.

A yard is a lawn or gravel under an open sky, closed in by a fence, a hedge, a brick wall and a house. Along the edges
stand trees, benches, planters, barrels and sheds. To add a thing, write its function as for furniture (face towards -z,
back at z = 0) and add a row with the width it takes in metres.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revisit.worlds import furniture as fu
from revisit.worlds import outdoors as od
from revisit.worlds import textures as tx
from revisit.worlds.layout import TableLayout
from revisit.worlds.light import Lamp
from revisit.worlds.shapes import Panel, Thing, ball, box, panel, tube, turn_and_move

SKY = 40.0  # metres to the sky
SUN = 200.0  # metres to the sun: so far that its light is even


@dataclass(frozen=True, eq=False)
class Setting:
    """Things by name, their light, and where the seed wants the table."""

    title: str  # how a prompt calls the place
    palette: fu.Palette
    things: dict[str, Thing]
    lamp: Lamp
    layout: TableLayout
    rng: np.random.Generator  # goes on where the place left it
    underfoot: tuple[str, tx.Paint]  # what lies under the table
    overhead: Thing = field(default_factory=Thing)


def side_placements(
    left: float, right: float, near: float, far: float
) -> dict[str, tuple[float, tuple[float, float, float], float]]:
    """Of each side of a place: its turn, the middle of its foot and its length."""
    middle_x, middle_z = (left + right) / 2, (near + far) / 2
    return {
        "far": (0.0, (middle_x, 0.0, far), right - left),
        "right": (90.0, (right, 0.0, middle_z), far - near),
        "near": (180.0, (middle_x, 0.0, near), right - left),
        "left": (-90.0, (left, 0.0, middle_z), far - near),
    }


def arrange_along_side(
    rng: np.random.Generator,
    palette: fu.Palette,
    side: tuple[float, tuple[float, float, float], float],
    standing: Sequence[tuple[fu.Maker, float]],
    hanging: Sequence[tuple[fu.Maker, float]] = (),
    *,
    name_template: str,
    distance_from_side: float = 0.0,
    free: tuple[float, float, float],
    gaps: tuple[float, float],
) -> dict[str, Thing]:
    """Things that stand, and hang above low ones, along a side (of `side_placements`), by what they are called.

    `name_template` holds {}, `distance_from_side` is how far they stand from it. `free` is what stays free at the
    beginning, what a further thing needs, and what stays free at the end, so that things of two sides never meet in a
    corner.
    """
    things = {}
    turn, foot, length = side
    at = -length / 2 + free[0]
    waiting, above = list(rng.permutation(len(standing))), list(rng.permutation(len(hanging)))
    while waiting and at < length / 2 - free[1]:
        make, width = standing[waiting.pop()]
        if at + width > length / 2 - free[2]:
            continue
        makers = [make, hanging[above.pop()][0]] if make not in fu.TALL and above else [make]
        for maker in makers:
            moved = turn_and_move(maker(rng, palette), at=(at + width / 2, 0, -distance_from_side))
            things[name_template.format(maker.__name__)] = turn_and_move(moved, turn, foot)
        at += width + rng.uniform(*gaps)
    return things


def room_setting(seed: int) -> Setting:
    """The room of a seed, without its table."""
    rng = np.random.default_rng([seed, 11])
    palettes = fu.PALETTES["room"]
    palette = palettes[(seed + seed // len(palettes)) % len(palettes)]
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
            name_template=f"{{}} ({wall} wall)",
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


def yard_setting(seed: int) -> Setting:
    """The yard of a seed, without its table."""
    rng = np.random.default_rng([seed, 13])
    palettes = fu.PALETTES["yard"]
    palette = palettes[seed % len(palettes)]
    side = 1 if rng.random() < 0.5 else -1
    left, right = -rng.uniform(3.6, 4.4), rng.uniform(3.6, 4.4)
    near, far = -rng.uniform(2.4, 3.0), rng.uniform(5.0, 5.8)
    things = _sky_and_ground(rng, palette, (left, right, near, far))
    walls = [fence, hedge, brick_wall, house]
    edges = side_placements(left, right, near, far)
    for (name, edge), number in zip(edges.items(), rng.permutation(4), strict=True):
        wall, (turn, foot, length) = walls[int(number)], edge
        things[f"{wall.__name__} ({name})"] = turn_and_move(wall(rng, palette, length), turn, foot)
        things |= arrange_along_side(
            rng,
            palette,
            edge,
            STANDING,
            name_template=f"{{}} ({name})",
            distance_from_side=0.45,
            free=(0.9, 1.3, 0.7),
            gaps=(0.2, 0.6),
        )
    height, distance = rng.uniform(0.68, 0.78), rng.uniform(2.15, 2.35)
    toward = np.array([rng.uniform(-0.5, 0.5), -1.0, rng.uniform(-0.8, -0.3)])
    even = 0.45 + 0.2 * SUN + 0.03 * SUN**2  # what the lamp loses over the distance
    warm = (0.95 * even, 0.90 * even, 0.78 * even)
    sun = Lamp(SUN * toward / np.linalg.norm(toward), 5.0, warm, (0.46, 0.52, 0.60))
    layout = TableLayout(side, height, distance, bool(seed % 2))
    slabs_and_moss = tx.bricks((0.70, 0.66, 0.60), (0.34, 0.40, 0.24))
    paving = "paving", lambda rng, width, height: slabs_and_moss(rng, width / 2, height / 2)  # at half the texels
    return Setting(f"{palette.name} yard", palette, things, sun, layout, rng, paving)


def _sky_and_ground(
    rng: np.random.Generator, palette: fu.Palette, extent: tuple[float, float, float, float]
) -> dict[str, Thing]:
    left, right, near, far = extent
    faces = od.sky_faces(rng, ((0.50, 0.70, 0.95), (0.58, 0.72, 0.90), (0.62, 0.68, 0.82))[int(rng.integers(3))])
    corners = {
        "far": ((-1, -1, 1), (2, 0, 0), (0, 2, 0)), "right": ((1, -1, 1), (0, 0, -2), (0, 2, 0)),
        "near": ((1, -1, -1), (-2, 0, 0), (0, 2, 0)), "left": ((-1, -1, -1), (0, 0, 2), (0, 2, 0)),
        "top": ((-1, -1, -1), (2, 0, 0), (0, 0, 2)),
    }  # fmt: skip
    sky = []
    for name, image in faces.items():
        corner, across, down = (SKY * np.array(v, float) for v in corners[name])
        sky.append(Panel(corner, across, down, image, glows=True))
    over = 0.6
    wide, long = right - left + 2 * over, far - near + 2 * over
    paint = (od.grass(palette.floor), od.gravel())[int(rng.random() < 0.3)]
    ground = panel(rng, (left - over, 0, far + over), (wide, 0, 0), (0, 0, -long), paint)
    return {"sky": Thing(tuple(sky)), "ground": Thing((ground,))}


def fence(rng: np.random.Generator, palette: fu.Palette, length: float) -> Thing:
    """Boards as high as a head, with posts."""
    height = rng.uniform(1.6, 1.85)
    boards = od.fence_boards(np.asarray(palette.wood) * 1.2)
    thing = box(rng, (length + 0.1, height, 0.06), boards, at=(0, 0, 0.02), skip="back bottom")
    for x in np.arange(-length / 2 + 0.4, length / 2, 1.9):
        thing += box(rng, (0.11, height + 0.12, 0.11), tx.wood(palette.wood), at=(float(x), 0, -0.06))
    return thing


def hedge(rng: np.random.Generator, palette: fu.Palette, length: float) -> Thing:
    """A clipped hedge."""
    green = np.array((0.17, 0.36, 0.14)) * rng.uniform(0.9, 1.2)
    return box(rng, (length + 0.1, rng.uniform(1.6, 1.9), 0.5), od.leaves(green), at=(0, 0, 0.2), skip="back bottom")


def brick_wall(rng: np.random.Generator, palette: fu.Palette, length: float) -> Thing:
    """A brick wall under coping stones."""
    height = rng.uniform(1.6, 1.9)
    bricks = tx.bricks(palette.other_wall, (0.78, 0.74, 0.66))
    thing = box(rng, (length + 0.1, height, 0.2), bricks, at=(0, 0, 0.05), skip="back bottom")
    stone = tx.plaster((0.74, 0.72, 0.68), 0.1)
    return thing + box(rng, (length + 0.1, 0.08, 0.30), stone, at=(0, height, 0.05), skip="back")


def house(rng: np.random.Generator, palette: fu.Palette, length: float) -> Thing:
    """The wall of a house with a door and windows."""
    height = 3.4
    front = (tx.plaster(palette.wall, 0.07), tx.bricks(palette.other_wall, (0.80, 0.76, 0.70)))[int(rng.random() < 0.4)]
    thing = box(rng, (length + 0.1, height, 0.2), front, at=(0, 0, 0.08), skip="back bottom")
    frame, painted = tx.wood(np.asarray(palette.wood) * 0.9), tx.wood(palette.colours[0], plank=0.09)
    for x in (-0.36 * length, 0.30 * length):
        thing += Thing((panel(rng, (x - 0.5, -2.1, -0.05), (1.0, 0, 0), (0, 1.1, 0), tx.landscape()),))
        thing += box(rng, (1.14, 0.08, 0.16), frame, at=(x, 0.92, -0.06), skip="back")
        for shutter in (-0.68, 0.68):
            thing += box(rng, (0.34, 1.14, 0.05), painted, at=(x + shutter, 0.98, -0.045), skip="back")
    door = tx.wood(palette.colours[2], plank=0.16, along="y")
    return thing + box(rng, (0.95, 2.05, 0.08), door, at=(-0.03 * length, 0, -0.05), skip="back")


def tree(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """A tree with a round crown above the fence."""
    high = rng.uniform(1.5, 1.9)
    thing = tube(rng, (0.13, 0.09), high, tx.wood((0.38, 0.28, 0.20), plank=0.05, along="y"), at=(0, 0, 0))
    crown = od.leaves(np.array((0.20, 0.42, 0.16)) * rng.uniform(0.85, 1.25))
    balls = ((0, 0, 0, 0.75), (-0.5, 0.25, 0.1, 0.5), (0.55, 0.2, -0.05, 0.52), (0.05, 0.75, 0.05, 0.55))
    for x, up, z, radius in balls:
        thing += ball(rng, radius, crown, at=(x, high - 0.25 + up, z))
    return thing


def bench(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """A garden bench with a back of three boards."""
    wood = tx.wood(np.asarray(tx.random_colour(rng, palette.colours)) * 0.9, plank=0.1)
    thing = box(rng, (1.5, 0.05, 0.42), wood, at=(0, 0.42, -0.1))
    for up in (0.55, 0.70, 0.85):
        thing += box(rng, (1.5, 0.10, 0.04), wood, at=(0, up, 0.1), skip="")
    for x in (-0.66, 0.66):
        thing += box(rng, (0.07, 0.95, 0.07), wood, at=(x, 0, 0.13))
        thing += box(rng, (0.07, 0.42, 0.07), wood, at=(x, 0, -0.26))
    return thing


def planter(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """A wooden trough full of flowers."""
    thing = box(rng, (1.1, 0.42, 0.42), tx.wood(palette.wood, plank=0.14), top=tx.plain((0.22, 0.15, 0.10), 0.2))
    for x in np.linspace(-0.42, 0.42, 5):
        colour = tx.random_colour(rng, palette.colours)
        thing += ball(rng, rng.uniform(0.14, 0.19), od.leaves(), at=(float(x), 0.38, rng.uniform(-0.05, 0.05)))
        for _ in range(3):
            at = (float(x) + rng.uniform(-0.1, 0.1), 0.58 + rng.uniform(0, 0.12), rng.uniform(-0.14, 0.02))
            thing += ball(rng, rng.uniform(0.04, 0.07), tx.wallpaper(colour, ((0.98, 0.9, 0.5), colour)), at=at)
    return thing


def barrel(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """A rain barrel beside a watering can."""
    staves, water = tx.wood((0.48, 0.32, 0.20), plank=0.09, along="y"), tx.plain((0.16, 0.24, 0.30), 0.1)
    thing = tube(rng, (0.27, 0.33), 0.42, staves, at=(-0.15, 0, 0))
    thing += tube(rng, (0.33, 0.28), 0.42, staves, at=(-0.15, 0.42, 0), lid=water)
    for up in (0.14, 0.40, 0.66):
        radius = 0.335 if up == 0.40 else 0.305
        thing += tube(rng, (radius, radius), 0.04, tx.plain((0.2, 0.2, 0.22)), at=(-0.15, up, 0))
    can = tx.plain(palette.colours[0], 0.08)
    thing += tube(rng, (0.11, 0.10), 0.22, can, at=(0.38, 0, -0.05), lid=can)
    return thing + box(rng, (0.14, 0.03, 0.03), can, at=(0.52, 0.17, -0.05))


def shed(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """A small shed with a flat roof."""
    boards = od.fence_boards(tx.random_colour(rng, palette.colours))
    thing = box(rng, (1.2, 1.75, 0.7), boards, at=(0, 0, 0), skip="back bottom")
    thing += box(rng, (1.36, 0.08, 0.86), tx.plaster((0.30, 0.28, 0.28), 0.15), at=(0, 1.75, 0), skip="")
    door = tx.art(palette.colours, margin=palette.wood)
    return thing + box(rng, (0.6, 1.4, 0.04), door, at=(0, 0, -0.37), skip="back")


def woodpile(rng: np.random.Generator, palette: fu.Palette) -> Thing:
    """Crates and a stack of firewood."""
    return box(
        rng, (1.15, 0.75, 0.45), tx.wood((0.46, 0.33, 0.22), plank=0.1), front=_log_ends_paint, skip="back bottom"
    ) + box(rng, (0.5, 0.3, 0.35), tx.wood(palette.wood, plank=0.08), at=(rng.uniform(-0.25, 0.25), 0.75, 0))


STANDING: tuple[tuple[fu.Maker, float], ...] = (
    (tree, 1.7), (bench, 1.65), (planter, 1.25), (barrel, 1.1), (shed, 1.4), (woodpile, 1.3),
)  # fmt: skip


def _log_ends_paint(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
    """The sawn ends of stacked logs."""
    import cv2

    rows, columns = int(height * tx.TEXELS), int(width * tx.TEXELS)
    image = np.full((rows, columns, 3), (34, 24, 18), np.uint8)
    for _ in range(260):
        centre, radius = (int(rng.integers(columns)), int(rng.integers(rows))), int(rng.integers(6, 14))
        base = np.array((186, 142, 92)) * rng.uniform(0.7, 1.2)
        for share, shade in ((1.0, 0.5), (0.85, 1.0), (0.55, 0.85), (0.3, 1.0)):
            tint = tuple(int(v) for v in np.clip(base * shade, 0, 255))
            cv2.circle(image, centre, max(int(radius * share), 1), tint, -1, cv2.LINE_AA)
    return image.astype(np.float32) / 255
