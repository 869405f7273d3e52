"""Fidelity: a clip beside its reference, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from revisit.core import Array, evidence
from revisit.evidence.pictures import unpack_jpegs

SSIM_FAMILIES = ("rgb", "gray_border", "torchmetrics")


@evidence(id="frame_fidelity")
@dataclass(frozen=True)
class FrameFidelity:
    """Pixel differences between frames of a clip and the aligned frames of its reference, values 0 to 255.

    The families of SSIM differ in the third digit and are never mixed; one that was not asked for is None.
    Where the reference is aligned by phases, a frame has several rows; the first is that of the whole clip.
    """

    index: Annotated[Array, "N; in order"]  # frame numbers in the clip
    reference: Annotated[Array, "N"]  # frame numbers in the reference
    mse: Annotated[Array, "N; finite, 0 to 65025"]  # over all pixels and channels; 0 means identical
    width: int  # size at which the frames were compared
    height: int
    ssim_rgb: Annotated[Array | None, "N; finite"] = None  # per channel, without the border
    ssim_gray_border: Annotated[Array | None, "N; finite"] = None  # on gray, all pixels kept
    ssim_torchmetrics: Annotated[Array | None, "N; finite"] = None  # per channel, all pixels kept


@evidence(id="perceptual_distance")
@dataclass(frozen=True)
class PerceptualDistance:
    """Distance between frames of a clip and the aligned frames of its reference in the features of a network."""

    index: Annotated[Array, "N; in order"]  # frame numbers in the clip
    reference: Annotated[Array, "N"]  # frame numbers in the reference
    # Learned weights are not negative: a distance below rounding noise means that they were loaded wrongly.
    distance: Annotated[Array, "N; finite, -1e-6 to inf"]  # 0 means identical
    net: str  # such as lpips_alex
    weights: str  # start of the SHA-256 of the file with the network's weights
    width: int  # size at which the frames were compared
    height: int


@evidence(id="paired_views")
@dataclass(frozen=True)
class PairedViews:
    """Small pictures of a clip and of its reference at aligned frames."""

    index: Annotated[Array, "N"]  # frame numbers in the clip
    clip_jpeg: Annotated[Array, "clip_bytes"]  # uint8: the pictures of `clip`, and where each file begins
    clip_begins: Annotated[Array, "N + 1"]
    reference_jpeg: Annotated[Array, "reference_bytes"]  # the same of `reference`
    reference_begins: Annotated[Array, "N + 1"]
    width: int
    height: int

    @cached_property
    def clip(self) -> np.ndarray:
        """(N, height, width, 3) uint8 RGB."""
        return unpack_jpegs(self.clip_jpeg, self.clip_begins, (self.width, self.height))

    @cached_property
    def reference(self) -> np.ndarray:
        """(N, height, width, 3) uint8 RGB, at the clip's size."""
        return unpack_jpegs(self.reference_jpeg, self.reference_begins, (self.width, self.height))
