"""How far the picture moves away from the first frame, so that clips cannot win by not moving."""

from __future__ import annotations

import numpy as np

from revisit.core import Batch, every, observer
from revisit.suites.mind.evidence import DistanceFromStart


@observer(
    id="lite.outset", version=1, kind="clip", makes=DistanceFromStart, frames=every(at_most=3), size=320, sets=("lite",)
)
def motion_from_start(batch: Batch) -> DistanceFromStart:
    """Squared difference to the first frame, of the first, the middle and the last frame."""
    import cv2

    first = batch.rgb[0]
    errors = [cv2.norm(first, rgb, cv2.NORM_L2SQR) / first.size / 255.0**2 for rgb in batch.rgb]
    return DistanceFromStart(index=np.asarray(batch.index, dtype=np.int64), mse=np.array(errors, dtype=np.float64))
