"""Observers of the throughput benchmark: four networks that look at every frame and keep little of what they see.

What they keep is small on purpose: the benchmark is about decoding, copying and computing, not about files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Batch, evidence, observer
from revisit.evidence.reference import PerceptualDistance
from revisit.observers.fidelity import bring_pair_to_one_size, quick_size_on_gpu


@evidence(id="bench_seen")
@dataclass(frozen=True)
class Seen:
    """One number for each frame: it was decoded."""

    index: np.ndarray
    level: np.ndarray


@evidence(id="bench_dino")
@dataclass(frozen=True)
class DinoVectors:
    """A vector for each frame."""

    index: np.ndarray
    vector: np.ndarray


@evidence(id="bench_clip")
@dataclass(frozen=True)
class ClipVectors:
    """A vector for each frame."""

    index: np.ndarray
    vector: np.ndarray


@evidence(id="bench_depth")
@dataclass(frozen=True)
class SmallDepth:
    """A small map of depth for each frame."""

    index: np.ndarray
    depth: np.ndarray


@observer(id="bench.seen", version=1, kind="frame", makes=Seen)
def seen(batch: Batch) -> Seen:
    """The level of one pixel."""
    return Seen(batch.index, np.array([rgb[0, 0, 0] for rgb in batch.rgb]))


@observer(id="bench.dino", version=1, kind="frame", makes=DinoVectors, weights=("dinov2-base",))
def dino_vectors(batch: Batch) -> DinoVectors:
    """CLS tokens of DINOv2-B, 224 pixels from the middle of 256."""
    from revisit.networks import dino, preprocessing, runtime

    shown = runtime.channels_first_on_device(batch.rgb)
    height, width = shown.shape[-2:]
    with runtime.inference(dino.HALF):
        small = preprocessing.resize_levels(shown, preprocessing.size_with_short_side((height, width), 256))
        pictures = preprocessing.normalise_by_channel(preprocessing.centre_crop(small, (224, 224)))
        cls, _ = dino.network("dinov2-base")(pictures)
    return DinoVectors(batch.index, runtime.to_numpy(cls))


@observer(id="bench.clip", version=1, kind="frame", makes=ClipVectors, weights=("clip-vit-b-32-openai",))
def clip_vectors(batch: Batch) -> ClipVectors:
    """Vectors of CLIP ViT-B/32."""
    from revisit.networks import clip, runtime

    with runtime.inference(clip.HALF):
        found = clip.network("clip-vit-b-32-openai").images(runtime.channels_first_on_device(batch.rgb))
    return ClipVectors(batch.index, runtime.to_numpy(found))


@observer(id="bench.depth", version=1, kind="frame", makes=SmallDepth, weights=("depth-anything-v2-small",))
def small_depth(batch: Batch) -> SmallDepth:
    """Depth by Depth Anything V2 small, averaged to 32 x 32."""
    import torch

    from revisit.networks import depth_anything, runtime

    found = depth_anything.inverse_depth("depth-anything-v2-small", runtime.channels_first_on_device(batch.rgb))
    with runtime.inference():
        return SmallDepth(
            batch.index, runtime.to_numpy(torch.nn.functional.adaptive_avg_pool2d(found[:, None], 32)[:, 0])
        )


@observer(
    id="bench.lpips", version=1, kind="frame", makes=PerceptualDistance, pairs=True, weights=("lpips_alex",),
    prepare=bring_pair_to_one_size, gpu_size=quick_size_on_gpu,
)  # fmt: skip
def lpips_distance(batch: Batch, *, resize: str = "quick", long_side: int | None = 640) -> PerceptualDistance:
    """LPIPS with AlexNet against the reference, at the size and by the rule that an evaluation takes by default."""
    from revisit.core import OBSERVERS

    return OBSERVERS["torch.lpips_alex"].fn(batch)


OBSERVERS = ("bench.dino", "bench.clip", "bench.depth", "bench.lpips")
