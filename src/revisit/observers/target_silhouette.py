"""Which cells of a target's box are the target, and its colours there: a box also holds what is behind a thing.

A cell of the box that is as near to some cells around the box as these are to each other is background. Colours are
compared inside that silhouette alone, with soft bins, so that another individual of the same shape is told by its
colours while a little more light changes little.
"""

from __future__ import annotations

import numpy as np

from revisit.observers.grid_descriptors import CHANNELS, DIRECTIONS, cut_window_of_cells, window_corner
from revisit.observers.pictures import median

LOOKS = slice(DIRECTIONS, CHANNELS)  # strength of edges and colour: what tells a thing from what is around it
NEIGHBOURS = 3  # cells around the box that a cell of it is compared with
BACKGROUND, FIGURE = 1.0, 2.5  # distance to them, against theirs from each other: one of them; something else
LEAST_FIGURE = 0.05, 0.2  # mean of the silhouette: nothing stands out; it counts fully
LEAST_AROUND = 20  # cells around the box from which background can be known
GRID = 24  # pixels a side that colours are taken from
BINS = (6, 12, 12)  # of L, a and b
LAST_BINS, BIN_STEPS = np.array(BINS) - 1, np.array([BINS[1] * BINS[2], BINS[2], 1])  # numbers of bins, and their order
LOWEST, HIGHEST = np.array([0.0, 68.0, 68.0]), np.array([255.0, 188.0, 188.0])  # of OpenCV's bytes; grey is 128


def figure_and_inside_masks(
    white: np.ndarray, centre: np.ndarray, inner: tuple[int, int], outer: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """How far each cell of a box differs from the cells around the box, 0 to 1, and which cells are in the picture.

    Nothing where too little is around the box to compare with.

    Parameters
    ----------
    white
        (rows, columns, channels) whitened cells of a picture.
    centre
        Of the box, x and y in cells.
    inner, outer
        Rows and columns of the box, and of the window around it.
    """
    looks = white[..., LOOKS]
    beside = window_cells_inside_picture(white.shape[:2], centre, *outer)
    top, left = (outer[0] - inner[0]) // 2, (outer[1] - inner[1]) // 2
    beside[top : top + inner[0], left : left + inner[1]] = False
    around = cut_window_of_cells(looks, centre, *outer)[beside]
    if len(around) < LEAST_AROUND:
        return None
    box = cut_window_of_cells(looks, centre, *inner)
    usual = median(mean_distances_to_nearest(around, around, 1))
    distance = mean_distances_to_nearest(box.reshape(-1, around.shape[1]), around, 0).reshape(inner)
    figure = ((distance / max(usual, 1e-6) - BACKGROUND) / (FIGURE - BACKGROUND)).clip(0, 1)
    return figure.astype(np.float32), window_cells_inside_picture(white.shape[:2], centre, *inner)


def window_cells_inside_picture(shape: tuple[int, ...], centre: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) which cells of the window that `cut_window_of_cells` cuts lie in a picture of so many cells."""
    x, y = window_corner(centre, rows, columns)
    inside = np.zeros((rows, columns), bool)
    inside[max(0, -y) : max(0, shape[0] - y), max(0, -x) : max(0, shape[1] - x)] = True
    return inside


def target_silhouette(
    white: np.ndarray, centre: np.ndarray, inner: tuple[int, int], outer: tuple[int, int]
) -> np.ndarray:
    """(rows, columns) 0 to 1: which cells of a box are the target, by `figure_and_inside_masks`.

    The less of the box stands out, the more all of it counts as the target.
    """
    import cv2

    cells = figure_and_inside_masks(white, centre, inner, outer)
    if cells is None:
        return np.ones(inner, np.float32)
    figure = cv2.blur(cells[0], (3, 3))
    low, high = LEAST_FIGURE
    counts = float(np.clip((figure.mean() - low) / (high - low), 0, 1))
    return np.asarray(1 - counts * (1 - figure), dtype=np.float32)


def mean_distances_to_nearest(rows: np.ndarray, others: np.ndarray, skip: int) -> np.ndarray:
    """(N,) mean distance of each row to the nearest other rows, the `skip` nearest left out (1 for the row itself)."""
    square = (rows**2).sum(1)[:, None] + (others**2).sum(1)[None]
    square -= 2 * rows @ others.T
    square.partition(min(skip + NEIGHBOURS, square.shape[1]) - 1, axis=1)
    nearest = np.sort(square[:, : skip + NEIGHBOURS], axis=1)[:, skip:]
    return np.asarray(np.sqrt(np.maximum(nearest, 0)).mean(axis=1))


class OwnColours:
    """Colours inside a target's silhouette, as first seen and in later views.

    Parameters
    ----------
    figure
        (rows, columns) 0 to 1: the silhouette in the box.
    """

    def __init__(self, figure: np.ndarray) -> None:
        import cv2

        weights = cv2.resize(figure, (GRID, GRID), interpolation=cv2.INTER_AREA).ravel().astype(np.float64)
        self.weights = weights / max(float(weights.sum()), 1e-9)
        self.views: list[np.ndarray] = []

    def add_view(self, lab: np.ndarray) -> None:
        """Add a view: (576, 3) colours of a grid of pixels in its box."""
        self.views.append(soft_colour_histogram(lab, self.weights))

    def best_view_overlap(self, lab: np.ndarray) -> float:
        """Common share, 0 to 1, of the colours of a box with those of the most alike view."""
        shares = soft_colour_histogram(lab, self.weights)
        return float(min(np.minimum(shares, np.stack(self.views)).sum(axis=1).max(), 1.0))


def soft_colour_histogram(lab: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(864,) shares of bins of L, a and b; each colour counts in the eight bins around it, the nearer the more."""
    at = ((lab - LOWEST) / (HIGHEST - LOWEST) * BINS - 0.5).clip(0, LAST_BINS)
    low = np.minimum(at.astype(int), LAST_BINS - 1)
    part = (at - low).T
    parts = 1 - part, part  # of the lower and of the upper bin
    place = low @ BIN_STEPS
    shares = np.zeros(int(np.prod(BINS)))
    for corner in np.ndindex(2, 2, 2):
        light, green, blue = (parts[k][channel] for channel, k in enumerate(corner))
        shares += np.bincount(place + int(BIN_STEPS @ corner), light * green * blue * weights, len(shares))
    return shares
