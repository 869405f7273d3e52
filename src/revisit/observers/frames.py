"""Facts about every frame: digest, brightness, sharpness."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.evidence.frames import FrameFacts
from revisit.observers.pictures import gray_at

LONG_SIDE = 320  # sharpness depends on the size, so it is measured at one size for all clips


@observer(id="lite.frames", version=3, kind="sequence", makes=FrameFacts, sets=("lite",))
def frame_facts(clip: ClipInfo) -> FrameStream:
    """Time, digest, mean luma and sharpness of every frame."""
    import cv2

    index: list[int] = []
    time: list[float] = []
    digests: list[bytes] = []
    luma: list[float] = []
    sharpness: list[float] = []
    while (frame := (yield)) is not None:
        gray = gray_at(frame, LONG_SIDE)
        index.append(frame.index)
        time.append(frame.time)
        digests.append(bytes.fromhex(frame.digest)[:16])
        luma.append(float(gray.mean()) / 255)
        sharpness.append(float(cv2.Laplacian(gray, cv2.CV_32F).var()))
    return FrameFacts(
        index=np.array(index, dtype=np.int64),
        time=np.array(time, dtype=np.float64),
        digest=np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16),
        luma=np.array(luma, dtype=np.float32),
        sharpness=np.array(sharpness, dtype=np.float32),
        width=clip.width,
        height=clip.height,
        fps=clip.fps,
    )
