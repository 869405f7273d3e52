"""Depth by FastDepth: a few frames of the visible and of the returned phase, each squeezed to 224 x 224."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, Frame, observer
from revisit.evidence.memory_clips import DepthMaps
from revisit.observers.phase_samples import first_middle_last

SIDE = 224


def squeezed(frame: Frame, **_: Any) -> np.ndarray:
    """The whole frame at 224 x 224, by area."""
    import cv2

    return np.asarray(cv2.resize(frame.rgb, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


@observer(
    id="small.depth", version=1, kind="frame", makes=DepthMaps, inputs=("phases",), weights=("fastdepth",),
    choose=first_middle_last, prepare=squeezed,
)  # fmt: skip
def depth_maps(batch: Batch, *, samples: int = 3) -> DepthMaps:
    """Depth of the first, middle and last frame of both phases by FastDepth; it knows rooms better than streets."""
    from revisit.networks import fastdepth

    return DepthMaps(batch.index, fastdepth.depth(batch.rgb), inverse=False, maker=fastdepth.ID)
