"""A second, closer look at where the target may be: is it the target, or only something like it?

The windows that `target_presence.py` slides over a frame are coarse: a small thing is described together with what is
around it. Here a few candidates of each frame are cut out, brought to one size and described again by the same network:
its best window, the place whose layout of edges and colours is most alike (`target_tracking.py`), and the one most
alike near the last place. Cuts of the first frame that are clear of the target are the null, the most alike among them.
What comes back is compared with the target as it was first seen, and with the views that were learnt until it was lost:
a glass that was filled in view comes back full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.observers.pictures import resize_by_halving, shrink_to_long_side
from revisit.observers.target_tracking import LONG_SIDE as LAYOUT_SIDE
from revisit.observers.target_tracking import Spot, TargetSearch, lab_colours_in_box

SIDE = 160  # pixels of a cut, whatever its proportions: one size, so that the network is prepared once
SAME_PLACE = 0.6  # overlap of two candidates of which one is enough
LEAST_PX = 4  # of a cut
MOST_VIEWS = 6
NEW_VIEW = (0.55, 0.85)  # likeness to the views so far: still the target, and not the same picture again
CLEAR = 0.12  # margin over the background of a view beyond doubt
NEAR = 0.1  # overlap with the place of the look before
LOST_LIKE, LOST_MARGIN, LOST_LOOKS = 0.4, 0.0, 2  # the target is lost after so many looks below either


class CloseUps:
    """Describes cuts around candidates, and compares them with the target of the first frame.

    Parameters
    ----------
    picture
        The first frame.
    box
        The target in it: x0, y0, x1, y1 in fractions.
    background
        (N, 4) boxes of the first frame that are clear of the target.
    """

    def __init__(self, picture: np.ndarray, box: np.ndarray, background: np.ndarray) -> None:
        self.layout = TargetSearch(shrink_to_long_side(picture, LAYOUT_SIDE), (box[0], box[1], box[2], box[3]))
        self.layout.frozen = True  # its views are not learnt here
        vectors = self._described(picture, [box, *background])
        self.views, self.nulls = [vectors[0]], vectors[1:]
        self.own_colours = self.layout.own_colours
        self.place, self.lost = box, 0

    def find_best_look_and_learn(self, picture: np.ndarray, window: np.ndarray) -> dict[str, Any]:
        """What `TargetLooks` says of the best candidate of a frame, seen closely; `window` is one of them."""
        size = self.layout.size
        centre = (self.place[:2] + self.place[2:]) / 2
        scale = float(np.clip(np.sqrt(np.prod(self.place[2:] - self.place[:2]) / np.prod(size)), 0.5, 2.5))
        small = shrink_to_long_side(picture, LAYOUT_SIDE)
        sighting = self.layout.search_frame(small, Spot(centre, scale))
        places = (spot.box_of_target(size) for spot in (sighting.near_at, sighting.peak_at))
        boxes = drop_overlapping_boxes([*places, window])
        vectors = self._described(picture, boxes)
        likeness = (vectors @ np.stack(self.views).T).max(axis=1)
        unlike = (vectors @ self.nulls.T).max(axis=1, initial=0.0)
        best = int((likeness - unlike).argmax())
        box = np.asarray(boxes[best], dtype=np.float64)
        self._keep_new_view(vectors[best], float(likeness[best]), float(likeness[best] - unlike[best]), box)
        self.place = box
        like, colours = float(vectors[best] @ self.views[0]), lab_colours_in_box(small, box)
        if len(self.views) > len(self.own_colours.views):
            self.own_colours.add_view(colours)
        colour = self.own_colours.best_view_overlap(colours)
        return {
            "close": like, "close_view": float(likeness[best]), "close_colour": colour,
            "close_unlike": float(unlike[best]), "close_box": box,
        }  # fmt: skip

    def _keep_new_view(self, vector: np.ndarray, likeness: float, margin: float, box: np.ndarray) -> None:
        """Keep this view of the target if it goes on from the look before; none is learnt once it was lost."""
        if self.lost >= LOST_LOOKS:
            return
        self.lost = self.lost + 1 if likeness < LOST_LIKE or margin < LOST_MARGIN else 0
        near = overlap_by_union_and_by_smaller(box, self.place)[0] > NEAR
        if NEW_VIEW[0] <= likeness < NEW_VIEW[1] and margin >= CLEAR and near and len(self.views) < MOST_VIEWS:
            self.views.append(vector)

    def _described(self, picture: np.ndarray, boxes: list[np.ndarray]) -> np.ndarray:
        """(N, channels) unit descriptors of cuts."""
        from revisit.networks import runtime
        from revisit.networks.efficientnet_lite import head_maps

        cuts = np.stack([resize_by_halving(crop_box(picture, box), SIDE, SIDE) for box in boxes])
        with runtime.inference():
            maps = runtime.to_numpy(head_maps(runtime.channels_first_on_device(cuts).float()))
        vectors = maps.mean(axis=(1, 2))
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def drop_overlapping_boxes(boxes: list[np.ndarray]) -> list[np.ndarray]:
    """The boxes without those that lie nearly where an earlier one does."""
    kept: list[np.ndarray] = []
    for box in boxes:
        if all(overlap_by_union_and_by_smaller(box, other)[0] < SAME_PLACE for other in kept):
            kept.append(box)
    return kept


def crop_box(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The part of a picture in a box of fractions, as far as it is inside, a few pixels at least."""
    size = np.array(picture.shape[1::-1])
    low = np.clip(np.floor(box[:2] * size).astype(int), 0, size - LEAST_PX)
    high = np.maximum(np.clip(np.ceil(box[2:] * size).astype(int), 0, size), low + LEAST_PX)
    return np.ascontiguousarray(picture[low[1] : high[1], low[0] : high[0]])


def overlap_by_union_and_by_smaller(boxes: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of boxes (..., 4) with a box: intersection over union, and over the smaller of both."""
    sides = np.minimum(boxes[..., 2:], box[2:]) - np.maximum(boxes[..., :2], box[:2])
    common = np.clip(sides, 0, None).prod(axis=-1)
    area, own = (boxes[..., 2:] - boxes[..., :2]).prod(axis=-1), float((box[2:] - box[:2]).prod())
    return common / np.maximum(area + own - common, 1e-9), common / np.maximum(np.minimum(area, own), 1e-9)
