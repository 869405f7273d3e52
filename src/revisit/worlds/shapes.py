"""Shapes: what rooms, furniture and targets are made of.

World axes are OpenCV's: x right, y down, z forward, in metres, with the floor at y = 0 (so heights are
negative y; functions here take `up`, a height above the floor, instead). A thing is built where it is
seen from the front: its face looks towards -z, its middle is at the origin; `turn_and_move` then turns and
moves it. Images are float32 RGB in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.worlds.textures import Paint


@dataclass(frozen=True, eq=False)
class Panel:
    """A flat rectangle, or the ellipse inside it: seen from its front, `across` goes right and `down` goes down."""

    corner: np.ndarray
    across: np.ndarray
    down: np.ndarray
    image: np.ndarray
    round: bool = False
    glows: bool = False  # keeps its colours whatever the light, like a window


@dataclass(frozen=True, eq=False)
class Ball:
    """A sphere, or a spheroid of another height; its image is unrolled by longitude and latitude, north up."""

    at: np.ndarray  # its middle
    radius: float
    image: np.ndarray
    turn: float = 0.0  # degrees about the vertical
    roll: float = 0.0  # degrees by which it has then rolled towards +x
    squash: float = 1.0  # height as a share of the width
    glows: bool = False


@dataclass(frozen=True, eq=False)
class Tube:
    """The side of an upright cylinder or cone."""

    at: np.ndarray  # the middle of its bottom
    bottom: float  # radius at the bottom
    top: float  # radius at the top
    height: float
    image: np.ndarray
    turn: float = 0.0
    glows: bool = False


Shape: TypeAlias = Panel | Ball | Tube


@dataclass(frozen=True, eq=False)
class Solid:
    """An upright block that keeps light away: what a thing is for the shadows it casts."""

    centre: np.ndarray
    half: np.ndarray
    turn: float = 0.0


@dataclass(frozen=True, eq=False)
class Thing:
    """Shapes that belong together, and the blocks that cast their shadow."""

    shapes: Sequence[Shape] = ()
    solids: Sequence[Solid] = ()

    def __add__(self, other: Thing) -> Thing:
        return Thing((*self.shapes, *other.shapes), (*self.solids, *other.solids))


def turn_and_move(thing: Thing, turn: float = 0.0, at: tuple[float, float, float] = (0, 0, 0)) -> Thing:
    """The thing turned by `turn` degrees about the vertical through the origin, then moved to x, y, z."""
    rotation, offset = rotation_from_axis_angle((0, 1, 0), turn), np.asarray(at, dtype=float)

    def move_shape(shape: Shape) -> Shape:
        if isinstance(shape, Panel):
            across, down = rotation @ shape.across, rotation @ shape.down
            return replace(shape, corner=rotation @ shape.corner + offset, across=across, down=down)
        return replace(shape, at=rotation @ shape.at + offset, turn=shape.turn + turn)

    solids = [replace(s, centre=rotation @ s.centre + offset, turn=s.turn + turn) for s in thing.solids]
    return Thing([move_shape(shape) for shape in thing.shapes], solids)


def set_ball_roll(thing: Thing, degrees: float) -> Thing:
    """The thing with its balls turned to this angle about their own middle, towards +x."""
    return replace(thing, shapes=[replace(s, roll=degrees) if isinstance(s, Ball) else s for s in thing.shapes])


def tilt_about_hinge(thing: Thing, degrees: float, up: float, z: float) -> Thing:
    """A thing of panels swung back about a level hinge along x at a height and depth, as a lid is."""
    rotation, hinge = rotation_from_axis_angle((1, 0, 0), degrees), np.array([0, -up, z])
    swung = []
    for shape in thing.shapes:
        assert isinstance(shape, Panel)
        corner = rotation @ (shape.corner - hinge) + hinge
        swung.append(replace(shape, corner=corner, across=rotation @ shape.across, down=rotation @ shape.down))
    solids = [replace(s, centre=rotation @ (s.centre - hinge) + hinge) for s in thing.solids]
    return Thing(swung, solids)


def stretch_thing(thing: Thing, wide: float, high: float) -> Thing:
    """The thing made wider (both ways) and higher by two factors, standing where it stood."""
    factors = np.array([wide, high, wide])

    def stretch_shape(shape: Shape) -> Shape:
        if isinstance(shape, Panel):
            corner, across, down = (v * factors for v in (shape.corner, shape.across, shape.down))
            return replace(shape, corner=corner, across=across, down=down)
        if isinstance(shape, Ball):
            squash = shape.squash * high / wide
            return replace(shape, at=shape.at * factors, radius=shape.radius * wide, squash=squash)
        bottom, top, height = shape.bottom * wide, shape.top * wide, shape.height * high
        return replace(shape, at=shape.at * factors, bottom=bottom, top=top, height=height)

    solids = [replace(s, centre=s.centre * factors, half=s.half * factors) for s in thing.solids]
    return Thing([stretch_shape(shape) for shape in thing.shapes], solids)


def box(
    rng: np.random.Generator,
    size: tuple[float, float, float],
    paint: Paint,
    *,
    at: tuple[float, float, float] = (0, 0, 0),
    front: Paint | None = None,
    top: Paint | None = None,
    skip: str = "bottom",
) -> Thing:
    """A block of width, height and depth whose bottom middle is at x, up, z; `skip` names faces never seen."""
    width, height, depth = size
    x, up, z = at
    left, right, low, high, near, far = (
        x - width / 2, x + width / 2, -up, -up - height, z - depth / 2, z + depth / 2,
    )  # fmt: skip
    faces = {
        "front": ((left, high, near), (width, 0, 0), (0, height, 0), front or paint),
        "back": ((right, high, far), (-width, 0, 0), (0, height, 0), paint),
        "right": ((right, high, near), (0, 0, depth), (0, height, 0), paint),
        "left": ((left, high, far), (0, 0, -depth), (0, height, 0), paint),
        "top": ((left, high, far), (width, 0, 0), (0, 0, -depth), top or paint),
        "bottom": ((left, low, near), (width, 0, 0), (0, 0, depth), paint),
    }
    panels = [
        panel(rng, corner, across, down, colours)
        for name, (corner, across, down, colours) in faces.items()
        if name not in skip.split()
    ]
    solid = Solid(np.array([x, -up - height / 2, z]), np.array([width, height, depth]) / 2)
    return Thing(panels, (solid,))


def panel(
    rng: np.random.Generator,
    corner: tuple[float, float, float],
    across: tuple[float, float, float],
    down: tuple[float, float, float],
    paint: Paint,
    *,
    round: bool = False,
    glows: bool = False,
) -> Panel:
    """A flat rectangle with its own piece of paint."""
    image = paint(rng, float(np.linalg.norm(across)), float(np.linalg.norm(down)))
    origin, right, below = (np.asarray(v, dtype=float) for v in (corner, across, down))
    return Panel(origin, right, below, image, round, glows)


def horizontal_panel(
    rng: np.random.Generator,
    size: tuple[float, float],
    paint: Paint,
    *,
    at: tuple[float, float, float] = (0, 0, 0),
    round: bool = False,
) -> Thing:
    """A flat rectangle or disc of width and depth that lies at x, up, z and faces up."""
    (width, depth), (x, up, z) = size, at
    corner = (x - width / 2, -up, z + depth / 2)
    return Thing((panel(rng, corner, (width, 0, 0), (0, 0, -depth), paint, round=round),))


def ball(rng: np.random.Generator, radius: float, paint: Paint, *, at: tuple[float, float, float]) -> Thing:
    """A sphere that rests at x, up, z."""
    centre = np.array([at[0], -at[1] - radius, at[2]])
    image = paint(rng, 2 * np.pi * radius, np.pi * radius)
    return Thing((Ball(centre, radius, image),), (Solid(centre, np.full(3, 0.57 * radius)),))


def tube(
    rng: np.random.Generator,
    radii: tuple[float, float],
    height: float,
    paint: Paint,
    *,
    at: tuple[float, float, float],
    lid: Paint | None = None,
) -> Thing:
    """A cylinder or cone with a bottom and a top radius, standing at x, up, z; `lid` closes its top."""
    bottom, top = radii
    x, up, z = at
    base = np.array([x, -up, z])
    side = Tube(base, bottom, top, height, paint(rng, 2 * np.pi * max(radii), height))
    wide = 0.7 * min(bottom, top)
    thing = Thing((side,), (Solid(base - (0, height / 2, 0), np.array([wide, height / 2, wide])),))
    if lid is not None:
        thing += horizontal_panel(rng, (2 * top, 2 * top), lid, at=(x, up + height, z), round=True)
    return thing


def surface_points_and_normals(shape: Shape, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """World points and outward normals (rows, columns, 3) under a grid of cells of the shape's image."""
    v, u = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    if isinstance(shape, Panel):
        points = shape.corner + u[..., None] * shape.across + v[..., None] * shape.down
        normal = np.cross(shape.down, shape.across)
        return points, np.broadcast_to(normal / np.linalg.norm(normal), points.shape)
    longitude = 2 * np.pi * u + np.radians(shape.turn)
    if isinstance(shape, Ball):
        latitude = np.pi * v
        level = np.sin(latitude)
        directions = np.stack([level * np.sin(longitude), -np.cos(latitude), level * np.cos(longitude)], axis=-1)
        directions = directions @ rotation_from_axis_angle((0, 0, 1), shape.roll).T
        normals = directions / (1, shape.squash, 1)
        points = shape.at + shape.radius * directions * (1, shape.squash, 1)
        return points, normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    radius = shape.top + (shape.bottom - shape.top) * v
    around = np.stack([np.sin(longitude), np.zeros_like(u), np.cos(longitude)], axis=-1)
    points = shape.at + radius[..., None] * around + np.stack([0 * u, (v - 1) * shape.height, 0 * u], axis=-1)
    slope = (shape.top - shape.bottom) / shape.height  # a side that opens upwards looks down
    normals = around + np.array([0, slope, 0])
    return points, normals / np.linalg.norm(normals, axis=-1, keepdims=True)
