"""Statistics of frames that change when the picture itself decays, whatever it shows.

Decay has many looks: noise, oversharpened edges and colours, smear. Noise has no direction (`gradient_coherence`),
fills the picture evenly (`density`) and is as fine in colour as in luma (`speckle`); a picture that is sharpened or
smeared more and more gains or loses detail in all cells of a grid at once, which an object that grows or walks by does
not.
Blur shows on the strongest edges alone (`sharpness`): smooth things in a sharp picture leave them as they are.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Batch, observer
from revisit.evidence.appearance import PictureStatistics
from revisit.observers.pictures import (
    VIEWED,
    median,
    resize_by_area,
    rgb_at_shared_size,
    shrink_to_half,
    vector_lengths,
)
from revisit.observers.rows import columns_of_rows

ROWS, COLUMNS = 4, 6
THUMBNAIL = 48, 27  # width and height
FLOOR = 0.5  # gray levels per pixel: keeps flat cells from having a detail of pure noise
CHROMA_FLOOR = 4.0  # levels: the same of colour
SOFTENED = 1.2  # pixels: deviation of the window whose mean is taken off to see fine detail in colour
TENSOR = 2.5  # pixels of the halved picture: deviation of the window in which directions are compared
BLOCK = 4  # pixels of the picture that one of the coarse scale stands for
STRONG_SHARE, STRONG_LEVELS = 0.1, 8.0  # strongest edges: a tenth of the picture, and at least so many levels a pixel
LEAST_EDGES = 10


@observer(
    id="lite.picture_statistics", version=1, kind="frame", makes=PictureStatistics, frames=VIEWED,
    prepare=rgb_at_shared_size, sets=("lite",),
)  # fmt: skip
def picture_statistics(frames: Batch) -> PictureStatistics:
    """Detail, light and colour by cells, and direction, density and sharpness of the whole picture."""
    import cv2

    rows = []
    for rgb in frames.rgb:
        luma = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
        half = shrink_to_half(luma)
        fine, middle = gradient_lengths(luma), gradient_lengths(half)
        logs = [np.log(grid_cell_means(scale) + FLOOR) for scale in (fine, middle)]
        red, green, blue = channels = cv2.split(rgb)
        brightest, darkest = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
        red, green, blue = (channel.astype(np.float32) for channel in channels)
        colours = red - green, (red + green) / 2 - blue
        fine_colour = sum(np.abs(one - cv2.GaussianBlur(one, (5, 5), SOFTENED)) for one in colours)
        chroma = np.log(grid_cell_means((brightest - darkest).astype(np.float32)) + CHROMA_FLOOR)
        speckle = median(np.log(grid_cell_means(fine_colour) + FLOOR) - logs[0])
        first, second = (gradient_lengths(shrink_to_half(one)) for one in colours)
        strength = first + second  # density is small where a few edges hold all of it, and 1 where it is everywhere
        density = float(strength.mean()) ** 2 / (float((strength * strength).mean()) + 1.0)
        whole = (speckle, gradient_coherence(half), density, edge_sharpness(luma, fine))
        thumbnail = cv2.resize(luma, THUMBNAIL, interpolation=cv2.INTER_AREA).round().astype(np.uint8)
        rows.append(((logs[0] + logs[1]) / 2, grid_cell_means(luma), chroma, *whole, thumbnail))
    types = [np.float32] * 7 + [np.uint8]
    arrays = (np.array(values, kind) for values, kind in zip(columns_of_rows(rows, 8), types, strict=True))
    return PictureStatistics(frames.index, *arrays)  # in the order of its fields


def gradient_lengths(picture: np.ndarray) -> np.ndarray:
    """Length of the gradient at each pixel, by differences from the pixels to the left and above; 0 at these edges."""
    dx, dy = np.empty_like(picture), np.empty_like(picture)
    dx[:, :1], dy[:1] = 0, 0
    np.subtract(picture[:, 1:], picture[:, :-1], out=dx[:, 1:])
    np.subtract(picture[1:], picture[:-1], out=dy[1:])
    return np.asarray(vector_lengths(dx, dy))


def grid_cell_means(picture: np.ndarray) -> np.ndarray:
    """(ROWS, COLUMNS) means of a picture over the cells of the grid."""
    return resize_by_area(picture, COLUMNS, ROWS)


def gradient_coherence(picture: np.ndarray) -> float:
    """Share of the gradient energy that has one direction locally: about 0.3 of noise, 0.45 to 0.9 of pictures."""
    import cv2

    dx, dy = cv2.Sobel(picture, cv2.CV_32F, 1, 0), cv2.Sobel(picture, cv2.CV_32F, 0, 1)
    xx, yy, xy = (cv2.GaussianBlur(product, (0, 0), TENSOR) for product in (dx * dx, dy * dy, dx * dy))
    total = float((xx + yy).sum())
    return float(np.sqrt((xx - yy) ** 2 + 4 * xy * xy).sum()) / total if total > 1.0 else 1.0


def edge_sharpness(luma: np.ndarray, fine_gradient: np.ndarray) -> float:
    """Median of fine over coarse gradient on the strongest edges; nan where there are none.

    `fine_gradient` is the gradient of the picture.

    The gradient of a sharp edge, per pixel, is about the same at a quarter of the size; that of a soft one is up to
    four times as large there, for the step is the same and has fewer pixels.
    """
    import cv2

    height, width = (side // BLOCK * BLOCK for side in luma.shape)
    if not height or not width:
        return float("nan")
    even = luma[:height, :width]
    steep = fine_gradient[:height, :width]
    columns = np.maximum.reduce([steep[:, k::BLOCK] for k in range(BLOCK)])
    blocks = np.maximum.reduce([columns[k::BLOCK] for k in range(BLOCK)])
    around = np.ones((3, 3), np.uint8)
    fine = cv2.dilate(blocks, around)
    coarse = cv2.dilate(gradient_lengths(shrink_to_half(shrink_to_half(even))), around)
    strong = coarse >= max(float(np.quantile(coarse, 1 - STRONG_SHARE)), STRONG_LEVELS)
    if int(strong.sum()) < LEAST_EDGES:
        return float("nan")
    return median(fine[strong] / coarse[strong])
