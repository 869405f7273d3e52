"""Quality: ratings of single frames by networks, and of frames against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


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


@evidence(id="feature_error")
@dataclass(frozen=True)
class FeatureError:
    """Squared difference between normalised patch features of frames and of the aligned reference frames."""

    index: Annotated[Array, "N"]  # frame numbers in the clip
    reference: Annotated[Array, "N"]  # frame numbers in the reference
    mse: Annotated[Array, "N"]  # mean over patches and channels
    net: str
