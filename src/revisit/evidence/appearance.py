"""Appearance: what frames look like, without saying whether that is good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="lab_stats")
@dataclass(frozen=True)
class LabStats:
    """CIELAB statistics of whole frames: L in 0-100, a and b in their natural range."""

    index: np.ndarray  # (N,)
    mean: np.ndarray  # (N, 3)
    std: np.ndarray  # (N, 3)


@evidence(id="patch_features")
@dataclass(frozen=True)
class PatchFeatures:
    """A unit descriptor for each patch of a grid, and one for the whole frame."""

    index: np.ndarray  # (N,)
    tokens: np.ndarray  # (N, rows, columns, D), unit length, half floats
    whole: np.ndarray  # (N, E), unit length


@evidence(id="network_patches")
@dataclass(frozen=True)
class NetworkPatches:
    """As `PatchFeatures`, by a network: a kind of its own, since what was tuned on the one must not read the other."""

    index: np.ndarray  # (N,)
    tokens: np.ndarray  # (N, rows, columns, D), unit length, half floats
    whole: np.ndarray  # (N, E), unit length
    maker: str  # such as dinov2-base


@evidence(id="integrity_tokens")
@dataclass(frozen=True)
class IntegrityTokens:
    """A network's descriptors of the patches of frames some way apart, and of these frames as wholes."""

    index: np.ndarray  # (N,) about three frames a second, both ends among them
    tokens: np.ndarray  # (N, patches, D), half floats; of any length but 0
    valid: np.ndarray  # (N, patches) bool: patches that hold nothing but picture
    whole: np.ndarray  # (N, E), of any length but 0
    maker: str  # such as dinov2-base
    cropped: bool  # whether they stand for the middle of the frame only


@evidence(id="style_stats")
@dataclass(frozen=True)
class StyleStats:
    """Texture and colour statistics of whole frames, where style shows and content matters little."""

    index: np.ndarray  # (N,)
    gradient: np.ndarray  # (N, S) mean gradient magnitude of luma (0-1 per pixel) at S scales, fine to coarse
    contrast: np.ndarray  # (N,) standard deviation of luma, 0-0.5
    saturation: np.ndarray  # (N,) mean chroma, max - min of R, G, B, 0-1
