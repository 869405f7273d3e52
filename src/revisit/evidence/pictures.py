"""Pictures inside of evidence: JPEG files, one after the other in one array of bytes.

A picture kept to be measured later is stored at quality 95 without thinning its colours: a ninth of the bytes, and
values that are off by less than one level of 255 on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revisit.core import InvalidEvidence

DARK, GLEAM = 12.0, 32.0  # of 255: the mean of a black frame, and its brightest hundredth
FLAT = 1.5  # of 255: how little a frame of one colour varies
MEASURED = 95  # quality of pictures that metrics measure


def pack_jpegs(pictures: Sequence[np.ndarray], quality: int = MEASURED) -> tuple[np.ndarray, np.ndarray]:
    """The files of RGB pictures, one after the other, and (N + 1) where each begins and the last ends."""
    import cv2

    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    if quality >= MEASURED:
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    files = [cv2.imencode(".jpg", picture[:, :, ::-1], options)[1].ravel() for picture in pictures]
    return (
        np.concatenate([np.zeros(0, np.uint8), *files]),
        np.cumsum([0, *(len(file) for file in files)]).astype(np.int64),
    )


def unpack_jpegs(files: np.ndarray, begins: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(N, height, width, 3) RGB pictures of one size (width, height) out of such files."""
    import cv2

    width, height = size
    pictures = np.zeros((len(begins) - 1, height, width, 3), np.uint8)
    for k, (start, end) in enumerate(pairwise(begins.tolist())):
        picture = cv2.imdecode(np.ascontiguousarray(files[start:end]), cv2.IMREAD_COLOR) if end > start else None
        if picture is None or picture.shape != pictures.shape[1:]:
            raise InvalidEvidence(f"picture {k} is not a JPEG file of {width} x {height} pixels")
        pictures[k] = picture[:, :, ::-1]
    return pictures


def is_black(gray: np.ndarray) -> np.ndarray:
    """Of small gray pictures (..., height, width), which are black; a night scene has lights."""
    brightest = np.percentile(gray, 99, axis=(-2, -1))
    return np.asarray((gray.mean(axis=(-2, -1)) < DARK) & (brightest < GLEAM))


def is_flat(pictures: np.ndarray) -> np.ndarray:
    """Of small gray pictures (..., height, width), which show one colour."""
    return np.asarray(pictures.std(axis=(-2, -1)) < FLAT)
