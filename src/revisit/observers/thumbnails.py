"""Small pictures for reports."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, every, observer
from revisit.evidence.frames import Thumbnails
from revisit.observers.pictures import small

LONG_SIDE = 192
JPEG_QUALITY = 80


@observer(id="lite.thumbnails", version=1, kind="sequence", makes=Thumbnails, frames=every(at_most=192), sets=("lite",))
def thumbnails(clip: ClipInfo) -> Sight:
    """JPEG pictures of at most 192 frames, 192 pixels on the longer side."""
    import cv2

    index: list[int] = []
    pictures: list[np.ndarray] = []
    width = height = 0
    frame: Frame
    while (frame := (yield)) is not None:
        picture = small(frame, LONG_SIDE)
        height, width = picture.shape[:2]
        _, jpeg = cv2.imencode(".jpg", picture[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        index.append(frame.index)
        pictures.append(jpeg.ravel())
    return Thumbnails(
        index=np.array(index, dtype=np.int64),
        jpeg=np.concatenate([np.zeros(0, np.uint8), *pictures]),
        offsets=np.cumsum([0, *(len(p) for p in pictures)]).astype(np.int64),
        width=width,
        height=height,
    )
