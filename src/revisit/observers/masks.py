"""Masks of the target, from where it is in the first frame: by MobileSAM and a tracker of ours, or by SAM 2.1.

Where a case names no box, `when_unknown` says what the former does: `skip` (nothing is found, and `maker` says why) or
`saliency` (the largest thing that U2-Net finds salient in the first frame). A target of which only a name is known is
looked for by Grounding DINO in the first frame, for SAM 2.1 to follow. Frames between those that are asked for are not
shown to the networks. See docs/networks.md.

Descriptors of the target in each frame that shows it are those of a network on the target, cut out along its mask.
`small.object_features` is EfficientNet-Lite0 on the masks of `small.masks`, on the network's neutral level. A view that
the frame's edge cuts off is left out where less than half of the target's usual area remains: half a cup is described
as something else than a cup. `paper.object_features` is DINOv2 on masks by SAM 2.1, on ImageNet's mean.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import (
    ClipInfo,
    Frame,
    FrameStream,
    Target,
    UsageError,
    every,
    observer,
    register_observer_per_network,
)
from revisit.evidence.target import ObjectFeatures, ObjectMasks
from revisit.networks import runtime
from revisit.observers.mask_tracking import STORED_SIDE, Box, Tracker, slices_around_mask
from revisit.observers.pictures import feed_frames_in_groups, shrunk_size
from revisit.observers.rows import columns_of_rows

if TYPE_CHECKING:
    from revisit.networks.mobile_sam import MobileSam, PictureEmbedding
    from revisit.networks.sam2 import Sam2Tracker

MOBILE_SAM, U2NETP = "mobile-sam", "u2netp"
SAM2, DINO = "sam2.1-hiera-tiny", "grounding-dino-tiny"
AT_MOST = 32  # frames that MobileSAM looks at
GROUP = 8  # frames that the encoder sees together
KEPT = 2 * GROUP  # embeddings kept for the next observer of the same frames, 4 MB each
BOX, SALIENT = "box in the first frame", "what is salient in the first frame"
NOTHING = "nothing: no box was given, and no salient object was found in the first frame"
SKIP, SALIENCY = "skip", "saliency"
SAM2_LARGE = "sam2.1-hiera-large"
AT_MOST_BY_SAM2 = 160  # so that every frame of 800 has a mask no more than two frames away
THRESHOLD = 0.35  # as published with Grounding DINO
# Of descriptors:
DINOV2 = "dinov2-base"
LEAST_SHARE = 0.001  # of the frame: a smaller mask has hardly a patch of the network's
SIDE = 224  # pixels of the square that a network describes
GREY = 127  # the level that the network takes for nothing
HALF = 0.5
AT_ONCE = 16
MAKER = "efficientnet-lite0 on masks by mobile-sam"


def evenly_spread_frame_numbers(count: int, fps: float, *inputs: object, at_most: int, **params: object) -> np.ndarray:
    """At most so many frames, evenly spread, the first and the last among them."""
    return every(at_most=at_most).pick(count, fps)


@dataclass(frozen=True)
class MaskTrack:
    """The target through a clip."""

    prompt: str  # what it was followed from
    index: np.ndarray  # (N,) frames that were looked at; none where there is nothing to follow
    masks: Sequence[np.ndarray | None]
    score: Sequence[float]


def track_target_masks(
    box: Box | None, when_unknown: str = SKIP, pictures: dict[int, np.ndarray] | None = None
) -> Generator[None, Any, MaskTrack]:
    """The target of a box, or of what is salient, through the frames that are sent: for `yield from` in an observer.

    Their pictures are kept in `pictures`, by the number of the frame, where it is given.
    """
    from revisit.networks import mobile_sam

    if when_unknown not in (SKIP, SALIENCY):
        raise UsageError(f"when_unknown={when_unknown!r}: choose {SKIP!r} or {SALIENCY!r}")
    prompt = BOX if box else SALIENT
    tracker: Tracker | None = None
    rows: list[tuple[int, np.ndarray | None, float]] = []

    def track_in_frames(frames: list[Frame]) -> None:
        nonlocal box, tracker, when_unknown
        if pictures is not None:
            pictures.update((frame.index, frame.rgb) for frame in frames)
        if box is None and when_unknown == SALIENCY:
            from revisit.networks.u2net import largest_salient_box

            box, when_unknown = largest_salient_box(frames[0].rgb), SKIP  # of the first frame only
        if box is None:
            return
        with runtime.inference():
            net = mobile_sam.network()
            for frame, embedding in zip(frames, cached_embeddings(net, frames), strict=True):
                if tracker is None:
                    tracker = Tracker(net, frame.rgb, box, embedding)
                else:
                    tracker.next_mask(frame.rgb, embedding)
                rows.append((frame.index, tracker.mask, tracker.score))

    yield from feed_frames_in_groups(1 if runtime.device() == "cpu" else GROUP, track_in_frames)
    index, masks, score = columns_of_rows(rows, 3)
    return MaskTrack(prompt if box else NOTHING, np.array(index, dtype=np.int64), masks, score)


_seen: OrderedDict[tuple[str, str], PictureEmbedding] = OrderedDict()


def cached_embeddings(net: MobileSam, frames: Sequence[Frame]) -> list[PictureEmbedding]:
    """Embeddings of frames of one size; those that another observer of the same frames had made are not made again."""
    keys = [(runtime.device(), frame.digest) for frame in frames]
    fresh = {key: frame for key, frame in zip(keys, frames, strict=True) if key not in _seen}
    if fresh:
        computed = net.embed(runtime.channels_first_on_device([frame.rgb for frame in fresh.values()]))
        _seen.update(zip(fresh, computed, strict=True))
    out = [_seen[key] for key in keys]
    while len(_seen) > KEPT:
        _seen.popitem(last=False)
    return out


@observer(
    id="small.masks", version=2, kind="sequence", makes=ObjectMasks, inputs=("target",), weights=(MOBILE_SAM,),
    choose=evenly_spread_frame_numbers,
)  # fmt: skip
def target_masks(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> FrameStream:
    """Which pixels are the target's in frames of the clip, from its box in the first one; empty where it is hidden."""
    track = yield from track_target_masks(target.box)
    return masks_record_of_track(clip, track)


@observer(
    id="small.masks_salient", version=2, kind="sequence", makes=ObjectMasks, inputs=("target?",),
    weights=(MOBILE_SAM, U2NETP), choose=evenly_spread_frame_numbers,
)  # fmt: skip
def target_or_salient_masks(
    clip: ClipInfo, target: Target | None, *, at_most: int = AT_MOST, when_unknown: str = SALIENCY
) -> FrameStream:
    """The same, and where no box was given of what is salient in the first frame."""
    track = yield from track_target_masks(None if target is None else target.box, when_unknown)
    return masks_record_of_track(clip, track)


@register_observer_per_network(
    {"paper.masks": (SAM2, DINO), "paper.masks_large": (SAM2_LARGE, DINO)},
    version=2, kind="sequence", makes=ObjectMasks, inputs=("target_or_name",), choose=evenly_spread_frame_numbers,
)  # fmt: skip
def target_masks_by_sam2(
    network: str, clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST_BY_SAM2, threshold: float = THRESHOLD
) -> FrameStream:
    """Which pixels are the target's, followed by {network} from the first frame; empty where it is not seen."""
    follower = Follower(sought, threshold, network)
    size = shrunk_size(clip.height, clip.width, STORED_SIDE)
    rows: list[tuple[int, np.ndarray]] = []
    while (frame := (yield)) is not None:
        with runtime.inference():
            rows.append((frame.index, follower.next_mask(runtime.channels_first_on_device([frame.rgb]), size)))
    index, stack = columns_of_rows(rows, 2)
    return ObjectMasks(np.array(index, np.int64), np.array(stack, bool).reshape(-1, *size), follower.maker)


def masks_record_of_track(clip: ClipInfo, track: MaskTrack) -> ObjectMasks:
    """Masks with empty ones where the target is hidden."""
    size = shrunk_size(clip.height, clip.width, STORED_SIDE)
    stack = [np.zeros(size, bool) if mask is None else mask for mask in track.masks]
    return ObjectMasks(track.index, np.array(stack, bool).reshape(-1, *size), f"{MOBILE_SAM} from {track.prompt}")


class Follower:
    """A target through the frames of a clip, which are shown in order, the first one first."""

    def __init__(self, sought: Target | str, threshold: float = THRESHOLD, sam: str = SAM2) -> None:
        self.sought, self.threshold, self.sam = sought, threshold, sam
        self.following: Sam2Tracker | None = None
        self.begun = False

    def next_mask(self, picture: Any, size: tuple[int, int]) -> np.ndarray:
        """(height, width) bool of the next frame, (1, 3, H, W)."""
        from revisit.networks import sam2

        if self.following is not None:
            logits = self.following.next_logits(picture)
        elif not self.begun and (prompt := self._first_frame_prompt(picture)) is not None:
            self.following = sam2.Sam2Tracker(sam2.network(self.sam), picture, [prompt])
            logits = self.following.first
        self.begun = True
        return np.zeros(size, bool) if self.following is None else np.asarray(sam2.masks_at(logits, size)[0])

    def _first_frame_prompt(self, picture: Any) -> tuple[float, ...] | None:
        """What SAM 2 is shown: a box, a point, or the surest box of what the words name, if there is any."""
        from revisit.networks import grounding_dino

        if isinstance(self.sought, Target):
            return self.sought.point or self.sought.box
        score, boxes = grounding_dino.network(DINO).detect_scores_and_boxes(
            picture, self.sought, threshold=self.threshold
        )[0]
        return tuple(boxes[0].tolist()) if len(score) else None

    @property
    def maker(self) -> str:
        """Who found the target, to be asked at the end; the same words for all targets that were found alike."""
        if isinstance(self.sought, Target):
            return f"{self.sam} from {'a point' if self.sought.point else 'a box'} in the first frame"
        if self.following is None:
            return f"{DINO}, which found no {self.sought!r} in the first frame"
        return f"{self.sam} from a name, found by {DINO} in the first frame"


@observer(
    id="small.object_features", version=2, kind="sequence", makes=ObjectFeatures, inputs=("target",),
    weights=("mobile-sam", "efficientnet-lite0"), choose=evenly_spread_frame_numbers,
)  # fmt: skip
def object_features_by_efficientnet(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> FrameStream:
    """Descriptors of the target where it is seen, from its box in the first frame."""
    pictures: dict[int, np.ndarray] = {}
    track = yield from track_target_masks(target.box, pictures=pictures)
    masks = {int(number): mask for number, mask in zip(track.index, track.masks, strict=True) if mask is not None}
    whole = are_whole_views(list(masks.values()))
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
    part = slices_around_mask(mask)
    piece = np.where(mask[part][..., None], rgb[part], np.uint8(GREY))
    spare_height, spare_width = (max(piece.shape[:2]) - side for side in piece.shape[:2])
    above, left = spare_height // 2, spare_width // 2
    border = above, spare_height - above, left, spare_width - left
    return np.asarray(cv2.copyMakeBorder(piece, *border, cv2.BORDER_CONSTANT, value=[GREY] * 3))


def are_whole_views(masks: Sequence[np.ndarray]) -> np.ndarray:
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

    from revisit.networks import dino
    from revisit.networks.preprocessing import IMAGENET_MEAN, normalise_by_channel, resize_levels

    rows, columns = slices_around_mask(mask)
    own = torch.from_numpy(np.ascontiguousarray(mask[rows, columns])).to(picture.device)
    mean = torch.tensor(IMAGENET_MEAN, device=picture.device)[:, None, None] * 255
    crop = torch.where(own, picture[0, :, rows, columns].float(), mean)[None]
    cls, _ = dino.network(DINOV2)(normalise_by_channel(resize_levels(crop, (SIDE, SIDE), "bicubic")))
    return runtime.to_numpy(cls[0])
