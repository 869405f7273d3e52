"""Ratings of single frames by networks: aesthetics, technical quality, fit to the prompt (docs/networks.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, observer
from revisit.suites.memobench.evidence import AestheticScores, ImageQuality, ImageRewards, evenly_spread_frames

STEP, LONG_SIDE, REWARDED = 4, 640, 5
CLIP = "clip-vit-l-14-openai"


def every_nth_frame(count: int, fps: float, *, step: int, **_: Any) -> np.ndarray:
    """Every so many frames, from the first on."""
    return np.arange(0, count, step)


@observer(
    id="paper.aesthetic", version=1, kind="frame", makes=AestheticScores, size="long_side", choose=every_nth_frame,
    weights=(CLIP, "laion-aesthetic-v2"),
)  # fmt: skip
def aesthetic(batch: Batch, *, step: int = STEP, long_side: int = LONG_SIDE) -> AestheticScores:
    """Beauty of every fourth frame (`step`) by LAION's improved predictor, about 0 to 10."""
    from revisit.networks import aesthetic, clip, runtime

    head = runtime.network("laion-aesthetic-v2", aesthetic.load_aesthetic_head)
    with runtime.inference(clip.HALF):
        vectors = clip.network(CLIP).images(runtime.channels_first_on_device(batch.rgb))
    with runtime.inference():
        value = aesthetic.aesthetic_scores(head, vectors)
    return AestheticScores(batch.index, runtime.to_numpy(value), "laion-aesthetic-v2")


@observer(
    id="paper.image_quality", version=1, kind="frame", makes=ImageQuality, size="long_side", choose=every_nth_frame,
    weights=("clip-rn50", "clip-iqa-plus"),
)  # fmt: skip
def image_quality(batch: Batch, *, step: int = STEP, long_side: int = LONG_SIDE) -> ImageQuality:
    """Technical quality of every fourth frame (`step`) by CLIP-IQA+, 0 to 1."""
    from revisit import weights
    from revisit.networks import clip_iqa, runtime

    net = runtime.network("clip-rn50", lambda path: clip_iqa.load(path, weights.file("clip-iqa-plus")))
    with runtime.inference():
        value = net(runtime.channels_first_on_device(batch.rgb))
    return ImageQuality(batch.index, runtime.to_numpy(value), "clip-iqa-plus")


def five_evenly_spread_frames(count: int, fps: float, prompt: str, **_: Any) -> np.ndarray:
    """Five frames from the first to the last, each rounded down."""
    return evenly_spread_frames(0, count - 1, REWARDED)


@observer(
    id="paper.image_reward", version=1, kind="frame", makes=ImageRewards, size="long_side",
    choose=five_evenly_spread_frames,
    inputs=("prompt",), weights=("image-reward", "bert-words"),
)  # fmt: skip
def image_reward(batch: Batch, *, long_side: int = LONG_SIDE) -> ImageRewards:
    """Fit of five frames to the prompt by ImageReward, on its own scale."""
    from revisit.networks import image_reward, runtime

    net = runtime.network("image-reward", image_reward.load)
    words = runtime.network("bert-words", lambda path: image_reward.Words(path.parent))
    tokens, attention = words([str(prompt) for (prompt,) in batch.inputs])
    with runtime.inference():
        value = net(
            runtime.channels_first_on_device(batch.rgb), tokens.to(runtime.device()), attention.to(runtime.device())
        )
    return ImageRewards(batch.index, runtime.to_numpy(value), "image-reward-1.0")
