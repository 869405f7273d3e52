"""A clip aligned with its reference: where its camera is, and what differs once the camera motion is undone.

Two pictures are joined by dense flow that survives the way back, set out from the best plain shift of
their gradient structure, and explained by one homography. What the homography leaves (parallax) is
undone by the same flow averaged over an eighth of the picture, which follows walls and furniture but
not the outline of a changed thing. Everything is at a longer side of 192 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from revisit.core import ClipInfo, PairStream, observer, per_second
from revisit.evidence.pictures import pack_jpegs
from revisit.evidence.reference import Departures
from revisit.observers.matching import Structure, best_shift_correlations, gradient_structure
from revisit.observers.pictures import (
    create_dis_flow,
    flow_both_ways,
    flow_with_initial_shift,
    pixel_coordinates,
    resize_by_halving,
    rgb_at_shared_size,
    sample_picture_at,
    small_rgb_from_shared_size,
    to_gray,
    vector_lengths,
)
from revisit.observers.rows import columns_of_rows

LONG_SIDE = 192
AT_MOST = 33
GRID = 6  # pixels between the points whose motion is explained
TEXTURED = 3.0  # gray levels per pixel: below it flow follows noise
TOLERANCE = 1.5  # pixels: of the way back, and of the homography
LEAST_POINTS = 24
TRIALS = 80  # of a random search for a homography: enough where half of the points agree
ENOUGH_POINTS = 150  # to find a homography; more cost time only
LEAST_SHARE = 0.3  # of the points: pictures of different places agree on a tenth
LEAST_OVERLAP = 0.25
ENOUGH = 0.6  # share at which no other start is tried
FAR = 4.0  # pixels: a coarse shift nearer than this to no shift is no other start
LEAST_LEAD = 0.03  # of a coarse shift over the next best: with less it is a guess, and one in seventy joined
SCALES = 3  # of detail, each half the size of the one before
MOST_REGISTRATIONS = 4 * 2 * AT_MOST  # of references that are kept: of the last four
SMOOTH = 1 / 16  # of the longer side: deviation of the window over which parallax is averaged


@dataclass(frozen=True)
class AlignedPicture:
    """What is kept of a frame."""

    rgb: np.ndarray
    gray: np.ndarray
    points: np.ndarray  # (n, 2) x and y of the grid's textured points
    detail: np.ndarray  # (S,)

    @cached_property
    def edges(self) -> Structure:
        """Its gradient structure, for those that are far from what they are joined with."""
        return gradient_structure(self.gray)

    @cached_property
    def digest(self) -> bytes:
        """What tells its grey picture from all others, of any size."""
        return blake2b(self.gray.tobytes(), person=str(self.gray.shape).encode()).digest()


@dataclass(frozen=True)
class Registration:
    """The homography from one picture to another, in pixels, and the share of the points that agree on it."""

    warp: np.ndarray
    share: float


APART, SAME = Registration(np.eye(3), 0.0), Registration(np.eye(3), 1.0)


@observer(
    id="lite.departures", version=5, kind="sequence", makes=Departures, frames=per_second(8, at_most=AT_MOST),
    pairs=True, sets=("lite",),
)  # fmt: skip
def departures_from_reference(clip: ClipInfo) -> PairStream:
    """At most 33 pairs of frames, registered to each other and with the frames before them."""
    maker = create_dis_flow()
    rows: list[tuple[Any, ...]] = []
    start: AlignedPicture | None = None
    before: tuple[AlignedPicture, AlignedPicture] | None = None
    while (pair := (yield)) is not None:
        if rows and pair[0].index <= rows[-1][0]:
            continue  # a frame that is compared with several of the reference speaks once
        picture = small_rgb_from_shared_size(pair[0], LONG_SIDE)
        height, width = picture.shape[:2]
        mine = aligned_picture_of_rgb(picture)
        true = aligned_picture_of_rgb(resize_by_halving(rgb_at_shared_size(pair[1]), width, height))
        offset = register_pictures(maker, mine, true)
        if start is None or before is None:
            start = true
            others = [SAME] * 3
        else:
            others = [
                register_pictures(maker, before[0], mine),
                cached_registration_of_references(maker, before[1], true),
                cached_registration_of_references(maker, start, true),
            ]
        before = (mine, true)
        shown = (*warp_onto_reference_with_coverage(maker, mine, true, offset), true.rgb, (mine.detail, true.detail))
        rows.append((pair[0].index, pair[0].time, pair[1].index, [offset, *others], *shown))
    n = len(rows)
    index, seconds, reference, registrations, pictures, covered, truths, details = columns_of_rows(rows, 8)
    height, width = pictures[0].shape[:2] if n else (1, 1)
    to_pixels = np.diag([width, height, 1.0])
    to_fractions = np.linalg.inv(to_pixels)
    warps = np.array([[to_fractions @ one.warp @ to_pixels for one in row] for row in registrations])
    warps = warps.reshape(n, 4, 3, 3)
    shares = np.array([[one.share for one in row] for row in registrations], dtype=np.float64).reshape(n, 4)
    shown_files, truth_files = pack_jpegs(pictures), pack_jpegs(truths)
    detail = np.array(details, dtype=np.float64).reshape(n, 2, SCALES)
    return Departures(
        index=np.array(index, dtype=np.int64), seconds=np.array(seconds, dtype=np.float64),
        reference=np.array(reference, dtype=np.int64),
        offset=warps[:, 0], offset_share=shares[:, 0],
        clip_step=warps[:, 1], clip_step_share=shares[:, 1],
        reference_step=warps[:, 2], reference_step_share=shares[:, 2],
        reference_first=warps[:, 3], reference_first_share=shares[:, 3],
        shown_jpeg=shown_files[0], shown_begins=shown_files[1],
        truth_jpeg=truth_files[0], truth_begins=truth_files[1],
        covered=np.array(covered, dtype=bool).reshape(n, height, width),
        clip_detail=detail[:, 0], reference_detail=detail[:, 1],
    )  # fmt: skip


def aligned_picture_of_rgb(rgb: np.ndarray) -> AlignedPicture:
    """A small picture with its textured points and its detail at three scales."""
    import cv2

    grey = to_gray(rgb)
    dx, dy = cv2.Sobel(grey, cv2.CV_32F, 1, 0, scale=0.125), cv2.Sobel(grey, cv2.CV_32F, 0, 1, scale=0.125)
    texture = cv2.blur(vector_lengths(dx, dy), (GRID + 1, GRID + 1))
    half = GRID // 2
    y, x = np.nonzero(texture[half::GRID, half::GRID] > TEXTURED)
    points = np.stack([x, y], axis=1).astype(np.float32) * GRID + half
    detail = []
    scaled = grey.astype(np.float32)
    for _ in range(SCALES):
        detail.append(float(np.abs(np.diff(scaled, axis=1)).mean() + np.abs(np.diff(scaled, axis=0)).mean()) / 2)
        scaled = cv2.resize(scaled, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return AlignedPicture(rgb, grey, points, np.array(detail))


def cached_registration_of_references(maker: Any, a: AlignedPicture, b: AlignedPicture) -> Registration:
    """Registration of two pictures of a reference, worked out once for all clips that are compared with it in turn."""
    key = a.digest, b.digest
    if key not in _reference_registrations:
        while len(_reference_registrations) >= MOST_REGISTRATIONS:
            _reference_registrations.pop(next(iter(_reference_registrations)), None)
        _reference_registrations[key] = register_pictures(maker, a, b)
    return _reference_registrations[key]


_reference_registrations: dict[tuple[bytes, bytes], Registration] = {}


def register_pictures(maker: Any, a: AlignedPicture, b: AlignedPicture) -> Registration:
    """Registration of a to b: the best of no shift and of the best shift of their structures."""
    centred = registration_from_shift(maker, a, b, (0.0, 0.0))
    if centred.share >= ENOUGH:
        return centred
    ((_, lead, (x, y)),) = best_shift_correlations(a.edges, [b.edges])
    start = x * a.gray.shape[1], y * a.gray.shape[0]
    best = centred
    if lead >= LEAST_LEAD and float(np.hypot(*start)) >= FAR:
        best = max(centred, registration_from_shift(maker, a, b, start), key=lambda one: one.share)
    return best if best.share >= LEAST_SHARE else APART


def registration_from_shift(
    maker: Any, a: AlignedPicture, b: AlignedPicture, start: tuple[float, float]
) -> Registration:
    """The homography that explains the flow from a to b, when the flow sets out from a shift in pixels."""
    import cv2

    height, width = a.gray.shape
    if len(a.points) < LEAST_POINTS or len(b.points) < LEAST_POINTS:
        return APART
    there, back = flow_both_ways(maker, a.gray, b.gray, start)
    x, y = a.points.astype(int).T
    out = there[y, x]
    moved = a.points + out
    missed = out + sample_picture_at(back, moved[:, None])[:, 0]
    good = is_inside_picture(moved, width, height) & (np.hypot(missed[:, 0], missed[:, 1]) < TOLERANCE)
    count = np.count_nonzero(good)
    if count < LEAST_POINTS:
        return APART
    cv2.setRNGSeed(0)
    some = np.flatnonzero(good)[:: max(1, count // ENOUGH_POINTS)]
    warp, agrees = cv2.findHomography(
        a.points[some], moved[some], cv2.RANSAC, TOLERANCE, maxIters=TRIALS, confidence=0.99
    )
    if warp is None or agrees is None or not is_plausible_homography(warp, width, height):
        return APART
    landed = cv2.perspectiveTransform(a.points[None], warp)[0]
    common = np.count_nonzero(is_inside_picture(landed, width, height))
    if common < max(LEAST_POINTS, LEAST_OVERLAP * len(a.points)):
        return APART
    share = float(agrees.mean()) * float(count) / float(common)
    return Registration(np.asarray(warp, dtype=np.float64), min(1.0, share))


def is_inside_picture(points: np.ndarray, width: int, height: int) -> np.ndarray:
    """(n,) which points (n, 2) lie on pixels of a picture or between them."""
    x, y = points[:, 0], points[:, 1]
    return np.asarray((x >= 0) & (y >= 0) & (x <= width - 1) & (y <= height - 1))


def is_plausible_homography(warp: np.ndarray, width: int, height: int) -> bool:
    """Whether a homography is one that a camera makes: the picture keeps its orientation and about its size."""
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1]], dtype=np.float64) @ warp.T
    if (corners[:, 2] <= 0.2).any():
        return False
    x, y = (corners[:, :2] / corners[:, 2:]).T
    after = [1, 2, 3, 0]
    area = 0.5 * float(x @ y[after] - y @ x[after]) / (width * height)
    return 0.2 < area < 5


def warp_onto_reference_with_coverage(
    maker: Any, mine: AlignedPicture, true: AlignedPicture, offset: Registration
) -> tuple[np.ndarray, np.ndarray]:
    """The clip's picture as seen from the reference's camera, and the pixels that it reaches."""
    import cv2

    height, width = true.gray.shape
    if offset.share == 0:
        return mine.rgb, np.ones((height, width), bool)
    grid, back = pixel_coordinates(width, height), np.linalg.inv(offset.warp)
    at = cv2.perspectiveTransform(grid.reshape(1, -1, 2), back).reshape(height, width, 2)
    residual = flow_with_initial_shift(maker, true.gray, sample_picture_at(mine.gray, at))
    sigma = SMOOTH * max(height, width)
    smooth = cv2.GaussianBlur(residual, (0, 0), sigma)
    at = cv2.perspectiveTransform((grid + smooth).reshape(1, -1, 2), back).reshape(height, width, 2)
    reached = cv2.inRange(at, (-0.5, -0.5), (width - 0.5, height - 0.5)) > 0
    return sample_picture_at(mine.rgb, at), reached
