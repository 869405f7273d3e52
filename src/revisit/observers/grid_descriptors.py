"""Cells: a picture as a coarse grid of edge directions and colours, and where a piece of it recurs.

A cell of 4x4 pixels holds nine edge directions (normalised by the surroundings, so that light does
not matter much), the strength of edges, and mean CIELAB. Whitening against the first frame makes
what is common there count little and what is special count much, which is what tells a target from
its surroundings. Similarity is the normalised correlation of two layouts of whitened cells.

A box also holds what is behind a thing. A cell of the box that is as near to some cells around the box as these are to
each other is background. Colours are compared inside that silhouette alone, with soft bins, so that another individual
of the same shape is told by its colours while a little more light changes little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from revisit.observers.pictures import median, resize_by_area

CELL = 4  # pixels
DIRECTIONS = 9
CHANNELS = DIRECTIONS + 4
GREY, COLOURS = np.array([0, 128, 128], np.float32), np.array([255, 100, 100], np.float32)  # of OpenCV's bytes
STEPS = 511  # of lightness from one pixel to the next but one, -255 to 255
EDGES = STEPS**2
# Noise of each channel: directions, log strength, L, a, b. Smaller differences are not magnified.
NOISE = np.r_[np.full(DIRECTIONS, 0.003), 0.05, 0.003, 0.0004, 0.0004]
FAINT_EDGE = 0.02  # of the range of lightness; weaker edges are noise
LARGEST = 5.0  # deviations; one glaring cell must not decide alone
FAINTEST = 0.25  # of the template's energy; a flat region is not blown up into a match
LOOKS = slice(DIRECTIONS, CHANNELS)  # strength of edges and colour: what tells a thing from what is around it
NEIGHBOURS = 3  # cells around the box that a cell of it is compared with
BACKGROUND, FIGURE = 1.0, 2.5  # distance to them, against theirs from each other: one of them; something else
LEAST_FIGURE = 0.05, 0.2  # mean of the silhouette: nothing stands out; it counts fully
LEAST_AROUND = 20  # cells around the box from which background can be known
GRID = 24  # pixels a side that colours are taken from
BINS = (6, 12, 12)  # of L, a and b
LAST_BINS, BIN_STEPS = np.array(BINS) - 1, np.array([BINS[1] * BINS[2], BINS[2], 1])  # numbers of bins, and their order
LOWEST, HIGHEST = np.array([0.0, 68.0, 68.0]), np.array([255.0, 188.0, 188.0])  # of OpenCV's bytes; grey is 128


def describe_cells(rgb: np.ndarray) -> np.ndarray:
    """(rows, columns, 13) edge directions, edge strength and colour of each cell; a rest at the border is dropped."""
    import cv2

    rows, columns = rgb.shape[0] // CELL, rgb.shape[1] // CELL
    lab = cv2.cvtColor(rgb[: rows * CELL, : columns * CELL], cv2.COLOR_RGB2LAB)
    light = cv2.extractChannel(lab, 0)
    dx, dy = cv2.Sobel(light, cv2.CV_16S, 1, 0, ksize=1), cv2.Sobel(light, cv2.CV_16S, 0, 1, ksize=1)
    edge = cv2.addWeighted(dx, STEPS, dy, 1, EDGES // 2, dtype=cv2.CV_32S).ravel().astype(np.intp)
    direction, own, next_share = (table.take(edge, mode="clip") for table in _edge_direction_tables())
    place = np.add(_first_bin_of_each_pixel(rows, columns), direction, out=edge)
    count = rows * columns * (DIRECTIONS + 1)
    pooled = np.bincount(place, own, count)
    pooled[1:] += np.bincount(place, next_share, count)[:-1]
    pooled = pooled.reshape(rows, columns, DIRECTIONS + 1)
    pooled[..., 0] += pooled[..., DIRECTIONS]  # the bin after the last is the first

    directions = pooled[..., :DIRECTIONS].astype(np.float32)
    total = directions @ np.ones(DIRECTIONS, np.float32)
    directions /= (cv2.blur(total, (3, 3)) + np.float32(FAINT_EDGE))[..., None]
    colour = resize_by_area(lab.astype(np.float32), columns, rows)
    colour -= GREY
    colour /= COLOURS
    return np.concatenate([directions, np.log(total + np.float32(FAINT_EDGE))[..., None], colour], axis=2)


@lru_cache(maxsize=1)
def _edge_direction_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each pair of steps of lightness across and down: its direction, and its strength there and in the next one.

    A direction and its opposite are one: a full turn passes the bins twice.
    """
    dx, dy = np.mgrid[-255:256, -255:256] / 255.0 / CELL**2  # the mean of a cell is the sum of these
    strength = np.hypot(dx, dy).ravel()
    angle = np.arctan2(dy, dx).ravel() % np.pi * (DIRECTIONS / np.pi)
    bins = np.minimum(angle.astype(np.intp), DIRECTIONS - 1)
    return bins, strength * (1 - angle + bins), strength * (angle - bins)


@lru_cache(maxsize=16)
def _first_bin_of_each_pixel(rows: int, columns: int) -> np.ndarray:
    """For each pixel, the place of the first of the bins of its cell, one more than directions, among those of all."""
    y, x = np.arange(rows * CELL) // CELL, np.arange(columns * CELL) // CELL
    return ((y[:, None] * columns + x) * (DIRECTIONS + 1)).astype(np.intp).ravel()


@dataclass(frozen=True)
class Whitening:
    """Cells in deviations from the average cell of one picture."""

    mean: np.ndarray
    turn: np.ndarray

    @classmethod
    def fit(cls, cells: np.ndarray) -> Whitening:
        """Whitening that makes the cells of this picture uncorrelated and of unit variance."""
        flat = cells.reshape(-1, CHANNELS).astype(np.float64)
        values, vectors = np.linalg.eigh(np.cov(flat.T) + np.diag(NOISE))
        turn = (vectors / np.sqrt(values)) @ vectors.T
        return cls(flat.mean(0).astype(np.float32), turn.astype(np.float32))

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """(rows, columns, 13) deviations, none longer than `LARGEST`."""
        white = (cells - self.mean).reshape(-1, CHANNELS) @ self.turn
        length = np.sqrt(np.einsum("nc,nc->n", white, white))
        white *= (LARGEST / np.maximum(length, np.float32(LARGEST)))[:, None]
        return np.asarray(white, dtype=np.float32).reshape(cells.shape)


def window_corner(centre: np.ndarray, rows: int, columns: int) -> tuple[int, int]:
    """x and y of the first of rows x columns cells around a centre (x, y in cells)."""
    return round(float(centre[0]) - (columns - 1) / 2), round(float(centre[1]) - (rows - 1) / 2)


def cut_window_of_cells(whitened: np.ndarray, centre: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The rows x columns cells around a centre (x, y in cells); zero where the picture ends."""
    x, y = window_corner(centre, rows, columns)
    out = np.zeros((rows, columns, whitened.shape[-1]), np.float32)
    top, left = max(0, y), max(0, x)
    piece = whitened[top : max(top, y + rows), left : max(left, x + columns)]
    out[top - y : top - y + piece.shape[0], left - x : left - x + piece.shape[1]] = piece
    return out


def padded_spectrum(whitened: np.ndarray, padded: tuple[int, int]) -> np.ndarray:
    """(13, ...) spectrum of each channel, as `rfft2` makes it of the padded picture.

    Pictures are small and a good part of them is padding: along lines, a product of matrices takes less time.
    """
    rows, columns = whitened.shape[:2]
    lines = np.ascontiguousarray(whitened.transpose(2, 0, 1)).reshape(-1, columns)
    row_spectrum = (lines @ _fourier_matrix(columns, padded[1])).view(np.complex64).reshape(CHANNELS, rows, -1)
    return np.fft.fft(row_spectrum, padded[0], axis=1).astype(np.complex64, copy=False)


@lru_cache(maxsize=32)
def _fourier_matrix(count: int, padded: int) -> np.ndarray:
    """The matrix that transforms so many numbers, padded with zeros; of each wave its real part, then its imaginary."""
    turns = np.outer(np.arange(count), np.arange(padded)) % padded / padded
    waves = np.exp(-2j * np.pi * turns).astype(np.complex64)
    return np.ascontiguousarray(waves[:, : padded // 2 + 1]).view(np.float32)


class CellView:
    """A whitened picture, transformed once for all probes that look through it."""

    def __init__(self, white: np.ndarray, largest_probe: tuple[int, int]) -> None:
        import cv2

        self.white = white
        rows, columns = white.shape[:2]
        # wide enough that half a probe over one border does not reach the other side
        least = (max(side + probe // 2 + 1, probe) for side, probe in zip((rows, columns), largest_probe, strict=True))
        self.padded = cv2.getOptimalDFTSize(next(least)), cv2.getOptimalDFTSize(next(least))
        self.spectrum = padded_spectrum(white, self.padded)
        self.square = np.einsum("yxc,yxc->yx", white, white)


class Window:
    """The weight of each cell of a probe: a sum of few products of a column and a row, which are quick to apply."""

    def __init__(self, weight: np.ndarray) -> None:
        self.weight = weight.astype(np.float32)
        columns, sizes, rows = np.linalg.svd(weight.astype(np.float64))
        self._parts = [(rows[k], columns[:, k] * size) for k, size in enumerate(sizes) if size > 1e-6 * sizes[0]]

    def energy_map(self, view: CellView) -> np.ndarray:
        """Weighted energy of a view in the window around each cell."""
        import cv2

        square, border = view.square, cv2.BORDER_CONSTANT
        parts = [cv2.sepFilter2D(square, cv2.CV_32F, row, column, borderType=border) for row, column in self._parts]
        return np.asarray(sum(parts))


def sums_over_halves(cells: np.ndarray) -> np.ndarray:
    """(..., 4) sums over the upper, lower, left and right half of (..., rows, columns)."""
    rows, columns = cells.shape[-2] // 2, cells.shape[-1] // 2
    row_sums, column_sums = cells.sum(-1), cells.sum(-2)
    parts = (row_sums[..., :rows], row_sums[..., rows:], column_sums[..., :columns], column_sums[..., columns:])
    return np.stack([part.sum(-1) for part in parts], axis=-1)


class Probe:
    """A piece of a picture to look for, in a window."""

    def __init__(self, piece: np.ndarray, window: Window) -> None:
        self.rows, self.columns = piece.shape[:2]
        self.window = window
        self.weighted = piece * window.weight[..., None]
        self.energy = (piece * self.weighted).sum(-1)
        self.halves = sums_over_halves(self.energy)
        # an even number of cells has no middle one: the correlation belongs half a cell up and left
        self.off = np.array([(self.columns + 1) % 2, (self.rows + 1) % 2]) / -2
        self._prepared: dict[tuple[int, int, int, int], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def spectrum_least_energy_and_gain(self, view: CellView) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For views of this shape: spectrum of the probe, the least energy that counts at each cell, and its gain.

        Where a probe reaches over the border only what is inside is compared. A small remainder inside agrees with
        anything, so its worth falls with the share inside and is 0 below a third.
        """
        import cv2

        rows, columns = view.white.shape[:2]
        key = (rows, columns, *view.padded)
        if key not in self._prepared:
            ones = np.ones((rows, columns), np.float32)
            inside = cv2.filter2D(ones, cv2.CV_32F, self.energy, borderType=cv2.BORDER_CONSTANT)
            share = inside / max(float(self.energy.sum()), 1e-6)
            worth = np.where(share < 1 / 3, 0, np.sqrt(np.clip(share / 0.75, 0, 1)))
            centred = np.zeros((*view.padded, CHANNELS), np.float32)
            centred[: self.rows, : self.columns] = self.weighted
            centred = np.roll(centred, (-(self.rows // 2), -(self.columns // 2)), (0, 1))
            least = np.maximum(FAINTEST * inside, 1e-6).astype(np.float32)
            gained = (worth / np.sqrt(np.maximum(inside, 1e-6))).astype(np.float32)
            self._prepared[key] = np.conj(padded_spectrum(centred, view.padded)), least, gained
        return self._prepared[key]


def similarity_maps(probes: Sequence[Probe], view: CellView) -> np.ndarray:
    """(probes, rows, columns) correlation with each probe centred on each cell."""
    rows, columns = view.white.shape[:2]
    prepared = [probe.spectrum_least_energy_and_gain(view) for probe in probes]
    products, each = np.empty((len(probes), *view.spectrum.shape[1:]), np.complex64), np.empty_like(view.spectrum)
    for product, (spectrum, _, _) in zip(products, prepared, strict=True):
        np.multiply(view.spectrum, spectrum, out=each).sum(axis=0, out=product)
    # the inverse transform, of the rows that are asked for only
    down = np.fft.ifft(products, axis=1)[:, :rows]
    maps = np.fft.irfft(down, view.padded[1], axis=2)[:, :, :columns].astype(np.float32, copy=False)
    energy = {window: window.energy_map(view) for window in {probe.window for probe in probes}}
    for value, probe, (_, least, gained) in zip(maps, probes, prepared, strict=True):
        present = np.maximum(energy[probe.window], least)
        value *= np.divide(gained, np.sqrt(present, out=present), out=present)
    return maps


def figure_strength_and_inside_mask(
    whitened: np.ndarray, centre: np.ndarray, box_shape: tuple[int, int], window_shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """How far each cell of a box differs from the cells around the box, 0 to 1, and which cells are in the picture.

    Nothing where too little is around the box to compare with.

    Parameters
    ----------
    whitened
        (rows, columns, channels) whitened cells of a picture.
    centre
        Of the box, x and y in cells.
    box_shape, window_shape
        Rows and columns of the box, and of the window around it.
    """
    looks = whitened[..., LOOKS]
    around = cut_window_of_cells(looks, centre, *window_shape)[
        cells_around_box(whitened.shape, centre, box_shape, window_shape)
    ]
    if len(around) < LEAST_AROUND:
        return None
    box = cut_window_of_cells(looks, centre, *box_shape)
    usual = median(mean_distances_to_nearest(around, around, 1))
    distance = mean_distances_to_nearest(box.reshape(-1, around.shape[1]), around, 0).reshape(box_shape)
    figure = ((distance / max(usual, 1e-6) - BACKGROUND) / (FIGURE - BACKGROUND)).clip(0, 1)
    return figure.astype(np.float32), window_cells_inside_picture(whitened.shape, centre, *box_shape)


def cells_around_box(
    shape: tuple[int, ...], centre: np.ndarray, box_shape: tuple[int, int], window_shape: tuple[int, int]
) -> np.ndarray:
    """(rows, columns) which cells of the outer window lie in a picture of so many cells, and not in the box within."""
    beside = window_cells_inside_picture(shape, centre, *window_shape)
    top, left = (window_shape[0] - box_shape[0]) // 2, (window_shape[1] - box_shape[1]) // 2
    beside[top : top + box_shape[0], left : left + box_shape[1]] = False
    return beside


def window_cells_inside_picture(shape: tuple[int, ...], centre: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) which cells of the window that `cut_window_of_cells` cuts lie in a picture of so many cells."""
    x, y = window_corner(centre, rows, columns)
    inside = np.zeros((rows, columns), bool)
    inside[max(0, -y) : max(0, shape[0] - y), max(0, -x) : max(0, shape[1] - x)] = True
    return inside


def target_silhouette(
    whitened: np.ndarray, centre: np.ndarray, box_shape: tuple[int, int], window_shape: tuple[int, int]
) -> np.ndarray:
    """(rows, columns) 0 to 1: which cells of a box are the target, by `figure_strength_and_inside_mask`.

    The less of the box stands out, the more all of it counts as the target.
    """
    import cv2

    cells = figure_strength_and_inside_mask(whitened, centre, box_shape, window_shape)
    if cells is None:
        return np.ones(box_shape, np.float32)
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
        weights = resize_by_area(figure, GRID, GRID).ravel().astype(np.float64)
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
