"""Targets: the things to remember, one function per kind.

A function takes (rng, look) and returns a Thing that stands at the origin. `look` 0 is how the target
is first seen, 1 is how it looks after it changed in place; both are made with equally seeded rngs, so
that what the change does not touch stays the same. To add a kind, write its function and add a row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from revisit.worlds import textures as tx
from revisit.worlds.shapes import Thing, ball, box, lying, tube

TargetMaker = Callable[[np.random.Generator, int], Thing]


def beach_ball(rng: np.random.Generator, look: int) -> Thing:
    """A striped ball; changed, its stripes have other colours."""
    reds = ((0.90, 0.16, 0.14), (0.97, 0.94, 0.88), (0.98, 0.76, 0.12), (0.97, 0.94, 0.88))
    blues = ((0.10, 0.30, 0.72), (0.12, 0.62, 0.55), (0.55, 0.82, 0.95), (0.42, 0.20, 0.62))
    return ball(rng, 0.17, _gores((reds, blues)[look]), at=(0, 0, 0))


def gift_box(rng: np.random.Generator, look: int) -> Thing:
    """A wrapped box with a ribbon; changed, its lid is off and lies beside it, and it is full of balls."""
    paper, ribbon = _spots((0.45, 0.16, 0.55), (0.98, 0.80, 0.30)), (0.96, 0.72, 0.14)
    wrapped = _ribboned(paper, ribbon)
    if look == 0:
        thing = box(rng, (0.30, 0.22, 0.30), paper, front=wrapped, top=wrapped)
        thing += box(rng, (0.33, 0.06, 0.33), paper, at=(0, 0.22, 0), front=wrapped, top=wrapped)
        return thing + ball(rng, 0.05, tx.fabric(ribbon), at=(0, 0.27, 0))
    thing = box(rng, (0.30, 0.22, 0.30), paper, front=wrapped, top=tx.plain((0.12, 0.05, 0.15)))
    for x, z, colour in ((-0.07, -0.05, (0.95, 0.3, 0.2)), (0.07, -0.06, (0.2, 0.7, 0.4)), (0, 0.07, (0.2, 0.5, 0.9))):
        thing += ball(rng, 0.07, tx.fabric(colour, ((0.97, 0.95, 0.9),)), at=(x, 0.17, z))
    return thing


def vase(rng: np.random.Generator, look: int) -> Thing:
    """A painted vase; changed, it holds flowers."""
    glaze = _spots((0.10, 0.36, 0.62), (0.95, 0.93, 0.86))
    thing = tube(rng, (0.08, 0.15), 0.14, glaze, at=(0, 0, 0)) + tube(rng, (0.15, 0.06), 0.16, glaze, at=(0, 0.14, 0))
    thing += tube(rng, (0.06, 0.09), 0.06, glaze, at=(0, 0.30, 0))
    thing += lying(rng, (0.17, 0.17), tx.plain((0.08, 0.08, 0.10)), at=(0, 0.358, 0), round=True)
    if look == 1:
        for x, up, z, colour in (
            (-0.09, 0.44, 0.0, (0.95, 0.35, 0.45)), (0.09, 0.42, -0.03, (0.98, 0.80, 0.20)),
            (0.0, 0.52, 0.03, (0.92, 0.25, 0.25)), (0.01, 0.41, -0.08, (0.95, 0.60, 0.75)),
        ):  # fmt: skip
            thing += tube(rng, (0.008, 0.008), up - 0.3, tx.plain((0.2, 0.45, 0.2)), at=(x / 2, 0.33, z / 2))
            thing += ball(rng, 0.075, tx.wallpaper(colour, ((0.99, 0.95, 0.80), colour)), at=(x, up, z))
    return thing


def rocket(rng: np.random.Generator, look: int) -> Thing:
    """A toy rocket; changed, its body and nose are painted in other colours."""
    body, trim = ((0.93, 0.92, 0.88), (0.86, 0.14, 0.16)) if look == 0 else ((0.16, 0.42, 0.40), (0.98, 0.72, 0.10))
    hull = _spots(body, (0.15, 0.30, 0.55))
    thing = tube(rng, (0.06, 0.11), 0.05, tx.plain((0.25, 0.25, 0.28)), at=(0, 0, 0))
    thing += tube(rng, (0.11, 0.13), 0.12, hull, at=(0, 0.05, 0)) + tube(rng, (0.13, 0.11), 0.12, hull, at=(0, 0.17, 0))
    thing += tube(rng, (0.11, 0.005), 0.17, _spots(trim, body), at=(0, 0.29, 0))
    for x, z in ((-0.15, 0.0), (0.15, 0.0), (0.0, -0.15), (0.0, 0.15)):
        thing += box(rng, (0.08, 0.17, 0.03) if z == 0 else (0.03, 0.17, 0.08), tx.fabric(trim), at=(x, 0, z))
    return thing


# kind -> how a prompt calls it, and what makes it
TARGETS: dict[str, tuple[str, TargetMaker]] = {
    "ball": ("striped ball", beach_ball),
    "gift": ("gift box", gift_box),
    "vase": ("painted vase", vase),
    "rocket": ("toy rocket", rocket),
}


def _gores(colours: tuple[tx.Colour, ...]) -> tx.Paint:
    """Stripes from pole to pole, with stars of unequal size on them."""

    def paint(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
        image = tx.plain(colours[0])(rng, width, height)
        columns = image.shape[1]
        count = 2 * len(colours)
        for k in range(count):
            image[:, k * columns // count : (k + 1) * columns // count] = colours[k % len(colours)]
        image[: int(0.09 * image.shape[0])] = image[-int(0.09 * image.shape[0]) :] = colours[2]
        return _dotted(rng, image, colours[0], share=0.4)

    return paint


def _spots(ground: tx.Colour, spot: tx.Colour) -> tx.Paint:
    """Spots of unequal size on a plain ground."""

    def paint(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
        return _dotted(rng, tx.plain(ground)(rng, width, height), spot, share=1.0)

    return paint


def _ribboned(paper: tx.Paint, ribbon: tx.Colour) -> tx.Paint:
    """Paper with a ribbon down its middle."""

    def paint(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
        image = paper(rng, width, height)
        middle, half = image.shape[1] // 2, max(int(0.025 * tx.TEXELS), 2)
        image[:, middle - half : middle + half] = ribbon
        return image

    return paint


def _dotted(rng: np.random.Generator, image: np.ndarray, colour: tx.Colour, share: float) -> np.ndarray:
    import cv2

    height, width = image.shape[:2]
    dots = np.zeros((height, width), np.uint8)
    for _ in range(int(share * 420 * height * width / tx.TEXELS**2) + 2):
        centre = int(rng.integers(width)), int(rng.integers(height))
        cv2.circle(dots, centre, int(rng.integers(2, 6)), int(rng.integers(140, 256)), -1, cv2.LINE_AA)
    weight = dots[..., None].astype(np.float32) / 255
    return image * (1 - weight) + np.asarray(colour, np.float32) * weight
