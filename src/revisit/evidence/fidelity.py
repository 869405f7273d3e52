"""Fidelity: a clip beside its reference, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="frame_fidelity")
@dataclass(frozen=True)
class FrameFidelity:
    """Pixel differences between frames of a clip and the aligned frames of its reference, 8 bits per channel.

    Two families of SSIM, which differ in the third digit and are never mixed:
    `ssim_gray_border` on gray with all pixels kept, and `ssim_rgb` per channel without the border.
    """

    index: np.ndarray  # (N,) frame numbers in the clip
    reference: np.ndarray  # (N,) frame numbers in the reference
    mse: np.ndarray  # (N,) over all pixels and channels, 0-65025; 0 means identical
    ssim_gray_border: np.ndarray  # (N,)
    ssim_rgb: np.ndarray  # (N,)
    width: int  # size at which the frames were compared
    height: int


@evidence(id="paired_views")
@dataclass(frozen=True)
class PairedViews:
    """Small pictures of a clip and of its reference at aligned frames."""

    index: np.ndarray  # (N,) frame numbers in the clip
    clip: np.ndarray  # (N, height, width, 3) uint8 RGB
    reference: np.ndarray  # (N, height, width, 3) uint8 RGB, at the clip's size
