"""Whole frames by CLIP ViT-B/32, two a second."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, observer
from revisit.suites.wbench.evidence import BackgroundVectors

CLIP = "clip-vit-b-32-openai"
RATE = 2.0


def two_a_second(count: int, fps: float, **_: Any) -> np.ndarray:
    """Every so many frames that two of them are a second."""
    return np.arange(0, count, max(1, round(fps / RATE)))


@observer(
    id="paper.wb_background", version=1, kind="frame", makes=BackgroundVectors, choose=two_a_second, weights=(CLIP,),
    sets=("paper",),
)  # fmt: skip
def background_vectors(batch: Batch) -> BackgroundVectors:
    """Vectors of frames by CLIP ViT-B/32 of OpenAI."""
    from revisit.networks import clip, runtime

    with runtime.inference(clip.HALF):
        vectors = clip.network(CLIP).images(runtime.on_device(batch.rgb))
    return BackgroundVectors(batch.index, runtime.numbers(vectors), CLIP)
