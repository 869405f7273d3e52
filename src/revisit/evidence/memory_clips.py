"""Memory clips: what is observed of a clip in which something is seen, hidden, and seen again.

Every kind can be filled by classical vision, by a network, or from a file that another program wrote
(docs/memobench-metrics.md). The field that names the maker is part of every answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="warp_errors")
@dataclass(frozen=True)
class WarpErrors:
    """How well optical flow carries one sampled frame into the next, within the visible and the returned phase.

    The flow f leads from the earlier frame to the later one. Errors are mean absolute differences of RGB, 0-1.
    """

    index: np.ndarray  # (P,) the earlier frame of each pair
    other: np.ndarray  # (P,) the later frame
    phase: np.ndarray  # (P,) 0 visible, 2 returned
    error: np.ndarray  # (P,) the later frame at x + f against the earlier at x, over the pixels that can be compared
    compared: np.ndarray  # (P,) share of those pixels
    inside: np.ndarray  # (P,) share of pixels that the flow does not carry out of the frame
    wrong_way: np.ndarray  # (P,) the earlier frame at x + f against the later at x, over all pixels
    still: np.ndarray  # (P,) without any warp, over all pixels
    length: np.ndarray  # (P,) mean length of the flow, in widths
    step: int  # frames from one sampled frame to the next
    fps: float
    closed: bool  # whether a phase holds the first frame of the next one, too
    maker: str  # of the flow
    width: int
    height: int


@evidence(id="identity_tokens")
@dataclass(frozen=True)
class IdentityTokens:
    """Descriptors of the patches of chosen frames: the first one, and some after the return."""

    index: np.ndarray  # (N,) frame numbers; 0 is among them
    tokens: np.ndarray  # (N, patches, D), one order of patches for all frames; of any length but 0
    maker: str  # such as the network
    cropped: bool  # whether they stand for the middle of the frame only


@evidence(id="depth_maps")
@dataclass(frozen=True)
class DepthMaps:
    """Depth of chosen frames, up to scale and shift."""

    index: np.ndarray  # (N,)
    depth: np.ndarray  # (N, height, width)
    inverse: bool  # whether near things have large values
    maker: str


@evidence(id="detections")
@dataclass(frozen=True)
class Detections:
    """Masks that a detector returned when asked for the target by name."""

    index: np.ndarray  # (N,) frames that were looked at, with or without a mask
    frame: np.ndarray  # (M,) the frame of each mask
    coverage: np.ndarray  # (M,) share of the frame's pixels in the mask
    score: np.ndarray  # (M,) confidence, 0-1
    prompt: str  # the words it was asked with; empty where the file does not say
    threshold: float  # confidence below which it returned nothing
    maker: str


@evidence(id="aesthetic_scores")
@dataclass(frozen=True)
class AestheticScores:
    """Beauty of frames, from about 0 to 10, as the LAION predictor rates it."""

    index: np.ndarray  # (N,)
    value: np.ndarray  # (N,)
    maker: str


@evidence(id="image_quality")
@dataclass(frozen=True)
class ImageQuality:
    """Technical quality of frames without a reference, from 0 to 1, as CLIP-IQA+ rates it."""

    index: np.ndarray  # (N,)
    value: np.ndarray  # (N,)
    maker: str


@evidence(id="image_rewards")
@dataclass(frozen=True)
class ImageRewards:
    """How well frames fit the prompt: ImageReward's own scale, about -2 to 2."""

    index: np.ndarray  # (N,)
    value: np.ndarray  # (N,)
    maker: str


@evidence(id="visual_halves")
@dataclass(frozen=True)
class VisualHalves:
    """Both halves of visual quality of one clip, as far as they were observed."""

    aesthetic_index: np.ndarray  # (N,)
    aesthetic: np.ndarray  # (N,) about 0-10; empty where nobody rated it
    quality_index: np.ndarray  # (M,)
    quality: np.ndarray  # (M,) 0-1; likewise
    aesthetic_maker: str
    quality_maker: str
