"""Memory clips: what is observed of a clip in which something is seen, hidden, and seen again.

Every kind can be filled by classical vision, by a network, or from a file that another program wrote
(docs/memobench-metrics.md). The field that names the maker is part of every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from revisit.core import Array, evidence


def evenly_spread_frames(first: int, last: int, count: int) -> np.ndarray:
    """`count` frames from `first` to `last`, evenly, each rounded down; a short stretch repeats frames."""
    return first + (np.arange(max(count, 1)) * (last - first) / max(count - 1, 1)).astype(np.int64)


@evidence(id="warp_errors")
@dataclass(frozen=True)
class WarpErrors:
    """How well optical flow carries one sampled frame into the next, within the visible and the returned phase.

    The flow f leads from the earlier frame to the later one. Errors are mean absolute differences of RGB, 0-1.
    """

    index: Annotated[Array, "P; rising"]  # the earlier frame of each pair
    other: Annotated[Array, "P"]  # the later frame
    phase: Annotated[Array, "P; 0 or 2"]  # 0 visible, 2 returned
    error: Annotated[Array, "P; finite, 0 to 1"]  # the later frame at x + f against the earlier at x, where comparable
    compared: Annotated[Array, "P; finite"]  # share of those pixels
    inside: Annotated[Array, "P; finite"]  # share of pixels that the flow does not carry out of the frame
    wrong_way: Annotated[Array, "P; finite, 0 to 1"]  # the earlier frame at x + f against the later at x, all pixels
    still: Annotated[Array, "P; finite, 0 to 1"]  # without any warp, over all pixels
    length: Annotated[Array, "P; finite"]  # mean length of the flow, in widths
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

    index: Annotated[Array, "N; rising"]  # frame numbers; 0 is among them
    tokens: Annotated[Array, "N, patches, D; finite"]  # one order of patches for all frames; of any length but 0
    maker: str  # such as the network
    cropped: bool  # whether they stand for the middle of the frame only


@evidence(id="depth_maps")
@dataclass(frozen=True)
class DepthMaps:
    """Depth of chosen frames, up to scale and shift."""

    index: Annotated[Array, "N; rising"]
    depth: Annotated[Array, "N, height, width; finite"]
    inverse: bool  # whether near things have large values
    maker: str


@evidence(id="detections")
@dataclass(frozen=True)
class Detections:
    """Masks that a detector returned when asked for the target by name."""

    index: Annotated[Array, "N; rising"]  # frames that were looked at, with or without a mask
    frame: Annotated[Array, "M"]  # the frame of each mask
    coverage: Annotated[Array, "M; finite, 0 to 1"]  # share of the frame's pixels in the mask
    score: Annotated[Array, "M; finite, 0 to 1"]  # confidence
    prompt: str  # the words it was asked with; empty where the file does not say
    threshold: float  # confidence below which it returned nothing
    maker: str
    guessed: bool = False  # whether nobody said what the object is: what is salient in the first frame was taken for it


def expected_detector_prompt(annotations: Mapping[str, Any], rule: str) -> str:
    """The words that the dataset gives for the target under a rule; nothing where the case does not say them."""
    return str((annotations.get("ors_prompts") or {}).get(rule) or annotations.get("ors_prompt") or "")


@dataclass(frozen=True)
class FrameRatings:
    """What a network says of frames, a number for each."""

    index: Annotated[Array, "N; rising"]
    value: Annotated[Array, "N; finite"]
    maker: str


@evidence(id="aesthetic_scores")
@dataclass(frozen=True)
class AestheticScores(FrameRatings):
    """Beauty of frames, from about 0 to 10, as the LAION predictor rates it."""


@evidence(id="image_quality")
@dataclass(frozen=True)
class ImageQuality(FrameRatings):
    """Technical quality of frames without a reference, from 0 to 1, as CLIP-IQA+ rates it."""


@evidence(id="image_rewards")
@dataclass(frozen=True)
class ImageRewards(FrameRatings):
    """How well frames fit the prompt: ImageReward's own scale, about -2 to 2."""


@evidence(id="visual_halves")
@dataclass(frozen=True)
class VisualHalves:
    """Both halves of visual quality of one clip, as far as they were observed."""

    aesthetic_index: Annotated[Array, "N"]
    aesthetic: Annotated[Array, "N; finite"]  # about 0-10; empty where nobody rated it
    quality_index: Annotated[Array, "M"]
    quality: Annotated[Array, "M; finite"]  # 0-1; likewise
    aesthetic_maker: str
    quality_maker: str
