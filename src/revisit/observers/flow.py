"""Optical flow between successive frames: how much moves, what the camera does, what is left.

Flow is computed on gray at a longer side of 256, once for all observers. The global motion is a similarity (shift,
scale, turn about the centre) fitted to the flow of textured places by iteratively reweighted least squares: no
random numbers, and up to about 40 % of the frame may move on its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, observer
from revisit.evidence.motion import FlowStats
from revisit.observers.pictures import FLOW_SIDE, Flows, gray_at_long_side, median, vector_lengths, warp_back_with_mask
from revisit.observers.rows import evidence_arrays_of_rows

GRID = 8  # pixels between the places whose flow enters the fit
TEXTURED = 6.0  # gradient in gray levels per pixel that flow can follow; sensor noise stays below it
ENOUGH_PLACES = 30  # fewer textured places than this, and all places enter the fit
EXPLAINED = 0.01  # of the width
ROUNDS = 8


@observer(id="lite.flow", version=3, kind="sequence", makes=FlowStats, sets=("lite",))
def flow_stats(clip: ClipInfo) -> FrameStream:
    """Flow, global motion, what the global motion leaves, and warp error of every step."""
    flows = Flows()
    rows: list[dict[str, Any]] = []
    before: Frame | None = None
    while (frame := (yield)) is not None:
        if before is not None:
            flow, pictures = (
                flows.forward_flow(before, frame),
                (gray_at_long_side(before, FLOW_SIDE), gray_at_long_side(frame, FLOW_SIDE)),
            )
            seconds = frame.time - before.time
            rows.append({"index": frame.index, "seconds": seconds, **flow_stats_of_step(flow, *pictures)})
        before = frame
    return FlowStats(**evidence_arrays_of_rows(FlowStats, rows))


def flow_stats_of_step(flow: np.ndarray, earlier: np.ndarray, later: np.ndarray) -> dict[str, Any]:
    """What one row of FlowStats says of a step."""
    import cv2

    height, width = earlier.shape
    u, v = cv2.split(flow)
    length = vector_lengths(u, v)
    warped, inside = warp_back_with_mask(flow, later)
    error = cv2.mean(cv2.absdiff(warped, earlier), inside.view(np.uint8))[0] / 255 if inside.any() else 1.0
    dx, dy = (cv2.Sobel(earlier, cv2.CV_32F, *order, ksize=3, scale=0.125) for order in ((1, 0), (0, 1)))
    textured = vector_lengths(dx, dy) > TEXTURED

    places = _places_in_fit(width, height)
    at = slice(GRID // 2, None, GRID), slice(GRID // 2, None, GRID)
    vectors = flow[at].reshape(-1, 2)
    # A place is as good as the best pixel of its neighbourhood.
    good = cv2.dilate(textured.view(np.uint8), np.ones((GRID + 1, GRID + 1), np.uint8))[at].ravel() > 0
    if np.count_nonzero(good) >= ENOUGH_PLACES:
        places, vectors = places[good], vectors[good]
    vectors = vectors.astype(np.float64) / width
    shift, log_scale, rotation, residual = fit_similarity(places, vectors)
    thin = slice(None, None, 2), slice(None, None, 2)  # a fourth of the pixels tells medians as well
    return {
        "median": (median(u[thin]) / width, median(v[thin]) / width),
        "mean": float(length.mean()) / width,
        "p90": quantile(length[thin], 0.9) / width,
        "shift": shift,
        "log_scale": log_scale,
        "rotation": rotation,
        "agreement": (residual < EXPLAINED).mean(),
        "residual": residual.mean(),
        "warp_error": error,
        "inside": inside.mean(),
        "texture": textured.mean(),
    }


@lru_cache(maxsize=8)
def _places_in_fit(width: int, height: int) -> np.ndarray:
    """(N, 2) places whose flow enters the fit, from the centre of the frame, in widths."""
    ys, xs = np.mgrid[GRID // 2 : height : GRID, GRID // 2 : width : GRID].reshape(2, -1)
    return np.stack([xs - (width - 1) / 2, ys - (height - 1) / 2], axis=1) / width


def quantile(values: np.ndarray, share: float) -> float:
    """The number that this share of some numbers lies below, as numpy's quantile, in a third of its time."""
    place = share * (values.size - 1)
    low = int(place)
    parted = np.partition(values, (low, min(low + 1, values.size - 1)), axis=None)
    below, above = float(parted[low]), float(parted[min(low + 1, values.size - 1)])
    return below + (above - below) * (place - low)


def fit_similarity(places: np.ndarray, vectors: np.ndarray) -> tuple[tuple[float, float], float, float, np.ndarray]:
    """Shift, log scale, rotation, and the lengths that are left, of the similarity that most vectors follow.

    `places` (N, 2) are relative to the centre, `vectors` (N, 2) are their displacements. Solves
    v = (a - 1, -b; b, a - 1) p + t with Cauchy weights, starting from the median shift.
    """
    # Points of the plane as complex numbers: a similarity is then v = turn p + shift with complex turn and shift.
    p, v = places[:, 0] + 1j * places[:, 1], vectors[:, 0] + 1j * vectors[:, 1]
    turn, shift = 0j, complex(median(vectors[:, 0]), median(vectors[:, 1]))
    residual = np.abs(v - shift)
    mirrored = p.conj()
    for _ in range(ROUNDS):
        weight = 1 / (1 + (residual / max(1.5 * median(residual), 0.0005)) ** 2)
        # Both equations of least squares. A trace of ridge keeps the answer defined when all places lie on one spot.
        heavy = weight * mirrored
        a, b, c = float((heavy @ p).real) + 1e-9, complex(heavy.sum()), float(weight.sum()) + 1e-9
        right, sum_v = complex(heavy @ v), complex(weight @ v)
        turn = (c * right - b * sum_v) / (a * c - abs(b) ** 2)
        shift = (sum_v - b.conjugate() * turn) / c
        residual = np.abs(v - turn * p - shift)
    turn += 1
    return (shift.real, shift.imag), float(np.log(abs(turn))), float(np.angle(turn)), residual
