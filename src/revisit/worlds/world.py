"""World: a lit place with a target in it, and views of it in which the target can be put, changed or left out.

A view costs most for the place, which never changes; the target and its shadow are a small patch on top.
So one view serves the truth and every model that gets the target wrong. Everything is drawn when it is
first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np

from revisit.worlds import render
from revisit.worlds.layout import TableLayout
from revisit.worlds.light import Lamp, light_factors, lit_images
from revisit.worlds.render import Box, Camera, Surface, Traced
from revisit.worlds.shapes import Panel, Shape, Solid, Thing, set_ball_roll, stretch_thing, turn_and_move
from revisit.worlds.state import SCREEN, TARGET, State
from revisit.worlds.targets import TARGETS, make_target_in_state

SHADOW = 1.0  # metres, the side of the square around the target on which its shadow is drawn
CELLS = 32  # across that square
SMALL = 0.02  # metres; smaller parts of the target cast no shadow
NEARBY = 0.9  # metres from the target within which things of the place darken it
GRID = 32  # pixels to which a patch is rounded up, so that patches of moving targets share what lies behind
SCREEN_WAY = 2.1  # metres that the screen slides
KEPT = 64  # drawn states and patches that are remembered; older ones are drawn again

T = TypeVar("T")


def cache_method_results(max_results: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A method whose object remembers so many of its results, by their arguments, and forgets the oldest ones."""

    def decorate(method: Callable[..., T]) -> Callable[..., T]:
        @wraps(method)
        def cached_result(self: Any, *arguments: Any) -> T:
            results = vars(self).setdefault(f"_{method.__name__}_results", {})
            if arguments not in results:
                value = method(self, *arguments)
                if len(results) >= max_results:
                    del results[next(iter(results))]
                results[arguments] = value
            return results[arguments]

        return cached_result

    return decorate


@dataclass(frozen=True, eq=False)
class World:
    """A place under its lamp, the kind of target in it, and where the target may stand."""

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
    scene: str  # a sentence that says what is where
    layout: TableLayout
    place: str  # the kind of place: room or yard
    target_seed: int  # of the target's own pattern and turn
    perch: tuple[float, float, float] | None = None  # the top of a block, from which a target can fall
    screen: Thing = field(default_factory=Thing)  # what can be drawn in front of the target, where it hides it

    @property
    def prompt(self) -> str:
        """The scene, and a camera that turns away from the target and back."""
        title = self.instances[TARGET]
        return f"{self.scene} The camera turns {self.turn}, away from the {title}, and then turns back."

    @property
    def away_and_back(self) -> dict[str, str]:
        """The sides to which the camera turns away and back, as scripts name them."""
        return {"away": self.turn, "back": "left" if self.turn == "right" else "right"}

    @property
    def first_state(self) -> State:
        return State(self.places[0])

    @cache_method_results(2 * KEPT)
    def target_surfaces_and_shadow(self, state: State) -> tuple[tuple[Surface, ...], Surface]:
        """The target's surfaces in a state, and its shadow as a square of factors on what it stands on."""
        wide, high = state.scale * (1 + 0.5 * state.shape), state.scale * (1 - 0.5 * state.shape)
        at_origin = replace(state, place=(0.0, 0.0, 0.0), roll=0.0, turn=0.0, scale=1.0, shape=0.0)
        thing = set_ball_roll(stretch_thing(self._target_at_origin(at_origin), wide, high), state.roll)
        standing = turn_and_move(thing, turn=20.0 + 10 * (self.target_seed % 5) + state.turn, at=state.place)
        own = [solid for solid in standing.solids if solid.half.max() > SMALL]
        near = [solid for solid in self.solids if _distance_to_solid(solid, state.place) < NEARBY]
        return self._lit_surfaces(standing, [*near, *own], TARGET), _shadow_surface(own, state, self.lamp)

    @cache_method_results(KEPT)
    def _target_at_origin(self, state: State) -> Thing:
        """The target at the origin, as it looks in a state."""
        kind = TARGETS[self.kind]
        other = replace(state, identity=1) if state.look and not kind.changes else state
        return make_target_in_state(lambda rng: kind.make(rng, state), self.target_seed, other)

    @cache_method_results(KEPT)
    def screen_surfaces(self, progress: float) -> tuple[Surface, ...]:
        """The screen when it has come a share of its way: 0 beside the view, 1 in front of the target."""
        shift = (1 - progress) * SCREEN_WAY * (1 if self.turn == "right" else -1)
        there = turn_and_move(self.screen, at=(shift, 0, 0))
        return self._lit_surfaces(there, there.solids, SCREEN)

    def _lit_surfaces(self, thing: Thing, solids: Sequence[Solid], instance: int) -> tuple[Surface, ...]:
        """A thing's surfaces under the lamp, with the shadows of solids on them."""
        images = lit_images(thing.shapes, self.lamp, solids)
        lit = zip(thing.shapes, images, strict=True)
        return tuple(render.make_surface(shape, image, instance) for shape, image in lit)


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture with its truth: colour (uint8 RGB), depth in metres (float32) and instance ids (uint8)."""

    rgb: np.ndarray
    depth: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, eq=False)
class WorldView:
    """What one camera sees: the empty place, and the patches that the target and the screen change."""

    world: World
    camera: Camera

    @cached_property
    def empty_shot(self) -> Shot:
        """The place without the target."""
        traced = render.trace_surfaces(self.world.room, self.camera)
        fine = self.camera.at_double_resolution()
        picture = render.colour_traced_surfaces(self.world.room, fine, render.trace_surfaces(self.world.room, fine))
        ids = np.array([s.instance for s in self.world.room] + [0], np.uint8)
        return Shot(_halve_picture(picture), _depth_from_inverse(traced.inverse), ids[traced.which])

    def shot(self, *states: State | None, screen: float = 0.0) -> Shot:
        """The picture with a target in each of the states, and the screen a share of its way; None is no target."""
        present = tuple(state for state in states if state is not None and self._may_show_target(state))
        traced = self._trace_changed_region(present, screen)
        if traced is None:
            return self.empty_shot
        (x0, y0, x1, y1), depth, ids = traced
        shot = Shot(self.empty_shot.rgb.copy(), self.empty_shot.depth.copy(), self.empty_shot.mask.copy())
        shot.rgb[y0:y1, x0:x1] = self._draw_targets_over_empty_place(present, screen)
        np.copyto(shot.depth[y0:y1, x0:x1], depth, where=ids > 0)
        np.copyto(shot.mask[y0:y1, x0:x1], ids, where=ids > 0)
        return shot

    def target_pixel_count(self, state: State, screen: float = 0.0) -> int:
        """How many pixels show the target."""
        traced = self._trace_changed_region((state,), screen) if self._may_show_target(state) else None
        return 0 if traced is None else int((traced[2] == TARGET).sum())

    def _may_show_target(self, state: State) -> bool:
        """Whether a generous box around the target and its shadow is in view: most states need no drawing to know."""
        wide, high = SHADOW / 2 + max(0.0, 0.5 * (state.scale - 1)), 0.9 * state.scale
        x, y, z = state.place
        hull = render.box_corners((x - wide, y - high, z - wide), (x + wide, y + 0.05, z + wide))
        return render.may_box_be_in_view(hull, self.camera)

    def _target_and_screen_surfaces(self, states: tuple[State, ...], screen: float) -> list[Surface]:
        return [
            *(item for state in states for item in self.world.target_surfaces_and_shadow(state)[0]),
            *(self.world.screen_surfaces(screen) if screen > 0 else ()),
        ]

    @cache_method_results(KEPT)
    def _trace_changed_region(
        self, states: tuple[State, ...], screen: float
    ) -> tuple[Box, np.ndarray, np.ndarray] | None:
        """The box that targets, shadows and screen may change, and their depth and ids there; id 0 is none of them."""
        surfaces = self._target_and_screen_surfaces(states, screen)
        shadows = [self.world.target_surfaces_and_shadow(state)[1] for state in states]
        box = _enclosing_box(
            render.surface_pixel_boxes((*surfaces, *shadows), self.camera) if surfaces else [], self.camera.size
        )
        if box is None:
            return None
        behind, _ = self._copy_empty_region(box, fine=False)
        traced = render.trace_surfaces(surfaces, self.camera.crop_to_box(box), behind)
        ids = np.array([s.instance for s in surfaces] + [0], np.uint8)[traced.which]
        return box, _depth_from_inverse(traced.inverse), ids

    @cache_method_results(KEPT)
    def _draw_targets_over_empty_place(self, states: tuple[State, ...], screen: float) -> np.ndarray:
        """Colours of the box that targets in these states, their shadows and the screen change."""
        traced = self._trace_changed_region(states, screen)
        assert traced is not None
        x0, y0, x1, y1 = (2 * edge for edge in traced[0])
        behind, picture = self._copy_empty_region(traced[0], fine=True)
        close = self.camera.at_double_resolution().crop_to_box((x0, y0, x1, y1))
        for state in states:
            shadow = self.world.target_surfaces_and_shadow(state)[1].shape
            picture = _apply_shadow(picture, behind.inverse, shadow, close)
        surfaces = self._target_and_screen_surfaces(states, screen)
        drawn = render.trace_surfaces(surfaces, close, behind)
        return _halve_picture(render.colour_traced_surfaces(surfaces, close, drawn, picture))

    def _copy_empty_region(self, box: Box, fine: bool) -> tuple[Traced, np.ndarray]:
        """Depth and, if fine, colours (at twice the size) of the empty place inside a box; free to be drawn on.

        The surfaces of the place are only depth there: their numbers are not those of what is drawn.
        """
        x0, y0 = (edge // GRID * GRID for edge in box[:2])
        x1, y1 = (min(-(-edge // GRID) * GRID, end) for edge, end in zip(box[2:], self.camera.size[::-1], strict=True))
        times = 2 if fine else 1
        traced, picture = self._render_empty_region((times * x0, times * y0, times * x1, times * y1), fine)
        a0, b0, a1, b1 = (times * (edge - shift) for edge, shift in zip(box, (x0, y0, x0, y0), strict=True))
        only_depth = Traced(traced.inverse[b0:b1, a0:a1].copy(), np.full((b1 - b0, a1 - a0), -1, np.int16))
        return only_depth, picture[b0:b1, a0:a1].copy()

    @cache_method_results(4)
    def _render_empty_region(self, box: Box, fine: bool) -> tuple[Traced, np.ndarray]:
        """The same of a box whose edges lie on the grid, to be cut from."""
        close = (self.camera.at_double_resolution() if fine else self.camera).crop_to_box(box)
        traced = render.trace_surfaces(self.world.room, close)
        if not fine:
            return traced, np.zeros((0, 0, 3), np.uint8)
        return traced, render.colour_traced_surfaces(self.world.room, close, traced)


class Studio:
    """Pictures of a room from any pose, each pose rendered once."""

    def __init__(self, world: World, size: tuple[int, int]) -> None:
        self.world, self.size, self.K = world, size, render.intrinsics_from_fov(size, world.fov)
        self.pictures: dict[bytes, np.ndarray] = {}

    def render_picture(self, pose: np.ndarray) -> np.ndarray:
        key = (np.round(pose, 9) + 0.0).tobytes()
        if key not in self.pictures:
            state = self.world.first_state
            self.pictures[key] = WorldView(self.world, Camera(self.K, pose, self.size)).shot(state).rgb
        return self.pictures[key]


def _distance_to_solid(solid: Solid, place: tuple[float, float, float]) -> float:
    """Metres from a place to the ball around a solid; negative inside it."""
    return float(np.linalg.norm(solid.centre - place) - np.linalg.norm(solid.half))


def _shadow_surface(solids: Sequence[Solid], state: State, lamp: Lamp) -> Surface:
    """A lying square around the target whose image is how much darker the target makes each point."""
    x, y, z = state.place
    step = (np.arange(CELLS) + 0.5) / CELLS * SHADOW - SHADOW / 2
    points = np.stack(np.broadcast_arrays(x + step[None, :], y, z - step[:, None]), axis=-1).reshape(-1, 3)
    normals = np.broadcast_to([0.0, -1.0, 0.0], points.shape)
    # Solids of the room that hold the target up would count as touching it.
    before = light_factors(points, normals, lamp, ())
    after = light_factors(points, normals, lamp, solids)
    ratio = (after / before).reshape(CELLS, CELLS, 3)
    edge = np.clip(4 * (1 - 2 * np.abs(step) / SHADOW), 0, 1)
    ratio = 1 + (ratio - 1) * (edge[:, None] * edge[None, :])[..., None]
    corner = np.array([x - SHADOW / 2, y, z + SHADOW / 2])
    square = Panel(corner, np.array([SHADOW, 0, 0]), np.array([0, 0, -SHADOW]), ratio.astype(np.float32))
    return render.make_surface(square, square.image, TARGET)


def _apply_shadow(picture: np.ndarray, inverse: np.ndarray, shadow: Shape, camera: Camera) -> np.ndarray:
    """The picture with the shadow on every pixel that lies in the shadow's plane."""
    import cv2

    assert isinstance(shadow, Panel)
    G = render.pixel_to_panel_matrix(shadow, camera)
    height, width = camera.size
    (flat,) = render.matrix_values_at_pixels(G[2:], (0, 0, width, height))
    touched = np.abs(inverse - flat) < 2e-3 * np.abs(flat)
    cells = shadow.image.shape[0]
    to_cells = np.array([[cells, 0, -0.5], [0, cells, -0.5], [0, 0, 1]]) @ G
    factor = cv2.warpPerspective(
        shadow.image, to_cells, (width, height), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT, borderValue=(1, 1, 1),
    )  # fmt: skip
    darker = cv2.multiply(picture, factor, dtype=cv2.CV_8U)
    return cv2.copyTo(darker, touched.view(np.uint8), picture.copy())


def _enclosing_box(boxes: Iterable[Box | None], size: tuple[int, int]) -> Box | None:
    """One box around all of them, with a pixel to spare."""
    visible = [box for box in boxes if box is not None]
    if not visible:
        return None
    x0, y0, x1, y1 = (np.array(visible).min(axis=0)[:2] - 1).tolist() + (np.array(visible).max(axis=0)[2:] + 1).tolist()
    return max(x0, 0), max(y0, 0), min(x1, size[1]), min(y1, size[0])


def _halve_picture(image: np.ndarray) -> np.ndarray:
    import cv2

    return cv2.resize(image, (image.shape[1] // 2, image.shape[0] // 2), interpolation=cv2.INTER_AREA)


def _depth_from_inverse(inverse: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return (1 / inverse).astype(np.float32)
