"""Two small pictures of a place, compared without learned networks.

Two independent ways, because each fails where the other holds:

- *points*: SIFT descriptors of corners, matched one to one and verified by one similarity (turn, zoom, shift)
  of the picture. Exact, but silent where there is little texture;
- *structure*: the directions of gradients on a coarse grid, correlated under all shifts. Works on soft
  pictures and does not see brightness or colour, but knows only shifts.

Warps are 3x3 matrices in fractions of the frame, so that they hold at every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from revisit.core import Frame

POINTS = (180, 60)  # per frame and scale: enough to cover a frame, few enough to compare thousands of pairs
APART = 6  # pixels between corners of one scale
FAINTEST_CORNER = 0.003  # of the strongest one
FAINTEST = 2.5  # grey levels, deviation around a corner: below it lies noise
SIZE = 3.2  # pixels, of a corner as SIFT counts it: its descriptor sees 24 times as many a side
FIRST_LAYER = 1 << 8  # of the scale, as SIFT numbers them in a point's octave
CELLS = (8, 6)  # columns and rows of the grid on which points are spread and support is counted
RATIO = 0.78  # best to second-best distance of descriptors
TOLERANCE = 0.04  # of the width: room for parallax and perspective, which a similarity cannot express
STRUCTURE_WIDTH = 64
COARSE = 3  # descriptors keep the waves over their 4 x 4 fields that count less than this: 6 of 16
LEAST_MATCHES = 8  # pictures of different places agree on 6 at most (see docs/view-gate.md)
NEAR_ROWS, NEAR_COLUMNS = np.ogrid[-4:5, -5:6]  # shifts that belong to one peak
LEAST_OVERLAP = 0.25  # below it a correlation of gradients rests on too few cells to mean anything


@dataclass(frozen=True)
class Points:
    """Points of a frame: positions in pixels of the working size, unit descriptors, cell of the grid."""

    xy: np.ndarray  # (n, 2)
    descriptors: np.ndarray  # (n, 48)
    cell: np.ndarray  # (n,)
    size: tuple[int, int]  # width, height

    def points_outside_cells(self, cells: np.ndarray) -> Points:
        """The points outside the marked cells."""
        keep = ~cells[self.cell]
        return Points(self.xy[keep], self.descriptors[keep], self.cell[keep], self.size)


@dataclass(frozen=True)
class Link:
    """How one frame relates to another by its points; `inliers` 0 means that nothing was verified."""

    inliers: int
    support: float  # share of the cells with points in the common area that have a verified match
    warp: np.ndarray  # (3, 3) from the first frame to the second, fractions


NOTHING = Link(0, 0.0, np.eye(3))


def points_of_frame(frame: Frame, gray: np.ndarray) -> Points:
    """`find_described_points` of a grey picture of the frame, once for all observers that look at it at this size."""
    return frame.once(("points", gray.shape), lambda: find_described_points(gray))


def find_described_points(gray: np.ndarray) -> Points:
    """Well spread corners of a grey picture, with the coarse part of square-rooted descriptors (RootSIFT).

    SIFT's own search for points costs more than all the rest, most of it for scales finer than the picture; corners
    at two scales are found again as well. They are described upright: a camera that rolls is rare.
    """
    import cv2

    height, width = gray.shape
    even = cv2.createCLAHE(clipLimit=3.0, tileGridSize=(4, 4)).apply(gray)  # dark and hazy frames have points too
    smooth = cv2.GaussianBlur(even, (0, 0), 1.0).astype(np.float32)
    variance = cv2.blur(smooth * smooth, (9, 9)) - np.square(cv2.blur(smooth, (9, 9)))
    textured = (variance >= FAINTEST**2).astype(np.uint8)
    keypoints: list[cv2.KeyPoint] = []
    for octave, most in enumerate(POINTS):
        scale = 2**octave
        size = max(1, width // scale), max(1, height // scale)
        picture = cv2.resize(even, size, interpolation=cv2.INTER_AREA)
        mask = cv2.resize(textured, size, interpolation=cv2.INTER_NEAREST)
        corners = cv2.goodFeaturesToTrack(picture, most, FAINTEST_CORNER, APART, mask=mask)
        if corners is not None:
            at = corners.reshape(-1, 2) * scale + (scale - 1) / 2
            keypoints += cv2.KeyPoint.convert(at.tolist(), SIZE * scale, octave=octave | FIRST_LAYER)
    if not keypoints:
        return Points(
            np.zeros((0, 2)), np.zeros((0, len(_coarse_cosine_waves())), np.float32), np.zeros(0, int), (width, height)
        )
    for point in keypoints:
        point.angle = 0.0
    keypoints, raw = cv2.SIFT_create().compute(even, keypoints)  # type: ignore[attr-defined]
    xy = np.array(cv2.KeyPoint.convert(keypoints), np.float64)
    rooted = np.sqrt(raw / np.maximum(raw.sum(axis=1, keepdims=True), 1e-9)).astype(np.float32)
    descriptors = rooted @ _coarse_cosine_waves().T
    descriptors /= np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-9)
    column = np.clip(xy[:, 0] / width * CELLS[0], 0, CELLS[0] - 1).astype(int)
    row = np.clip(xy[:, 1] / height * CELLS[1], 0, CELLS[1] - 1).astype(int)
    return Points(xy, descriptors, row * CELLS[0] + column, (width, height))


@lru_cache(maxsize=1)
def _coarse_cosine_waves() -> np.ndarray:
    """(48, 128) what is kept of descriptors: each of the 8 directions in coarse cosine waves over the 4 x 4 fields.

    Nearly the same points match (97 %), in little more than a third of the time.
    """
    order, place = np.mgrid[:4, :4]
    wave = np.cos(np.pi * order * (place + 0.5) / 4) * np.where(order, np.sqrt(1 / 2), 1 / 2)
    coarse = [np.outer(wave[u], wave[v]) for u in range(4) for v in range(4) if u + v < COARSE]
    return np.kron(np.reshape(coarse, (-1, 16)), np.eye(8)).astype(np.float32)


def match_points(a: Points, b: Points) -> np.ndarray:
    """Rows (point of a, point of b) that are each other's best match, clearly ahead of the second best."""
    if len(a.xy) < 3 or len(b.xy) < 3:
        return np.zeros((0, 2), int)
    return match_descriptors(a.descriptors, b.descriptors, RATIO)


def match_descriptors(a: np.ndarray, b: np.ndarray, ratio: float) -> np.ndarray:
    """Rows (of a, of b) of unit descriptors that are each other's best match, clearly ahead of the second best."""
    likeness = a @ b.T
    best = likeness.argmax(axis=1)
    rows = np.arange(len(best))
    top = likeness[rows, best]
    mutual = top >= likeness.max(axis=0)[best]
    rows, best, top = rows[mutual], best[mutual], top[mutual]
    likeness[rows, best] = -2.0  # below any cosine: what is left is the second best
    second = likeness.max(axis=1)[rows]
    clear = (2 - 2 * top) < ratio**2 * (2 - 2 * second)  # squared distances of unit vectors
    return np.stack([rows[clear], best[clear]], axis=1)


def link_by_similarity(a: Points, b: Points, pairs: np.ndarray | None = None) -> Link:
    """The similarity that most matches agree on."""
    import cv2

    pairs = match_points(a, b) if pairs is None else pairs
    if len(pairs) < LEAST_MATCHES:
        return NOTHING
    src, dst = a.xy[pairs[:, 0]], b.xy[pairs[:, 1]]
    cv2.setRNGSeed(0)
    similarity, mask = cv2.estimateAffinePartial2D(
        src, dst, method=cv2.RANSAC, ransacReprojThreshold=TOLERANCE * a.size[0], maxIters=200, confidence=0.995
    )
    if similarity is None or not 0.25 < np.hypot(similarity[0, 0], similarity[1, 0]) < 4:
        return NOTHING
    inside = mask.ravel() > 0
    x, y = similarity[:, :2] @ a.xy.T + similarity[:, 2:]
    visible = (x >= 0) & (x <= b.size[0]) & (y >= 0) & (y <= b.size[1])
    with_points = int(np.count_nonzero(np.bincount(a.cell[visible])))
    confirmed = int(np.count_nonzero(np.bincount(a.cell[pairs[inside, 0]])))
    warp = np.eye(3)
    warp[:2] = similarity * [*a.size, 1.0] / np.array(b.size)[:, None]
    return Link(int(inside.sum()), min(confirmed / max(with_points, 1), 1.0), warp)


def warp_points(warp: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Where positions (n, 2) land under a 3x3 warp."""
    moved = xy @ warp[:, :2].T + warp[:, 2]
    return np.asarray(moved[:, :2] / np.where(np.abs(moved[:, 2:]) < 1e-9, 1e-9, moved[:, 2:]))


@dataclass(frozen=True)
class Structure:
    """The gradient field of a frame, ready to be correlated: its spectrum and its strength under each shift."""

    spectrum: np.ndarray  # of both its parts
    strength: np.ndarray  # root of the energy in the area that is common under each shift
    reverse: np.ndarray  # the same under each shift the other way
    shape: tuple[int, int]  # rows, columns


def gradient_structure(gray: np.ndarray, ignored_cells: np.ndarray | None = None) -> Structure:
    """Gradient directions of a grey picture on a coarse grid, each weighted by its local contrast."""
    import cv2

    height, width = gray.shape
    rows = max(8, round(STRUCTURE_WIDTH * height / width))
    small = cv2.resize(gray, (STRUCTURE_WIDTH, rows), interpolation=cv2.INTER_AREA).astype(np.float32)
    small = cv2.GaussianBlur(small, (0, 0), 0.8)
    gx = cv2.Sobel(small, cv2.CV_32F, 1, 0)
    gy = cv2.Sobel(small, cv2.CV_32F, 0, 1)
    power = gx * gx + gy * gy
    local = cv2.GaussianBlur(power, (0, 0), 6.0) + 0.1 * power.mean() + 4.0  # 4: below it lies noise, not structure
    field = (gx + 1j * gy) ** 2 / np.maximum(np.sqrt(power), 1e-6) / np.sqrt(local)  # doubled angle: sign-free edges
    if ignored_cells is not None:
        grid = ignored_cells.reshape(CELLS[1], CELLS[0]).astype(np.uint8)
        field[cv2.resize(grid, (STRUCTURE_WIDTH, rows), interpolation=cv2.INTER_NEAREST) > 0] = 0
    shape = (2 * rows, 2 * STRUCTURE_WIDTH)
    energy = np.fft.irfft2(np.fft.rfft2(np.abs(field) ** 2, shape) * _spectrum_of_ones(rows, STRUCTURE_WIDTH), shape)
    parts = np.fft.rfft2(np.stack([field.real, field.imag]), shape).astype(np.complex64)
    strength = np.sqrt(np.maximum(energy, 0)).astype(np.float32)
    reverse = np.roll(strength[::-1, ::-1], (1, 1), axis=(0, 1))
    return Structure(parts, strength, reverse, (rows, STRUCTURE_WIDTH))


def best_shift_correlations(
    a: Structure, structures: Sequence[Structure]
) -> list[tuple[float, float, tuple[float, float]]]:
    """(correlation, lead over the next best shift, shift in fractions) of the best shift of a onto each of several.

    The correlation is that of gradient directions in the common area, times the square root of
    that area's share: a small common area agrees by chance more easily.
    """
    if not structures:
        return []
    rows, columns = a.shape
    shape = 2 * rows, 2 * columns
    products = np.empty((len(structures), *a.spectrum.shape[1:]), np.complex64)
    mine, both = a.spectrum.conj(), np.empty_like(a.spectrum)
    for b, product in zip(structures, products, strict=True):
        np.multiply(mine, b.spectrum, out=both)
        np.add(both[0], both[1], out=product)
    plain = np.fft.irfft2(np.conj(products, out=products), shape).astype(np.float32, copy=False)
    root, too_little = _overlap_roots_and_too_small(rows, columns)
    peaks = []
    common = np.empty_like(a.strength)
    for b, score in zip(structures, plain, strict=True):
        # strength of b in the common area: b shifted the other way
        np.multiply(a.strength, b.reverse, out=common)
        np.maximum(common, 1e-3, out=common)
        score *= np.divide(root, common, out=common)
        np.putmask(score, too_little, -1.0)
        y, x = divmod(int(score.argmax()), shape[1])
        peak = float(score[y, x])
        rows_near, columns_near = (NEAR_ROWS + y) % shape[0], (NEAR_COLUMNS + x) % shape[1]
        score[rows_near, columns_near] = -1.0
        dy = y if y < rows else y - 2 * rows
        dx = x if x < columns else x - 2 * columns
        peaks.append((peak, peak - float(score.max()), (-dx / columns, -dy / rows)))
    return peaks


@lru_cache(maxsize=8)
def _spectrum_of_ones(rows: int, columns: int) -> np.ndarray:
    """The spectrum of a padded frame of ones."""
    ones = np.ones((rows, columns), np.float32)
    return np.asarray(np.fft.rfft2(ones, (2 * rows, 2 * columns)).conj())


@lru_cache(maxsize=8)
def _overlap_roots_and_too_small(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """For each cyclic shift of a padded frame: root of the share in common, and where it is too small."""
    y = 1 - np.minimum(np.arange(2 * rows), 2 * rows - np.arange(2 * rows)) / rows
    x = 1 - np.minimum(np.arange(2 * columns), 2 * columns - np.arange(2 * columns)) / columns
    area = np.outer(y, x)
    return np.sqrt(area).astype(np.float32), area < LEAST_OVERLAP
