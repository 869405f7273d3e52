"""Small pictures for reports."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer, per_second
from revisit.evidence.frames import Thumbnails
from revisit.evidence.pictures import pack_jpegs
from revisit.observers.pictures import small

LONG_SIDE = 192
JPEG_QUALITY = 80


@observer(
    id="lite.thumbnails", version=4, kind="sequence", makes=Thumbnails, frames=per_second(8, at_most=192),
    sets=("lite",),
)  # fmt: skip
def thumbnails(clip: ClipInfo) -> FrameStream:
    """JPEG pictures of 8 frames a second, at most 192 of them, 192 pixels on the longer side."""
    index: list[int] = []
    pictures: list[np.ndarray] = []
    width = height = 0
    while (frame := (yield)) is not None:
        picture = small(frame, LONG_SIDE)
        height, width = picture.shape[:2]
        index.append(frame.index)
        pictures.append(picture)
    jpeg, offsets = pack_jpegs(pictures, JPEG_QUALITY)
    return Thumbnails(
        index=np.array(index, dtype=np.int64),
        jpeg=jpeg,
        offsets=offsets,
        width=width,
        height=height,
    )
