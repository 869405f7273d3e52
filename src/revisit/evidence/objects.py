"""Objects: which pixels are the target's, and descriptors of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="object_masks")
@dataclass(frozen=True)
class ObjectMasks:
    """Which pixels are the target's, in some frames."""

    index: Annotated[Array, "N"]  # frames that were looked at
    mask: Annotated[Array, "N, height, width"]  # bool; empty masks where it is not seen
    maker: str


@evidence(id="object_features")
@dataclass(frozen=True)
class ObjectFeatures:
    """A descriptor of the target in each frame that shows it."""

    index: Annotated[Array, "F"]  # frames that were looked at
    frame: Annotated[Array, "N"]  # those that show it
    vector: Annotated[Array, "N, D; finite"]
    maker: str
