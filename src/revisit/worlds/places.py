"""Places: worlds from a seed, each a kind of place with a table, a target, a block and a screen.

To add a kind of place, write a function from a seed to a Setting and add a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from revisit.core import UsageError
from revisit.worlds import furniture as fu
from revisit.worlds import textures as tx
from revisit.worlds.layout import BLOCK, FOV, SCREEN, SCREEN_NEARER, TABLE, first_camera_pose
from revisit.worlds.light import lit_images
from revisit.worlds.render import make_surface
from revisit.worlds.setting import Setting, room_setting, yard_setting
from revisit.worlds.shapes import Thing, box, horizontal_panel, turn_and_move
from revisit.worlds.state import TARGET
from revisit.worlds.targets import BY_SEED, TARGETS
from revisit.worlds.world import World

PLACES: dict[str, Callable[[int], Setting]] = {"room": room_setting, "yard": yard_setting}
FIRST_KINDS = ("ball", "gift", "vase", "rocket")  # among which make_room chooses


def make_room(seed: int, kind: str | None = None, name: str = "") -> World:
    """The room of a seed, with a target of a kind (without one the seed chooses) and no block on the table."""
    return make_world(seed, "room", kind or FIRST_KINDS[seed % len(FIRST_KINDS)], name, block=False)


def make_world(
    seed: int,
    place: str = "room",
    kind: str | None = None,
    name: str = "",
    *,
    like: World | None = None,
    block: bool = True,
) -> World:
    """The room or yard of a seed, with a target of a kind; without one the seed chooses.

    A world `like` another has its own surroundings, and the table, the block and the very target of the other, so
    that a film can go on in it with the target where it was.
    """
    if place not in PLACES:
        raise UsageError(f"unknown kind of place {place!r}; choose one of {', '.join(PLACES)}")
    kind = kind or (like.kind if like else BY_SEED[seed % len(BY_SEED)])
    if kind not in TARGETS:
        raise UsageError(f"unknown kind of target {kind!r}; choose one of {', '.join(TARGETS)}")
    setting = PLACES[place](seed)
    layout = like.layout if like else setting.layout
    has_block = block if like is None else like.perch is not None
    things, rng, palette = dict(setting.things), setting.rng, setting.palette
    width, depth = TABLE
    desk = fu.table(rng, palette, width=width, depth=depth, height=layout.height)
    things["table"] = turn_and_move(desk, at=(layout.table_middle_x, 0, layout.distance))
    underfoot, paint = setting.underfoot
    place_underfoot = (layout.table_middle_x + 0.4 * layout.side, 0.004, 2.3)
    things[underfoot] = horizontal_panel(rng, (2.6, 1.7), paint, at=place_underfoot)
    if setting.overhead.shapes:
        things["beams"] = setting.overhead
    if has_block:
        x, y, z = layout.block_top
        things["block"] = box(rng, BLOCK, tx.art(palette.colours, margin=palette.wood), at=(x, -y - BLOCK[1], z))

    solids = tuple(solid for thing in things.values() for solid in thing.solids)
    title = TARGETS[kind].title
    instances = {TARGET: title, **dict(enumerate(things, start=TARGET + 1))}
    owners = [number for number, thing in enumerate(things.values(), start=TARGET + 1) for _ in thing.shapes]
    shapes = [shape for thing in things.values() for shape in thing.shapes]
    images = lit_images(shapes, setting.lamp, solids)
    surfaces = [make_surface(*parts) for parts in zip(shapes, images, owners, strict=True)]
    scene = f"A {setting.title} with a {title} on a wooden table."
    return World(
        name or f"{place}-{seed}", seed, tuple(surfaces), instances, setting.lamp, solids, kind, layout.target_places,
        first_camera_pose(), FOV, "right" if layout.side > 0 else "left", scene, layout, place,
        target_seed=like.target_seed if like else seed,
        perch=layout.block_top if has_block else None,
        screen=_folding_screen(seed, palette, layout.distance - SCREEN_NEARER),
    )  # fmt: skip


# The world of a seed; films in the same world come one after another.
make_cached_world = lru_cache(maxsize=1)(make_world)


def _folding_screen(seed: int, palette: fu.Palette, distance: float) -> Thing:
    """A folding screen that hides the table from the camera."""
    width, height = SCREEN
    rng = np.random.default_rng([seed, 33])
    leaves = [
        box(rng, (width / 3 - 0.02, height, 0.04), tx.wood(palette.wood), at=(x * width / 3, 0, distance),
            front=tx.art(palette.colours, margin=palette.wood))
        for x in (-1, 0, 1)
    ]  # fmt: skip
    rail = box(rng, (width, height - 0.04, 0.02), tx.wood(palette.wood), at=(0, 0, distance + 0.03))
    return leaves[0] + leaves[1] + leaves[2] + rail
