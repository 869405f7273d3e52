"""The pictures of a clip, decoded, for judges that look at them on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.judges.protocol import Refused
from revisit.media import encode_mp4


def decode_jpeg(jpeg: bytes) -> np.ndarray:
    """The RGB picture in a JPEG file."""
    import cv2

    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise Refused("a frame cannot be decoded as an image")
    return np.ascontiguousarray(picture[:, :, ::-1])


# MemoBench's public script plays clips of more than 100 frames at 24 frames a second, and others at 16.
MANY, FAST, SLOW = 100, 24.0, 16.0


def encode_video(jpegs: Sequence[bytes]) -> bytes:
    """An mp4 file of these pictures; an odd last row or column is left out."""
    pictures = map(decode_jpeg, jpegs)
    even = (rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2] for rgb in pictures)
    with tempfile.TemporaryDirectory(prefix="revisit-judge-") as folder:
        path = Path(folder) / "clip.mp4"
        encode_mp4(path, even, FAST if len(jpegs) > MANY else SLOW)
        return path.read_bytes()
