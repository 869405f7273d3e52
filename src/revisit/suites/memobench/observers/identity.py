"""Patch descriptors of the first frame and of frames after the return, by classical means or by a network.

All see the whole field, stretched to whole patches by half a patch at most. With `crop` they see the middle only, as
networks with square inputs take it: `lite.identity` a square of 7/8 of the shorter side, the others 224 x 224 of a
shorter side of 256, `paper.identity` as MemoBench's evaluator does, with positions as torch.hub resizes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, ClipInfo, FrameStream, observer, register_observer_per_network
from revisit.observers.patches import EFFICIENTNET, LONG_SIDE, patch_tokens
from revisit.suites.memobench.evidence import IdentityTokens, evenly_spread_frames

KEPT = 7 / 8  # a side of 224 out of 256
SHORT_SIDE = 224


@observer(id="lite.identity", version=1, kind="sequence", makes=IdentityTokens, inputs=("phases",), sets=("lite",))
def identity_by_gradients_and_colour(
    clip: ClipInfo, phases: tuple[int, int], *, samples: int = 9, crop: bool = False
) -> FrameStream:
    """Descriptors of the patches of the first frame and of `samples` frames spread over the returned phase."""
    frame_numbers = first_and_returned_frames(clip.count, clip.fps, phases, samples=samples)
    index: list[int] = []
    tokens: list[np.ndarray] = []
    while (frame := (yield)) is not None:
        if frame.index in frame_numbers:
            grid = patch_tokens(crop_central_square(frame.rgb) if crop else frame.at(LONG_SIDE))
            index.append(frame.index)
            tokens.append(grid.reshape(-1, grid.shape[2]).astype(np.float16))
    return IdentityTokens(np.array(index, dtype=np.int64), np.stack(tokens), "gradients and colour", crop)


def first_and_returned_frames(count: int, fps: float, phases: tuple[int, int], *, samples: int, **_: Any) -> np.ndarray:
    """Numbers of the first frame and of `samples` frames spread over the returned phase of a clip of `count` frames."""
    first, last = phases[1], count - 1
    return np.union1d([0], evenly_spread_frames(first, last, samples) if first <= last else [0])


@observer(
    id="small.identity", version=1, kind="frame", makes=IdentityTokens, inputs=("phases",),
    choose=first_and_returned_frames,
    weights=(EFFICIENTNET,),
)  # fmt: skip
def identity_by_efficientnet(batch: Batch, *, samples: int = 9, crop: bool = False) -> IdentityTokens:
    """Descriptors of the patches of the first frame and of `samples` frames spread over the returned phase."""
    from revisit.networks import preprocessing, runtime
    from revisit.networks.efficientnet_lite import resize_to_whole_patches, unit_patch_and_picture_descriptors

    with runtime.inference():
        pictures = runtime.channels_first_on_device(batch.rgb)
        tokens, _ = unit_patch_and_picture_descriptors(
            preprocessing.resize_256_and_crop_224(pictures) if crop else resize_to_whole_patches(pictures)
        )
    return IdentityTokens(batch.index, runtime.to_numpy(tokens.flatten(1, 2), np.float16), EFFICIENTNET, crop)


@register_observer_per_network(
    {"paper.identity": "dinov2-base", "paper.identity_small": "dinov2-small", "paper.identity_large": "dinov2-large"},
    version=1, kind="frame", makes=IdentityTokens, inputs=("phases",), choose=first_and_returned_frames,
    size="long_side",
)  # fmt: skip
def identity_by_dino(
    network: str, batch: Batch, *, samples: int = 9, crop: bool = False, long_side: int | None = None
) -> IdentityTokens:
    """Patch tokens by {network} of the first frame and of `samples` frames spread over the returned phase."""
    from revisit.networks import dino, preprocessing, runtime

    net = dino.network(network)
    with runtime.inference(dino.HALF):
        pictures = runtime.channels_first_on_device(batch.rgb)
        if crop:
            levels = preprocessing.resize_256_and_crop_224(pictures, odd="even")
        else:
            size = preprocessing.size_with_short_side(tuple(pictures.shape[-2:]), SHORT_SIDE)
            levels = preprocessing.resize_levels(pictures, preprocessing.nearest_size_of_multiples(size, net.patch))
        _, tokens = net(preprocessing.normalise_by_channel(levels), as_hub=crop)
        unit = preprocessing.unit_vectors(tokens)
    return IdentityTokens(batch.index, runtime.to_numpy(unit, np.float16), network, crop)


def crop_central_square(rgb: np.ndarray) -> np.ndarray:
    """The square in the middle of a picture."""
    height, width = rgb.shape[:2]
    side = max(1, int(KEPT * min(height, width)))
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(rgb[top : top + side, left : left + side])
