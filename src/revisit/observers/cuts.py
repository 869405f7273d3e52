"""Cuts: frames that do not continue the frame before.

Looked at on gray at a longer side of 160. Two frames are strangers when flow cannot connect them: after
undoing the flow the local structure does not agree, and the flow there and the flow back disagree. A
cut makes strangers of the frames on both sides of a step (`step`), and keeps them strangers a tenth of
a second further out (`lasting`), which a flash, a dropped or a damaged frame does not. What the
neighbourhood shows anyway is taken off, so that a fast pan or a restless texture is not a row of cuts. Strangers whose
pictures are alike as wholes, at some shift, are none: somebody walks by, or the camera turns too fast for flow.
Not seen: fades and morphs that take longer than about half a second.

`small.cuts` asks TransNetV2 instead. Frames are squeezed to 48 x 27 by area; 4 kB each are kept until the clip ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, observer
from revisit.evidence.motion import CutSignal, ShotChanges
from revisit.observers.pictures import (
    Flows,
    create_dis_flow,
    flow_both_ways,
    flow_destinations_and_inside,
    gray_at_long_side,
    median,
    resize_by_area,
    sample_picture_at,
    small_rgb_from_shared_size,
    vector_lengths,
)
from revisit.observers.rows import columns_of_rows, evidence_arrays_of_rows

LONG_SIDE = 160
WINDOW = 9  # pixels, side of the window in which local structure is compared
RETRY = 0.4  # strangers above this get a second chance with the best plain shift
FOLLOWED = 0.6  # change of structure below which that chance counts: 0.52 on a turn of 9 degrees a frame, 0.66 at cuts
COARSE = 48, 27  # width and height of the pictures whose whole is compared
COARSE_SHIFTS = 20, 8  # columns and rows: the largest shift between them
CONTINUES = 0.7, 0.85  # correlation there: below the first nothing in common, above the second the same picture
QUIET = 0.2  # a step below it is no cut whatever lies further out, so nobody looks there
NOISE = 4.0  # variance in gray levels squared below which structure is noise
FURTHER_SECONDS = 0.1  # how much further out `lasting` looks on each side
NEIGHBOURHOOD_SECONDS = 1.0  # on each side
TRANSNET_SIZE = 48, 27


@dataclass(frozen=True)
class CutPicture:
    """What is kept of a frame until the frames around it have been seen."""

    gray: np.ndarray
    histogram: np.ndarray


@observer(id="lite.cuts", version=6, kind="sequence", makes=CutSignal, sets=("lite",))
def cut_signal(clip: ClipInfo) -> FrameStream:
    """How far each frame is from being a continuation of the frame before."""
    maker, flows = create_dis_flow(), Flows()
    further = max(1, round(FURTHER_SECONDS * clip.fps))
    recent: deque[CutPicture] = deque(maxlen=2 * further + 2)
    rows: list[dict[str, float]] = []
    before: Frame | None = None
    while (frame := (yield)) is not None:
        recent.append(cut_picture_of_frame(frame))
        if before is not None:
            cues = cut_cues(maker, recent[-2], recent[-1], flows.forward_and_backward_flow(before, frame))
            step = combine_cues(cues)
            # The first and last few steps have no frames further out on both sides: for them the step speaks alone.
            rows.append({"index": frame.index, "seconds": frame.time, "step": step, "lasting": step})
            rows[-1].update(zip(("histogram", "structure", "disagreement"), cues, strict=True))
        before = frame
        if len(recent) == recent.maxlen:
            middle = rows[-1 - further]  # the step between the two frames in the middle
            if middle["step"] >= QUIET:
                middle["lasting"] = combine_cues(cut_cues(maker, recent[0], recent[-1]))
    both = np.array([min(row["step"], row["lasting"]) for row in rows])
    above = excess_over_local_median(both, max(2, round(NEIGHBOURHOOD_SECONDS * clip.fps)))
    scored = [{**row, "score": score} for row, score in zip(rows, above, strict=True)]
    return CutSignal(**evidence_arrays_of_rows(CutSignal, scored))


def cut_picture_of_frame(frame: Frame) -> CutPicture:
    """Gray picture and square-rooted colour histogram of a frame."""
    import cv2

    rgb = small_rgb_from_shared_size(frame, LONG_SIDE)
    lab = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)
    counts = cv2.calcHist([lab], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3).ravel()
    return CutPicture(gray_at_long_side(frame, LONG_SIDE), np.sqrt(counts / counts.sum()))


def cut_cues(
    maker: Any, a: CutPicture, b: CutPicture, flows: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[float, float, float]:
    """Change of histogram, of structure after undoing the flow, and disagreement of flow there and back; 0-1.

    `flows` is the flow there and back, at any size, where somebody has it already.
    """
    histogram = float(np.clip(1 - np.dot(a.histogram, b.histogram), 0, 1))
    both = flows or flow_both_ways(maker, a.gray, b.gray, (0.0, 0.0))
    there, back = (resize_flow(flow, a.gray.shape) for flow in both)
    structure, disagreement = structure_change_and_flow_disagreement(a.gray, b.gray, there, back)
    if structure * disagreement > RETRY**2:
        # Flow alone loses a camera that jumps by a tenth of the frame; the best plain shift puts it on the track.
        both = flow_both_ways(maker, a.gray, b.gray, best_shift(a.gray, b.gray))
        second = structure_change_and_flow_disagreement(a.gray, b.gray, *both)
        if second[0] < FOLLOWED and second[0] * second[1] < structure * disagreement:
            structure, disagreement = second
    if structure * disagreement > RETRY**2:
        # Somebody who walks by, a thing that bursts, a turn too fast for flow: the picture as a whole goes on.
        low, high = CONTINUES
        stranger = 1 - float(np.clip((best_shift_correlation(a.gray, b.gray) - low) / (high - low), 0, 1))
        structure, disagreement = structure * stranger, disagreement * stranger
    return histogram, structure, disagreement


def best_shift_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of two pictures at 48 x 27, at the shift at which it is highest; at least a third overlaps."""
    a, b = (resize_by_area(x, *COARSE).astype(np.float64) for x in (a, b))
    height, width = a.shape
    columns, rows = COARSE_SHIFTS
    y, x = (np.arange(-reach, reach + 1) for reach in (rows, columns))
    count = np.outer(height - np.abs(y), width - np.abs(x))
    # Sums over the common part under each shift; of whole numbers, and therefore exact.
    sum_a, sum_aa = (_sums_of_common_part(one, y, x) for one in (a, a * a))
    sum_b, sum_bb = (_sums_of_common_part(one, -y, -x) for one in (b, b * b))
    shape = 2 * height, 2 * width
    product = np.fft.irfft2(np.fft.rfft2(a, shape) * np.fft.rfft2(b, shape).conj(), shape)
    product = np.rint(product[np.ix_(y, x)])
    spread = (count * sum_aa - sum_a**2) * (count * sum_bb - sum_b**2)
    return float(((count * product - sum_a * sum_b) / np.maximum(np.sqrt(spread), 1e-6)).max())


def _sums_of_common_part(picture: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(len(y), len(x)) sums of what is left of a picture without its first y rows and x columns, or the last -y, -x."""
    sums = np.pad(picture.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    (top, bottom), (left, right) = (
        (np.maximum(shift, 0), length + np.minimum(shift, 0))
        for shift, length in zip((y, x), picture.shape, strict=True)
    )
    lower, upper = sums[bottom], sums[top]
    return np.asarray(lower[:, right] - lower[:, left] - upper[:, right] + upper[:, left])


def resize_flow(flow: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Flow for pictures of another shape (rows, columns)."""
    import cv2

    rows, columns = flow.shape[:2]
    if (rows, columns) == shape:
        return flow
    scaled = np.asarray(cv2.resize(flow, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR))
    factors = np.array([shape[1] / columns, shape[0] / rows], np.float32)
    # by whole rows: numpy takes several times as long for the two numbers of each pixel
    scaled.reshape(shape[0], -1)[:] *= np.tile(factors, shape[1])
    return scaled


def structure_change_and_flow_disagreement(
    a: np.ndarray, b: np.ndarray, forward_flow: np.ndarray, backward_flow: np.ndarray
) -> tuple[float, float]:
    """Change of structure after undoing the flow, and share of the frame where flow there and back disagree."""
    import cv2

    at, inside = flow_destinations_and_inside(forward_flow)
    warped, missed = sample_picture_at(b, at), sample_picture_at(backward_flow, at)
    missed += forward_flow
    slack = 1 + 0.1 * vector_lengths(*cv2.split(forward_flow))
    disagree = inside & (vector_lengths(*cv2.split(missed)) > slack)
    return structure_change(a, warped, inside), float(disagree.mean())


def best_shift(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The shift in pixels at which the left or the right part of `a` is found in `b`, in steps of 4 pixels."""
    import cv2

    size = max(1, a.shape[1] // 4), max(1, a.shape[0] // 4)
    a, b = (resize_by_area(x, *size) for x in (a, b))
    height, width = a.shape
    top, part = height // 6, max(1, width * 6 // 10)
    best, shift = -1.0, (0.0, 0.0)
    for left in (0, width - part):
        likeness = cv2.matchTemplate(b, a[top : height - top, left : left + part], cv2.TM_CCOEFF_NORMED)
        _, peak, _, (x, y) = cv2.minMaxLoc(likeness)
        if peak > best:
            best, shift = peak, (4.0 * (x - left), 4.0 * (y - top))
    return shift


def structure_change(a: np.ndarray, b: np.ndarray, inside: np.ndarray) -> float:
    """1 - local correlation, weighted by local contrast: 0 for the same structure, about 1 for none in common."""
    import cv2

    a, b = a.astype(np.float32), b.astype(np.float32)
    mean_a, mean_b, mean_aa, mean_bb, mean_ab = (
        cv2.boxFilter(x, -1, (WINDOW, WINDOW)) for x in (a, b, a * a, b * b, a * b)
    )
    variance_a, variance_b = np.maximum(mean_aa - mean_a**2, 0), np.maximum(mean_bb - mean_b**2, 0)
    correlation = (mean_ab - mean_a * mean_b + NOISE) / (np.sqrt(variance_a * variance_b) + NOISE)
    weight = (np.sqrt(np.maximum(variance_a, variance_b)) + 0.5) * inside
    total = float(weight.sum())
    return float(np.clip(1 - float((correlation * weight).sum()) / total, 0, 1)) if total > 0 else 1.0


def combine_cues(cues: tuple[float, float, float]) -> float:
    """One number from the cues: flow fails in both ways, or the colours are all different (for flat frames)."""
    histogram, structure, disagreement = cues
    return max(float(np.sqrt(structure * disagreement)), histogram)


def excess_over_local_median(values: np.ndarray, reach: int) -> np.ndarray:
    """How far each value lies above the median of its neighbours, never below 0."""
    above = np.zeros(len(values), dtype=np.float64)
    for k in range(len(values)):
        near = np.r_[values[max(0, k - reach) : k], values[k + 1 : k + 1 + reach]]
        above[k] = max(0.0, values[k] - (median(near) if len(near) else 0.0))
    return above


@observer(id="small.cuts", version=1, kind="sequence", makes=ShotChanges, weights=("transnetv2",))
def shot_change_probabilities(clip: ClipInfo) -> FrameStream:
    """How sure TransNetV2 is, at each step, that a shot ends."""
    from revisit.networks import runtime, transnet

    rows: list[tuple[int, float, np.ndarray]] = []
    while (frame := (yield)) is not None:
        rows.append((frame.index, frame.time, resize_by_area(frame.rgb, *TRANSNET_SIZE)))
    index, seconds, pictures = columns_of_rows(rows, 3)
    network = runtime.network(transnet.ID, transnet.build)
    ends, during = transnet.shot_end_and_transition_probabilities(network, np.stack(pictures))
    # The network marks the last frame of a shot; a step is named by its later frame.
    return ShotChanges(
        index=np.array(index[1:], dtype=np.int64),
        seconds=np.array(seconds[1:], dtype=np.float64),
        probability=np.asarray(ends[:-1], dtype=np.float64),
        during=np.asarray(during[:-1], dtype=np.float64),
        maker=transnet.ID,
    )
