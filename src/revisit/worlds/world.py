"""World: a lit room with a target in it, and views of it in which the target can be put, changed or left out.

A view costs most for the room, which never changes; the target and its shadow are a small patch on top.
So one view serves the truth and every model that gets the target wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from revisit.worlds.light import Lamp, brightness, lit
from revisit.worlds.render import Box, Camera, Surface, bounds, colour, plane_coordinates, surface, trace
from revisit.worlds.shapes import Panel, Shape, Solid, Thing, placed
from revisit.worlds.targets import TARGETS

TARGET = 1  # instance id of the target; 0 is nothing, the room and its furniture follow
SHADOW = 1.0  # metres, the side of the square around the target on which its shadow is drawn


@dataclass(frozen=True)
class State:
    """The target at a moment: where it stands (x, y, z), and which of its looks it has."""

    place: tuple[float, float, float]
    look: int = 0


@dataclass(frozen=True, eq=False)
class World:
    """A room under its lamp, the kind of target in it, and where the target may stand."""

    name: str
    seed: int
    room: tuple[Surface, ...]
    instances: Mapping[int, str]
    lamp: Lamp
    solids: tuple[Solid, ...]
    kind: str
    places: tuple[tuple[float, float, float], ...]  # the first is where the target stands at first
    start: np.ndarray  # camera-to-world pose of the first view
    fov: float
    turn: str  # the side to which the camera has room to look away
    prompt: str
    _drawn: dict[State, tuple[tuple[Surface, ...], Surface]] = field(default_factory=dict, repr=False)

    @property
    def first_state(self) -> State:
        return State(self.places[0])

    def target(self, state: State) -> tuple[tuple[Surface, ...], Surface]:
        """The target's surfaces in a state, and its shadow as a square of factors on what it stands on."""
        if state not in self._drawn:
            rng = np.random.default_rng([self.seed, 77])
            standing = placed(TARGETS[self.kind][1](rng, state.look), turn=20.0 + 10 * (self.seed % 5), at=state.place)
            lights = lit(standing.shapes, self.lamp, [*self.solids, *standing.solids])
            drawn = [surface(s, image, TARGET) for s, image in zip(standing.shapes, lights, strict=True)]
            self._drawn[state] = tuple(drawn), _shadow(standing, state, self.lamp)
        return self._drawn[state]


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture with its truth: colour (uint8 RGB), depth in metres (float32) and instance ids (uint8)."""

    rgb: np.ndarray
    depth: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, eq=False)
class View:
    """What one pose sees: the empty room, and for each state the patch that the target changes."""

    empty: Shot
    patches: Mapping[State, tuple[Box, Shot]]

    def shot(self, state: State | None) -> Shot:
        """The picture with the target in a state, or without it."""
        if state is None or state not in self.patches:
            return self.empty
        (x0, y0, x1, y1), patch = self.patches[state]
        whole = Shot(self.empty.rgb.copy(), self.empty.depth.copy(), self.empty.mask.copy())
        for name in ("rgb", "depth", "mask"):
            getattr(whole, name)[y0:y1, x0:x1] = getattr(patch, name)
        return whole


def take_view(world: World, camera: Camera, states: Iterable[State]) -> View:
    """The view of a camera, ready for each of the states."""
    fine_camera = camera.doubled()
    fine, exact = trace(world.room, fine_camera), trace(world.room, camera)
    picture = colour(world.room, fine_camera, fine)
    ids = np.array([s.instance for s in world.room] + [0], np.uint8)
    empty = Shot(_halved(picture), _depth(exact.inverse), ids[exact.which])
    patches = {}
    for state in states:
        surfaces, shadow = world.target(state)
        box = _covering(bounds((*surfaces, shadow), camera), camera.size)
        if box is None:
            continue
        fine_box = (2 * box[0], 2 * box[1], 2 * box[2], 2 * box[3])
        close = fine_camera.cropped(fine_box)
        room = fine.cut(fine_box)
        shaded = _shaded(_crop(picture, fine_box), room.inverse, shadow.shape, close)
        rgb = _halved(colour(surfaces, close, trace(surfaces, close, room), shaded))
        seen = trace(surfaces, camera.cropped(box), exact.cut(box))
        mask = np.where(seen.which >= 0, np.uint8(TARGET), _crop(empty.mask, box))
        patches[state] = box, Shot(rgb, _depth(seen.inverse), mask)
    return View(empty, patches)


def _shadow(standing: Thing, state: State, lamp: Lamp) -> Surface:
    """A lying square around the target whose image is how much darker the target makes each point."""
    x, y, z = state.place
    cells = 48
    step = (np.arange(cells) + 0.5) / cells * SHADOW - SHADOW / 2
    points = np.stack(np.broadcast_arrays(x + step[None, :], y, z - step[:, None]), axis=-1).reshape(-1, 3)
    normals = np.broadcast_to([0.0, -1.0, 0.0], points.shape)
    # Solids of the room that hold the target up would count as touching it.
    before = brightness(points, normals, lamp, ())
    after = brightness(points, normals, lamp, standing.solids)
    ratio = (after / before).reshape(cells, cells, 3)
    edge = np.clip(4 * (1 - 2 * np.abs(step) / SHADOW), 0, 1)
    ratio = 1 + (ratio - 1) * (edge[:, None] * edge[None, :])[..., None]
    corner = np.array([x - SHADOW / 2, y, z + SHADOW / 2])
    square = Panel(corner, np.array([SHADOW, 0, 0]), np.array([0, 0, -SHADOW]), ratio.astype(np.float32))
    return surface(square, square.image, TARGET)


def _shaded(picture: np.ndarray, inverse: np.ndarray, shadow: Shape, camera: Camera) -> np.ndarray:
    """The picture with the shadow on every pixel that lies in the shadow's plane."""
    import cv2

    assert isinstance(shadow, Panel)
    G = plane_coordinates(shadow, camera)
    height, width = camera.size
    row = G[2].astype(np.float32)
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    flat = row[0] * x + (row[1] * y + row[2])
    touched = np.abs(inverse - flat) < 2e-3 * np.abs(flat)
    cells = shadow.image.shape[0]
    to_cells = np.array([[cells, 0, -0.5], [0, cells, -0.5], [0, 0, 1]]) @ G
    factor = cv2.warpPerspective(
        shadow.image, to_cells, (width, height), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT, borderValue=(1, 1, 1),
    )  # fmt: skip
    darker = cv2.multiply(picture, factor, dtype=cv2.CV_8U)
    return cv2.copyTo(darker, touched.view(np.uint8), picture.copy())


def _covering(boxes: Iterable[Box | None], size: tuple[int, int]) -> Box | None:
    """One box around all of them, with a pixel to spare."""
    found = [box for box in boxes if box is not None]
    if not found:
        return None
    x0, y0, x1, y1 = (np.array(found).min(axis=0)[:2] - 1).tolist() + (np.array(found).max(axis=0)[2:] + 1).tolist()
    return max(x0, 0), max(y0, 0), min(x1, size[1]), min(y1, size[0])


def _crop(image: np.ndarray, box: Box) -> np.ndarray:
    return image[box[1] : box[3], box[0] : box[2]]


def _halved(image: np.ndarray) -> np.ndarray:
    import cv2

    return cv2.resize(image, (image.shape[1] // 2, image.shape[0] // 2), interpolation=cv2.INTER_AREA)


def _depth(inverse: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return (1 / inverse).astype(np.float32)
