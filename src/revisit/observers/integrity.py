"""Descriptors of patches and of whole frames, about three frames a second, for WRBench's integrity.

The whole field is padded to whole patches, with what the network takes for nothing; patches with padding do not count.
`crop` as upstream's extractor: shorter side 256, the middle 224 x 224 as transformers cuts it. WRBench does not say
which DINOv2, size, padding and filter it means: B, 448, centred and bicubic are ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, observer, observers, per_second
from revisit.evidence.appearance import IntegrityTokens
from revisit.observers.patches import EFFICIENTNET

DINO_LONG_SIDE = 448  # 32 patches; 16:9 then needs no padding
GREY = 127.0  # the level that EfficientNet-Lite0 takes for nothing
THREE_A_SECOND = per_second(3, at_most=24)


@observer(
    id="small.integrity", version=1, kind="frame", makes=IntegrityTokens, frames=THREE_A_SECOND, weights=(EFFICIENTNET,)
)  # fmt: skip
def integrity_by_efficientnet(batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """Descriptors of patches and of whole frames, three frames a second."""
    from revisit.networks import preprocessing, runtime
    from revisit.networks.efficientnet_lite import LONG_SIDE, PATCH, described

    with runtime.inference():
        pictures = runtime.on_device(batch.rgb)
        if crop:
            levels, inside = preprocessing.padded_to_grid(preprocessing.middle(pictures), PATCH)
        else:
            scaled = preprocessing.resized(pictures, preprocessing.long_side(tuple(pictures.shape[-2:]), LONG_SIDE))
            levels, inside = preprocessing.padded_to_grid(scaled, PATCH, GREY)
        tokens, whole = described(levels)
    return record(batch, tokens.flatten(1, 2), inside, whole, EFFICIENTNET, crop)


@observers(
    {"paper.integrity": "dinov2-base", "paper.integrity_large": "dinov2-large"},
    version=1, kind="frame", makes=IntegrityTokens, frames=THREE_A_SECOND,
)  # fmt: skip
def integrity_by_dino(network: str, batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """Tokens by {network} of patches and of whole frames, three frames a second."""
    from revisit.networks import dino, preprocessing, runtime

    net = dino.network(network)
    with runtime.inference(dino.HALF):
        pictures = runtime.on_device(batch.rgb)
        if crop:
            levels = preprocessing.middle(pictures)
        else:
            levels = preprocessing.resized(
                pictures, preprocessing.long_side(tuple(pictures.shape[-2:]), DINO_LONG_SIDE)
            )
        # Padding after normalisation: zero is the mean colour.
        pixels, inside = preprocessing.padded_to_grid(preprocessing.normalised(levels), net.patch)
        whole, tokens = net(pixels)
        whole, tokens = preprocessing.unit(whole), preprocessing.unit(tokens)
    return record(batch, tokens, inside, whole, network, crop)


def record(batch: Batch, tokens: Any, inside: Any, whole: Any, maker: str, crop: bool) -> IntegrityTokens:
    """The evidence, from tensors; `inside` says of each patch whether it holds nothing but picture."""
    from revisit.networks import runtime

    valid = np.tile(inside.flatten().cpu().numpy(), (len(batch.index), 1))
    return IntegrityTokens(
        batch.index, runtime.numbers(tokens, np.float16), valid, runtime.numbers(whole), maker, crop
    )  # fmt: skip
