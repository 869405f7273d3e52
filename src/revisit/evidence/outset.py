"""Outset: how far the picture moves away from the first frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="outset")
@dataclass(frozen=True)
class Outset:
    """Squared difference to the first frame, of the first, the middle and the last frame."""

    index: Annotated[Array, "N"]  # frame numbers: at most three
    mse: Annotated[Array, "N"]  # mean over pixels and channels of values from 0 to 1
