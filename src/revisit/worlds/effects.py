"""Effects: changes of a finished picture, each with an amount from 0 (none) to 1 (full).

Pictures are uint8 RGB. Amounts are shares of a straight line from the picture to its spoiled version, so that
twice the amount is twice as far from the truth.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def weighted_mean_picture(weighted: Iterable[tuple[float, np.ndarray]]) -> np.ndarray:
    """The weighted mean of pictures; the weights sum to 1."""
    weighted = list(weighted)
    if len(weighted) == 1:
        return weighted[0][1]
    total = sum(np.float32(weight) * picture.astype(np.float32) for weight, picture in weighted)
    return _round_to_uint8(np.asarray(total))


def towards(picture: np.ndarray, other: np.ndarray, amount: float | np.ndarray) -> np.ndarray:
    """The picture moved towards another by an amount, or by an amount per pixel."""
    if np.max(amount) <= 0:
        return picture
    share = np.asarray(amount, np.float32)
    if share.ndim == 2:
        share = share[..., None]
    return _round_to_uint8(picture + share * (other.astype(np.float32) - picture))


def soften_edges(shares: np.ndarray) -> np.ndarray:
    """Shares per pixel with edges as soft as those of a picture."""
    import cv2

    return np.asarray(cv2.GaussianBlur(shares, (0, 0), 0.7))


def blur_picture(picture: np.ndarray, amount: float) -> np.ndarray:
    """The picture out of focus: at 1 nothing smaller than a fiftieth of its height is left."""
    import cv2

    sigma = amount * picture.shape[0] / 50
    return picture if sigma < 0.1 else cv2.GaussianBlur(picture, (0, 0), sigma)


def multiply_by_light(picture: np.ndarray, light: np.ndarray) -> np.ndarray:
    """The picture under a light given as factors that broadcast to it."""
    return _round_to_uint8(picture * light.astype(np.float32))


def draw_as_cartoon(picture: np.ndarray) -> np.ndarray:
    """The picture as a cartoon: flat areas of few, strong colours with dark outlines."""
    import cv2

    flat = cv2.medianBlur(cv2.medianBlur(picture, 7), 7)
    hsv = cv2.cvtColor(flat, cv2.COLOR_RGB2HSV).astype(np.float32)
    hsv[..., 0] = np.round(hsv[..., 0] / 12) * 12 % 180
    hsv[..., 1] = np.clip(hsv[..., 1] * 1.7 + 15, 0, 255)
    hsv[..., 2] = np.clip(np.round(hsv[..., 2] / 51) * 51 + 20, 0, 255)
    colours = cv2.cvtColor(_round_to_uint8(hsv), cv2.COLOR_HSV2RGB)
    grey = cv2.cvtColor(flat, cv2.COLOR_RGB2GRAY)
    lines = cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 9, 7)
    return np.asarray(cv2.bitwise_and(colours, colours, mask=lines))


def bend_smear_and_overexpose(picture: np.ndarray, amount: float, bend: np.ndarray) -> np.ndarray:
    """The picture decaying: it bends (a field of shifts in -1..1), runs together and burns out."""
    import cv2

    if amount <= 0:
        return picture
    height, width = picture.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    reach = np.float32(amount * height / 10)
    bent = cv2.remap(picture, x + reach * bend[0], y + reach * bend[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    small = cv2.resize(bent, (20, 12), interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    run = towards(bent, coarse, 0.85 * amount)
    centre = run.reshape(-1, 3).mean(axis=0)
    return _round_to_uint8(centre + (run - centre) * (1 + 0.9 * amount) + 25 * amount)


def smooth_noise_field(rng: np.random.Generator, shape: tuple[int, int], cells: int) -> np.ndarray:
    """Smooth noise in -1..1 with so many blobs down the picture."""
    import cv2

    rows, columns = cells, max(round(cells * shape[1] / shape[0]), 2)
    coarse = rng.uniform(-1, 1, (rows, columns)).astype(np.float32)
    return np.clip(cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC), -1, 1)


def _round_to_uint8(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)
