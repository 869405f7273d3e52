"""Reference: a clip beside its reference, frame by frame; and laid over it, so that camera, light and content can be
compared separately (`Departures` and what is made of them).
"""

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


@evidence(id="departures")
@dataclass(frozen=True)
class Departures:
    """Aligned pairs of small pictures with the warps that lay one over the other.

    Warps are 3x3 homographies in fractions of the frame. Where nothing joins two pictures the warp is the
    identity and the share is 0; for `shown`, the clip's picture is then kept as it is.
    """

    index: Annotated[Array, "N; rising"]  # frame numbers in the clip
    seconds: Annotated[Array, "N; finite"]  # of those frames
    reference: Annotated[Array, "N"]  # frame numbers in the reference
    offset: Annotated[Array, "N, 3, 3; finite"]  # from the clip's frame to the reference's frame
    offset_share: Annotated[Array, "N; finite"]  # of the textured points of the common area that agree on it, 0-1
    clip_step: Annotated[Array, "N, 3, 3; finite"]  # from the clip's sampled frame before to this one
    clip_step_share: Annotated[Array, "N; finite"]
    reference_step: Annotated[Array, "N, 3, 3; finite"]  # the same in the reference
    reference_step_share: Annotated[Array, "N; finite"]
    reference_first: Annotated[Array, "N, 3, 3; finite"]  # from the reference's first frame to its frame
    reference_first_share: Annotated[Array, "N; finite"]
    shown_jpeg: Annotated[Array, "shown_bytes"]  # uint8: the pictures of `shown`, and where each file begins
    shown_begins: Annotated[Array, "N + 1"]
    truth_jpeg: Annotated[Array, "truth_bytes"]  # the same of `truth`
    truth_begins: Annotated[Array, "N + 1"]
    covered: Annotated[Array, "N, height, width"]  # bool: pixels of `truth` that the clip's frame reaches
    clip_detail: Annotated[Array, "N, S; finite"]  # mean gradient of luma (0-255) of the clip's frame, fine to coarse
    reference_detail: Annotated[Array, "N, S; finite"]  # the same of the reference's frame, at the same size

    @cached_property
    def shown(self) -> np.ndarray:
        """(N, height, width, 3) uint8 RGB: the clip, laid over the reference."""
        return unpack_jpegs(self.shown_jpeg, self.shown_begins, self.size)

    @cached_property
    def truth(self) -> np.ndarray:
        """(N, height, width, 3) uint8 RGB: the reference."""
        return unpack_jpegs(self.truth_jpeg, self.truth_begins, self.size)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures."""
        return self.covered.shape[2], self.covered.shape[1]


@evidence(id="overlay")
@dataclass(frozen=True)
class Overlay:
    """Four pictures of each chosen returned frame, and where the target is in it."""

    index: Annotated[Array, "K"]  # frame numbers in the clip
    reference: Annotated[Array, "K"]  # and in the reference
    truth: Annotated[Array, "K, H, W, 3"]  # CIELAB, slightly blurred, as are the following
    shown: Annotated[Array, "K, H, W, 3"]  # in the light of the truth
    first: Annotated[Array, "K, H, W, 3"]
    last: Annotated[Array, "K, H, W, 3"]  # nan where there is no such view
    valid: Annotated[Array, "K, H, W"]  # pixels that the clip reaches
    first_valid: Annotated[Array, "K, H, W"]  # pixels that the first view reaches
    last_valid: Annotated[Array, "K, H, W"]
    here: Annotated[Array, "K, H, W"]  # where the target is in the truth
    was: Annotated[Array, "K, H, W"]  # where it was in the first view
    moved: Annotated[Array, "K"]  # whether it is elsewhere now
    last_frame: int  # frame number of `last` in the clip; -1 without one


@evidence(id="camera_ways")
@dataclass(frozen=True)
class CameraPaths:
    """Where the cameras of clip and reference are: along the reference's way, and off it, in widths."""

    index: Annotated[Array, "N"]
    seconds: Annotated[Array, "N"]
    clip: Annotated[Array, "N"]  # along the reference's main axis, positive away from the start
    reference: Annotated[Array, "N"]
    off: Annotated[Array, "N, 4"]  # clip minus reference across that axis: x, y, zoom, roll
    direct: Annotated[Array, "N"]  # whether both are joined directly here


@evidence(id="looks")
@dataclass(frozen=True)
class AppearanceDifference:
    """Per compared frame, what is left between clip and reference once the camera is undone."""

    index: Annotated[Array, "N"]
    joined: Annotated[Array, "N"]  # share of the points on which the overlay rests; 0: not laid over
    beside: Annotated[Array, "N"]  # whether the steps of both cameras add up to one place, within 4 % of the width
    lab: Annotated[Array, "N, 3"]  # mean CIELAB of the clip minus that of the reference, over common pixels
    likeness: Annotated[Array, "N, rows, columns"]  # local correlation of structure; nan where nothing is recognised
    chroma: Annotated[Array, "N"]  # log ratio of mean chroma
    contrast: Annotated[Array, "N"]  # log ratio of the deviation of lightness
    detail: Annotated[Array, "N, S"]  # log ratio of mean gradients, fine to coarse


@evidence(id="target_facts")
@dataclass(frozen=True)
class TargetFacts:
    """What became of the target, one row per returned frame of the overlay; nan where a question has no meaning."""

    index: Annotated[Array, "K"]
    reference: Annotated[Array, "K"]
    contrast: Annotated[Array, "K"]  # CIELAB: how far the target stands out from what is behind it
    change: Annotated[Array, "K"]  # mean difference from the truth where the target is, beyond what is tolerated
    around: Annotated[Array, "K"]  # the same next to it
    faded: Annotated[Array, "K"]  # share of the target gone: how far the picture is on its way to what is behind
    faded_fit: Annotated[Array, "K"]  # share of the difference that this explains
    first_like: Annotated[Array, "K"]  # in the event's mark: how near to the first view, 1 the same, 0 the truth
    first_fit: Annotated[Array, "K"]  # share of the difference that the first view explains
    last_like: Annotated[Array, "K"]  # in the mark since last seen: likewise for the last view
    last_fit: Annotated[Array, "K"]
    nearer_last: Annotated[Array, "K"]  # where first and last view differ: 1 as in the last, 0 as in the first
    found: Annotated[Array, "K"]  # how much more like the target than the truth is another place, 1 a solid one
    found_x: Annotated[Array, "K"]  # that place from where the target should be, in sizes of the target
    found_y: Annotated[Array, "K"]
    path_x: Annotated[Array, "K"]  # where it was at first, likewise; 0 where it did not move
    path_y: Annotated[Array, "K"]
    missing: Annotated[Array, "K"]  # how unlike the target its own place is, 0 there, 1 as unlike as what is behind
    even: Annotated[Array, "K"]  # share of the difference on the target that is the same all over it
    colour: Annotated[Array, "K"]  # CIELAB: difference of hue and chroma on the target
    lightness: Annotated[Array, "K"]  # CIELAB: difference of lightness on the target
    pattern: Annotated[Array, "K"]  # correlation of lightness on the target with the truth's
    outline: Annotated[Array, "K"]  # CIELAB: difference just outside of the target's outline
