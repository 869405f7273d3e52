"""Facts about every frame: digest, brightness, sharpness; and pictures of some, for reports and for judges."""

from __future__ import annotations

import hashlib
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, MediaError, Sampling, observer, per_second
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.evidence.judged import JudgeFrames
from revisit.evidence.pictures import pack_jpegs
from revisit.observers.pictures import gray_at_long_side, small_rgb_from_shared_size
from revisit.observers.rows import columns_of_rows

LONG_SIDE = 320  # sharpness depends on the size, so it is measured at one size for all clips
THUMBNAIL_SIDE, THUMBNAIL_QUALITY = 192, 80


@observer(id="lite.frames", version=4, kind="sequence", makes=FrameFacts, sets=("lite",))
def frame_facts(clip: ClipInfo) -> FrameStream:
    """Time, digest, mean luma and sharpness of every frame."""
    import cv2

    rows: list[tuple[Any, ...]] = []
    while (frame := (yield)) is not None:
        gray = gray_at_long_side(frame, LONG_SIDE)
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


@observer(id="judge.frames", version=1, kind="sequence", makes=JudgeFrames)
def judge_frames(
    clip: ClipInfo,
    *,
    rate: float | None = None,
    at_most: int | None = 8,
    long_side: int | None = 512,
    quality: int = 90,
) -> FrameStream:
    """JPEG pictures of evenly spread frames, the first and the last among them; with `rate`, so many a second.

    The digest names the decoded frames, their times, and the size and quality of the pictures, not the bytes of the
    JPEG files: these differ between versions of the encoder, and answers must not be paid for again because of that.
    """
    import cv2

    frame_numbers = set(Sampling(rate, at_most).pick(clip.count, clip.fps).tolist())
    rows: list[tuple[int, float, np.ndarray]] = []
    frames_hash = hashlib.sha256(f"{long_side} {quality}\n".encode())
    width = height = 0
    last = 0.0
    while (frame := (yield)) is not None:
        last = frame.time
        if frame.index not in frame_numbers:
            continue
        picture = frame.at(long_side)
        height, width = picture.shape[:2]
        _, jpeg = cv2.imencode(".jpg", picture[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
        frames_hash.update(f"{frame.index} {frame.time:.4f} {frame.digest}\n".encode())
        rows.append((frame.index, frame.time, jpeg.ravel()))
    if not rows:
        raise MediaError("none of the clip's frames are to be shown; ask for one or more")
    index, time, pictures = columns_of_rows(rows, 3)
    return JudgeFrames(
        index=np.array(index, dtype=np.int64),
        time=np.array(time),
        jpeg=np.concatenate(pictures),
        offsets=np.cumsum([0, *(len(picture) for picture in pictures)]).astype(np.int64),
        width=width,
        height=height,
        digest=frames_hash.hexdigest()[:40],
        seconds=last + 1 / clip.fps if clip.fps else last,
    )
