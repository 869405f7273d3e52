"""Fidelity: a clip beside its reference, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence

SSIM_FAMILIES = ("rgb", "gray_border", "torchmetrics")


@evidence(id="frame_fidelity")
@dataclass(frozen=True)
class FrameFidelity:
    """Pixel differences between frames of a clip and the aligned frames of its reference, values 0 to 255.

    The families of SSIM differ in the third digit and are never mixed; one that was not asked for is None.
    Where the reference is aligned by phases, a frame has several rows; the first is that of the whole clip.
    """

    index: np.ndarray  # (N,) frame numbers in the clip
    reference: np.ndarray  # (N,) frame numbers in the reference
    mse: np.ndarray  # (N,) over all pixels and channels, 0-65025; 0 means identical
    width: int  # size at which the frames were compared
    height: int
    ssim_rgb: np.ndarray | None = None  # (N,) per channel, without the border
    ssim_gray_border: np.ndarray | None = None  # (N,) on gray, all pixels kept
    ssim_torchmetrics: np.ndarray | None = None  # (N,) per channel, all pixels kept


@evidence(id="perceptual_distance")
@dataclass(frozen=True)
class PerceptualDistance:
    """Distance between frames of a clip and the aligned frames of its reference in the features of a network."""

    index: np.ndarray  # (N,) frame numbers in the clip
    reference: np.ndarray  # (N,) frame numbers in the reference
    distance: np.ndarray  # (N,) 0 means identical
    net: str  # such as lpips_alex
    weights: str  # start of the SHA-256 of the file with the network's weights
    width: int  # size at which the frames were compared
    height: int


@evidence(id="paired_views")
@dataclass(frozen=True)
class PairedViews:
    """Small pictures of a clip and of its reference at aligned frames."""

    index: np.ndarray  # (N,) frame numbers in the clip
    clip: np.ndarray  # (N, height, width, 3) uint8 RGB
    reference: np.ndarray  # (N, height, width, 3) uint8 RGB, at the clip's size
