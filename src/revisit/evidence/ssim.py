"""SSIM (Wang et al. 2004) around each pixel: the one formula for all families, precisions and window means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

WINDOW, SIGMA = 11, 1.5  # Gaussian window
EDGE = WINDOW // 2
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2  # levels from 0 to 255


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
