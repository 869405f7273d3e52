"""Paint for yards: grass, gravel, paving, leaves, planks of a fence, render of a house, and the sky around.

Grounds are large, so they are painted at half as many texels per metre as the things in a room.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from revisit.worlds import textures as tx

FACE = 640  # texels across one face of the sky
HILLS = ((0.135, (0.58, 0.68, 0.74)), (0.105, (0.42, 0.56, 0.44)))  # how high above the horizon, and their colour


@tx.paint_factory
def grass(rng: np.random.Generator, width: float, height: float, colour: tx.Colour = (0.3, 0.47, 0.18)) -> np.ndarray:
    """A lawn: blades of many greens, patches, daisies and fallen leaves."""
    rows, columns = _half_resolution_size(width, height)
    canvas = np.full((rows, columns, 3), 255 * np.asarray(colour), np.float32)
    canvas *= 1 + 0.16 * tx.fractal_noise(rng, (rows, columns), (70, 70), 5)[..., None]
    image = np.clip(canvas, 0, 255).astype(np.uint8)
    area = width * height
    _scatter_ellipses(rng, image, int(150 * area), colour, (0.55, 1.6), long=(2, 6), short=(1, 2), turn=(60, 120))
    for bright in (
        (0.96, 0.95, 0.90),
        (0.98, 0.85, 0.25),
        (0.62, 0.36, 0.16),
        (0.75, 0.52, 0.22),
        (0.40, 0.62, 0.30),
    ):
        _scatter_ellipses(rng, image, int(2.6 * area), bright, (0.9, 1.1), long=(2, 6), short=(2, 6))
    return image.astype(np.float32) / 255


@tx.paint_factory
def gravel(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
    """Pebbles of many sizes and greys."""
    colour = (0.66, 0.61, 0.54)
    image = np.full((*_half_resolution_size(width, height), 3), np.round(150 * np.asarray(colour)), np.uint8)
    _scatter_ellipses(rng, image, int(230 * width * height), colour, (0.6, 1.35), long=(2, 7), short=(2, 7))
    return image.astype(np.float32) / 255


@tx.paint_factory
def leaves(rng: np.random.Generator, width: float, height: float, colour: tx.Colour = (0.16, 0.34, 0.13)) -> np.ndarray:
    """Dense foliage: overlapping leaves, light above dark."""
    shape = max(int(height * 140), 8), max(int(width * 140), 8), 3
    image = np.full(shape, np.round(110 * np.asarray(colour)), np.uint8)
    for layer in (0.7, 1.0, 1.35, 1.7):
        count = int(80 * width * height) + 6
        _scatter_ellipses(rng, image, count, colour, (0.75 * layer, 1.25 * layer), long=(5, 12), short=(3, 6))
    return image.astype(np.float32) / 255


def _scatter_ellipses(
    rng: np.random.Generator,
    image: np.ndarray,
    count: int,
    colour: tx.Colour,
    shades: tuple[float, float],
    *,
    long: tuple[int, int],
    short: tuple[int, int],
    turn: tuple[float, float] = (0, 180),
) -> None:
    """Draw small ellipses of one colour in many shades anywhere on the image."""
    import cv2

    height, width = image.shape[:2]
    tints = np.asarray(colour) * rng.uniform(*shades, (count, 1)) + rng.uniform(-0.04, 0.04, (count, 3))
    tints = np.clip(255 * tints, 0, 255).astype(int)
    columns, rows = rng.integers(width, size=count), rng.integers(height, size=count)
    axes = np.stack([rng.integers(*long, size=count), rng.integers(*short, size=count)], axis=1)
    turns = rng.uniform(*turn, count)
    for x, y, axis, angle, tint in zip(*(v.tolist() for v in (columns, rows, axes, turns, tints)), strict=True):
        cv2.ellipse(image, (x, y), tuple(axis), angle, 0, 360, tuple(tint), -1, cv2.LINE_AA)


@tx.paint_factory
def fence_boards(rng: np.random.Generator, width: float, height: float, colour: tx.Colour) -> np.ndarray:
    """Upright boards of unequal width and shade, with gaps, nails and two rails."""
    image = tx.wood(colour, plank=0.13, along="y")(rng, width, height)
    rows, columns = image.shape[:2]
    at = 0.0
    while at < width:
        left, right = int(at * tx.TEXELS), int((at + 0.13) * tx.TEXELS)
        image[:, left:right] *= rng.uniform(0.75, 1.2)
        image[:, left : left + 3] *= 0.35
        for rail in (0.22, 0.78):
            row = int(rail * rows)
            image[row : row + 4, min(left + 12, columns - 3) : left + 16] *= 0.3
        at += 0.13
    return np.clip(image, 0, 1)


def sky_faces(rng: np.random.Generator, tone: tx.Colour) -> dict[str, np.ndarray]:
    """Five images of one seamless sky with clouds over a ring of hills: far, right, near, left and top.

    Clouds and hills are sums of waves over the directions, so that they meet at the edges of the faces.
    """
    count = 56
    waves = (rng.normal(0, 1, (count, 3)) * np.geomspace(2.0, 90.0, count)[:, None]).astype(np.float32)
    phases, weights = rng.uniform(0, 2 * np.pi, count), np.geomspace(1.0, 0.3, count)
    ridges = rng.uniform(0, 2 * np.pi, (len(HILLS), 5))

    def cloud_values(directions: np.ndarray) -> np.ndarray:
        field = np.zeros(directions.shape[:2], np.float32)
        for wave, phase, weight in zip(waves, phases, weights, strict=True):
            field += np.float32(weight) * np.sin(directions @ wave + np.float32(phase))
        return field / np.float32(np.sqrt((weights**2).sum() / 2))

    return {name: _sky_face(name, cloud_values, ridges, tone) for name in ("far", "right", "near", "left", "top")}


def _face_texel_directions(face: str, rows: np.ndarray, size: int) -> np.ndarray:
    """Unit directions (rows, size, 3) to the texels in some rows of a face."""
    s, t = np.meshgrid((np.arange(size) + 0.5) / size * 2 - 1, (rows + 0.5) / size * 2 - 1)
    one = np.ones_like(s)
    axes = {"far": (s, t, one), "right": (one, t, -s), "near": (-s, t, -one), "left": (-one, t, s), "top": (s, -one, t)}
    directions = np.stack(axes[face], axis=-1).astype(np.float32)
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def _sky_face(face: str, clouds: Callable[[np.ndarray], np.ndarray], ridges: np.ndarray, tone: tx.Colour) -> np.ndarray:
    """One face of the sky: soft clouds at half the texels, and sharp hills along the horizon."""
    import cv2

    directions = _face_texel_directions(face, np.arange(FACE // 2), FACE // 2)
    up = np.clip(-directions[..., 1:2], 0, 1)
    blue = np.asarray(tone, np.float32) * (1 - 0.5 * up) + np.array([0.16, 0.12, 0.04], np.float32) * (1 - up) ** 2
    field = clouds(directions)[..., None]
    cloud = np.clip(0.75 * field + 0.1, 0, 1)
    white = np.array([1.0, 1.0, 1.0], np.float32) - 0.14 * np.clip(field - 0.6, 0, 1.5)
    image = blue * (1 - cloud) + white * cloud
    image = cv2.resize(image, (FACE, FACE), interpolation=cv2.INTER_LINEAR)
    if face == "top":
        return np.clip(image, 0, 1)
    band = np.arange(int(0.38 * FACE), FACE)  # no hill is higher
    directions = _face_texel_directions(face, band, FACE)
    around, bearings = np.arctan2(directions[..., 0], directions[..., 2]), np.linspace(-np.pi, np.pi, 721)
    for shifts, (level, tint) in zip(ridges, HILLS, strict=True):
        steps = np.arange(len(shifts))[:, None]
        ridge = (np.sin((2 * steps + 2) * bearings + shifts[:, None]) / (steps + 2)).sum(axis=0)
        height = np.interp(around, bearings, level + 0.022 * ridge).astype(np.float32)
        below = np.clip((height + directions[..., 1]) * 150, 0, 1)[..., None]
        image[band] = image[band] * (1 - below) + np.asarray(tint, np.float32) * below
    return np.clip(image, 0, 1).astype(np.float32)


def _half_resolution_size(width: float, height: float) -> tuple[int, int]:
    return round(height * tx.TEXELS / 2), round(width * tx.TEXELS / 2)
