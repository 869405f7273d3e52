"""Video: what a network makes of a clip as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="video_features")
@dataclass(frozen=True)
class VideoFeatures:
    """Logits of a network for actions, of frames evenly spread over the clip; no row where there are too few frames."""

    index: Annotated[Array, "N; rising"]  # frame numbers
    logits: Annotated[Array, "K, D; finite"]  # K is 1, or 0
    size: int  # pixels on each side, of the middle square
    maker: str  # such as i3d-kinetics-400
    action: str  # the most probable one
