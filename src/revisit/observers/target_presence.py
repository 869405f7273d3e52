"""Whether a target is in a frame, as EfficientNet-Lite0 sees it: like the target, and unlike what was around it.

Windows of about the target's size slide over a frame. Likeness to the target alone says little: glass in front of a
white wall is like the wall. So the windows of the first frame that are clear of the target are the null. Nothing is
followed from frame to frame; a target that changes in view is known by further views (docs/target-gate.md). It says
"something like it is here", and not that it is the same individual; a closer look at the best candidates of each frame
(`target_closeups.py`) says more about that.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, Target, observer
from revisit.evidence.target import TargetLooks
from revisit.observers.rows import evidence_arrays_of_rows
from revisit.observers.target_closeups import CloseUps, overlap_by_union_and_by_smaller
from revisit.observers.target_tracking import best_colour_overlap, colour_bin_shares, lab_colours_in_box

WEIGHTS = ("efficientnet-lite0",)
LONG_SIDE, CELL = 640, 32  # pixels; a longer side of 448 is too coarse
FEWEST, MOST, PER_SECOND = 32, 64, 4.0  # frames looked at
GROUP = 8  # frames that a GPU sees together
SCALES, ASPECTS = (0.6, 0.85, 1.2, 1.7), (0.71, 1.0, 1.41)  # of a window against the target's first box
INSIDE = 0.5  # share of a window that must be in the frame
APART = 0.15  # overlap, by the smaller of two windows, up to which they show different things
NULLS = 128  # windows of background kept, as different from each other as there are
CLOSE_NULLS = 16  # of them seen closely: the one most like the target, and the most different ones
MOST_VIEWS = 7
CLEAR = 0.15  # margin of a view beyond doubt
NEW_VIEW = (0.55, 0.85)  # likeness to the views so far: still the target, and not the same picture again
ROOTED = 0.45  # likeness to the first view that every view needs; what drifted off the target had 0.37
NEAR = 0.2  # overlap with where it was one look before
GONE_LIKE, GONE_MARGIN, FAR = 0.4, 0.08, -0.05  # the target is lost for this frame: see metrics/target_rules.py
EDGE = 0.03  # of the frame: a box that near to a side is cut by it


def frame_numbers_to_look_at(count: int, fps: float, *inputs: object, **params: object) -> np.ndarray:
    """Frames to look at: 4 a second, 32 at least and 64 at most, evenly spread, the first and the last among them."""
    total = int(np.clip(np.ceil(PER_SECOND * count / max(fps, 1e-6)), FEWEST, MOST))
    return np.unique(np.linspace(0, count - 1, min(total, count)).round().astype(np.int64))


@observer(
    id="small.looks", version=4, kind="sequence", makes=TargetLooks, size=LONG_SIDE, inputs=("target",),
    choose=frame_numbers_to_look_at, weights=WEIGHTS,
)  # fmt: skip
def target_looks(clip: ClipInfo, target: Target) -> FrameStream:
    """The window of each looked-at frame that is most like the target and least like what was around it at first."""
    frames = yield from collect_shrunk_frames()
    best_windows, search = best_windows_and_search(frames, target.box)
    close_ups = CloseUps(frames[0].rgb, np.array(target.box), search.null_boxes)
    rows = []
    for frame, window in zip(frames, best_windows, strict=True):
        close = close_ups.find_best_look_and_learn(frame.rgb, window.box)
        rows.append({**window._asdict(), **close, "index": frame.index, "seconds": frame.time})
    return TargetLooks(
        **evidence_arrays_of_rows(TargetLooks, rows),
        lookalike=search.lookalike,
        views=len(search.views),
        maker=WEIGHTS[0],
    )


class WindowLook(NamedTuple):
    """The window of a frame that is most like the target and least like its background; see `TargetLooks`."""

    like: float
    unlike: float
    first: float
    before: float
    colour: float
    box: np.ndarray


def collect_shrunk_frames() -> Generator[None, Any, list[Frame]]:
    """The frames that are sent, at the size at which they are looked at: for `yield from` in an observer."""
    frames = []
    while (frame := (yield)) is not None:
        frames.append(Frame(frame.index, frame.time, frame.at(LONG_SIDE)))
    return frames


def best_windows_and_search(
    frames: list[Frame], box: tuple[float, float, float, float]
) -> tuple[list[WindowLook], WindowSearch]:
    """The best window of each frame, and the search that found them."""
    pictures = [frame.rgb for frame in frames]
    maps = head_maps_of_pictures(pictures)
    first = next(maps)
    search = WindowSearch(pictures[0], first, np.array(box))
    return [
        search.find_best_window_and_learn(*shown) for shown in zip(pictures, chain([first], maps), strict=True)
    ], search


def head_maps_of_pictures(pictures: list[np.ndarray]) -> Iterator[np.ndarray]:
    """(rows, columns, 1280) of each picture."""
    from revisit.networks import preprocessing as shapes
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import head_maps

    for some in runtime.split_into_batches(pictures, 1 if runtime.device() == "cpu" else GROUP):
        with runtime.inference():
            levels = runtime.channels_first_on_device(some)
            size = shapes.size_with_long_side(tuple(levels.shape[-2:]), LONG_SIDE)
            size = shapes.nearest_size_of_multiples(size, CELL)
            yield from runtime.to_numpy(head_maps(shapes.resize_levels(levels, size)))


class WindowSearch:
    """Looks for one target in pictures that are described cell by cell."""

    def __init__(self, picture: np.ndarray, cells: np.ndarray, box: np.ndarray) -> None:
        self.at = window_positions(cells.shape[:2], box[2:] - box[:2])
        self.boxes = self.at[:, [1, 0, 3, 2]] / np.array([cells.shape[1], cells.shape[0]] * 2)
        self.views = [unit_descriptor_of_box(cells, box)]
        clear = np.flatnonzero(overlap_by_union_and_by_smaller(self.boxes, box)[1] < APART)
        around = unit_descriptors_of_windows(cells, self.at[clear])
        picked = most_different_rows(around, NULLS)
        self.nulls = around[picked]
        likeness = self.nulls @ self.views[0]
        self.lookalike = float(likeness.max(initial=0.0))
        boxes = self.boxes[clear[picked]]
        self.null_boxes = np.concatenate([boxes[np.argsort(-likeness)[:1]], boxes[: CLOSE_NULLS - 1]])
        colours = lab_colours_in_box(picture, box)
        self.colours = [(colours, colour_bin_shares(colours))]  # of each view, with their shares
        self.cut = sides_that_box_reaches(box, EDGE)  # sides of the frame that cut the target off at first
        self.place, self.before = box, self.views[0]  # of the look before
        self.lost = 0

    def find_best_window_and_learn(self, picture: np.ndarray, cells: np.ndarray) -> WindowLook:
        """What the best window of a picture is like."""
        descriptors = unit_descriptors_of_windows(cells, self.at)
        like = (descriptors @ np.stack(self.views).T).max(axis=1)
        unlike = (descriptors @ self.nulls.T).max(axis=1, initial=0.0)
        best = int((like - unlike).argmax())
        descriptor, box = descriptors[best], self.boxes[best]
        colours = lab_colours_in_box(picture, box)
        colour = min(1.0, best_colour_overlap(colours, self.colours))
        near = overlap_by_union_and_by_smaller(self.boxes, self.place)[0] > NEAR
        before = float((descriptors[near] @ self.before).max(initial=0.0))
        margin = float(like[best] - unlike[best])
        whole = bool(near[best]) and not (sides_that_box_reaches(box, 1e-6) & ~self.cut).any()
        self._keep_view_beyond_doubt(descriptor, colours, float(like[best]), margin, whole)
        self.place, self.before = box, descriptor
        first = float(descriptor @ self.views[0])
        return WindowLook(like[best], unlike[best], first, before, colour, box)

    def _keep_view_beyond_doubt(
        self, descriptor: np.ndarray, colours: np.ndarray, like: float, margin: float, whole: bool
    ) -> None:
        """Keep this view of the target if it is beyond doubt; `whole` is one near where the target was, and not cut."""
        if self.lost >= 2:  # from two looks on it was away: what is seen later is to be compared, not learnt
            return
        is_gone = margin <= FAR or (like < GONE_LIKE and margin < GONE_MARGIN)
        self.lost = self.lost + 1 if is_gone else 0
        new = NEW_VIEW[0] <= like < NEW_VIEW[1] and margin >= CLEAR and float(descriptor @ self.views[0]) >= ROOTED
        if new and whole and len(self.views) < MOST_VIEWS and self.lost < 2:
            self.views.append(descriptor)
            self.colours.append((colours, colour_bin_shares(colours)))


def window_positions(grid_shape: tuple[int, int], target_size: np.ndarray) -> np.ndarray:
    """(N, 4) top, left, bottom, right, in cells, of windows for a target of `target_size` (width, height)."""
    rows, columns = grid_shape
    boxes: set[tuple[int, int, int, int]] = set()
    for scale in SCALES:
        for aspect in ASPECTS:
            width = max(1, round(float(target_size[0]) * scale * aspect**0.5 * columns))
            height = max(1, round(float(target_size[1]) * scale / aspect**0.5 * rows))
            if width > 1.2 * columns + 1 or height > 1.2 * rows + 1:
                continue
            least = INSIDE * min(width, columns) * min(height, rows)
            for left in range(-(width // 2), columns - (width - width // 2) + width // 2 + 1, max(1, width // 3)):
                for top in range(-(height // 2), rows - (height - height // 2) + height // 2 + 1, max(1, height // 3)):
                    x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + width, columns), min(top + height, rows)
                    if x1 > x0 and y1 > y0 and (x1 - x0) * (y1 - y0) >= least:
                        boxes.add((y0, x0, y1, x1))
    return np.array(sorted(boxes), dtype=np.int64).reshape(-1, 4)


def unit_descriptors_of_windows(cells: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """(N, channels) unit descriptors of windows: the mean of their cells."""
    sums = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1, cells.shape[2]), np.float32)
    sums[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    top, left, bottom, right = windows.T
    return _unit_rows(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def unit_descriptor_of_box(cells: np.ndarray, box: np.ndarray) -> np.ndarray:
    """(channels,) unit descriptor of a box of fractions, whose cells count by how far they are in it."""
    inside = []
    for low, high, count in ((box[1], box[3], cells.shape[0]), (box[0], box[2], cells.shape[1])):
        edges = np.arange(count + 1)
        inside.append(np.clip(np.minimum(edges[1:], high * count) - np.maximum(edges[:-1], low * count), 0, 1))
    return _unit_rows(np.einsum("y,x,yxc->c", *inside, cells)[None])[0]


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def sides_that_box_reaches(box: np.ndarray, within: float) -> np.ndarray:
    """(4,) which sides of the frame a box reaches."""
    return np.array([box[0] <= within, box[1] <= within, box[2] >= 1 - within, box[3] >= 1 - within])


def most_different_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """Numbers of so many of the unit rows, each in turn the one least like those chosen before."""
    if len(rows) <= count:
        return np.arange(len(rows))
    picked, nearest = [0], rows @ rows[0]
    while len(picked) < count:
        picked.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, rows @ rows[picked[-1]])
    return np.array(picked)
