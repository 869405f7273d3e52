"""Features of whole clips by I3D, the network of FVD: the middle square of frames evenly spread over the clip."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, Frame, every, observer
from revisit.evidence.motion import VideoFeatures

I3D = "i3d-kinetics-400"
FRAMES, SIDE = 16, 224


def evenly_spread_frame_numbers(count: int, fps: float, *, taken: int = FRAMES, **_: Any) -> np.ndarray:
    """So many frames from the first to the last, or all of a shorter clip."""
    return every(at_most=taken).pick(count, fps)


def middle_square_at_224(frame: Frame, **_: Any) -> np.ndarray:
    """The middle square of a frame at 224 pixels, by area averaging."""
    import cv2

    height, width = frame.rgb.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = frame.rgb[top : top + side, left : left + side]
    filter_ = cv2.INTER_AREA if side >= SIDE else cv2.INTER_LINEAR
    return np.ascontiguousarray(cv2.resize(square, (SIDE, SIDE), interpolation=filter_))


@observer(
    id="small.video", version=1, kind="clip", makes=VideoFeatures, choose=evenly_spread_frame_numbers,
    prepare=middle_square_at_224,
    weights=(I3D,),
)  # fmt: skip
def video_features(batch: Batch, *, taken: int = FRAMES) -> VideoFeatures:
    """Logits of I3D of `taken` frames, evenly spread; a clip with fewer has none."""
    from revisit.networks import i3d

    if len(batch.index) < max(taken, i3d.LEAST_FRAMES):
        return VideoFeatures(batch.index, np.zeros((0, len(i3d.action_names())), np.float32), SIDE, I3D, "")
    logits = i3d.clip_logits(batch.rgb)
    return VideoFeatures(batch.index, logits[None], SIDE, I3D, i3d.action_names()[int(logits.argmax())])
