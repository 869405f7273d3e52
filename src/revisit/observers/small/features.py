"""Patches and pictures as EfficientNet-Lite0 describes them, where the papers take DINO.

Frames are brought to a longer side of 320 pixels: 20 patches, as many as `lite.patches` has. `small.integrity` pads
the shorter side to whole patches and says which ones hold padding; the others stretch it to the nearest whole patch
(by half a patch at most), because all of their patches count. With `crop` the middle is taken, as networks with square
inputs do: a shorter side of 256, of which 224 x 224 are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revisit.core import Batch, every, observer, per_second
from revisit.evidence.appearance import IntegrityTokens, NetworkPatches
from revisit.evidence.memory_clips import IdentityTokens
from revisit.evidence.quality import FeatureError
from revisit.observers.lite.identity import compared_frames

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = ("efficientnet-lite0",)
MAKER = "efficientnet-lite0"
LONG_SIDE = 320
SHORT_SIDE, CROP = 256, 224
GREY = 127.0  # the level that the network takes for nothing


@observer(
    id="small.patches", version=1, kind="frame", makes=NetworkPatches, frames=every(at_most=256), weights=WEIGHTS
)  # fmt: skip
def patches(batch: Batch) -> NetworkPatches:
    """Unit descriptors of a grid of patches, 20 on the longer side, and of the whole frame."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import described

    with runtime.inference():
        tokens, whole = described(full_field(runtime.on_device(batch.rgb)))
    return NetworkPatches(batch.index, runtime.numbers(tokens, np.float16), runtime.numbers(whole), MAKER)


def _compared(count: int, fps: float, phases: tuple[int, int], *, samples: int, crop: bool) -> np.ndarray:
    return np.array(compared_frames(count, phases, samples))


@observer(
    id="small.identity", version=1, kind="frame", makes=IdentityTokens, inputs=("phases",), choose=_compared,
    weights=WEIGHTS,
)  # fmt: skip
def identity_tokens(batch: Batch, *, samples: int = 9, crop: bool = False) -> IdentityTokens:
    """Descriptors of the patches of the first frame and of `samples` frames spread over the returned phase."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import described

    with runtime.inference():
        pictures = runtime.on_device(batch.rgb)
        tokens, _ = described(middle(pictures) if crop else full_field(pictures))
    return IdentityTokens(batch.index, runtime.numbers(tokens.flatten(1, 2), np.float16), MAKER, crop)


@observer(
    id="small.integrity", version=1, kind="frame", makes=IntegrityTokens, frames=per_second(3, at_most=24),
    weights=WEIGHTS,
)  # fmt: skip
def integrity_tokens(batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """Descriptors of patches and of whole frames, three frames a second."""
    from revisit.networks import pictures as shapes
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import PATCH, described

    with runtime.inference():
        pictures = runtime.on_device(batch.rgb)
        if crop:
            levels, inside = shapes.padded_to_grid(middle(pictures), PATCH)
        else:
            scaled = shapes.resized(pictures, shapes.long_side(tuple(pictures.shape[-2:]), LONG_SIDE))
            levels, inside = shapes.padded_to_grid(scaled, PATCH, GREY)
        tokens, whole = described(levels)
    valid = np.tile(inside.flatten().cpu().numpy(), (len(batch.index), 1))
    return IntegrityTokens(
        batch.index, runtime.numbers(tokens.flatten(1, 2), np.float16), valid, runtime.numbers(whole), MAKER, crop
    )


@observer(id="small.feature_error", version=1, kind="frame", makes=FeatureError, pairs=True, weights=WEIGHTS)
def feature_error(batch: Batch) -> FeatureError:
    """Squared difference of the unit descriptors of patches from those of the aligned reference frame."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import described

    with runtime.inference():
        shown = full_field(runtime.on_device(batch.rgb))
        truth = full_field(runtime.on_device(batch.reference))
        difference = described(shown)[0] - described(truth)[0]
        error = difference.square().mean(dim=(1, 2, 3))
    return FeatureError(batch.index, batch.reference_index, runtime.numbers(error), MAKER)


def full_field(pictures: Tensor) -> Tensor:
    """The pictures with a longer side of 320 pixels and whole patches on both sides."""
    from revisit.networks import pictures as shapes
    from revisit.networks.efficientnet_lite import PATCH

    size = shapes.long_side(tuple(pictures.shape[-2:]), LONG_SIDE)
    return shapes.resized(pictures, shapes.multiple(size, PATCH))


def middle(pictures: Tensor) -> Tensor:
    """The square in the middle of the pictures, 224 pixels of a shorter side of 256."""
    from revisit.networks import pictures as shapes

    scaled = shapes.resized(pictures, shapes.short_side(tuple(pictures.shape[-2:]), SHORT_SIDE))
    return shapes.centre_crop(scaled, (CROP, CROP))
