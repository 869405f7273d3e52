"""The colours by which a target is known: those that it has and its surroundings in the first frame lack."""

from __future__ import annotations

import numpy as np

from revisit.observers.pictures import fitted

LEAST_PX = 4  # of a cut
GRID = 24  # pixels to a side of a cut whose colours are counted
COLOUR_STEP = np.array([36.0, 12.0, 12.0])  # of 255, in L, a and b: of a histogram without hard edges
COLOUR_BINS = (9, 23, 23)
BIN_STRIDES = np.array([23 * 23, 23, 1])
DIMMER = 20.0  # of 255: how far the light may have changed, at most


class OwnColours:
    """The colours of a target that its surroundings lack, more in its middle than at its rim."""

    def __init__(self, picture: np.ndarray, box: np.ndarray) -> None:
        import cv2

        rim = np.cos(np.linspace(-1.3, 1.3, GRID))
        self.weight = np.outer(rim, rim).ravel()
        self.lightness, colours = self._colours(cut(picture, box))
        self.shares = soft_histogram(colours, self.weight)
        around = fitted(picture, 4 * GRID, 4 * GRID)
        x0, y0, x1, y1 = (np.clip(box, 0, 1) * 4 * GRID).astype(int)
        outside = np.ones(around.shape[:2], dtype=bool)
        outside[y0:y1, x0:x1] = False
        others = cv2.cvtColor(around, cv2.COLOR_RGB2LAB)[outside].astype(np.float64)
        background = soft_histogram(others, np.ones(len(others))) if len(others) else np.zeros_like(self.shares)
        own = self.shares**2 / np.maximum(self.shares + background, 1e-12)
        self.bins = np.flatnonzero(own)
        self.own, self.shares = own[self.bins], self.shares[self.bins]

    def _colours(self, picture: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean lightness, and CIELAB as OpenCV's bytes of a grid of pixels."""
        import cv2

        colours = cv2.cvtColor(fitted(picture, GRID, GRID), cv2.COLOR_RGB2LAB).reshape(-1, 3).astype(np.float64)
        return float(colours[:, 0] @ self.weight / self.weight.sum()), colours

    def share_in(self, picture: np.ndarray) -> float:
        """Share of them in a picture, as it is or once a change of light is undone."""
        lightness, colours = self._colours(picture)
        undone = colours + [float(np.clip(self.lightness - lightness, -DIMMER, DIMMER)), 0.0, 0.0]
        common = max(float(self._common(one) @ self.own) for one in (colours, undone))
        return float(np.clip(common / float(self.own.sum()), 0, 1))

    def _common(self, colours: np.ndarray) -> np.ndarray:
        """Share of each of the target's colours that is there, 0 to 1."""
        return np.minimum(1, soft_histogram(colours, self.weight)[self.bins] / self.shares)


def soft_histogram(colours: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shares of colours (n, 3) in bins of L, a and b, each colour shared among the eight bins around it."""
    at = (colours - [0.0, 128.0, 128.0]) / COLOUR_STEP + [0.0, COLOUR_BINS[1] // 2, COLOUR_BINS[2] // 2]
    at = np.clip(at, 0.0, np.array(COLOUR_BINS) - 1.001)
    low = at.astype(int)
    part = at - low
    corner = low @ BIN_STRIDES
    sides = np.stack([1 - part, part])  # of the lower and of the upper bin, in each direction
    bins, shares = [], []
    for upper in np.ndindex(2, 2, 2):
        bins.append(corner + BIN_STRIDES @ upper)
        shares.append(weight * sides[upper[0], :, 0] * sides[upper[1], :, 1] * sides[upper[2], :, 2])
    counts = np.bincount(np.concatenate(bins), np.concatenate(shares), minlength=int(np.prod(COLOUR_BINS)))
    return np.asarray(counts / counts.sum())


def cut(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The part of a picture in a box of fractions, as far as it is inside, a few pixels at least."""
    size = np.array(picture.shape[1::-1])
    low = np.clip(np.floor(box[:2] * size).astype(int), 0, size - LEAST_PX)
    high = np.maximum(np.clip(np.ceil(box[2:] * size).astype(int), 0, size), low + LEAST_PX)
    return np.ascontiguousarray(picture[low[1] : high[1], low[0] : high[0]])
