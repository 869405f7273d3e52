"""Motion: what moved between successive frames, and where the picture breaks off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence

RESTS_AS_ASKED = (
    "rests as asked"  # what the gate on the camera's motion calls a camera that was asked to rest, and does
)


@evidence(id="flow_stats")
@dataclass(frozen=True)
class FlowStats:
    """Dense optical flow between successive frames, summed up. Lengths are fractions of the frame's width.

    All values are per step; `seconds` is the length of each step, so `x / seconds` is per second.
    The global motion maps a point of the earlier frame to the later one: turn and scale about the
    centre of the frame, then shift. A camera that turns right shifts the picture to the left.
    """

    index: np.ndarray  # (N,) frame number of the later frame of each step
    seconds: np.ndarray  # (N,) from the earlier frame to the later one
    median: np.ndarray  # (N, 2) median flow, x and y
    mean: np.ndarray  # (N,) mean length of the flow
    p90: np.ndarray  # (N,) 90th percentile of the length
    shift: np.ndarray  # (N, 2) global motion: displacement of the centre
    log_scale: np.ndarray  # (N,) global motion: natural log of the scale, positive when the picture grows
    rotation: np.ndarray  # (N,) global motion: turn in the picture plane, radians, clockwise on screen
    agreement: np.ndarray  # (N,) share of the flow that the global motion explains within 1 % of the width
    residual: np.ndarray  # (N,) mean length of what the global motion leaves
    warp_error: np.ndarray  # (N,) mean |difference| after undoing the flow, 0-1, over pixels that stay inside
    inside: np.ndarray  # (N,) share of pixels that stay inside
    texture: np.ndarray  # (N,) share of pixels with a gradient that flow can follow


@evidence(id="cut_signal")
@dataclass(frozen=True)
class CutSignal:
    """How far each frame is from being a continuation of the one before; every cue is in 0-1."""

    index: np.ndarray  # (N,) frame number of the later frame of each step
    seconds: np.ndarray  # (N,) time of that frame
    histogram: np.ndarray  # (N,) 1 - overlap of the colour histograms
    structure: np.ndarray  # (N,) 1 - local correlation after undoing the motion
    disagreement: np.ndarray  # (N,) share of the frame where flow there and flow back disagree
    lasting: np.ndarray  # (N,) all cues together, between frames further out on both sides of the step
    score: np.ndarray  # (N,) of the step and lasting, above what the neighbourhood shows


@evidence(id="shot_changes")
@dataclass(frozen=True)
class ShotChanges:
    """How sure a network is that a shot ends, step by step; unlike CutSignal, on the scale that it was trained to."""

    index: np.ndarray  # (N,) frame number of the later frame of each step
    seconds: np.ndarray  # (N,) time of that frame
    probability: np.ndarray  # (N,) that the shot of the earlier frame ends with it, 0-1; half-way in a gradual change
    during: np.ndarray  # (N,) that the earlier frame belongs to a change, 0-1; all along a gradual one
    maker: str
