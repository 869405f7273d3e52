"""Pictures inside of evidence: JPEG files, one after the other in one array of bytes.

A picture kept to be measured later is stored at quality 95 without thinning its colours: a ninth of the bytes, and
values that are off by less than one level of 255 on average.

SSIM (Wang et al. 2004) around each pixel is here, too: the one formula for all families, precisions and window means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from revisit.core import InvalidEvidence

DARK, GLEAM = 12.0, 32.0  # of 255: the mean of a black frame, and its brightest hundredth
FLAT = 1.5  # of 255: how little a frame of one colour varies
MEASURED = 95  # quality of pictures that metrics measure
WINDOW, SIGMA = 11, 1.5  # Gaussian window
EDGE = WINDOW // 2
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2  # levels from 0 to 255


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


def ssim_map(
    x: np.ndarray, y: np.ndarray, window_mean: Callable[[np.ndarray, float, float], np.ndarray], epsilon: float = 0.0
) -> np.ndarray:
    """SSIM of two float pictures with levels 0 to 255.

    `window_mean(values, scale, offset)` is scale · (weighted mean of the window around each pixel) + offset, as a new
    array.
    """
    mean_x, mean_y = window_mean(x, 1.0, 0.0), window_mean(y, 1.0, 0.0)
    covariance = window_mean(x * y, 2.0, C2)
    # Both variances are only ever needed as a sum, which saves one blur of five. From here on the arithmetic
    # is done in place: new arrays would cost more time than the blurs.
    powers = x * x
    powers += np.square(y)
    variances = window_mean(powers, 1.0, C2)
    similar = mean_x * mean_y
    similar *= 2
    mean_x *= mean_x
    mean_y *= mean_y
    squares = np.add(mean_x, mean_y, out=mean_x)
    covariance -= similar
    variances -= squares
    similar += C1
    similar *= covariance
    squares += C1
    squares *= variances
    if epsilon:
        squares += epsilon
    similar /= squares
    return similar
