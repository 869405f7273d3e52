"""Masks of the target, from where it is in the first frame: by MobileSAM and a tracker of ours, or by SAM 2.1.

A target of which only a name is known is looked for by Grounding DINO in the first frame, for SAM 2.1 to follow. Frames
between those that are asked for are not shown to the networks. See docs/networks.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, Target, observer, observers
from revisit.evidence.objects import ObjectMasks
from revisit.observers.mask_tracking import STORED_SIDE
from revisit.observers.masks import (
    AT_MOST,
    DINO,
    MOBILE_SAM,
    SALIENCY,
    SAM2,
    U2NETP,
    MaskTrack,
    choose_frames,
    follow_target,
)

if TYPE_CHECKING:
    from revisit.networks.sam2 import Sam2Tracker

SAM2_LARGE = "sam2.1-hiera-large"
AT_MOST_BY_SAM2 = 160  # so that every frame of 800 has a mask no more than two frames away
THRESHOLD = 0.35  # as published with Grounding DINO


@observer(
    id="small.masks", version=2, kind="sequence", makes=ObjectMasks, inputs=("target",), weights=(MOBILE_SAM,),
    choose=choose_frames,
)  # fmt: skip
def masks(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> FrameStream:
    """Which pixels are the target's in frames of the clip, from its box in the first one; empty where it is hidden."""
    track = yield from follow_target(target.box)
    return object_masks(clip, track)


@observer(
    id="small.masks_salient", version=2, kind="sequence", makes=ObjectMasks, inputs=("target?",),
    weights=(MOBILE_SAM, U2NETP), choose=choose_frames,
)  # fmt: skip
def masks_salient(
    clip: ClipInfo, target: Target | None, *, at_most: int = AT_MOST, when_unknown: str = SALIENCY
) -> FrameStream:
    """The same, and where no box was given of what is salient in the first frame."""
    track = yield from follow_target(None if target is None else target.box, when_unknown)
    return object_masks(clip, track)


@observers(
    {"paper.masks": (SAM2, DINO), "paper.masks_large": (SAM2_LARGE, DINO)},
    version=2, kind="sequence", makes=ObjectMasks, inputs=("target_or_name",), choose=choose_frames,
)  # fmt: skip
def masks_by_sam2(
    network: str, clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST_BY_SAM2, threshold: float = THRESHOLD
) -> FrameStream:
    """Which pixels are the target's, followed by {network} from the first frame; empty where it is not seen."""
    from revisit.networks import runtime

    follower = Follower(sought, threshold, network)
    size = stored_size(clip)
    index: list[int] = []
    stack_of_masks: list[np.ndarray] = []
    while (frame := (yield)) is not None:
        with runtime.inference():
            stack_of_masks.append(follower.see(runtime.on_device([frame.rgb]), size))
        index.append(frame.index)
    stack = np.stack(stack_of_masks) if stack_of_masks else np.zeros((0, *size), bool)
    return ObjectMasks(np.array(index, dtype=np.int64), stack, follower.maker)


def object_masks(clip: ClipInfo, track: MaskTrack) -> ObjectMasks:
    """Masks with empty ones where the target is hidden."""
    empty = np.zeros(stored_size(clip), bool)
    stack = [empty if mask is None else mask for mask in track.masks]
    return ObjectMasks(track.index, np.stack(stack) if stack else empty[None][:0], f"{MOBILE_SAM} from {track.prompt}")


def stored_size(clip: ClipInfo) -> tuple[int, int]:
    """Height and width of the masks of a clip."""
    scale = min(1.0, STORED_SIDE / max(clip.height, clip.width))
    return max(1, round(clip.height * scale)), max(1, round(clip.width * scale))


class Follower:
    """A target through the frames of a clip, which are shown in order, the first one first."""

    def __init__(self, sought: Target | str, threshold: float = THRESHOLD, sam: str = SAM2) -> None:
        self.sought, self.threshold, self.sam = sought, threshold, sam
        self.following: Sam2Tracker | None = None
        self.begun = False

    def see(self, picture: Any, size: tuple[int, int]) -> np.ndarray:
        """(height, width) bool of the next frame, (1, 3, H, W)."""
        from revisit.networks import sam2

        if self.following is not None:
            logits, _ = self.following.see(picture)
        elif not self.begun and (prompt := self._prompt(picture)) is not None:
            self.following = sam2.Sam2Tracker(sam2.network(self.sam), picture, [prompt])
            logits = self.following.first[0]
        self.begun = True
        return np.zeros(size, bool) if self.following is None else np.asarray(sam2.masks_at(logits, size)[0])

    def _prompt(self, picture: Any) -> tuple[float, ...] | None:
        """What SAM 2 is shown: a box, a point, or the surest box of what the words name, if there is any."""
        from revisit.networks import grounding_dino

        if isinstance(self.sought, Target):
            return self.sought.point or self.sought.box
        score, boxes = grounding_dino.network(DINO).find(picture, self.sought, threshold=self.threshold)[0]
        return tuple(boxes[0].tolist()) if len(score) else None

    @property
    def maker(self) -> str:
        """Who found the target, to be asked at the end; the same words for all targets that were found alike."""
        if isinstance(self.sought, Target):
            return f"{self.sam} from {'a point' if self.sought.point else 'a box'} in the first frame"
        if self.following is None:
            return f"{DINO}, which found no {self.sought!r} in the first frame"
        return f"{self.sam} from a name, found by {DINO} in the first frame"
