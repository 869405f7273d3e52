"""Dress: the target in other colours or with another pattern, as a failing model would show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revisit.worlds.shapes import Thing
from revisit.worlds.state import State
from revisit.worlds.textures import fractal_noise

TURN = 150.0  # degrees of hue by which colours differ at most
INKS = ((0.06, 0.08, 0.16), (0.98, 0.94, 0.80))  # of a foreign pattern: one dark, one light, so that it always shows


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
    fields = [fractal_noise(rng, (height, width), (14, 14), 2) for _ in INKS]
    for ink, field in zip(INKS, fields, strict=True):
        weight = np.float32(0.9 * strength) * np.clip(4 * (field - 0.25), 0, 1)[..., None].astype(np.float32)
        image = image * (1 - weight) + np.asarray(ink, np.float32) * weight
    return image.astype(np.float32)
