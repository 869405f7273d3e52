"""Light: how bright every point of the room is, worked out once and painted into the images.

One soft round lamp under the ceiling (Lambert, falling off with distance, with soft shadows), plus
light from all around that fades in corners. Results are factors on display colours (gamma 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revisit.worlds.shapes import Ball, Panel, Shape, Solid, surface_points_and_normals

GAMMA = 2.2
CELL = 0.10  # metres between the points of a panel where light is worked out
REACH = 0.5  # metres within which a neighbour darkens a corner


@dataclass(frozen=True, eq=False)
class Lamp:
    """A round lamp: its middle, its radius in metres, its colour, and the colour of the light from all around."""

    centre: np.ndarray
    radius: float
    colour: tuple[float, float, float]
    ambient: tuple[float, float, float]

    def sample_points(self) -> np.ndarray:
        """Seven points spread over the lamp: its middle and a ring around it."""
        angles = 2 * np.pi * np.arange(6) / 6
        ring = np.stack([np.cos(angles), 0 * angles, np.sin(angles)], axis=1)
        return self.centre + self.radius * np.concatenate([np.zeros((1, 3)), ring])


def lit_images(shapes: Sequence[Shape], lamp: Lamp, solids: Sequence[Solid]) -> list[np.ndarray]:
    """The images of the shapes as they look under the lamp: uint8 RGB."""
    grids = [_light_grid_size(shape) for shape in shapes]
    surfaces = [surface_points_and_normals(shape, *grid) for shape, grid in zip(shapes, grids, strict=True)]
    points, normals = (np.concatenate([surface[k].reshape(-1, 3) for surface in surfaces]) for k in (0, 1))
    factors = light_factors(points, normals, lamp, solids)
    pieces = np.split(factors, np.cumsum([rows * columns for rows, columns in grids])[:-1])
    lit = (piece.reshape(*grid, 3) for piece, grid in zip(pieces, grids, strict=True))
    return [_apply_light_to_image(shape, factor) for shape, factor in zip(shapes, lit, strict=True)]


def light_factors(points: np.ndarray, normals: np.ndarray, lamp: Lamp, solids: Sequence[Solid]) -> np.ndarray:
    """Factors (n, 3) on the display colours at points with given normals."""
    points = (points + 2e-3 * normals).astype(np.float32)
    normals = normals.astype(np.float32)
    spots = lamp.sample_points().astype(np.float32)
    shadowed = [np.zeros(len(points), bool) for _ in spots]
    directions = _hemisphere_directions(normals)
    covered = np.zeros(len(points), np.float32)
    for solid in solids:
        half = solid.half.astype(np.float32)
        start = _rotate_to_solid_axes(solid, points - solid.centre.astype(np.float32))
        ends = _rotate_to_solid_axes(solid, spots - solid.centre.astype(np.float32))
        # Most points have the lamp on the same side of the solid as they are: no need to look closer at them.
        aside = (np.maximum(start, ends.max(axis=0)) < -half) | (np.minimum(start, ends.min(axis=0)) > half)
        behind = np.flatnonzero(~aside.any(axis=1))
        for end, dark in zip(ends, shadowed, strict=True):
            dark[behind] |= _segments_cross_box(start[behind], end - start[behind], solid.half)
        near = np.flatnonzero((np.abs(start) < half + REACH).all(axis=1))
        for direction in directions:
            ray = REACH * _rotate_to_solid_axes(solid, direction[near])
            covered[near] += _segments_cross_box(start[near], ray, solid.half)
    key = np.zeros(len(points), np.float32)
    for spot, dark in zip(spots, shadowed, strict=True):
        ray = spot - points
        distance = np.sqrt(np.einsum("ij,ij->i", ray, ray))
        facing = np.clip(np.einsum("ij,ij->i", ray, normals) / distance, 0, 1)
        key += facing / (0.45 + 0.2 * distance + 0.03 * distance**2) * ~dark / len(spots)
    openness = 1 - 0.7 * np.minimum(covered / len(directions), 1)
    around = openness * (1 + 0.25 * normals[:, 1])  # the floor throws light back up
    total = key[:, None] * np.asarray(lamp.colour, np.float32) + around[:, None] * np.asarray(lamp.ambient, np.float32)
    return np.asarray(total ** np.float32(1 / GAMMA), np.float32)


def _light_grid_size(shape: Shape) -> tuple[int, int]:
    """Rows and columns of points at which the light on a shape is worked out."""
    if shape.glows:
        return 1, 1
    if isinstance(shape, Panel):
        rows, columns = (int(np.clip(np.linalg.norm(side) / CELL, 2, 100)) for side in (shape.down, shape.across))
        return rows, columns
    return (10, 16) if (shape.radius if isinstance(shape, Ball) else shape.bottom) > CELL else (6, 10)


def _apply_light_to_image(shape: Shape, factor: np.ndarray) -> np.ndarray:
    import cv2

    height, width = shape.image.shape[:2]
    if shape.glows:
        return (shape.image * 255 + 0.5).astype(np.uint8)
    if isinstance(shape, Panel):
        factor = cv2.GaussianBlur(factor, (3, 3), 0, borderType=cv2.BORDER_REPLICATE)
    factor = cv2.resize(factor, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.clip(shape.image * factor * 255 + 0.5, 0, 255).astype(np.uint8)


def _hemisphere_directions(normals: np.ndarray) -> list[np.ndarray]:
    """Six directions over the half sphere on each normal."""
    x, y, _ = np.eye(3, dtype=np.float32)
    helper = np.where(np.abs(normals[:, :1]) > 0.7, y, x)
    first = np.cross(normals, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(normals, first)
    lean = np.float32(0.9)
    turns = (2 * np.pi * np.arange(5) / 5).astype(np.float32)
    around = [np.cos(turn) * first + np.sin(turn) * second for turn in turns]
    return [normals, *(np.cos(lean) * normals + np.sin(lean) * side for side in around)]


def _rotate_to_solid_axes(solid: Solid, vectors: np.ndarray) -> np.ndarray:
    """Vectors in the axes of a solid."""
    if solid.turn == 0:
        return vectors
    cosine, sine = np.float32(np.cos(np.radians(solid.turn))), np.float32(np.sin(np.radians(solid.turn)))
    return vectors @ np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]], np.float32)


def _segments_cross_box(start: np.ndarray, ray: np.ndarray, half_size: np.ndarray) -> np.ndarray:
    """Whether the stretch from each start along its way passes through a block around the origin."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1 / ray
        middle, reach = -start * inverse, half_size.astype(np.float32) * np.abs(inverse)
        enter, leave = middle - reach, middle + reach
    enter = np.fmax(np.fmax(enter[:, 0], enter[:, 1]), np.fmax(enter[:, 2], 0))
    leave = np.fmin(np.fmin(leave[:, 0], leave[:, 1]), np.fmin(leave[:, 2], 1))
    return enter < leave
