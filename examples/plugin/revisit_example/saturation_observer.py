"""An observer in one file: how colourful each frame is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import revisit


@revisit.evidence_kind(id="saturation")
@dataclass(frozen=True)
class Saturation:
    """Mean saturation of each frame, 0 (grey) to 1."""

    index: Annotated[revisit.Array, "N; rising"]  # frame numbers
    mean: Annotated[revisit.Array, "N; finite"]  # one for each of them


@revisit.observer(id="example.saturation", kind="frame", makes=Saturation, size=320, sets=(revisit.ANY_SET,))
def saturation(batch: revisit.Batch) -> Saturation:
    """Mean of (max - min) / max over the pixels of each frame."""
    means = []
    for rgb in batch.rgb:
        high = rgb.max(axis=2).astype(float)
        means.append(((high - rgb.min(axis=2)) / np.maximum(high, 1)).mean())
    return Saturation(index=batch.index, mean=np.array(means))
