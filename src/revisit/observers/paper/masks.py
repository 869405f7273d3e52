"""Masks of the target by SAM 2.1, from its box in the first frame, or from its name by Grounding DINO.

MBench names SAM 2 without a size: the smallest of SAM 2.1 is ours, and the largest may be named in a set of your own.
`paper.masks` takes the anchor of a sample; `paper.masks_named` also finds a target that has a name only, by Grounding
DINO in the first frame, where its surest box is taken. Frames between those that are asked for are not shown to the
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revisit.core import ClipInfo, MediaError, Sight, Target, every, observer
from revisit.evidence.mbench import ObjectMasks
from revisit.observers.small.masks import stored_size

SAM2, SAM2_LARGE, DINO = "sam2.1-hiera-tiny", "sam2.1-hiera-large", "grounding-dino-tiny"
AT_MOST = 96


def choose_frames(count: int, fps: float, *inputs: object, at_most: int = AT_MOST) -> np.ndarray:
    """At most so many frames, evenly spread, the first and the last among them."""
    return every(at_most=at_most).pick(count, fps)


@observer(
    id="paper.masks", version=1, kind="sequence", makes=ObjectMasks, inputs=("target",), weights=(SAM2,),
    choose=choose_frames,
)  # fmt: skip
def masks(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> Sight:
    """Which pixels are the target's, followed by SAM 2.1 (Hiera-T) from its box in the first frame."""
    index, found, _ = yield from followed(clip, [target.box])
    return ObjectMasks(index, found, SAM2)


@observer(
    id="paper.masks_large", version=1, kind="sequence", makes=ObjectMasks, inputs=("target",), weights=(SAM2_LARGE,),
    choose=choose_frames,
)  # fmt: skip
def masks_large(clip: ClipInfo, target: Target, *, at_most: int = AT_MOST) -> Sight:
    """The same by SAM 2.1 Hiera-L."""
    index, found, _ = yield from followed(clip, [target.box], sam=SAM2_LARGE)
    return ObjectMasks(index, found, SAM2_LARGE)


@observer(
    id="paper.masks_named", version=1, kind="sequence", makes=ObjectMasks, inputs=("target?", "annotations"),
    weights=(SAM2, DINO), choose=choose_frames,
)  # fmt: skip
def masks_named(
    clip: ClipInfo, target: Target | None, annotations: Mapping[str, Any], *, at_most: int = AT_MOST
) -> Sight:
    """The same, and where there is no box, from one that Grounding DINO finds for the name of the target.

    Masks are empty where it finds none.
    """
    first, name = None if target is None else target.box, named(annotations)
    if first is None and not name:
        raise MediaError("neither a box nor a name of the target was given for this case")
    index, found, box = yield from followed(clip, [] if first is None else [first], name)
    maker = SAM2 if first is not None else f"{SAM2} from {DINO}" if box else f"{DINO} found no target"
    return ObjectMasks(index, found, maker)


def named(annotations: Mapping[str, Any]) -> str:
    """What the target is called, attributes first: of the object's card, or the subject of the clip."""
    card = annotations.get("object_card")
    if isinstance(card, Mapping) and card.get("name"):
        attributes = card.get("attributes") or ()
        words = [attributes] if isinstance(attributes, str) else [str(word) for word in attributes]
        return " ".join([*words, str(card["name"])])
    return str(annotations.get("subject") or "")


def followed(clip: ClipInfo, boxes: list[tuple[float, float, float, float]], name: str = "", *, sam: str = SAM2) -> Any:
    """Frame numbers, masks of the first box, and that box (or []): a part of an observer, for `yield from`."""
    from revisit.networks import grounding_dino, runtime, sam2

    size = stored_size(clip)
    index: list[int] = []
    found: list[np.ndarray] = []
    following: sam2.Following | None = None
    frame = yield
    while frame is not None:
        with runtime.inference():
            picture = runtime.on_device([frame.rgb])
            if not index and not boxes and name:
                score, around = grounding_dino.network(DINO).find(picture, name)[0]
                boxes = [tuple(around[0].tolist())] if len(score) else []
            if not index and boxes:
                following = sam2.Following(sam2.network(sam), picture, boxes[:1])
                logits = following.first[0]
            elif following is not None:
                logits, _ = following.see(picture)
            found.append(np.zeros(size, bool) if following is None else sam2.masks_at(logits, size)[0])
        index.append(frame.index)
        frame = yield
    stack = np.stack(found) if found else np.zeros((0, *size), bool)
    return np.array(index, dtype=np.int64), stack, boxes[:1]
