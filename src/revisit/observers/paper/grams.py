"""How far the styles of frames lie apart: Gram matrices of VGG-19, as MBench names it.

Frames and sizes are those of `small.grams`: 32 frames spread over the clip and pairs out and back, 512 pixels at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from revisit.core import ClipInfo, Sight, observer
from revisit.evidence.mbench import GramDistances
from revisit.observers.small.grams import compared_frames, distances, matrices_of, wanted_frames


@observer(
    id="paper.grams", version=1, kind="sequence", makes=GramDistances, inputs=("artifacts.da3?", "annotations"),
    choose=wanted_frames, weights=("vgg19",),
)  # fmt: skip
def grams(
    clip: ClipInfo,
    path: Path | None,
    annotations: Mapping[str, Any],
    *,
    samples: int = 32,
    rule: str = "corrected",
    convention: str = "auto",
) -> Sight:
    """Distances of VGG-19's Gram matrices between neighbouring sampled frames, and between frames out and back."""
    from revisit.networks.gram import build_vgg19

    pairs = compared_frames(clip.count, path, annotations, samples=samples, rule=rule, convention=convention)
    return (yield from distances(pairs, partial(matrices_of, "vgg19", build_vgg19), "vgg19"))
