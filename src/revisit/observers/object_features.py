"""Descriptors of the target in each frame that shows it: a network on the target, cut out along its mask.

`small.object_features` is EfficientNet-Lite0 on the masks of `small.masks`, on the network's neutral level. A view that
the frame's edge cuts off is left out where less than half of the target's usual area remains: half a cup is described
as something else than a cup. `paper.object_features` is DINOv2 on masks by SAM 2.1, on ImageNet's mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, Target, observer
from revisit.evidence.target import ObjectFeatures
from revisit.observers.mask_tracking import bounding_box_of_mask
from revisit.observers.masks import (
    AT_MOST,
    DINO,
    SAM2,
    THRESHOLD,
    Follower,
    evenly_spread_frame_numbers,
    track_target_masks,
)
from revisit.observers.rows import columns_of_rows

DINOV2 = "dinov2-base"
LEAST_SHARE = 0.001  # of the frame: a smaller mask has hardly a patch of the network's
SIDE = 224
GREY = 127  # the level that the network takes for nothing
HALF = 0.5
AT_ONCE = 16
MAKER = "efficientnet-lite0 on masks by mobile-sam"


@observer(
    id="small.object_features", version=2, kind="sequence", makes=ObjectFeatures, inputs=("target",),
    weights=("mobile-sam", "efficientnet-lite0"), choose=evenly_spread_frame_numbers,
)  # fmt: skip
def object_features_by_efficientnet(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> FrameStream:
    """Descriptors of the target where it is seen, from its box in the first frame."""
    pictures: dict[int, np.ndarray] = {}
    track = yield from track_target_masks(target.box, pictures=pictures)
    masks = {int(number): mask for number, mask in zip(track.index, track.masks, strict=True) if mask is not None}
    whole = is_whole_view(list(masks.values()))
    views = [number for number, good in zip(masks, whole.tolist(), strict=True) if good]
    vectors = unit_object_descriptors([cut_square_on_grey(pictures[number], masks[number]) for number in views])
    return ObjectFeatures(track.index, np.array(views, dtype=np.int64), vectors, MAKER)


@observer(
    id="paper.object_features", version=2, kind="sequence", makes=ObjectFeatures, inputs=("target_or_name",),
    weights=(SAM2, DINO, DINOV2), choose=evenly_spread_frame_numbers,
)  # fmt: skip
def object_features_by_dino(
    clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST, threshold: float = THRESHOLD
) -> FrameStream:
    """DINOv2 (base) vectors of the target, which SAM 2.1 follows from the first frame as in `paper.masks`."""
    from revisit.networks import runtime

    follower = Follower(sought, threshold)
    index: list[int] = []
    rows: list[tuple[int, np.ndarray]] = []
    while (frame := (yield)) is not None:
        with runtime.inference():
            picture = runtime.channels_first_on_device([frame.rgb])
            mask = follower.next_mask(picture, (clip.height, clip.width))
            if mask.mean() >= LEAST_SHARE:
                rows.append((frame.index, dino_cls_of_masked_object(picture, mask)))
        index.append(frame.index)
    frames, vectors = columns_of_rows(rows, 2)
    table = np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
    maker = f"{DINOV2} on masks by {follower.maker}"
    return ObjectFeatures(np.array(index, dtype=np.int64), np.array(frames, dtype=np.int64), table, maker)


def unit_object_descriptors(squares: Sequence[np.ndarray]) -> np.ndarray:
    """(N, 1280) unit descriptors of pictures of things, as `cut_square_on_grey` makes them."""
    import torch

    from revisit.networks import preprocessing as shapes
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import unit_patch_and_picture_descriptors

    parts = [np.zeros((0, 1280), np.float32)]
    with runtime.inference():
        for some in runtime.split_into_batches(squares, AT_ONCE):
            levels = [shapes.resize_levels(runtime.channels_first_on_device([square]), (SIDE, SIDE)) for square in some]
            parts.append(runtime.to_numpy(unit_patch_and_picture_descriptors(torch.cat(levels))[1]))
    return np.concatenate(parts)


def cut_square_on_grey(rgb: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A square picture of what the mask covers, on grey."""
    import cv2

    height, width = rgb.shape[:2]
    if mask.shape != (height, width):
        mask = cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST) > 0
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    piece = np.where(mask[part][..., None], rgb[part], np.uint8(GREY))
    side = max(piece.shape[:2])
    square = np.full((side, side, 3), GREY, np.uint8)
    top, left = (side - piece.shape[0]) // 2, (side - piece.shape[1]) // 2
    square[top : top + piece.shape[0], left : left + piece.shape[1]] = piece
    return square


def is_whole_view(masks: Sequence[np.ndarray]) -> np.ndarray:
    """(N,) whether a mask shows the target: neither a few pixels of it, nor what the frame's edge leaves of it."""
    area = np.array([mask.mean() for mask in masks])
    cut = np.array([mask[[0, -1]].any() or mask[:, [0, -1]].any() for mask in masks], dtype=bool)
    enough = area >= LEAST_SHARE
    whole = enough & ~cut
    if not enough.any():
        return enough
    usual = float(np.median(area[whole if whole.any() else enough]))
    return np.asarray(whole | (enough & (area >= HALF * usual)))


def dino_cls_of_masked_object(picture: Any, mask: np.ndarray) -> np.ndarray:
    """(D,) CLS token of what the mask covers in a picture (1, 3, H, W) of levels."""
    import torch

    from revisit.networks import dino, runtime
    from revisit.networks.preprocessing import IMAGENET_MEAN, normalise_by_channel, resize_levels

    height, width = mask.shape
    x0, y0, x1, y1 = np.rint(np.multiply(bounding_box_of_mask(mask), (width, height) * 2)).astype(int)
    own = torch.from_numpy(np.ascontiguousarray(mask[y0:y1, x0:x1])).to(picture.device)
    mean = torch.tensor(IMAGENET_MEAN, device=picture.device)[:, None, None] * 255
    crop = torch.where(own, picture[0, :, y0:y1, x0:x1].float(), mean)[None]
    cls, _ = dino.network(DINOV2)(normalise_by_channel(resize_levels(crop, (SIDE, SIDE), "bicubic")))
    return runtime.to_numpy(cls[0])
