"""Facts about every frame: digest, brightness, sharpness."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.evidence.frames import FrameFacts
from revisit.observers.pictures import gray_at

LONG_SIDE = 320  # sharpness depends on the size, so it is measured at one size for all clips


@observer(id="lite.frames", version=4, kind="sequence", makes=FrameFacts, sets=("lite",))
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
        digests.append(checksums(frame.rgb))
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


def checksums(rgb: np.ndarray) -> bytes:
    """16 bytes that are equal for equal pixels: the CRC-32 of each quarter of them. SHA-256 takes ten times as long."""
    data = np.ascontiguousarray(rgb).reshape(-1).data
    ends = [len(data) * k // 4 for k in range(5)]
    return b"".join(zlib.crc32(data[start:end]).to_bytes(4, "big") for start, end in pairwise(ends))
