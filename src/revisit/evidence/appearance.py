"""Appearance: descriptors and statistics of how frames look, and how networks rate them."""

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


@evidence(id="picture_statistics")
@dataclass(frozen=True)
class PictureStatistics:
    """Statistics of frames that change when the picture itself decays, whole and in the cells of a grid."""

    index: Annotated[Array, "N; rising"]
    detail: Annotated[Array, "N, rows, columns; finite"]  # log of the mean gradient of luma at two fine scales
    light: Annotated[Array, "N, rows, columns; finite"]  # mean luma, 0-255
    chroma: Annotated[Array, "N, rows, columns; finite"]  # log of the mean chroma, max - min of R, G, B
    speckle: Annotated[Array, "N; finite"]  # log ratio of fine detail in colour to that in luma, median of the cells
    coherence: Annotated[Array, "N; finite"]  # share of the gradient energy that has one direction locally, 0-1
    density: Annotated[Array, "N; finite"]  # how evenly gradients of colour fill the picture, 0 few edges, 1 everywhere
    sharpness: Annotated[Array, "N"]  # fine over coarse gradient on the strongest edges; nan without an edge
    thumbnail: Annotated[Array, "N, thumbnail_rows, thumbnail_columns"]  # uint8 luma


@evidence(id="imaging_quality")
@dataclass(frozen=True)
class ImagingQuality:
    """Technical quality of each frame as a network rates it, 0 to 1."""

    index: Annotated[Array, "N"]
    value: Annotated[Array, "N"]
    net: str


@evidence(id="aesthetic_quality")
@dataclass(frozen=True)
class AestheticQuality:
    """Beauty of each frame as a network rates it, 0 to 1."""

    index: Annotated[Array, "N"]
    value: Annotated[Array, "N"]
    net: str
