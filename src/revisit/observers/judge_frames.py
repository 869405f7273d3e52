"""The frames that a judge is shown."""

from __future__ import annotations

import hashlib

import numpy as np

from revisit.core import ClipInfo, FrameStream, MediaError, Sampling, observer
from revisit.evidence.judged import JudgeFrames
from revisit.observers.rows import columns_of_rows


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
