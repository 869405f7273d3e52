"""The pictures of a clip, decoded, for judges that look at them on this machine."""

from __future__ import annotations

import numpy as np

from revisit.judges.asking import Refused


def decoded(jpeg: bytes) -> np.ndarray:
    """The RGB picture in a JPEG file."""
    import cv2

    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise Refused("a frame cannot be decoded as an image")
    return np.ascontiguousarray(picture[:, :, ::-1])
