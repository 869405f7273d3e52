"""Warp errors: frames of the visible and the returned phase, carried into each other by optical flow.

Frames are sampled from the first of the visible and of the returned phase on, `step` apart; where no step is given, a
quarter of a second.

A pixel can be compared if the flow keeps it in the frame and the way back ends where it began, within Sundaram's limit
(ECCV 2010): |f + b|^2 <= 0.01 (|f|^2 + |b|^2) + 0.5. Where that holds for less than half of the pixels that stay in the
frame, the flow was not followed but lost, and all of them count: else a clip whose picture boils would be judged by the
few places where it happens not to.

Sampling between pixels blurs, and the blur of one side alone would cost a perfect pan 5 points of 100. Both pictures
are therefore smoothed by one pixel before `error` is taken; `wrong_way` and `still` are of the pictures as they are.

    lite.warp   DIS on gray at the compared size, there and back. DIS alone loses a pan of more than a tenth of the
                width, which a quarter of a second often brings, so it starts from the flow that is added up over the
                frames between.
    small.warp  GMFlow. It compares all places of two pictures, so large motion needs no help from the frames between,
                and only sampled frames are looked at. It runs at a longer side of 512 at most.
    paper.warp  RAFT-Large, as MemoBench has it. The network was trained on values from -1 to 1; the public evaluator
                gives it values from 0 to 1, and so does `signed: false`, which the protocol `upstream` sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.observers.pictures import SHARED_LONG_SIDE, create_dis_flow, to_gray, warp_back_with_mask
from revisit.suites.memobench.evidence import WarpErrors

SECONDS = 0.25  # 4 frames at 16 frames a second
LEAST_FOLLOWED = 0.5
SMOOTHED = 1.0  # pixels, standard deviation
RELATIVE, ABSOLUTE = 0.01, 0.5  # Sundaram's constants, for flow in pixels
VISIBLE, RETURNED = 0, 2
NUMBERS = ("error", "compared", "inside", "wrong_way", "still", "length")  # of each pair, as `WarpErrors` names them

# Flow there and back, (height, width, 2) each in pixels, of each pair of earlier and later RGB pictures.
Flow = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], Iterable[tuple[np.ndarray, np.ndarray]]]


def step_or_quarter_second(step: int, fps: float) -> int:
    """Frames from one sampled frame to the next; 0 stands for a quarter of a second."""
    return step or max(1, round(SECONDS * fps))


def sampled_frames_by_phase(count: int, phases: tuple[int, int], step: int, closed: bool) -> dict[int, range]:
    """Frames that are sampled in each phase."""
    hidden, returned = phases
    return {VISIBLE: range(0, min(hidden + closed, count), step), RETURNED: range(returned, count, step)}


def all_sampled_frames(
    count: int, fps: float, phases: tuple[int, int], *, step: int = 0, closed: bool = False, **_: Any
) -> np.ndarray:
    """Numbers of all sampled frames."""
    sampled = sampled_frames_by_phase(count, phases, step_or_quarter_second(step, fps), closed)
    return np.array(sorted({k for frames in sampled.values() for k in frames}), dtype=np.int64)


@dataclass
class WarpRows:
    """Pairs of sampled frames of a clip, and what was found of each."""

    clip: ClipInfo
    phases: tuple[int, int]
    step: int  # frames from one sampled frame to the next
    closed: bool
    maker: str
    size: tuple[int, int] = (0, 0)  # height and width of the pictures
    rows: list[tuple[float, ...]] = field(default_factory=list)  # earlier frame, later frame, phase, `NUMBERS`

    def __post_init__(self) -> None:
        self.step = step_or_quarter_second(self.step, self.clip.fps)
        self.sampled = sampled_frames_by_phase(self.clip.count, self.phases, self.step, self.closed)

    def add_pair(
        self, place: tuple[int, int, int], earlier: np.ndarray, later: np.ndarray, there: np.ndarray, back: np.ndarray
    ) -> None:
        """A pair of RGB pictures with the flow between them."""
        self.rows.append((*place, *warp_statistics_of_pair(divide_by_255(earlier), divide_by_255(later), there, back)))

    def to_warp_errors(self) -> WarpErrors:
        """All pairs as evidence."""
        columns = np.array(self.rows, dtype=np.float64).reshape(-1, 3 + len(NUMBERS)).T
        index, other, phase = columns[:3].astype(np.int64)
        height, width = self.size
        return WarpErrors(
            index=index, other=other, phase=phase, **dict(zip(NUMBERS, columns[3:], strict=True)), step=self.step,
            fps=self.clip.fps, closed=self.closed, maker=self.maker, width=width, height=height,
        )  # fmt: skip


def observe_warp_by_network(rows: WarpRows, flow: Flow, long_side: int | None) -> FrameStream:
    """Errors of pairs of successive sampled frames, by the flow of a network."""
    from revisit.networks.flow_runs import pairs_at_once

    batch = pairs_at_once()
    phase_of = {k: phase for phase, frames in rows.sampled.items() for k in frames}
    waiting: list[tuple[tuple[int, int, int], np.ndarray, np.ndarray]] = []
    before: tuple[int, int, np.ndarray] | None = None  # phase and number of the sampled frame before

    def add_waiting_pairs() -> None:
        places, earlier, later = zip(*waiting, strict=True)
        for row in zip(places, earlier, later, flow(earlier, later), strict=True):
            rows.add_pair(*row[:3], *row[3])
        waiting.clear()

    while (frame := (yield)) is not None:
        phase = phase_of.get(frame.index)
        if phase is None:
            continue
        picture = frame.at(long_side)
        rows.size = picture.shape[:2]
        if before is not None and before[0] == phase:
            waiting.append(((before[1], frame.index, phase), before[2], picture))
        before = phase, frame.index, picture
        if len(waiting) >= batch:
            add_waiting_pairs()
    if waiting:
        add_waiting_pairs()
    return rows.to_warp_errors()


@observer(
    id="small.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), weights=("gmflow",),
    choose=all_sampled_frames,
)  # fmt: skip
def gmflow_warp(
    clip: ClipInfo,
    phases: tuple[int, int],
    *,
    step: int = 0,
    closed: bool = False,
    long_side: int = 640,
    flow_side: int = 512,
) -> FrameStream:
    """Errors of GMFlow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    from revisit.networks.flow_runs import gmflow_both_ways

    rows = WarpRows(clip, phases, step, closed, "gmflow")
    return (yield from observe_warp_by_network(rows, partial(gmflow_both_ways, max_long_side=flow_side), long_side))


@observer(
    id="paper.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), weights=("raft-large",),
    choose=all_sampled_frames,
)  # fmt: skip
def raft_warp(
    clip: ClipInfo,
    phases: tuple[int, int],
    *,
    step: int = 0,
    closed: bool = False,
    long_side: int = 640,
    signed: bool = True,
) -> FrameStream:
    """Errors of RAFT's flow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    from revisit.networks.flow_runs import raft_both_ways

    maker = "raft-large" if signed else "raft-large on values from 0 to 1"
    rows = WarpRows(clip, phases, step, closed, maker)
    return (yield from observe_warp_by_network(rows, partial(raft_both_ways, levels_from_minus_one=signed), long_side))


@observer(id="lite.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), sets=("lite",))
def dis_warp(
    clip: ClipInfo, phases: tuple[int, int], *, step: int = 0, closed: bool = False, long_side: int = 640
) -> FrameStream:
    """Errors of flow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    import cv2

    rows = WarpRows(clip, phases, step, closed, "DIS")
    sampled = rows.sampled
    phase_of = {k: phase for phase, frames in sampled.items() if frames for k in range(frames[0], frames[-1] + 1)}
    maker = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    before: tuple[int, np.ndarray] | None = None  # the sampled frame before, of the same phase
    path: AccumulatedFlow | None = None  # from that frame to the last one seen
    while (frame := (yield)) is not None:
        phase = phase_of.get(frame.index)
        if phase is None:
            continue
        if frame.index == sampled[phase][0]:
            before = path = None
        small = to_gray(frame.at(SHARED_LONG_SIDE))
        path = AccumulatedFlow(small) if path is None else path.extended_to_picture(small)
        if frame.index not in sampled[phase]:
            continue
        picture = frame.at(long_side)
        rows.size = picture.shape[:2]
        if before is not None:
            earlier, picture_before = before
            there, back = path.flows_at_size(*rows.size)
            grays = to_gray(picture_before), to_gray(picture)
            there, back = maker.calc(*grays, there), maker.calc(*grays[::-1], back)
            rows.add_pair((earlier, frame.index, phase), picture_before, picture, there, back)
        before, path = (frame.index, picture), AccumulatedFlow(small, step=path.step)
    return rows.to_warp_errors()


@dataclass(frozen=True)
class AccumulatedFlow:
    """Flow from a frame to a later one and back, at a small size, added up over the frames between."""

    last: np.ndarray  # gray picture of the later frame
    there: np.ndarray | None = None  # None: the later frame is the frame itself
    back: np.ndarray | None = None
    step: tuple[np.ndarray, np.ndarray] | None = None  # there and back over the last frame alone

    def extended_to_picture(self, picture: np.ndarray) -> AccumulatedFlow:
        """The way as far as the next frame; cameras move steadily, so flow is looked for where it was before."""
        maker = create_dis_flow()
        guess = [flow.copy() for flow in self.step] if self.step is not None else [None, None]
        forward, backward = maker.calc(self.last, picture, guess[0]), maker.calc(picture, self.last, guess[1])
        there, back = forward, backward
        if self.there is not None and self.back is not None:
            there = self.there + warp_back_with_mask(self.there, forward)[0]
            back = backward + warp_back_with_mask(backward, self.back)[0]
        return AccumulatedFlow(picture, there, back, (forward, backward))

    def flows_at_size(self, height: int, width: int) -> list[np.ndarray]:
        """Flow there and back in pixels of a picture of this size."""
        import cv2

        flows = []
        for flow in (self.there, self.back):
            assert flow is not None
            rows, columns = flow.shape[:2]
            scale = np.array([width / columns, height / rows], dtype=np.float32)
            flows.append(np.ascontiguousarray(cv2.resize(flow, (width, height)) * scale))
        return flows


def divide_by_255(rgb: np.ndarray) -> np.ndarray:
    """The picture with values from 0 to 1."""
    return np.asarray(rgb, dtype=np.float32) / 255


def warp_statistics_of_pair(
    earlier: np.ndarray, later: np.ndarray, flow: np.ndarray, back: np.ndarray | None = None
) -> tuple[float, float, float, float, float, float]:
    """One row of WarpErrors, from `error` to `length`, of two pictures (0-1) and the flow (pixels) between them."""
    errors, still = warp_error_and_shares(earlier, later, flow, back), float(np.abs(earlier - later).mean())
    length = float(np.hypot(flow[:, :, 0], flow[:, :, 1]).mean()) / flow.shape[1]
    return (*errors, reversed_warp_error(earlier, later, flow), still, length)


def warp_error_and_shares(
    earlier: np.ndarray, later: np.ndarray, flow: np.ndarray, back: np.ndarray | None = None
) -> tuple[float, float, float]:
    """Mean difference of the later picture at x + f to the earlier one at x, share compared, share inside.

    Without the flow back only the pixels that leave the frame are left out. The error is 1 where all leave it.
    """
    import cv2

    earlier, later = (cv2.GaussianBlur(picture, (0, 0), SMOOTHED) for picture in (earlier, later))
    warped, inside = warp_back_with_mask(flow, later)
    followed = inside if back is None else inside & forward_backward_consistent_mask(flow, back)
    if followed.sum() < LEAST_FOLLOWED * inside.sum():
        followed = inside
    error = float(np.abs(warped - earlier)[followed].mean()) if followed.any() else 1.0
    return error, float(followed.mean()), float(inside.mean())


def reversed_warp_error(earlier: np.ndarray, later: np.ndarray, flow: np.ndarray) -> float:
    """Mean difference of the earlier picture at x + f to the later one at x, over all pixels, edges repeated.

    The flow leads from the earlier picture to the later one, so this looks for the origin of a pixel on the opposite
    side; it is what the public evaluator of MemoBench does.
    """
    warped, _ = warp_back_with_mask(flow, earlier)
    return float(np.abs(warped - later).mean())


def forward_backward_consistent_mask(flow: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Which pixels the flow back returns to where the flow there took them from."""
    returned, _ = warp_back_with_mask(flow, back)
    off = ((flow + returned) ** 2).sum(axis=2)
    size = (flow**2).sum(axis=2) + (returned**2).sum(axis=2)
    return np.asarray(off <= RELATIVE * size + ABSOLUTE)
