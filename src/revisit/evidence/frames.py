"""Frames: plain facts about every frame of a clip, small pictures of it, and its phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from revisit.core import Array, evidence


@evidence(id="frame_facts")
@dataclass(frozen=True)
class FrameFacts:
    """What every frame of a clip is, before anybody looks at its content.

    Equal digests of neighbouring frames mean that the frame was repeated, bit for bit.
    """

    index: Annotated[Array, "N; rising"]  # frame numbers in the clip
    time: Annotated[Array, "N"]  # seconds
    digest: Annotated[Array, "N, 16"]  # uint8, checksums of the decoded pixels
    luma: Annotated[Array, "N; finite"]  # mean of BT.601 luma, 0-1
    sharpness: Annotated[Array, "N"]  # variance of the Laplacian of luma (0-255) at a longer side of 320
    width: int
    height: int
    fps: float

    @property
    def frame_count(self) -> int:
        """How many frames the clip has; 0 where none was looked at."""
        return int(self.index[-1]) + 1 if len(self.index) else 0

    def repeats(self) -> np.ndarray:
        """(N,) whether a frame is an exact copy of the one before it."""
        return np.r_[False, (self.digest[1:] == self.digest[:-1]).all(axis=1)] if len(self.index) else np.zeros(0, bool)


@evidence(id="thumbnails")
@dataclass(frozen=True)
class Thumbnails:
    """Small JPEG pictures of some frames, one after the other in `jpeg`."""

    index: Annotated[Array, "N"]
    jpeg: Annotated[Array, "bytes"]  # uint8
    offsets: Annotated[Array, "N + 1"]  # picture k is jpeg[offsets[k]:offsets[k + 1]]
    width: int
    height: int

    def picture(self, k: int) -> bytes:
        """The k-th picture as a JPEG file."""
        return self.jpeg[self.offsets[k] : self.offsets[k + 1]].tobytes()


@evidence(id="case_phases")
@dataclass(frozen=True)
class CasePhases:
    """The three phases of a clip: visible, then hidden from `first_hidden`, then returned from `first_returned`."""

    first_hidden: int  # frame number
    first_returned: int  # frame number
    source: str  # "given" with the case, or found by the "view gate"
