"""Quality: how networks rate single frames."""

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
