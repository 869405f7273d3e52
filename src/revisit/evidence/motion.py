"""Motion: movement between successive frames and away from the first one, cuts, and the action of a clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence

# What the gate on the camera's motion calls a camera that was asked to rest, and does.
RESTS_AS_ASKED = "rests as asked"


@evidence(id="flow_stats")
@dataclass(frozen=True)
class FlowStats:
    """Dense optical flow between successive frames, summed up. Lengths are fractions of the frame's width.

    All values are per step; `seconds` is the length of each step, so `x / seconds` is per second.
    The global motion maps a point of the earlier frame to the later one: turn and scale about the
    centre of the frame, then shift. A camera that turns right shifts the picture to the left.
    """

    index: Annotated[Array, "N; rising"]  # frame number of the later frame of each step
    seconds: Annotated[Array, "N; finite"]  # from the earlier frame to the later one
    median: Annotated[Array, "N, 2; finite"]  # median flow, x and y
    mean: Annotated[Array, "N; finite"]  # mean length of the flow
    p90: Annotated[Array, "N; finite"]  # 90th percentile of the length
    shift: Annotated[Array, "N, 2; finite"]  # global motion: displacement of the centre
    log_scale: Annotated[Array, "N; finite"]  # global motion: natural log of the scale, positive when the picture grows
    rotation: Annotated[Array, "N; finite"]  # global motion: turn in the picture plane, radians, clockwise on screen
    agreement: Annotated[Array, "N; finite"]  # share of the flow that global motion explains within 1 % of the width
    residual: Annotated[Array, "N; finite"]  # mean length of what the global motion leaves
    warp_error: Annotated[Array, "N; finite"]  # mean |difference| (0-1) after undoing the flow, of pixels inside
    inside: Annotated[Array, "N; finite"]  # share of pixels that stay inside
    texture: Annotated[Array, "N; finite"]  # share of pixels with a gradient that flow can follow


@evidence(id="cut_signal")
@dataclass(frozen=True)
class CutSignal:
    """How far each frame is from being a continuation of the one before; every cue is in 0-1."""

    index: Annotated[Array, "N; rising"]  # frame number of the later frame of each step
    seconds: Annotated[Array, "N; finite"]  # time of that frame
    histogram: Annotated[Array, "N; finite, 0 to 1"]  # 1 - overlap of the colour histograms
    structure: Annotated[Array, "N; finite, 0 to 1"]  # 1 - local correlation after undoing the motion
    disagreement: Annotated[Array, "N; finite, 0 to 1"]  # share of the frame where flow there and flow back disagree
    lasting: Annotated[Array, "N; finite, 0 to 1"]  # all cues together, between frames further out on both sides
    score: Annotated[Array, "N; finite, 0 to 1"]  # of the step and lasting, above what the neighbourhood shows


@evidence(id="shot_changes")
@dataclass(frozen=True)
class ShotChanges:
    """How sure a network is that a shot ends, step by step; unlike CutSignal, on the scale that it was trained to."""

    index: Annotated[Array, "N; rising"]  # frame number of the later frame of each step
    seconds: Annotated[Array, "N; finite"]  # time of that frame
    probability: Annotated[Array, "N; finite, 0 to 1"]  # that the earlier frame ends a shot, or is half-way in a fade
    during: Annotated[Array, "N; finite, 0 to 1"]  # that the earlier frame belongs to a change; all along a gradual one
    maker: str


@evidence(id="video_features")
@dataclass(frozen=True)
class VideoFeatures:
    """Logits of a network for actions, of frames evenly spread over the clip; no row where there are too few frames."""

    index: Annotated[Array, "N; rising"]  # frame numbers
    logits: Annotated[Array, "K, D; finite"]  # K is 1, or 0
    size: int  # pixels on each side, of the middle square
    maker: str  # such as i3d-kinetics-400
    action: str  # the most probable one
