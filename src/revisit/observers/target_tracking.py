"""Follow a target of the first frame by motion and by looks, and look for it everywhere else.

Three searches run side by side and stay apart in the evidence, so that the gate can weigh them (docs/target-gate.md):
the target is *followed* by optical flow, and by the background's motion once lost; it is *found* by its layout of edges
and colours, as first seen or in a few later views, in the whole frame; and it is *placed* by what surrounded it. Views
are no longer collected once it was lost, so that what comes back is compared with what was there before it went away.
Memory does not grow with the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, Target, every, observer
from revisit.evidence.target import TargetTrack
from revisit.observers.grid_descriptors import (
    CELL,
    FAINTEST,
    CellView,
    OwnColours,
    Probe,
    Whitening,
    Window,
    cells_around_box,
    cut_window_of_cells,
    describe_cells,
    figure_strength_and_inside_mask,
    similarity_maps,
    sums_over_halves,
    target_silhouette,
    window_corner,
)
from revisit.observers.pictures import (
    FLOW_SIDE,
    Flows,
    gray_at_long_side,
    median,
    resize_by_halving,
    rgb_at_long_side,
    vector_lengths,
)
from revisit.observers.rows import evidence_arrays_of_rows

LONG_SIDE = 416  # half of 832, a common width; finer pictures cost much and add nothing for targets of this size
SETTLES = 0.5  # seconds at the start, and after a return, in which every frame is searched
SEARCH_GAP = 0.06  # seconds between searches of whole frames, unless the target changes; motion is followed in all
TARGET_PX = 48  # the target is looked at with about so many pixels a side: 12 cells, enough for its layout
SIZES = (0.71, 1.0, 1.41, 2.0, 2.83)  # of the target against its first view
SURROUNDINGS = 2.0  # the target's place is a window so many times its box
EARLY_LOOKS, LATE_LOOKS = 6, 3  # remembered: the first ones for good, of later ones the last
COMMON = 0.45  # similarity elsewhere in its own frame from which a look is not the target's alone
LATE_TRUST = 0.9  # a late look may have drifted off the target, so a match with it counts less
LOOK_EVERY = 0.04  # seconds between remembered looks
ROOTED = 0.25  # similarity to older looks that a new one needs; what drifted off the target had 0.2 and less
SAME_LOOK, OTHER_LOOK = 0.45, 0.75  # a followed target between the two is remembered as a new look
GONE, FOUND, CLEAR = 0.25, 0.45, 0.12  # near similarity of a lost target; peak, and its lead, that find it again
IN_PLACE, COVERED, ELSEWHERE = "in place", "covered", "elsewhere"
TINT = np.array([40.0, 12.0, 12.0])  # of 255, in L, a and b: how far light may drift over a clip
SAME_COLOUR = 0.4  # overlap of colours below which the peak is something else of similar layout
OUT = 0.2  # share inside the frame of a box that has left it
LOST_AFTER = 0.25  # seconds without a match until the box is carried by the background alone
IN_FIGURE, FEWEST_POINTS = 0.5, 4  # share of a cell that stands out; points of motion that a silhouette needs


@dataclass(frozen=True)
class Spot:
    """A place in the frame: centre in fractions of the frame, size against the first view."""

    centre: np.ndarray
    scale: float

    def box_of_target(self, size: np.ndarray) -> np.ndarray:
        """x0, y0, x1, y1 of a target that was `size` large in the first frame."""
        half = size * self.scale / 2
        return np.concatenate([self.centre - half, self.centre + half])


@dataclass(frozen=True)
class BoxMotion:
    """From one frame to the next: the target's box, and the background."""

    shift: np.ndarray  # fractions of the frame
    growth: float
    flow: float  # share of the box with motion that survives the way back
    camera: float  # motion of the background at the target, in frame widths


@dataclass(frozen=True)
class Sighting:
    """What one frame shows of the target."""

    near: float
    near_at: Spot
    near_first: float  # similarity there to the first view alone
    near_early: float  # and to the early looks
    peak: float
    peak_at: Spot
    second: float
    first: float
    early: float
    place: float
    place_at: Spot
    place_second: float
    at_place: float


@observer(
    id="lite.target",
    version=5,
    kind="sequence",
    makes=TargetTrack,
    frames=every(at_most=300),
    size=LONG_SIDE,
    inputs=("target",),
    sets=("lite",),
)
def track_target(clip: ClipInfo, target: Target) -> FrameStream:
    """Where the target of the first frame seems to be in every frame, and how alike it looks there."""
    flows = Flows()
    x0, y0, x1, y1 = target.box
    width, height = float((x1 - x0) * clip.width), float((y1 - y0) * clip.height)
    first = yield
    assert first is not None
    search = TargetSearch(rgb_at_long_side(first, LONG_SIDE), target.box)
    spot, missed, last, before = search.start, 0.0, float(first.time), first
    flow, camera = 1.0, 0.0  # of the motion since the last search: the smallest share to be trusted, and the sum
    calm = False  # whether that search found nothing new
    absent = 0.0  # when it was last lost
    rows: list[dict[str, object]] = []
    frame: Frame | None = first
    while frame is not None:
        is_lost = missed > LOST_AFTER
        if frame is not first:
            greys = gray_at_long_side(before, FLOW_SIDE), gray_at_long_side(frame, FLOW_SIDE)
            both = flows.forward_and_backward_flow(before, frame)
            box = spot.box_of_target(search.size)
            step = target_and_camera_motion(*greys, *both, box, is_lost, search.figure)
            spot = Spot(spot.centre + step.shift, float(np.clip(spot.scale * step.growth, 0.4, 4.0)))
            flow, camera, before = min(flow, step.flow), camera + step.camera, frame
            if calm and frame.time - last < SEARCH_GAP and frame.index < clip.count - 1:
                frame = yield
                continue
        rgb = rgb_at_long_side(frame, LONG_SIDE)
        sighting = search.search_frame(rgb, spot)
        if frame is not first and not is_lost and sighting.near > SAME_LOOK:
            # a third of the way: flow is precise but drifts, the layout is coarse but does not
            centre = spot.centre + (sighting.near_at.centre - spot.centre) / 3
            spot = Spot(centre, spot.scale**0.8 * sighting.near_at.scale**0.2)
        inside = share_of_box_inside_frame(spot.box_of_target(search.size))

        part = search.best_half_similarity(spot)
        there = sighting.near >= GONE or (part >= SAME_LOOK and flow > 0.3)
        missed = 0.0 if there and inside > OUT else missed + float(frame.time) - last
        search.frozen = search.frozen or missed > LOST_AFTER
        colour, own_colour = search.colour_overlaps_with_looks(rgb, sighting.peak_at.box_of_target(search.size))
        stands_out = sighting.peak >= FOUND and sighting.peak - sighting.second >= CLEAR
        if missed > LOST_AFTER and stands_out and colour >= SAME_COLOUR:
            spot, missed = sighting.peak_at, 0.0
            inside = share_of_box_inside_frame(spot.box_of_target(search.size))
        setting = search.update_state_of_surroundings(spot, sighting, camera)
        if inside > 0.9 and sighting.near < OTHER_LOOK and max(sighting.near, part) > SAME_LOOK and setting != COVERED:
            search.remember_look_if_trusted(rgb, spot, float(frame.time), flow, setting, sighting)

        rows.append({
            **vars(sighting), "index": frame.index, "seconds": frame.time, "inside": inside, "flow": flow,
            "part": part, "colour": colour, "own_colour": own_colour, "camera": camera,
            "stands": search.difference_from_surroundings(spot),
            "place_stands": search.difference_from_surroundings(sighting.place_at),
            "box": spot.box_of_target(search.size), "peak_box": sighting.peak_at.box_of_target(search.size),
            "place_box": sighting.place_at.box_of_target(search.size),
        })  # fmt: skip
        last, flow, camera = float(frame.time), 1.0, 0.0
        if missed > LOST_AFTER:
            absent = last
        settled = search.frozen and last - absent >= SETTLES  # after a loss no look is learnt any more
        calm = last >= SETTLES and (missed > LOST_AFTER or sighting.near >= OTHER_LOOK or settled)
        frame = yield
    return TargetTrack(
        **evidence_arrays_of_rows(TargetTrack, rows),
        cells=search.weight.size,
        texture=search.texture,
        width_px=width,
        height_px=height,
    )


STEPS = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])  # in cells: how far off a half may be


def resize_to_whole_cells(rgb: np.ndarray, long_side: float) -> np.ndarray:
    """The picture with its longer side at about `long_side`, in whole cells."""
    scale = long_side / max(rgb.shape[:2])
    width, height = (max(1, round(side * scale / CELL)) * CELL for side in rgb.shape[1::-1])
    return resize_by_halving(rgb, width, height)


def share_of_box_inside_frame(box: np.ndarray) -> float:
    """Share of a box that is inside the frame."""
    clipped = np.clip(box, 0, 1)
    return float(np.prod(clipped[2:] - clipped[:2]) / max(float(np.prod(box[2:] - box[:2])), 1e-9))


def target_and_camera_motion(
    before: np.ndarray,
    after: np.ndarray,
    forward_flow: np.ndarray,
    backward_flow: np.ndarray,
    box: np.ndarray,
    lost: bool,
    silhouette: np.ndarray | None = None,
) -> BoxMotion:
    """Motion of the target (of the background behind it, if it is lost) and how far it can be trusted.

    `forward_flow` and `backward_flow` join the two pictures, `silhouette` is the target's silhouette in its box;
    without one the middle of the box counts.
    """
    import cv2

    height, width = before.shape
    size = np.array([width, height])
    start = _every_eighth_pixel(width, height)
    shift = forward_flow[4::8, 4::8].reshape(-1, 2)
    end = start + shift
    inside = (end[:, 0] >= 0) & (end[:, 1] >= 0) & (end[:, 0] < width) & (end[:, 1] < height)
    landed = np.clip(end.round().astype(int), 0, size - 1)
    place = landed[:, 1] * width + landed[:, 0]
    missed = shift + backward_flow.reshape(-1, 2)[place]
    change = np.abs(after.ravel()[place].astype(int) - before[4::8, 4::8].ravel())
    good = inside & (change < 25)
    good &= vector_lengths(missed[:, 0], missed[:, 1]) < np.maximum(1.0, 0.1 * vector_lengths(shift[:, 0], shift[:, 1]))

    centre, half = (box[:2] + box[2:]) / 2 * size, (box[2:] - box[:2]) / 2 * size
    apart = start - centre
    core = is_in_silhouette(apart / half, silhouette)
    near = np.abs(apart) < 1.2 * half
    around = good & ~(near[:, 0] & near[:, 1])
    matrix = np.eye(2, 3)
    if np.count_nonzero(around) >= 12:
        cv2.setRNGSeed(0)
        source, destination = start[around].astype(np.float32), end[around].astype(np.float32)
        fitted, _ = cv2.estimateAffinePartial2D(source, destination, ransacReprojThreshold=1.5)
        matrix = matrix if fitted is None else fitted
    carried = matrix @ np.r_[centre, 1.0] - centre
    growth = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
    trusted = core & good
    of_target, of_trusted = int(np.count_nonzero(core)), int(np.count_nonzero(trusted))
    if not lost and of_trusted >= max(4, 0.2 * of_target):
        step = _median_point(shift[trusted])
        old, new = (vector_lengths(*(points - _median_point(points)).T) for points in (start[trusted], end[trusted]))
        spread = old > 2
        growth = median(new[spread] / old[spread]) if np.count_nonzero(spread) > 3 else 1.0
    else:
        step = carried
    return BoxMotion(
        shift=step / size,
        growth=float(np.clip(growth, 0.9, 1.1)),
        flow=of_trusted / max(1, of_target),
        camera=float(np.linalg.norm(carried) / width),
    )


def is_in_silhouette(offsets: np.ndarray, silhouette: np.ndarray | None) -> np.ndarray:
    """(n,) which points are the target's, by where they are in its box: (n, 2) from -1 to 1.

    Those of its silhouette; the middle of the box where hardly any point lies in that, or nobody knows it.
    """
    farther = np.abs(offsets).max(axis=1)
    middle = np.asarray(farther < 0.75)
    if silhouette is None:
        return middle
    (inside,) = np.nonzero(farther < 1)
    cells = ((np.clip(offsets[inside], -0.999, 0.999) + 1) / 2 * silhouette.shape[::-1]).astype(int)
    own = np.zeros(len(offsets), bool)
    own[inside] = silhouette[cells[:, 1], cells[:, 0]] >= IN_FIGURE
    return own if np.count_nonzero(own) >= FEWEST_POINTS else middle


@lru_cache(maxsize=8)
def _every_eighth_pixel(width: int, height: int) -> np.ndarray:
    """(n, 2) x and y of every eighth pixel."""
    y, x = np.mgrid[4:height:8, 4:width:8]
    return np.stack([x.ravel(), y.ravel()], axis=1)


def _median_point(points: np.ndarray) -> np.ndarray:
    """The median of points (n, 2) in both directions."""
    return np.array([median(points[:, 0]), median(points[:, 1])])


@dataclass(frozen=True)
class CellGrid:
    """Centres, in fractions of the frame, of a probe laid on each cell."""

    x: np.ndarray  # of each column
    y: np.ndarray  # of each row

    def centre_of_cell(self, where: tuple[int, int]) -> np.ndarray:
        """The centre of a row and column."""
        return np.array([self.x[where[1]], self.y[where[0]]])

    def cells_within_reach(self, centre: np.ndarray, reach: np.ndarray, closed: bool = False) -> tuple[slice, slice]:
        """Rows and columns nearer than `reach` to a place in both directions, or as near as that."""

        def slice_within_reach(places: np.ndarray, at: float, far: float) -> slice:
            first = int(places.searchsorted(at - far, "left" if closed else "right"))
            return slice(first, max(first, int(places.searchsorted(at + far, "right" if closed else "left"))))

        return slice_within_reach(self.y, centre[1], reach[1]), slice_within_reach(self.x, centre[0], reach[0])


class TargetSearch:
    """Looks for one target in frame after frame."""

    def __init__(self, rgb: np.ndarray, box: tuple[float, float, float, float]) -> None:
        self.size = np.array([box[2] - box[0], box[3] - box[1]])
        self.start = Spot(np.array([box[0] + box[2], box[1] + box[3]]) / 2, 1.0)
        self.frozen = False
        self._standing: dict[tuple[int, ...], float] = {}  # of the present frame
        self.remembered = -np.inf
        self.settled, self.travelled = self.start, 0.0  # where the surroundings were last seen around the target
        long_side = max(rgb.shape[:2])
        width, height = self.size * rgb.shape[1::-1]
        fitting = TARGET_PX / max(float(np.sqrt(width * height)), 1e-6) * long_side
        self.side = float(np.clip(fitting, 100, LONG_SIDE))  # of the picture in which the target has its first size
        self.sizes = [size for size in SIZES if self.side / size <= 1.05 * LONG_SIDE]
        per_cell = self.side / long_side / CELL
        columns, rows = max(3, round(float(width) * per_cell)), max(3, round(float(height) * per_cell))
        y, x = (np.cos(np.linspace(-1.1, 1.1, count)) for count in (rows, columns))
        self.weight = np.outer(y, x).astype(np.float32)  # less towards the rim, where a box holds background
        self.ring = round(rows * SURROUNDINGS), round(columns * SURROUNDINGS)

        self.whiten = Whitening.fit(describe_cells(resize_to_whole_cells(rgb, self.side)))
        self.views = self._whitened_views(rgb)
        at_first = self.views[self.sizes.index(1.0)]
        centre = self._frame_shares_to_cells(self.start.centre, at_first)
        piece = cut_window_of_cells(at_first.white, centre, rows, columns)
        self.window = Window(self.weight)
        self.looks = [Probe(piece, self.window)]
        self.common = self._best_similarity_away_from(self.looks[0], self.start)
        self.texture = float(np.sqrt((piece**2).sum(-1) * self.weight).sum() / self.weight.sum())
        around = Window(cells_around_box(at_first.white.shape, centre, (rows, columns), self.ring))
        self.surroundings = Probe(cut_window_of_cells(at_first.white, centre, *self.ring), around)
        self.figure = target_silhouette(at_first.white, centre, (rows, columns), self.ring)
        self.own_colours = OwnColours(self.figure)
        self.colours: list[tuple[np.ndarray, np.ndarray]] = []  # of each look, with their shares
        self._remember_colours(rgb, self.start)

    def _whitened_views(self, rgb: np.ndarray) -> list[CellView]:
        import cv2

        views = []
        picture = cv2.cvtColor(rgb, cv2.COLOR_RGB2RGBA)  # which `resize_to_whole_cells` would make of every size
        for size in self.sizes:  # each smaller picture is made from the one before
            picture = resize_to_whole_cells(picture, self.side / size)
            views.append(CellView(self.whiten(describe_cells(picture)), self.ring))
        return views

    def _frame_shares_to_cells(self, shares: np.ndarray, view: CellView) -> np.ndarray:
        """Place (x, y) in cells of a view, of one in shares of the frame's width and height."""
        return np.asarray(shares * view.white.shape[1::-1] - 0.5)

    def search_frame(self, rgb: np.ndarray, expected: Spot) -> Sighting:
        """Where the target, and its place, are in this frame; `expected` is where motion carried it."""
        self.views = self._whitened_views(rgb)
        self._standing.clear()
        trust = np.where(np.arange(len(self.looks)) < EARLY_LOOKS, 1.0, LATE_TRUST).astype(np.float32)
        looks, place_maps = [], []
        for view in self.views:
            maps = similarity_maps([*self.looks, self.surroundings], view)
            looks.append(maps[:-1] * trust[:, None, None])
            place_maps.append(maps[-1])
        best = [layer.max(0) for layer in looks]
        grids = [probe_centres(view, self.looks[0]) for view in self.views]
        near = -1.0, expected, -1.0, -1.0
        half = self.size * expected.scale / 2
        for grid, layer, size, each in zip(grids, best, self.sizes, looks, strict=True):
            close = grid.cells_within_reach(expected.centre, 1.2 * half)
            if abs(np.log(size / expected.scale)) < 0.51 and layer[close].size:
                weight_x = np.exp(-0.5 * ((grid.x[close[1]] - expected.centre[0]) / half[0]) ** 2)
                weight_y = np.exp(-0.5 * ((grid.y[close[0]] - expected.centre[1]) / half[1]) ** 2)
                score = layer[close] * (0.6 + 0.4 * np.outer(weight_y, weight_x))
                row, column = divmod(int(score.argmax()), score.shape[1])
                at = close[0].start + row, close[1].start + column
                if layer[at] > near[0]:
                    first, early = float(each[0, at[0], at[1]]), float(each[:EARLY_LOOKS, at[0], at[1]].max())
                    near = float(layer[at]), Spot(grid.centre_of_cell(at), size), first, early
        peak, level, where = highest_value_map_and_cell(best)
        peak_at = Spot(grids[level].centre_of_cell(where), self.sizes[level])
        place_grids = [probe_centres(view, self.surroundings) for view in self.views]
        place, best_view, there = highest_value_map_and_cell(place_maps)
        place_at = Spot(place_grids[best_view].centre_of_cell(there), self.sizes[best_view])
        return Sighting(
            *near,
            peak=peak,
            peak_at=peak_at,
            second=self._best_value_away_from(peak_at, best, grids),
            first=float(looks[level][0][where]),
            early=float(looks[level][:EARLY_LOOKS, where[0], where[1]].max()),
            place=place,
            place_at=place_at,
            place_second=self._best_value_away_from(place_at, place_maps, place_grids),
            at_place=self._best_value_near(best, grids, place_at),
        )

    def difference_from_surroundings(self, spot: Spot) -> float:
        """How far what is at a spot differs from what is around it, 0 to 1, cells of the silhouette counting most.

        0 where the spot is not in the picture, 1 where too little is around it to compare with.
        """
        level = self._view_of_nearest_size(spot)
        centre = self._frame_shares_to_cells(spot.centre, self.views[level])
        # The cells that are looked at are whole: spots less than a cell apart are one.
        key = level, *window_corner(centre, *self.figure.shape), *window_corner(centre, *self.ring)
        if key not in self._standing:
            cells = figure_strength_and_inside_mask(self.views[level].white, centre, self.figure.shape, self.ring)
            if cells is None:
                self._standing[key] = 1.0
            else:
                weight = self.figure * self.weight * cells[1]
                total = max(float((self.figure * self.weight).sum()), 1e-9)
                self._standing[key] = float((cells[0] * weight).sum() / total)
        return self._standing[key]

    def _view_of_nearest_size(self, spot: Spot) -> int:
        """The view in which the target at a spot has about its first size."""
        return int(np.argmin(np.abs(np.log(np.array(self.sizes) / spot.scale))))

    def best_half_similarity(self, spot: Spot) -> float:
        """Best similarity of an upper, lower, left or right half at a spot to the same half of a remembered look."""
        rows, columns = self.weight.shape
        view = self.views[self._view_of_nearest_size(spot)]
        centre = self._frame_shares_to_cells(spot.centre, view)
        if not 0 <= centre[0] < view.white.shape[1] or not 0 <= centre[1] < view.white.shape[0]:
            return -1.0
        pieces = np.stack([cut_window_of_cells(view.white, centre + step, rows, columns) for step in STEPS])
        theirs = sums_over_halves(np.einsum("pyxc,pyxc->pyx", pieces, pieces) * self.weight)
        own = np.stack([look.halves for look in self.looks])[:, None]
        looks = np.stack([look.weighted for look in self.looks])
        product = sums_over_halves(np.einsum("lyxc,pyxc->lpyx", looks, pieces))
        cosines = product / np.sqrt(np.maximum(own * np.maximum(theirs, FAINTEST * own), 1e-12))
        tells = own > 0.15 * own.sum(-1, keepdims=True)  # a half that holds little of the target says nothing
        return float(np.where(tells, cosines, -1.0).max())

    def _best_value_near(self, maps: list[np.ndarray], grids: list[CellGrid], spot: Spot) -> float:
        """Best value within a cell or a sixth of the target around a spot, at the nearest sizes."""
        best = -1.0
        for grid, values, size in zip(grids, maps, self.sizes, strict=True):
            if abs(np.log(size / spot.scale)) < 0.36:
                reach = np.maximum(1.0 / np.array(values.shape[::-1]), self.size * spot.scale / 6)
                close = values[grid.cells_within_reach(spot.centre, reach, closed=True)]
                best = max(best, float(close.max())) if close.size else best
        return best

    def _best_value_away_from(self, spot: Spot, maps: Sequence[np.ndarray], grids: list[CellGrid]) -> float:
        """Best value of a window that does not touch the one at the spot."""
        best = 0.0
        for grid, values, size in zip(grids, maps, self.sizes, strict=True):
            rows, columns = grid.cells_within_reach(spot.centre, self.size * (spot.scale + size) * 0.45, closed=True)
            beside = values[rows, : columns.start], values[rows, columns.stop :]
            sides = (values[: rows.start], values[rows.stop :], *beside)
            best = max([best, *(float(side.max()) for side in sides if side.size)])
        return best

    def _best_similarity_away_from(self, look: Probe, spot: Spot) -> float:
        """Best similarity of a look in the present frame, clear of the spot it was taken from."""
        maps = [similarity_maps([look], view)[0] for view in self.views]
        return self._best_value_away_from(spot, maps, [probe_centres(view, look) for view in self.views])

    def update_state_of_surroundings(self, spot: Spot, sighting: Sighting, camera: float) -> str:
        """Whether the target's surroundings are still around it, were covered where it stands, or were left behind."""
        off = np.abs(sighting.place_at.centre - spot.centre) / (self.size * spot.scale)
        if sighting.place >= max(SAME_LOOK, sighting.place_second + CLEAR) and bool((off < 0.25).all()):
            self.settled, self.travelled = spot, 0.0
            return IN_PLACE
        self.travelled += camera
        moved = np.abs(spot.centre - self.settled.centre) / self.size
        return COVERED if self.travelled < 0.05 and bool((moved < 0.1).all()) else ELSEWHERE

    def remember_look_if_trusted(
        self,
        rgb: np.ndarray,
        spot: Spot,
        seconds: float,
        trusted_flow_share: float,
        surroundings: str,
        sighting: Sighting,
    ) -> None:
        """Add the present look of the target; once there are many, in place of the oldest late one.

        A look that shares little with the older ones is the target only if its surroundings are
        still around it (a glass that fills); else something came in front of it. A look that fits
        elsewhere in the same frame as well says nothing (the edge of a passing wall).
        """
        in_place = surroundings == IN_PLACE
        rooted = sighting.near_early if len(self.looks) >= EARLY_LOOKS else sighting.near_first
        if self.frozen or seconds - self.remembered < LOOK_EVERY or not (rooted >= ROOTED or in_place):
            return
        if trusted_flow_share < (0.3 if in_place else 0.6):
            return
        self.remembered = seconds
        view = self.views[self._view_of_nearest_size(spot)]
        piece = cut_window_of_cells(view.white, self._frame_shares_to_cells(spot.centre, view), *self.weight.shape)
        look = Probe(piece, self.window)
        if self._best_similarity_away_from(look, spot) > max(COMMON, self.common + 0.1):
            return
        if len(self.looks) == EARLY_LOOKS + LATE_LOOKS:
            del self.looks[EARLY_LOOKS], self.colours[EARLY_LOOKS], self.own_colours.views[EARLY_LOOKS]
        self.looks.append(look)
        self._remember_colours(rgb, spot)

    def _remember_colours(self, rgb: np.ndarray, spot: Spot) -> None:
        colours = lab_colours_in_box(rgb, spot.box_of_target(self.size))
        self.colours.append((colours, colour_bin_shares(colours)))
        self.own_colours.add_view(colours)

    def colour_overlaps_with_looks(self, rgb: np.ndarray, box: np.ndarray) -> tuple[float, float]:
        """Overlap of the colours in a box with those of the remembered look that shares most.

        Of all of the box, and of the target's silhouette in it.
        """
        colours = lab_colours_in_box(rgb, box)
        return best_colour_overlap(colours, self.colours), self.own_colours.best_view_overlap(colours)


def probe_centres(view: CellView, probe: Probe) -> CellGrid:
    """Centres of the probe laid on each cell."""
    rows, columns = view.white.shape[:2]
    x, y = (np.arange(columns) + 0.5 + probe.off[0]) / columns, (np.arange(rows) + 0.5 + probe.off[1]) / rows
    return CellGrid(x, y)


def highest_value_map_and_cell(maps: list[np.ndarray]) -> tuple[float, int, tuple[int, int]]:
    """The highest value of all maps, its map, and its row and column there."""
    value, level, at = max((float(m.max()), k, int(m.argmax())) for k, m in enumerate(maps))
    return value, level, divmod(at, maps[level].shape[1])


def lab_colours_in_box(rgb: np.ndarray, box: np.ndarray) -> np.ndarray:
    """(576, 3) CIELAB, as OpenCV's bytes, of a grid of pixels in a box."""
    import cv2

    height, width = rgb.shape[:2]
    x0, y0, x1, y1 = (np.clip(box, 0, 1) * [width, height, width, height]).round().astype(int)
    patch = rgb[min(y0, height - 1) : max(y1, y0 + 1), min(x0, width - 1) : max(x1, x0 + 1)]
    grid = cv2.resize(np.ascontiguousarray(patch), (24, 24), interpolation=cv2.INTER_NEAREST)
    return np.asarray(cv2.cvtColor(grid, cv2.COLOR_RGB2LAB).reshape(-1, 3).astype(np.float32))


def best_colour_overlap(colours: np.ndarray, view_colours: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Common share of colours with those of the view that shares most, 0-1, also once a common tint is taken away.

    The shares of the views' colours, as `colour_bin_shares` makes them, stand beside them.
    """
    tints = np.clip(np.stack([there.mean(0) for there, _ in view_colours]) - colours.mean(0), -TINT, TINT)
    shares = np.stack([shares for _, shares in view_colours])
    mine = colour_bin_shares(np.concatenate([colours[None], colours + tints[:, None]]))
    return float(max(np.minimum(mine[0], shares).sum(-1).max(), np.minimum(mine[1:], shares).sum(-1).max()))


def colour_bin_shares(lab: np.ndarray) -> np.ndarray:
    """(..., 256) shares of 4 lightnesses x 8 x 8 hues and chromas, of (..., n, 3) colours."""
    light = np.clip(np.floor(lab[..., 0] / 64), 0, 3)
    # a and b of real scenes stay within +-64; grey, at 128, lies in the middle of a bin and not on its edge
    hues = np.clip(np.floor((lab[..., 1:] - 56) / 16), 0, 7)
    bins = (light * 64 + hues[..., 0] * 8 + hues[..., 1]).astype(int).reshape(-1, lab.shape[-2])
    counts = np.stack([np.bincount(row, minlength=256) for row in bins]) / lab.shape[-2]
    return counts.reshape(*lab.shape[:-2], 256)
