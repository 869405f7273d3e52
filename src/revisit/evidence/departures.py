"""Departures: a clip laid over its reference, so that camera, light and content can be compared one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="departures")
@dataclass(frozen=True)
class Departures:
    """Aligned pairs of small pictures with the warps that lay one over the other.

    Warps are 3x3 homographies in fractions of the frame. Where nothing joins two pictures the warp is the
    identity and the share is 0; for `shown`, the clip's picture is then kept as it is.
    """

    index: np.ndarray  # (N,) frame numbers in the clip
    seconds: np.ndarray  # (N,) of those frames
    reference: np.ndarray  # (N,) frame numbers in the reference
    offset: np.ndarray  # (N, 3, 3) from the clip's frame to the reference's frame
    offset_share: np.ndarray  # (N,) of the textured points of the common area that agree on it, 0-1
    clip_step: np.ndarray  # (N, 3, 3) from the clip's sampled frame before to this one
    clip_step_share: np.ndarray  # (N,)
    reference_step: np.ndarray  # (N, 3, 3) the same in the reference
    reference_step_share: np.ndarray  # (N,)
    reference_first: np.ndarray  # (N, 3, 3) from the reference's first frame to its frame
    reference_first_share: np.ndarray  # (N,)
    shown: np.ndarray  # (N, height, width, 3) uint8 RGB: the clip, laid over the reference
    truth: np.ndarray  # (N, height, width, 3) uint8 RGB: the reference
    covered: np.ndarray  # (N, height, width) bool: pixels of `truth` that the clip's frame reaches
    clip_detail: np.ndarray  # (N, S) mean gradient of luma (0-255) of the clip's frame at S scales, fine to coarse
    reference_detail: np.ndarray  # (N, S) the same of the reference's frame, at the same size


@evidence(id="overlay")
@dataclass(frozen=True)
class Overlay:
    """Four pictures of each chosen returned frame, and where the target is in it."""

    index: np.ndarray  # (K,) frame numbers in the clip
    reference: np.ndarray  # (K,) and in the reference
    truth: np.ndarray  # (K, H, W, 3) CIELAB, slightly blurred, as are the following
    shown: np.ndarray  # (K, H, W, 3) in the light of the truth
    first: np.ndarray  # (K, H, W, 3)
    last: np.ndarray  # (K, H, W, 3) nan where there is no such view
    valid: np.ndarray  # (K, H, W) pixels that the clip reaches
    first_valid: np.ndarray  # (K, H, W) pixels that the first view reaches
    last_valid: np.ndarray  # (K, H, W)
    here: np.ndarray  # (K, H, W) where the target is in the truth
    was: np.ndarray  # (K, H, W) where it was in the first view
    moved: np.ndarray  # (K,) whether it is elsewhere now
    last_frame: int  # frame number of `last` in the clip; -1 without one


@evidence(id="camera_ways")
@dataclass(frozen=True)
class CameraWays:
    """Where the cameras of clip and reference are: along the reference's way, and off it, in widths."""

    index: np.ndarray  # (N,)
    seconds: np.ndarray  # (N,)
    clip: np.ndarray  # (N,) along the reference's main axis, positive away from the start
    reference: np.ndarray  # (N,)
    off: np.ndarray  # (N, 4) clip minus reference across that axis: x, y, zoom, roll
    direct: np.ndarray  # (N,) whether both are joined directly here


@evidence(id="looks")
@dataclass(frozen=True)
class Looks:
    """Per compared frame, what is left between clip and reference once the camera is undone."""

    index: np.ndarray  # (N,)
    joined: np.ndarray  # (N,) share of the points on which the overlay rests; 0: not laid over
    beside: np.ndarray  # (N,) whether the steps of both cameras add up to the same place, within 4 % of the width
    lab: np.ndarray  # (N, 3) mean CIELAB of the clip minus that of the reference, over common pixels
    likeness: np.ndarray  # (N, rows, columns) local correlation of structure; nan where nothing can be recognised
    chroma: np.ndarray  # (N,) log ratio of mean chroma
    contrast: np.ndarray  # (N,) log ratio of the deviation of lightness
    detail: np.ndarray  # (N, S) log ratio of mean gradients, fine to coarse


@evidence(id="target_facts")
@dataclass(frozen=True)
class TargetFacts:
    """What became of the target, one row per returned frame of the overlay; nan where a question has no meaning."""

    index: np.ndarray  # (K,)
    reference: np.ndarray  # (K,)
    contrast: np.ndarray  # (K,) CIELAB: how far the target stands out from what is behind it
    change: np.ndarray  # (K,) mean difference from the truth where the target is, beyond what is tolerated
    around: np.ndarray  # (K,) the same next to it
    faded: np.ndarray  # (K,) share of the target gone: how far the picture is on its way to what is behind
    faded_fit: np.ndarray  # (K,) share of the difference that this explains
    first_like: np.ndarray  # (K,) in the event's mark: how near to the first view, 1 the same, 0 the truth
    first_fit: np.ndarray  # (K,) share of the difference that the first view explains
    last_like: np.ndarray  # (K,) in the mark since last seen: likewise for the last view
    last_fit: np.ndarray  # (K,)
    nearer_last: np.ndarray  # (K,) where first and last view differ: 1 as in the last, 0 as in the first
    found: np.ndarray  # (K,) how much more like the target than the truth is another place, 1 a solid one
    found_x: np.ndarray  # (K,) that place from where the target should be, in sizes of the target
    found_y: np.ndarray  # (K,)
    path_x: np.ndarray  # (K,) where it was at first, likewise; 0 where it did not move
    path_y: np.ndarray  # (K,)
    missing: np.ndarray  # (K,) how unlike the target its own place is, 0 there, 1 as unlike as what is behind
    even: np.ndarray  # (K,) share of the difference on the target that is the same all over it
    colour: np.ndarray  # (K,) CIELAB: difference of hue and chroma on the target
    lightness: np.ndarray  # (K,) CIELAB: difference of lightness on the target
    pattern: np.ndarray  # (K,) correlation of lightness on the target with the truth's
    outline: np.ndarray  # (K,) CIELAB: difference just outside of the target's outline
