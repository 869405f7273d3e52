"""Targets: the things to remember, one function per kind.

A function takes (rng, state) and returns a Thing that stands at the origin. Of the state it reads `look`
(0 as first seen, 1 after it changed in place) and, where a lasting event fits the kind, `amount`; rngs are
equally seeded, so that what a change does not touch stays the same. To add a kind, write its function and
add a row. What a failing model would show, such as the target in other colours or with another pattern, is the same for
all kinds (`make_target_in_state`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from revisit.worlds import textures as tx
from revisit.worlds.shapes import (
    Thing,
    ball,
    box,
    horizontal_panel,
    stretch_thing,
    tilt_about_hinge,
    tube,
    turn_and_move,
)
from revisit.worlds.state import State

TargetMaker = Callable[[np.random.Generator, State], Thing]

BALL = 0.17  # metres, the radius of the ball
JUICE = (0.95, 0.45, 0.10)
TURN = 150.0  # degrees of hue by which colours differ at most
INKS = ((0.06, 0.08, 0.16), (0.98, 0.94, 0.80))  # of a foreign pattern: one dark, one light, so that it always shows


class TargetKind(NamedTuple):
    """A kind of target: how a prompt calls it, and what makes it."""

    title: str
    make: TargetMaker
    changes: bool = False  # whether it draws its other look itself; if not, that is the look of another individual


def beach_ball(rng: np.random.Generator, state: State) -> Thing:
    """A striped ball; changed, its stripes have other colours."""
    reds = ((0.90, 0.16, 0.14), (0.97, 0.94, 0.88), (0.98, 0.76, 0.12), (0.97, 0.94, 0.88))
    blues = ((0.10, 0.30, 0.72), (0.12, 0.62, 0.55), (0.55, 0.82, 0.95), (0.42, 0.20, 0.62))
    return ball(rng, BALL, _striped_ball_paint((reds, blues)[state.look]), at=(0, 0, 0))


def gift_box(rng: np.random.Generator, state: State) -> Thing:
    """A wrapped box with a ribbon; changed, its lid is off and lies beside it, and it is full of balls."""
    paper, ribbon = _spots((0.45, 0.16, 0.55), (0.98, 0.80, 0.30)), (0.96, 0.72, 0.14)
    wrapped = _paint_with_ribbon(paper, ribbon)
    if state.look == 0:
        thing = box(rng, (0.30, 0.22, 0.30), paper, front=wrapped, top=wrapped)
        thing += box(rng, (0.33, 0.06, 0.33), paper, at=(0, 0.22, 0), front=wrapped, top=wrapped)
        return thing + ball(rng, 0.05, tx.fabric(ribbon), at=(0, 0.27, 0))
    thing = box(rng, (0.30, 0.22, 0.30), paper, front=wrapped, top=tx.plain((0.12, 0.05, 0.15)))
    for x, z, colour in ((-0.07, -0.05, (0.95, 0.3, 0.2)), (0.07, -0.06, (0.2, 0.7, 0.4)), (0, 0.07, (0.2, 0.5, 0.9))):
        thing += ball(rng, 0.07, tx.fabric(colour, ((0.97, 0.95, 0.9),)), at=(x, 0.17, z))
    return thing


def vase(rng: np.random.Generator, state: State) -> Thing:
    """A painted vase; changed, it holds flowers."""
    glaze = _spots((0.10, 0.36, 0.62), (0.95, 0.93, 0.86))
    thing = tube(rng, (0.08, 0.15), 0.14, glaze, at=(0, 0, 0)) + tube(rng, (0.15, 0.06), 0.16, glaze, at=(0, 0.14, 0))
    thing += tube(rng, (0.06, 0.09), 0.06, glaze, at=(0, 0.30, 0))
    thing += horizontal_panel(rng, (0.17, 0.17), tx.plain((0.08, 0.08, 0.10)), at=(0, 0.358, 0), round=True)
    if state.look == 1:
        for x, up, z, colour in (
            (-0.09, 0.44, 0.0, (0.95, 0.35, 0.45)), (0.09, 0.42, -0.03, (0.98, 0.80, 0.20)),
            (0.0, 0.52, 0.03, (0.92, 0.25, 0.25)), (0.01, 0.41, -0.08, (0.95, 0.60, 0.75)),
        ):  # fmt: skip
            thing += tube(rng, (0.008, 0.008), up - 0.3, tx.plain((0.2, 0.45, 0.2)), at=(x / 2, 0.33, z / 2))
            thing += ball(rng, 0.075, tx.wallpaper(colour, ((0.99, 0.95, 0.80), colour)), at=(x, up, z))
    return thing


def rocket(rng: np.random.Generator, state: State) -> Thing:
    """A toy rocket; changed, its body and nose are painted in other colours."""
    body, trim = (
        ((0.93, 0.92, 0.88), (0.86, 0.14, 0.16)) if state.look == 0 else ((0.16, 0.42, 0.40), (0.98, 0.72, 0.10))
    )
    hull = _spots(body, (0.15, 0.30, 0.55))
    thing = tube(rng, (0.06, 0.11), 0.05, tx.plain((0.25, 0.25, 0.28)), at=(0, 0, 0))
    thing += tube(rng, (0.11, 0.13), 0.12, hull, at=(0, 0.05, 0)) + tube(rng, (0.13, 0.11), 0.12, hull, at=(0, 0.17, 0))
    thing += tube(rng, (0.11, 0.005), 0.17, _spots(trim, body), at=(0, 0.29, 0))
    for x, z in ((-0.15, 0.0), (0.15, 0.0), (0.0, -0.15), (0.0, 0.15)):
        thing += box(rng, (0.08, 0.17, 0.03) if z == 0 else (0.03, 0.17, 0.08), tx.fabric(trim), at=(x, 0, z))
    return thing


def cup(rng: np.random.Generator, state: State) -> Thing:
    """A large glass mug with marks; the amount is how full of juice it is."""
    level = 0.04 + 0.88 * state.amount
    thing = tube(rng, (0.115, 0.135), 0.34, _filled_glass_paint(level), at=(0, 0, 0))
    inside = np.array(JUICE) * state.amount**2 + np.array((0.62, 0.72, 0.76)) * (1 - state.amount**2)
    thing += horizontal_panel(rng, (0.27, 0.27), tx.plain((0.93, 0.97, 0.98)), at=(0, 0.340, 0), round=True)
    thing += horizontal_panel(rng, (0.24, 0.24), tx.plain(inside), at=(0, 0.341, 0), round=True)
    glass = tx.plain((0.74, 0.84, 0.88))
    for size, up, x in (
        ((0.09, 0.035, 0.04), 0.06, 0.16),
        ((0.09, 0.035, 0.04), 0.25, 0.16),
        ((0.035, 0.225, 0.04), 0.06, 0.22),
    ):
        thing += box(rng, size, glass, at=(x, up, 0), skip="")
    return thing


def candle(rng: np.random.Generator, state: State) -> Thing:
    """A burning candle on a dish; the amount is how far it has burnt down."""
    wax, brass = _spots((0.80, 0.24, 0.22), (0.96, 0.80, 0.62)), tx.plain((0.80, 0.62, 0.26), 0.06)
    thing = tube(rng, (0.13, 0.17), 0.045, brass, at=(0, 0, 0), lid=brass)
    high = 0.045 + 0.40 * (1 - 0.8 * state.amount)
    remaining, top = _lowest_part_of_paint(wax, (high - 0.045) / 0.40), tx.plain((0.97, 0.78, 0.60))
    thing += tube(rng, (0.085, 0.08), high - 0.045, remaining, at=(0, 0.045, 0), lid=top)
    thing += tube(rng, (0.006, 0.006), 0.03, tx.plain((0.1, 0.08, 0.08)), at=(0, high, 0))
    flame = tube(rng, (0.035, 0.002), 0.10, _flame_gradient, at=(0, high + 0.035, 0))
    flame += tube(rng, (0.012, 0.035), 0.025, _flame_gradient, at=(0, high + 0.012, 0))
    glowing = tuple(replace(shape, glows=True) for shape in flame.shapes)
    for turn, up in ((200, 0.75), (140, 0.55), (260, 0.6), (20, 0.7)):
        x, z = 0.083 * np.sin(np.radians(turn)), 0.083 * np.cos(np.radians(turn))
        thing += tube(rng, (0.016, 0.010), 0.10 * up, wax, at=(float(x), max(high - 0.1, 0.045), float(z)))
    return thing + Thing(glowing)


def snowman(rng: np.random.Generator, state: State) -> Thing:
    """A snowman with a hat; the amount is how far it has melted into a puddle."""
    snow, coal = tx.plaster((0.93, 0.95, 0.98), 0.05), tx.plain((0.08, 0.08, 0.10))
    scarf, hat = tx.fabric((0.80, 0.12, 0.16), ((0.97, 0.9, 0.4),)), tx.plain((0.16, 0.18, 0.26), 0.08)
    thing = ball(rng, 0.145, snow, at=(0, 0, 0)) + ball(rng, 0.108, snow, at=(0, 0.254, 0))
    thing += ball(rng, 0.078, snow, at=(0, 0.443, 0))
    for x in (-0.030, 0.030):
        thing += ball(rng, 0.012, coal, at=(x, 0.530, -0.068))
    for up in (0.305, 0.348, 0.390):
        thing += ball(rng, 0.013, coal, at=(0, up, -0.103))
    thing += box(rng, (0.022, 0.022, 0.09), tx.plain((0.95, 0.48, 0.12)), at=(0, 0.498, -0.11), skip="")
    thing += tube(rng, (0.092, 0.085), 0.035, scarf, at=(0, 0.436, 0))
    thing += box(rng, (0.04, 0.12, 0.02), scarf, at=(0.05, 0.33, -0.105), skip="")
    thing += tube(rng, (0.10, 0.10), 0.015, hat, at=(0, 0.571, 0), lid=hat)
    thing += tube(rng, (0.062, 0.066), 0.09, hat, at=(0, 0.581, 0), lid=hat)
    remaining = 1 - 0.62 * state.amount
    puddle = 0.30 + 0.30 * state.amount
    wet = horizontal_panel(rng, (puddle, puddle), tx.plain((0.62, 0.74, 0.84), 0.08), at=(0, 0.004, 0), round=True)
    return turn_and_move(stretch_thing(thing, remaining, remaining) + wet, turn=-40.0)


def chest(rng: np.random.Generator, state: State) -> Thing:
    """A wooden chest full of gold; the amount is how far its lid is open."""
    wood, iron = tx.wood((0.50, 0.30, 0.16), plank=0.07), (0.22, 0.22, 0.25)
    front = _paint_with_ribbon(_paint_with_ribbon(wood, iron, 0.18), iron, 0.82)
    thing = box(rng, (0.38, 0.20, 0.26), front, top=_spots((0.90, 0.68, 0.16), (0.99, 0.93, 0.55)))
    for x, z in ((-0.10, -0.05), (0.02, 0.03), (0.11, -0.04)):
        thing += ball(rng, 0.05, _spots((0.95, 0.74, 0.20), (1.0, 0.96, 0.65)), at=(x, 0.135, z))
    lid = box(rng, (0.40, 0.09, 0.28), front, at=(0, 0.20, 0), skip="")
    lid += box(rng, (0.06, 0.08, 0.02), tx.plain((0.90, 0.76, 0.30)), at=(0, 0.17, -0.148), skip="")
    return turn_and_move(thing + tilt_about_hinge(lid, -105.0 * state.amount, 0.20, 0.14), turn=-40.0)


def plant(rng: np.random.Generator, state: State) -> Thing:
    """A potted plant with blossoms; the amount is how far it has grown since it was first seen."""
    pot = _spots((0.72, 0.36, 0.22), (0.94, 0.82, 0.66))
    thing = tube(rng, (0.09, 0.125), 0.15, pot, at=(0, 0, 0), lid=tx.plain((0.20, 0.14, 0.10), 0.2))
    leaves, petals = _spots((0.13, 0.36, 0.14), (0.45, 0.70, 0.28)), _spots((0.95, 0.40, 0.58), (0.99, 0.86, 0.35))
    crown = tube(rng, (0.014, 0.010), 0.30, tx.plain((0.30, 0.42, 0.18)), at=(0, 0, 0))
    for x, up, z, radius in (
        (0, 0.06, 0, 0.095), (-0.09, 0.13, 0.02, 0.075), (0.09, 0.15, -0.02, 0.08), (0.0, 0.22, 0.02, 0.08),
    ):  # fmt: skip
        crown += ball(rng, radius, leaves, at=(x, up, z))
    for x, up, z in ((-0.10, 0.24, -0.05), (0.08, 0.28, -0.06), (0.0, 0.36, -0.02), (0.02, 0.16, -0.10)):
        crown += ball(rng, 0.038, petals, at=(x, up, z))
    size = 0.55 + 0.45 * state.amount
    return thing + turn_and_move(stretch_thing(crown, size, size), at=(0, -0.15, 0))


def doll(rng: np.random.Generator, state: State) -> Thing:
    """A doll with a face, hair, jacket and trousers."""
    skin, cloth = (0.93, 0.72, 0.58), tx.fabric((0.16, 0.40, 0.62), ((0.96, 0.80, 0.25), (0.9, 0.9, 0.86)))
    thing = Thing()
    for x in (-0.045, 0.045):
        thing += box(rng, (0.07, 0.035, 0.12), tx.plain((0.30, 0.16, 0.12)), at=(x, 0, -0.02))
        thing += tube(rng, (0.034, 0.040), 0.15, tx.fabric((0.36, 0.30, 0.26)), at=(x, 0.03, 0))
    thing += tube(rng, (0.105, 0.070), 0.17, cloth, at=(0, 0.17, 0), lid=tx.plain((0.16, 0.40, 0.62)))
    for x in (-0.115, 0.115):
        thing += tube(rng, (0.026, 0.030), 0.13, cloth, at=(x, 0.19, 0), lid=tx.plain((0.16, 0.40, 0.62)))
        thing += ball(rng, 0.028, tx.plain(skin), at=(x, 0.15, 0))
    thing += tube(rng, (0.03, 0.03), 0.03, tx.plain(skin), at=(0, 0.34, 0))
    thing += ball(rng, 0.092, _doll_head_paint(skin), at=(0, 0.355, 0))
    return turn_and_move(thing, turn=-40.0)


def rod(rng: np.random.Generator, state: State) -> Thing:
    """A thin stick on a small foot, without any pattern."""
    grey = tx.plain((0.30, 0.32, 0.36))
    thing = tube(rng, (0.05, 0.045), 0.02, grey, at=(0, 0, 0), lid=grey)
    return thing + tube(rng, (0.013, 0.013), 0.46, tx.plain((0.78, 0.30, 0.16)), at=(0, 0.02, 0), lid=grey)


def flask(rng: np.random.Generator, state: State) -> Thing:
    """A flask of blue liquid; the amount is how much foam has grown out of it."""
    glass, rim = _spots((0.16, 0.34, 0.66), (0.34, 0.58, 0.86)), tx.plain((0.84, 0.90, 0.94))
    thing = tube(rng, (0.15, 0.06), 0.20, glass, at=(0, 0, 0)) + tube(rng, (0.06, 0.06), 0.08, rim, at=(0, 0.20, 0))
    thing += horizontal_panel(rng, (0.12, 0.12), tx.plain((0.10, 0.22, 0.45)), at=(0, 0.281, 0), round=True)
    foam = _spots((0.95, 0.93, 0.84), (0.86, 0.82, 0.68))
    for x, up, z, radius in (
        (0.0, 0.22, 0.0, 0.09), (-0.07, 0.26, -0.02, 0.08), (0.08, 0.27, -0.03, 0.085), (0.0, 0.34, 0.0, 0.10),
    ):  # fmt: skip
        grown = state.amount * radius
        if grown > 0.004:
            thing += ball(rng, grown, foam, at=(x * state.amount, up, z * state.amount))
    return thing


TARGETS: dict[str, TargetKind] = {
    "ball": TargetKind("striped ball", beach_ball, changes=True),
    "gift": TargetKind("gift box", gift_box, changes=True),
    "vase": TargetKind("painted vase", vase, changes=True),
    "rocket": TargetKind("toy rocket", rocket, changes=True),
    "cup": TargetKind("glass mug of juice", cup),
    "plant": TargetKind("potted plant", plant),
    "figure": TargetKind("doll", doll),
    "candle": TargetKind("burning candle", candle),
    "snowman": TargetKind("snowman", snowman),
    "chest": TargetKind("treasure chest", chest),
    "rod": TargetKind("thin stick", rod),
    "flask": TargetKind("flask with foam", flask),
}
BY_SEED = tuple(TARGETS)[:10]  # among which a seed chooses: kinds added later leave the worlds of seeds as they are


def make_target_in_state(make: Callable[[np.random.Generator], Thing], seed: int, state: State) -> Thing:
    """What `make` makes, as a state shows it."""
    thing = make(np.random.default_rng([seed, 77]))
    images = [shape.image for shape in thing.shapes]
    if state.identity:
        # Another individual is made with other random numbers, and has other colours.
        others = make(np.random.default_rng([seed, 77, state.identity])).shapes
        turn = 70.0 + 220.0 * (state.identity * 0.618 % 1)
        images = [rotate_hues(other.image, turn, 1.0) for other in others]
    if state.texture:
        rngs = [np.random.default_rng([5, part]) for part in range(len(images))]
        images = [cover_with_blotches(image, rng, state.texture) for image, rng in zip(images, rngs, strict=True)]
    if state.colour:
        images = [rotate_hues(image, TURN * state.colour, state.colour) for image in images]
    return replace(thing, shapes=[replace(s, image=image) for s, image in zip(thing.shapes, images, strict=True)])


def rotate_hues(image: np.ndarray, turn: float, strength: float) -> np.ndarray:
    """The image with its hues turned by degrees; greys, which have none, take on a tint by a strength of 0 to 1."""
    cosine, sine = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    third, root = (1 - cosine) / 3, np.sqrt(1 / 3) * sine
    ahead, behind = third - root, third + root
    matrix = np.array(
        [[cosine + third, ahead, behind], [behind, cosine + third, ahead], [ahead, behind, cosine + third]]
    )
    tint = 1 + strength * (np.array([0.62, 0.95, 1.0]) - 1)
    return np.clip(image @ (matrix * tint[:, None]).T.astype(np.float32), 0, 1).astype(np.float32)


def cover_with_blotches(image: np.ndarray, rng: np.random.Generator, strength: float) -> np.ndarray:
    """The image under bold blotches of two inks, which cover it more and more with a strength of 0 to 1."""
    height, width = image.shape[:2]
    fields = [tx.fractal_noise(rng, (height, width), (14, 14), 2) for _ in INKS]
    for ink, field in zip(INKS, fields, strict=True):
        weight = np.float32(0.9 * strength) * np.clip(4 * (field - 0.25), 0, 1)[..., None].astype(np.float32)
        image = image * (1 - weight) + np.asarray(ink, np.float32) * weight
    return image.astype(np.float32)


@tx.paint_factory
def _striped_ball_paint(
    rng: np.random.Generator, width: float, height: float, colours: tuple[tx.Colour, ...]
) -> np.ndarray:
    """Stripes from pole to pole, with stars of unequal size on them."""
    image = tx.plain(colours[0])(rng, width, height)
    columns = image.shape[1]
    count = 2 * len(colours)
    for k in range(count):
        image[:, k * columns // count : (k + 1) * columns // count] = colours[k % len(colours)]
    image[: int(0.09 * image.shape[0])] = image[-int(0.09 * image.shape[0]) :] = colours[2]
    return _add_dots(rng, image, colours[0], density=0.4)


@tx.paint_factory
def _spots(rng: np.random.Generator, width: float, height: float, ground: tx.Colour, spot: tx.Colour) -> np.ndarray:
    """Spots of unequal size on a plain ground."""
    return _add_dots(rng, tx.plain(ground)(rng, width, height), spot, density=1.0)


@tx.paint_factory
def _paint_with_ribbon(
    rng: np.random.Generator, width: float, height: float, paper: tx.Paint, ribbon: tx.Colour, at: float = 0.5
) -> np.ndarray:
    """Paper with a ribbon from top to bottom, at a share of its width."""
    image = paper(rng, width, height)
    middle, half = int(at * image.shape[1]), max(int(0.025 * tx.TEXELS), 2)
    image[:, middle - half : middle + half] = ribbon
    return image


@tx.paint_factory
def _filled_glass_paint(rng: np.random.Generator, width: float, height: float, level: float) -> np.ndarray:
    """Glass with marks, and juice up to a share of its height."""
    rows, columns = 136, 320
    image = np.full((rows, columns, 3), (0.78, 0.87, 0.90), np.float32)
    image[:, ::40] = image[:, 1::40] = (0.90, 0.95, 0.97)
    top = (1 - level) * rows
    # The row that the level crosses is juice in part, so that every change of level shows.
    wet = np.clip(np.arange(rows) + 1 - top, 0, 1)[:, None, None].astype(np.float32)
    bubbles = _add_dots(rng, np.full_like(image, JUICE), (1.0, 0.72, 0.30), density=0.5)
    image = image * (1 - wet) + bubbles * wet
    for mark in range(1, 10):
        row = rows - int(mark * rows / 10)
        length = 14 if mark % 5 else 24
        for start in range(8, columns, 40):
            image[row : row + 2, start : start + length] = (0.12, 0.20, 0.32)
    return image


@tx.paint_factory
def _lowest_part_of_paint(
    rng: np.random.Generator, width: float, height: float, paint: tx.Paint, share: float
) -> np.ndarray:
    """The lowest share of a paint: what is left of a thing that gets shorter from the top."""
    image = paint(rng, width, height / share)
    return image[-max(round(share * len(image)), 4) :]


def _flame_gradient(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
    """Yellow below, orange above."""
    share = np.linspace(0, 1, 16, dtype=np.float32)[::-1, None, None]
    top, bottom = np.array((1.0, 0.55, 0.10), np.float32), np.array((1.0, 0.95, 0.62), np.float32)
    return np.tile(top * share + bottom * (1 - share), (1, 16, 1)).astype(np.float32)


@tx.paint_factory
def _doll_head_paint(rng: np.random.Generator, width: float, height: float, skin: tx.Colour) -> np.ndarray:
    """A head unrolled: eyes, brows, nose, mouth and cheeks in the middle of the front, hair above and behind."""
    import cv2

    head = np.full((256, 512, 3), np.round(np.array(skin) * 255), np.uint8)
    hair, dark = (74, 44, 26), (36, 26, 30)
    head[:74] = hair
    for x in range(512):
        behind = abs(x - 256) / 256
        head[: int(74 + 130 * np.clip((behind - 0.38) * 6, 0, 1) + 5 * np.sin(x / 5)), x] = hair
    for side in (-1, 1):
        x = 256 + 34 * side
        cv2.ellipse(head, (256 + 50 * side, 154), (18, 12), 0, 0, 360, (240, 150, 130), -1, cv2.LINE_AA)
        cv2.ellipse(head, (x, 118), (17, 12), 0, 0, 360, (250, 250, 248), -1, cv2.LINE_AA)
        cv2.circle(head, (x, 119), 8, (62, 110, 70), -1, cv2.LINE_AA)
        cv2.circle(head, (x, 119), 4, dark, -1, cv2.LINE_AA)
        cv2.ellipse(head, (x, 102), (20, 8), 0, 190, 350, dark, 4, cv2.LINE_AA)
    cv2.ellipse(head, (256, 138), (8, 6), 0, 0, 180, (196, 128, 100), 4, cv2.LINE_AA)
    cv2.ellipse(head, (256, 158), (28, 16), 0, 10, 170, (176, 40, 48), 6, cv2.LINE_AA)
    for x, y in ((-60, 140), (-52, 148), (64, 142), (56, 150)):
        cv2.circle(head, (256 + x, y), 2, (176, 110, 84), -1, cv2.LINE_AA)
    return (head / np.float32(255)).astype(np.float32)


def _add_dots(rng: np.random.Generator, image: np.ndarray, colour: tx.Colour, density: float) -> np.ndarray:
    import cv2

    height, width = image.shape[:2]
    dots = np.zeros((height, width), np.uint8)
    for _ in range(int(density * 420 * height * width / tx.TEXELS**2) + 2):
        centre = int(rng.integers(width)), int(rng.integers(height))
        cv2.circle(dots, centre, int(rng.integers(2, 6)), int(rng.integers(140, 256)), -1, cv2.LINE_AA)
    weight = dots[..., None].astype(np.float32) / 255
    return image * (1 - weight) + np.asarray(colour, np.float32) * weight
