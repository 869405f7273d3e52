"""Setting: what a kind of place is made of, before its table and target are put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revisit.worlds.furniture import TALL, Maker, Palette
from revisit.worlds.layout import TableLayout
from revisit.worlds.light import Lamp
from revisit.worlds.shapes import Thing, turn_and_move
from revisit.worlds.textures import Paint


@dataclass(frozen=True, eq=False)
class Setting:
    """Things by name, their light, and where the seed wants the table."""

    title: str  # how a prompt calls the place
    palette: Palette
    things: dict[str, Thing]
    lamp: Lamp
    layout: TableLayout
    rng: np.random.Generator  # goes on where the place left it
    underfoot: tuple[str, Paint]  # what lies under the table
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
    palette: Palette,
    side: tuple[float, tuple[float, float, float], float],
    standing: Sequence[tuple[Maker, float]],
    hanging: Sequence[tuple[Maker, float]] = (),
    *,
    name: str,
    forward: float = 0.0,
    free: tuple[float, float, float],
    gaps: tuple[float, float],
) -> dict[str, Thing]:
    """Things that stand, and hang above low ones, along a side (of `side_placements`), by what they are called.

    `name` holds {}, and `forward` is how far they stand from the side. `free` is what stays free at the beginning, what
    a further thing needs, and what stays free at the end, so that things of two sides never meet in a corner.
    """
    things = {}
    turn, foot, length = side
    at = -length / 2 + free[0]
    waiting, above = list(rng.permutation(len(standing))), list(rng.permutation(len(hanging)))
    while waiting and at < length / 2 - free[1]:
        make, width = standing[waiting.pop()]
        if at + width > length / 2 - free[2]:
            continue
        makers = [make, hanging[above.pop()][0]] if make not in TALL and above else [make]
        for maker in makers:
            moved = turn_and_move(maker(rng, palette), at=(at + width / 2, 0, -forward))
            things[name.format(maker.__name__)] = turn_and_move(moved, turn, foot)
        at += width + rng.uniform(*gaps)
    return things
