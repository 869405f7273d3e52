"""Motion: how much moves, how smoothly, and whether the camera moves.

Evidence: `FlowStats`. Lengths are fractions of the frame's width; speeds are per second, so that frame
rates compare. The camera's excursion is the farthest that the accumulated global motion carries the
frame's edge away from where it started: by shift, by scale and by turn.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from revisit.core import Case, GateResult, Reason, Score, Series, Unscored, gate, metric
from revisit.evidence.frames import FrameFacts
from revisit.evidence.motion import RESTS_AS_ASKED, FlowStats
from revisit.metrics.camera import CameraRequest, camera_request_of_case

TOO_SHORT = Reason("too_short", "motion needs at least two frames")
STILL_SPEED = 0.01  # widths per second: at this speed a view takes 25 s to leave by a quarter


def step_seconds(flow: FlowStats) -> np.ndarray:
    """Seconds of each step; steps without a duration (broken time stamps) get the median one."""
    seconds = np.asarray(flow.seconds, dtype=float)
    good = seconds > 1e-6
    return np.where(good, seconds, np.median(seconds[good]) if good.any() else 1 / 24)


def camera_excursion(flow: FlowStats) -> np.ndarray:
    """How far the accumulated global motion has carried the frame's edge after each step, in widths."""
    shift = np.cumsum(flow.shift, axis=0)
    scale, turn = np.cumsum(flow.log_scale), np.cumsum(flow.rotation)
    by_scale = 0.5 * (1 - np.exp(-np.abs(scale)))
    return np.asarray(np.max([np.hypot(shift[:, 0], shift[:, 1]), by_scale, 0.5 * np.abs(turn)], axis=0))


@metric(
    id="motion_amount", version=1, title="Amount of motion", unit="widths/s", range=(0, None), higher_is_better=None,
    needs=(FlowStats,), suites=("folder",),
    responds_to=("frozen picture",), blind_to=("what moves", "whether motion was asked for"),
)  # fmt: skip
def motion_amount(flow: FlowStats) -> Score | Unscored:
    """Mean optical flow in frame widths per second, with the camera's and the objects' share beside it."""
    if not len(flow.index):
        return Unscored(TOO_SHORT)
    seconds = step_seconds(flow)
    speed = flow.mean / seconds
    facts = {
        "camera": float((np.hypot(flow.shift[:, 0], flow.shift[:, 1])).sum() / seconds.sum()),
        "objects": float(flow.residual.sum() / seconds.sum()),
    }
    units = Series(frame=flow.index, value=speed, objects=flow.residual / seconds)
    return Score(float(flow.mean.sum() / seconds.sum()), units=units, facts=facts)


@metric(
    id="motion_smoothness", version=1, title="Smoothness of motion", unit="score", range=(0, 1),
    higher_is_better=True, needs=(FlowStats,), suites=("folder",),
    paper="MemoBench motion smoothness, with classical flow, every frame, and the warp in its right direction",
    responds_to=("flicker", "boiling texture", "scene cut"),
    blind_to=("frozen camera", "motion that is smooth but wrong"),
)  # fmt: skip
def motion_smoothness(flow: FlowStats, *, tau: float = 0.15) -> Score | Unscored:
    """exp(-e / tau), with e the mean absolute difference (0-1) of successive frames after undoing the flow."""
    if not len(flow.index):
        return Unscored(TOO_SHORT)
    mean = float(flow.warp_error.mean())
    units = Series(frame=flow.index, value=np.exp(-flow.warp_error / tau), inside=flow.inside)
    return Score(float(np.exp(-mean / tau)), raw=mean, units=units)


@metric(
    id="frozen_camera", version=1, title="Time without camera motion", unit="share", range=(0, 1),
    higher_is_better=None, needs=(FlowStats,), suites=("folder",),
    responds_to=("frozen camera",), blind_to=("whether the camera was asked to stay still",),
)  # fmt: skip
def frozen_camera(flow: FlowStats, *, still: float = STILL_SPEED) -> Score | Unscored:
    """Share of the clip's time in which the global motion is slower than `still` widths per second."""
    if not len(flow.index):
        return Unscored(TOO_SHORT)
    seconds, shift = step_seconds(flow), np.hypot(flow.shift[:, 0], flow.shift[:, 1])
    # of the frame's edge, widths per second
    speed = (shift + 0.5 * np.abs(np.expm1(flow.log_scale)) + 0.5 * np.abs(flow.rotation)) / seconds
    share = float(seconds[speed < still].sum() / seconds.sum())
    units = Series(frame=flow.index, value=(speed < still).astype(float), speed=speed)
    return Score(share, units=units, facts={"excursion": float(camera_excursion(flow).max())})


@metric(
    id="flicker", version=1, title="Flicker of brightness", unit="gray levels", range=(0, 255),
    higher_is_better=False, needs=(FrameFacts,), suites=("folder",),
    responds_to=("flicker",), blind_to=("flicker of parts that cancel out", "slow change of light"),
)  # fmt: skip
def flicker(frames: FrameFacts) -> Score | Unscored:
    """Mean |second difference| of mean luma, in gray levels of 255: steady light and steady fades give 0."""
    if len(frames.index) < 3:
        return Unscored("too_short", f"flicker needs at least three frames; there are {len(frames.index)}")
    bend = 255 * np.abs(np.diff(np.asarray(frames.luma, dtype=float), n=2)) / 2
    return Score(float(bend.mean()), units=Series(frame=frames.index[1:-1], value=bend))


@gate(id="camera_moved", version=2, title="Camera moves", needs=(FlowStats, Case))
def camera_moved(
    flow: FlowStats, case: Case | None = None, *, frozen: float = 0.05, moved: float = 0.1, least_texture: float = 0.02
) -> GateResult:
    """Whether the accumulated global motion ever carries the picture away from where it started.

    Below `frozen` of the width it is what flow errors add up to over ten seconds; above `moved` no error
    explains it; between them a drift, a hand-held camera and a small turn look alike. A camera that was asked to
    rest is not called frozen for resting.
    """
    if not len(flow.index):
        return GateResult("unsure", "cannot tell", TOO_SHORT.sentence)
    path = camera_excursion(flow)
    farthest, texture = float(path.max()), float(np.median(flow.texture))
    facts = {"excursion": farthest, "texture": texture, "agreement": float(np.median(flow.agreement))}
    say = partial(GateResult, facts=facts, units=Series(frame=flow.index, value=path))
    if texture < least_texture:
        seen = f"{texture:.1%} of the picture has it, {least_texture:.0%} is needed"
        return say("unsure", "cannot tell", f"too little texture to measure motion: {seen}")
    if farthest < frozen:
        request = None if case is None else camera_request_of_case(case)
        if isinstance(request, CameraRequest) and request.kind == "static":
            asked = "the camera was asked to stay still and does"
            return say("closed", RESTS_AS_ASKED, f"{asked}: the picture moves by at most {farthest:.1%} of its width")
        reason = f"frozen camera: the picture never moves by more than {farthest:.1%} of its width"
        return say("closed", "frozen camera", reason)
    if farthest < moved:
        reason = f"the picture moves by {farthest:.1%} of its width: too little to tell camera motion from drift"
        return say("unsure", "hardly moves", reason)
    return say("open", "moves")
