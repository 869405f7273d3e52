"""How much every frame differs from the one before it."""

from __future__ import annotations

import numpy as np

from revisit.core import ANY_SET, ClipInfo, FrameStream, observer
from revisit.suites.wbench.evidence import NeighbourDifference


@observer(id="lite.wb_neighbours", version=1, kind="sequence", makes=NeighbourDifference, sets=(ANY_SET,))
def neighbour_difference(clip: ClipInfo) -> FrameStream:
    """Mean absolute difference of each frame from the one before it, over pixels and channels."""
    import cv2

    index: list[int] = []
    difference: list[float] = []
    before: np.ndarray | None = None
    while (frame := (yield)) is not None:
        if before is not None:
            index.append(frame.index)
            difference.append(float(np.mean(cv2.mean(cv2.absdiff(frame.rgb, before))[:3])) / 255)
        before = frame.rgb
    return NeighbourDifference(np.array(index, dtype=np.int64), np.array(difference))
