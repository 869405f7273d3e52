"""Masks of the target by SAM 2.1: from its box or a click on it in the first frame, or from its name by Grounding DINO.

MBench names SAM 2 without a size: the smallest of SAM 2.1 is ours, and the largest may be named in a set of your own.
A target of which only a name is known (MBench's object cards) is looked for by Grounding DINO in the first frame, with
its attributes and its name; the surest box at or above `threshold` is taken. Frames between those that are asked for
are not shown to the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import ClipInfo, Sight, Target, every, observer
from revisit.evidence.mbench import ObjectMasks
from revisit.observers.small.masks import stored_size

if TYPE_CHECKING:
    from revisit.networks.sam2 import Following

SAM2, SAM2_LARGE, DINO = "sam2.1-hiera-tiny", "sam2.1-hiera-large", "grounding-dino-tiny"
AT_MOST = 160  # so that every frame of 800 has a mask no more than two frames away
THRESHOLD = 0.35  # as published with Grounding DINO


def choose_frames(count: int, fps: float, *inputs: object, at_most: int = AT_MOST, **others: object) -> np.ndarray:
    """At most so many frames, evenly spread, the first and the last among them."""
    return every(at_most=at_most).pick(count, fps)


@observer(
    id="paper.masks", version=2, kind="sequence", makes=ObjectMasks, inputs=("target_or_name",), weights=(SAM2, DINO),
    choose=choose_frames,
)  # fmt: skip
def masks(clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST, threshold: float = THRESHOLD) -> Sight:
    """Which pixels are the target's, followed by SAM 2.1 (Hiera-T) from the first frame; empty where it is not seen."""
    return (yield from _masks(clip, Follower(sought, threshold)))


@observer(
    id="paper.masks_large", version=2, kind="sequence", makes=ObjectMasks, inputs=("target_or_name",),
    weights=(SAM2_LARGE, DINO), choose=choose_frames,
)  # fmt: skip
def masks_large(clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST, threshold: float = THRESHOLD) -> Sight:
    """The same by SAM 2.1 Hiera-L."""
    return (yield from _masks(clip, Follower(sought, threshold, SAM2_LARGE)))


class Follower:
    """A target through the frames of a clip, which are shown in order, the first one first."""

    def __init__(self, sought: Target | str, threshold: float = THRESHOLD, sam: str = SAM2) -> None:
        self.sought, self.threshold, self.sam = sought, threshold, sam
        self.following: Following | None = None
        self.begun = False

    def see(self, picture: Any, size: tuple[int, int]) -> np.ndarray:
        """(height, width) bool of the next frame, (1, 3, H, W)."""
        from revisit.networks import sam2

        if self.following is not None:
            logits, _ = self.following.see(picture)
        elif not self.begun and (prompt := self._prompt(picture)) is not None:
            self.following = sam2.Following(sam2.network(self.sam), picture, [prompt])
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


def _masks(clip: ClipInfo, follower: Follower) -> Any:
    from revisit.networks import runtime

    size = stored_size(clip)
    index: list[int] = []
    found: list[np.ndarray] = []
    frame = yield
    while frame is not None:
        with runtime.inference():
            found.append(follower.see(runtime.on_device([frame.rgb]), size))
        index.append(frame.index)
        frame = yield
    stack = np.stack(found) if found else np.zeros((0, *size), bool)
    return ObjectMasks(np.array(index, dtype=np.int64), stack, follower.maker)
