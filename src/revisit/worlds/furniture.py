"""Furniture: one function per thing, each a Thing with its face towards -z and its back at z = 0.

A function takes (rng, palette) and draws its own sizes. `STANDING` go on the floor against a wall,
`HANGING` on a wall; to add a thing, write its function and add it to one of the two rows, with the
width of wall it takes in metres.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.worlds import textures as tx
from revisit.worlds.shapes import Thing, ball, box, horizontal_panel, panel, tube


@dataclass(frozen=True)
class Palette:
    """The colours of a room: walls, floor and woodwork, and the colours of the things in it."""

    name: str
    wall: tx.Colour
    other_wall: tx.Colour
    floor: tx.Colour
    wood: tx.Colour
    colours: Sequence[tx.Colour]


PALETTES = {
    place: [Palette(**palette) for palette in palettes]
    for place, palettes in read_package_yaml(__package__, "palettes.yaml").items()
}
Maker = Callable[[np.random.Generator, Palette], Thing]


def bookcase(rng: np.random.Generator, palette: Palette) -> Thing:
    """A tall bookcase full of books."""
    height = rng.uniform(1.7, 2.1)
    front = tx.books(palette.colours, palette.wood, shelves=int(rng.integers(5, 7)))
    return box(rng, (1.3, height, 0.32), tx.wood(palette.wood), at=(0, 0, -0.16), front=front, skip="back bottom")


def cabinet(rng: np.random.Generator, palette: Palette) -> Thing:
    """A chest of drawers with books and a bowl on it."""
    height = rng.uniform(0.75, 0.95)
    front = tx.drawers(palette.wood, rows=int(rng.integers(2, 4)), columns=int(rng.integers(2, 4)))
    thing = box(rng, (1.25, height, 0.45), tx.wood(palette.wood), at=(0, 0, -0.23), front=front, skip="back bottom")
    x, up = -0.4, height
    for _ in range(int(rng.integers(2, 5))):
        size = (rng.uniform(0.22, 0.34), rng.uniform(0.03, 0.07), rng.uniform(0.18, 0.26))
        thing += box(rng, size, tx.fabric(tx.random_colour(rng, palette.colours)), at=(x, up, -0.22))
        up += size[1]
    bowl = tx.fabric(tx.random_colour(rng, palette.colours), (tx.random_colour(rng, palette.colours),))
    return thing + tube(rng, (0.07, 0.15), 0.13, bowl, at=(0.35, height, -0.22), lid=tx.plain((0.2, 0.17, 0.15)))


def sofa(rng: np.random.Generator, palette: Palette) -> Thing:
    """A sofa with cushions of other colours."""
    cloth = tx.fabric(tx.random_colour(rng, palette.colours))
    thing = box(rng, (1.5, 0.42, 0.75), cloth, at=(0, 0, -0.40))
    thing += box(rng, (1.5, 0.45, 0.22), cloth, at=(0, 0.42, -0.13))
    for x in (-0.83, 0.83):
        thing += box(rng, (0.18, 0.62, 0.78), cloth, at=(x, 0, -0.40))
    for x in (-0.48, 0.02, 0.50):
        ground, *stripes = (tx.random_colour(rng, palette.colours) for _ in range(3))
        cushion = tx.fabric(ground, stripes)
        thing += box(rng, (0.40, 0.36, 0.14), cushion, at=(x + rng.uniform(-0.04, 0.04), 0.42, -0.33))
    return thing


def plant(rng: np.random.Generator, palette: Palette) -> Thing:
    """A round bush in a pot."""
    pot = tx.bricks(tx.random_colour(rng, palette.colours), (0.85, 0.82, 0.75))
    thing = tube(rng, (0.16, 0.22), 0.36, pot, at=(0, 0, -0.4), lid=tx.plain((0.25, 0.18, 0.12), 0.2))
    leaves = tx.wallpaper((0.13, 0.30, 0.12), ((0.20, 0.46, 0.18), (0.33, 0.58, 0.24), (0.12, 0.38, 0.20)))
    thing += tube(rng, (0.03, 0.025), 0.45, tx.wood((0.4, 0.28, 0.18)), at=(0, 0.36, -0.4))
    for x, up, radius in ((0, 0.62, 0.27), (-0.17, 0.86, 0.20), (0.18, 0.90, 0.19), (0.02, 1.08, 0.20)):
        thing += ball(rng, radius, leaves, at=(x + rng.uniform(-0.04, 0.04), up, -0.4 + rng.uniform(-0.06, 0.06)))
    return thing


def floor_lamp(rng: np.random.Generator, palette: Palette) -> Thing:
    """A lamp on a pole beside a low stool."""
    metal = tx.plain((0.3, 0.28, 0.26))
    thing = tube(rng, (0.17, 0.15), 0.04, metal, at=(-0.2, 0, -0.3), lid=metal)
    thing += tube(rng, (0.018, 0.018), 1.35, metal, at=(-0.2, 0.04, -0.3))
    shade = tx.fabric((0.96, 0.90, 0.74), (tx.random_colour(rng, palette.colours),))
    thing += tube(rng, (0.24, 0.16), 0.32, shade, at=(-0.2, 1.33, -0.3), lid=tx.plain((1, 0.97, 0.85)))
    stool = tx.fabric(tx.random_colour(rng, palette.colours), (tx.random_colour(rng, palette.colours),))
    return thing + tube(rng, (0.21, 0.23), 0.40, stool, at=(0.32, 0, -0.35), lid=tx.rug(palette.colours))


def crates(rng: np.random.Generator, palette: Palette) -> Thing:
    """A stack of painted crates."""
    thing = Thing()
    for x, up in ((-0.34, 0.0), (0.30, 0.0), (-0.05, 0.46)):
        size = (rng.uniform(0.5, 0.6), 0.46, 0.42)
        front = tx.art(palette.colours, margin=palette.wood)
        thing += box(rng, size, tx.wood(palette.wood, plank=0.09), at=(x, up, -0.24), front=front)
    return thing


def picture(rng: np.random.Generator, palette: Palette) -> Thing:
    """One or two framed pictures."""
    frame = tx.wood(np.asarray(palette.wood) * rng.choice([0.5, 0.8, 1.2]), plank=0.2)
    thing = Thing()
    for x in (0,) if rng.random() < 0.5 else (-0.38, 0.38):
        width, height = (1.05, 0.75) if x == 0 else (0.6, rng.uniform(0.6, 0.85))
        up = 1.65 - height / 2 + rng.uniform(-0.06, 0.10)
        front = _paint_with_border(tx.art(palette.colours), frame)
        thing += box(rng, (width, height, 0.05), frame, at=(x, up, -0.025), front=front, skip="back")
    return thing


def window(rng: np.random.Generator, palette: Palette) -> Thing:
    """A window on a bright landscape, with curtains."""
    thing = Thing((panel(rng, (-0.55, -2.15, -0.02), (1.1, 0, 0), (0, 1.15, 0), tx.landscape(), glows=True),))
    thing += box(rng, (1.3, 0.06, 0.14), tx.wood((0.85, 0.83, 0.78)), at=(0, 0.94, -0.07), skip="back")
    cloth = tx.fabric(tx.random_colour(rng, palette.colours), (tx.random_colour(rng, palette.colours),))
    for x in (-0.68, 0.68):
        thing += box(rng, (0.26, 1.42, 0.08), cloth, at=(x, 0.86, -0.05), skip="back")
    return thing


def shelf(rng: np.random.Generator, palette: Palette) -> Thing:
    """A wall shelf with small things on it."""
    thing = box(rng, (1.2, 0.04, 0.24), tx.wood(palette.wood), at=(0, 1.5, -0.12), skip="back")
    for x in np.arange(-0.48, 0.55, 0.24) + rng.uniform(-0.03, 0.03):
        paint = tx.fabric(tx.random_colour(rng, palette.colours), (tx.random_colour(rng, palette.colours),))
        kind = rng.integers(3)
        if kind == 0:
            thing += ball(rng, rng.uniform(0.06, 0.09), paint, at=(x, 1.54, -0.12))
        elif kind == 1:
            thing += tube(rng, (0.06, 0.04), rng.uniform(0.15, 0.28), paint, at=(x, 1.54, -0.12), lid=paint)
        else:
            thing += box(rng, (0.16, rng.uniform(0.12, 0.3), 0.14), paint, at=(x, 1.54, -0.12))
    return thing


def table(rng: np.random.Generator, palette: Palette, *, width: float, depth: float, height: float) -> Thing:
    """The table that the target stands on, its middle at the origin."""
    plank = tx.wood(np.asarray(palette.wood) * 1.1, plank=0.16)
    cloth = tx.rug((palette.colours[0], *palette.colours[2:]))
    thing = box(rng, (width, 0.05, depth), plank, at=(0, height - 0.05, 0), skip="")
    runner = horizontal_panel(rng, (0.96 * width, 0.5 * depth), cloth, at=(0, height + 0.001, 0))
    for x in (-width / 2 + 0.06, width / 2 - 0.06):
        for z in (-depth / 2 + 0.06, depth / 2 - 0.06):
            thing += box(rng, (0.07, height - 0.05, 0.07), plank, at=(x, 0, z), skip="top bottom")
    return thing + runner


STANDING: tuple[tuple[Maker, float], ...] = (
    (bookcase, 1.4), (cabinet, 1.4), (sofa, 1.95), (plant, 0.9), (floor_lamp, 1.1), (crates, 1.25),
)  # fmt: skip
HANGING: tuple[tuple[Maker, float], ...] = ((picture, 1.4), (window, 1.7), (shelf, 1.3))
TALL = (bookcase, plant, floor_lamp)  # nothing hangs above these


@tx.paint_factory
def _paint_with_border(
    rng: np.random.Generator, width: float, height: float, inner: tx.Paint, frame: tx.Paint
) -> np.ndarray:
    """Paint with a border of another paint."""
    edge = 0.04
    image = frame(rng, width, height)
    middle = inner(rng, width - 2 * edge, height - 2 * edge)
    border = int(edge * tx.TEXELS)
    image[border : border + middle.shape[0], border : border + middle.shape[1]] = middle
    return image
