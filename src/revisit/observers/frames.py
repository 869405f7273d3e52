"""Facts about every frame: digest, brightness, sharpness; and small pictures for reports."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer, per_second
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.evidence.pictures import pack_jpegs
from revisit.observers.pictures import gray_at, small_rgb_from_shared_size
from revisit.observers.rows import columns_of_rows

LONG_SIDE = 320  # sharpness depends on the size, so it is measured at one size for all clips
THUMBNAIL_SIDE, THUMBNAIL_QUALITY = 192, 80


@observer(id="lite.frames", version=4, kind="sequence", makes=FrameFacts, sets=("lite",))
def frame_facts(clip: ClipInfo) -> FrameStream:
    """Time, digest, mean luma and sharpness of every frame."""
    import cv2

    rows: list[tuple[Any, ...]] = []
    while (frame := (yield)) is not None:
        gray = gray_at(frame, LONG_SIDE)
        variance = float(cv2.Laplacian(gray, cv2.CV_32F).var())
        rows.append((frame.index, frame.time, pixel_checksum(frame.rgb), float(gray.mean()) / 255, variance))
    index, time, digests, luma, sharpness = columns_of_rows(rows, 5)
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


def pixel_checksum(rgb: np.ndarray) -> bytes:
    """16 bytes that are equal for equal pixels: the CRC-32 of each quarter of them. SHA-256 takes ten times as long."""
    data = np.ascontiguousarray(rgb).reshape(-1).data
    ends = [len(data) * k // 4 for k in range(5)]
    return b"".join(zlib.crc32(data[start:end]).to_bytes(4, "big") for start, end in pairwise(ends))


@observer(
    id="lite.thumbnails", version=4, kind="sequence", makes=Thumbnails, frames=per_second(8, at_most=192),
    sets=("lite",),
)  # fmt: skip
def thumbnails(clip: ClipInfo) -> FrameStream:
    """JPEG pictures of 8 frames a second, at most 192 of them, 192 pixels on the longer side."""
    rows: list[tuple[int, np.ndarray]] = []
    while (frame := (yield)) is not None:
        rows.append((frame.index, small_rgb_from_shared_size(frame, THUMBNAIL_SIDE)))
    index, pictures = columns_of_rows(rows, 2)
    height, width = pictures[-1].shape[:2] if pictures else (0, 0)
    return Thumbnails(np.array(index, dtype=np.int64), *pack_jpegs(pictures, THUMBNAIL_QUALITY), width, height)
