"""Appearance: descriptors and statistics of how frames look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="lab_stats")
@dataclass(frozen=True)
class LabStats:
    """CIELAB statistics of whole frames: L in 0-100, a and b in their natural range."""

    index: Annotated[Array, "N; rising"]
    mean: Annotated[Array, "N, 3; finite"]
    std: Annotated[Array, "N, 3"]


@evidence(id="patch_features")
@dataclass(frozen=True)
class PatchFeatures:
    """A unit descriptor for each patch of a grid, and one for the whole frame."""

    index: Annotated[Array, "N; rising"]
    tokens: Annotated[Array, "N, rows, columns, D; finite"]  # unit length, half floats
    whole: Annotated[Array, "N, E; finite"]  # unit length


@evidence(id="network_patches")
@dataclass(frozen=True)
class NetworkPatches:
    """As `PatchFeatures`, by a network: a kind of its own, since what was tuned on the one must not read the other."""

    index: Annotated[Array, "N"]
    tokens: Annotated[Array, "N, rows, columns, D; finite"]  # unit length, half floats
    whole: Annotated[Array, "N, E"]  # unit length
    maker: str  # such as dinov2-base


@evidence(id="integrity_tokens")
@dataclass(frozen=True)
class IntegrityTokens:
    """A network's descriptors of the patches of frames some way apart, and of these frames as wholes."""

    index: Annotated[Array, "N; rising"]  # about three frames a second, both ends among them
    tokens: Annotated[Array, "N, patches, D; finite"]  # half floats; of any length but 0
    valid: Annotated[Array, "N, patches"]  # bool: patches that hold nothing but picture
    whole: Annotated[Array, "N, E; finite"]  # of any length but 0
    maker: str  # such as dinov2-base
    cropped: bool  # whether they stand for the middle of the frame only


@evidence(id="style_stats")
@dataclass(frozen=True)
class StyleStats:
    """Texture and colour statistics of whole frames, where style shows and content matters little."""

    index: Annotated[Array, "N; rising"]
    gradient: Annotated[Array, "N, S; finite"]  # mean gradient of luma (0-1 per pixel) at S scales, fine to coarse
    contrast: Annotated[Array, "N; finite"]  # standard deviation of luma, 0-0.5
    saturation: Annotated[Array, "N; finite"]  # mean chroma, max - min of R, G, B, 0-1
