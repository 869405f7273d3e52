"""Follow a thing through a clip with MobileSAM: its mask in each frame that is shown, or None where it is not seen.

A mask is taken where three opinions agree: the layout or the surroundings of `lite.target` stand out from clutter
there, MobileSAM cuts out something sharp that fills the proposed place, and a linear rule on its embedding, learnt
while the target is in view, finds it like the target and unlike what stood around it (docs/networks.md). So a target
that comes back in other colours is still followed; whether it is the same is for others to say. An empty place is not
a target. Frames may be far apart: nothing but an expected place is carried over from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from revisit.core.frames import resize_by_area_averaging
from revisit.observers.pictures import FLOW_SIDE, create_dis_flow, resize_by_area, shrunk_size, to_gray
from revisit.observers.target_closeups import overlap_by_union_and_by_smaller
from revisit.observers.target_tracking import (
    COVERED,
    LONG_SIDE,
    OTHER_LOOK,
    SAME_LOOK,
    Sighting,
    Spot,
    TargetSearch,
    resize_to_whole_cells,
    share_of_box_inside_frame,
    target_and_camera_motion,
)

if TYPE_CHECKING:
    from revisit.networks.mobile_sam import MobileSam, PictureEmbedding

Box = tuple[float, float, float, float]
STANDS_OUT = 0.12  # lead of a layout over clutter, as `lite.target` wants it before it finds a target again
LIKE_TARGET = 0.5  # of a rule that is 1 on the target and 0 around it: halfway
EXPECTED, SHARP = 0.75, 0.75  # overlap that the network expects, and stability: clear things have 0.9 and more
FILLS = 0.5  # overlap of a mask's box and the place proposed: a thing of the target's size
THERE = 0.3  # overlap of two boxes that mean one place
CLEARLY = 0.9  # expected overlap and sharpness of a larger thing, and share of the smaller one in it
MOST_GROWN = 4.0  # times the area: a target that comes twice as near; more is what it stands on
SAME_PLACE = 0.9  # overlap of two boxes for which one mask will do
CARRIED = 0.5  # share of the target whose motion survives the way back: it can be followed by motion alone
IN_VIEW = 0.2  # share of a box inside the frame that is worth a look
RIDGE = 1e-2  # of the average variance: steadies a rule of 257 numbers learnt from few cells of a small target
STORED_SIDE = 512  # longer side of the masks


@dataclass(frozen=True)
class Cut:
    """A thing cut out of a frame where a place was proposed."""

    mask: np.ndarray  # (height, width) bool
    expected: float  # overlap that the network expects of it, 0-1
    sharp: float  # stability of its edge, 0-1
    fills: float  # overlap of its box and the proposed one, 0-1


class LikeTarget:
    """A rule on cells of embeddings: about 1 on the target, 0 elsewhere (ridge regression, both weighing half)."""

    def __init__(self, channels: int) -> None:
        self._products = np.zeros((channels + 1, channels + 1))
        self._sums = np.zeros(channels + 1)
        self._rule = np.zeros(channels + 1)

    def add_frame(self, cells: np.ndarray, coverage: np.ndarray) -> None:
        """Add a frame: (N, channels), and the share of each cell that the target covers."""
        own = mostly_covered_cells(coverage)
        other = coverage < 0.1  # cells on its edge are neither
        if not own.any() or not other.any():
            return
        weight = own * (0.5 / own.sum()) + other * (0.5 / other.sum())
        rows = np.c_[cells, np.ones(len(cells))].astype(float)
        self._products += rows.T @ (rows * weight[:, None])
        self._sums += rows.T @ (weight * own)
        steady = RIDGE * np.trace(self._products) / len(self._sums) * np.eye(len(self._sums))
        self._rule = np.linalg.solve(self._products + steady, self._sums)

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        return np.asarray(cells @ self._rule[:-1] + self._rule[-1])


class Tracker:
    """Follows one thing: made with the first frame and its box there, then shown frames in order."""

    def __init__(self, net: MobileSam, rgb: np.ndarray, box: Box, embedding: PictureEmbedding) -> None:
        self.net = net
        self._flow = create_dis_flow()
        small = shrink_to_long_side(rgb, LONG_SIDE)
        self.search = TargetSearch(small, box)
        self.spot = self.search.start
        self._before = _gray_for_flow(small)
        self._frames = 1
        cut = segment_things_in_boxes(net, embedding, [_clipped_box_of_spot(self.spot, self.search)])[0]
        self.lost = not cut.mask.any()  # in the frame seen last
        self.mask: np.ndarray | None = None if self.lost else cut.mask
        self.score = 0.0 if self.lost else cut.expected  # that this mask is the target's, 0-1
        x0, y0, x1, y1 = bounding_box_of_mask(cut.mask) if cut.mask.any() else box
        self._size = max((x1 - x0) * (y1 - y0), 1e-6)  # of the box around the mask
        self._off = self.spot.centre - np.array([(x0 + x1) / 2, (y0 + y1) / 2])  # where the given box lies from it
        self._rule = LikeTarget(int(embedding.features_without_padding.shape[0]))
        self._rule.add_frame(unit_cell_features(embedding), mask_coverage_of_cells(cut.mask, embedding))

    def next_mask(self, rgb: np.ndarray, embedding: PictureEmbedding) -> np.ndarray | None:
        """The target's mask in the next frame, its longer side `STORED_SIDE` at most; None where it is not seen."""
        small = shrink_to_long_side(rgb, LONG_SIDE)
        grey = _gray_for_flow(small)
        there, back = self._flow.calc(self._before, grey, None), self._flow.calc(grey, self._before, None)
        box = self.spot.box_of_target(self.search.size)
        moved = target_and_camera_motion(self._before, grey, there, back, box, self.lost)
        self._before = grey
        self._frames += 1
        expected = Spot(self.spot.centre + moved.shift, float(np.clip(self.spot.scale * moved.growth, 0.4, 4.0)))
        sight = self.search.search_frame(small, expected)
        carried = not self.lost and moved.flow >= CARRIED
        best = self._find_spot_cut_and_sureness(sight, expected, carried, embedding)
        self.lost = best is None
        self.search.frozen = self.search.frozen or self.lost
        if best is None:
            self.spot, self.mask, self.score = expected, None, 0.0
            return None
        self.spot, cut, self.score = best
        self.mask = cut.mask
        if not self.search.frozen:
            self._rule.add_frame(unit_cell_features(embedding), mask_coverage_of_cells(cut.mask, embedding))
            self._remember_changed_look(small, sight, moved.camera)
        return cut.mask

    def _find_spot_cut_and_sureness(
        self, sight: Sighting, expected: Spot, carried: bool, embedding: PictureEmbedding
    ) -> tuple[Spot, Cut, float] | None:
        """Where the target is, its mask, and how sure that is."""
        like = self._rule(unit_cell_features(embedding))
        grid = like.reshape(tuple(embedding.features_without_padding.shape[1:]))
        centre = centre_most_like_target(grid, self.search.size * expected.scale)
        trusted = [expected] * carried
        trusted += [sight.near_at] * (sight.near - sight.second >= STANDS_OUT)
        trusted += [sight.peak_at] * (sight.peak - sight.second >= STANDS_OUT)
        trusted += [sight.place_at] * (sight.place - sight.place_second >= STANDS_OUT)
        places = [_clipped_box_of_spot(spot, self.search) for spot in trusted]
        spots = [*trusted, sight.near_at, sight.peak_at, sight.place_at, Spot(centre, expected.scale)]
        spots = self._distinct_spots_in_view(spots)
        cuts = segment_things_in_boxes(self.net, embedding, [_clipped_box_of_spot(spot, self.search) for spot in spots])
        best, most = None, 0.0
        for spot, cut in zip(spots, cuts, strict=True):
            if not cut.mask.any() or cut.expected < EXPECTED or cut.sharp < SHARP or cut.fills < FILLS:
                continue
            likeness = float(like[mostly_covered_cells(mask_coverage_of_cells(cut.mask, embedding))].mean())
            around = bounding_box_of_mask(cut.mask)
            if likeness < LIKE_TARGET or max((box_iou(around, place) for place in places), default=0.0) < THERE:
                continue
            sure = min(1.0, likeness) * cut.expected * cut.sharp
            if sure * cut.fills > most:  # a sharp part of the target is worth less than all of it
                best, most = (spot, cut, sure), sure * cut.fills
        return None if best is None else self._extend_to_larger_thing(*best, like, embedding)

    def _extend_to_larger_thing(
        self, spot: Spot, cut: Cut, sure: float, like: np.ndarray, embedding: PictureEmbedding
    ) -> tuple[Spot, Cut, float]:
        """The same, or the larger thing that it is part of: a target that has come nearer outgrows its box."""
        for whole in segment_things_at_mask_centre(self.net, embedding, cut.mask):
            covered = float(whole.mask[cut.mask].mean())
            larger = float(whole.mask.sum() / cut.mask.sum())
            likeness = float(like[mostly_covered_cells(mask_coverage_of_cells(whole.mask, embedding))].mean())
            clear = min(whole.expected, whole.sharp) >= CLEARLY
            if clear and covered >= CLEARLY and 1.1 < larger <= MOST_GROWN and likeness >= LIKE_TARGET:
                cut, sure = whole, min(1.0, likeness) * whole.expected * whole.sharp
                break
        x0, y0, x1, y1 = bounding_box_of_mask(cut.mask)
        if min(x0, y0) > 0 and max(x1, y1) < 1:  # all of it is in the frame, so its size is known
            scale = float(np.sqrt((x1 - x0) * (y1 - y0) / self._size))
            spot = Spot(np.array([(x0 + x1) / 2, (y0 + y1) / 2]) + self._off * scale, float(np.clip(scale, 0.4, 4.0)))
        return spot, cut, sure

    def _distinct_spots_in_view(self, spots: list[Spot]) -> list[Spot]:
        """Those worth a look: inside the frame, and each place once."""
        distinct: list[Spot] = []
        for spot in spots:
            box = _clipped_box_of_spot(spot, self.search)
            new = all(box_iou(box, _clipped_box_of_spot(other, self.search)) < SAME_PLACE for other in distinct)
            if new and share_of_box_inside_frame(spot.box_of_target(self.search.size)) > IN_VIEW:
                distinct.append(spot)
        return distinct

    def _remember_changed_look(self, small: np.ndarray, sight: Sighting, camera: float) -> None:
        """Let the search know how the target looks now, where it changes in view."""
        now, near = (_clipped_box_of_spot(spot, self.search) for spot in (self.spot, sight.near_at))
        if box_iou(now, near) < 0.8:
            return
        setting = self.search.update_state_of_surroundings(self.spot, sight, camera)
        whole = share_of_box_inside_frame(self.spot.box_of_target(self.search.size)) > 0.9
        if whole and SAME_LOOK < sight.near < OTHER_LOOK and setting != COVERED:
            self.search.remember_look_if_trusted(small, self.spot, float(self._frames), 1.0, setting, sight)


def segment_things_in_boxes(net: MobileSam, embedding: PictureEmbedding, boxes: list[Box]) -> list[Cut]:
    """The thing in each box: of the network's four masks the one that it trusts and that fills the box best."""
    if not boxes:
        return []
    answers = net.predict_masks(embedding, boxes=boxes, which="all")
    coarse, sharp, expected = answers.coarse_binary_masks(), answers.stability_scores().tolist(), answers.iou.tolist()
    fills = [
        [box_iou(bounding_box_of_mask(mask), box) for mask in masks] for masks, box in zip(coarse, boxes, strict=True)
    ]
    best = [int(np.argmax(np.multiply(trust, fill))) for trust, fill in zip(expected, fills, strict=True)]
    masks = answers.select_one_per_prompt(best).binary_masks_at(shrunk_size(*embedding.size, STORED_SIDE))[:, 0]
    return [
        Cut(mask, min(1.0, expected[k][j]), sharp[k][j], fills[k][j])
        for k, (j, mask) in enumerate(zip(best, masks, strict=True))
    ]


def segment_things_at_mask_centre(net: MobileSam, embedding: PictureEmbedding, mask: np.ndarray) -> list[Cut]:
    """The things that a point in the middle of a mask may mean, the largest last."""
    import cv2

    deep = cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 3)[1:-1, 1:-1]
    row, column = divmod(int(deep.argmax()), mask.shape[1])
    centre = (column + 0.5) / mask.shape[1], (row + 0.5) / mask.shape[0]
    answers = net.predict_masks(embedding, points=[[centre]], which="three")
    masks = answers.binary_masks_at((mask.shape[0], mask.shape[1]))[0]
    numbers = zip(masks, answers.iou[0].tolist(), answers.stability_scores()[0].tolist(), strict=True)
    cuts = [Cut(one, min(1.0, expected), sharp, 1.0) for one, expected, sharp in numbers if one.any()]
    return sorted(cuts, key=lambda cut: int(cut.mask.sum()))


def unit_cell_features(embedding: PictureEmbedding) -> np.ndarray:
    """(cells, channels) of unit length."""
    from revisit.networks import runtime

    features = runtime.to_numpy(embedding.features_without_padding)
    cells = features.reshape(len(features), -1).T
    return np.asarray(cells / np.maximum(np.linalg.norm(cells, axis=1, keepdims=True), 1e-9))


def mask_coverage_of_cells(mask: np.ndarray, embedding: PictureEmbedding) -> np.ndarray:
    """(cells,) share of each that a mask covers."""
    rows, columns = (int(side) for side in embedding.features_without_padding.shape[1:])
    return resize_by_area(mask.astype(np.float32), columns, rows).ravel()


def mostly_covered_cells(coverage: np.ndarray) -> np.ndarray:
    """(cells,) which cells a thing covers by half, or as far as any where it is smaller than a cell."""
    return np.asarray(coverage > min(0.5, float(coverage.max()) * 0.99))


def centre_most_like_target(likeness_map: np.ndarray, size: np.ndarray) -> np.ndarray:
    """x and y, as fractions, of the middle of a thing of this size whose cells are most like the target."""
    import cv2

    sigma_x, sigma_y = np.maximum(size * likeness_map.shape[::-1], 1.0) / 3
    soft = cv2.GaussianBlur(
        np.clip(likeness_map, 0, 1).astype(np.float32), (0, 0), sigmaX=float(sigma_x), sigmaY=float(sigma_y)
    )
    row, column = divmod(int(soft.argmax()), likeness_map.shape[1])
    return np.array([(column + 0.5) / likeness_map.shape[1], (row + 0.5) / likeness_map.shape[0]])


def bounding_box_of_mask(mask: np.ndarray) -> Box:
    """Fractions x0, y0, x1, y1 around a mask; nothing at all around an empty one."""
    height, width = mask.shape
    rows, columns = slices_around_mask(mask)
    return columns.start / width, rows.start / height, columns.stop / width, rows.stop / height


def slices_around_mask(mask: np.ndarray) -> tuple[slice, slice]:
    """Rows and columns around a mask; empty around an empty one."""
    import cv2

    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return slice(y, y + height), slice(x, x + width)


def box_iou(one: Box, other: Box) -> float:
    """Intersection over union of two boxes."""
    return float(overlap_by_union_and_by_smaller(np.array(one), np.array(other))[0])


def shrink_to_long_side(rgb: np.ndarray, long_side: int) -> np.ndarray:
    """The picture with its longer side reduced to `long_side`; never enlarged."""
    return rgb if max(rgb.shape[:2]) <= long_side else resize_by_area_averaging(rgb, long_side)


def _clipped_box_of_spot(spot: Spot, search: TargetSearch) -> Box:
    x0, y0, x1, y1 = np.clip(spot.box_of_target(search.size), 0, 1).tolist()
    return x0, y0, x1, y1


def _gray_for_flow(small: np.ndarray) -> np.ndarray:
    return to_gray(resize_to_whole_cells(small, FLOW_SIDE))
