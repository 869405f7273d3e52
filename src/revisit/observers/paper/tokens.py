"""Patches and pictures as DINO describes them, each protocol with the preprocessing of its paper.

    paper.identity       MemoBench: DINOv2-B. Upstream limits the longer side to 640 first, by area (`long_side`). With
                         `crop` as upstream: shorter side 256 by PIL's bicubic filter, the middle 224 x 224 as
                         torchvision cuts it, positions as torch.hub resizes them: 256 patches, in 16:9 half of the
                         width. Without (default) the whole field: shorter side 224, the longer one as the frame's
                         shape asks, both stretched to whole patches (by half a patch at most).
    paper.integrity      WRBench: DINOv2-B, about three frames a second. The whole field: longer side 448, padded with
                         the mean colour to whole patches; patches with padding do not count. `crop` as upstream's
                         extractor: shorter side 256, the middle 224 x 224 as transformers cuts it.
    paper.feature_error  MIND: DINOv3-B. Frames cover 1280 x 720 (bilinear, no antialias) and are squashed to 224 x 224
                         (bilinear, antialias). Upstream divides by 255 twice, so that the network sees pictures that
                         are all but black; `rescaled_twice` does so, too.

WRBench does not say which DINOv2, size, padding and filter it means: B, 448, centred and bicubic are ours.
On a GPU the network runs in float16; vectors are made unit in float32 and kept in float16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import Batch, Frame, observer, per_second
from revisit.evidence.appearance import IntegrityTokens
from revisit.evidence.memory_clips import IdentityTokens
from revisit.evidence.quality import FeatureError
from revisit.observers.lite.fidelity import cover
from revisit.observers.lite.identity import compared_frames

if TYPE_CHECKING:
    from torch import Tensor

SHORT_SIDE, CROP = 256, 224
LONG_SIDE = 448  # 32 patches; 16:9 then needs no padding
MIND_SIZE, MIND_SQUARE = (720, 1280), (224, 224)


def _compared(count: int, fps: float, phases: tuple[int, int], *, samples: int, **_: Any) -> np.ndarray:
    return np.array(compared_frames(count, phases, samples))


@observer(
    id="paper.identity", version=1, kind="frame", makes=IdentityTokens, inputs=("phases",), choose=_compared,
    size="long_side", weights=("dinov2-base",),
)  # fmt: skip
def identity_tokens(
    batch: Batch, *, samples: int = 9, crop: bool = False, long_side: int | None = None
) -> IdentityTokens:
    """DINOv2-B's patch tokens of the first frame and of `samples` frames spread over the returned phase."""
    return identity("dinov2-base", batch, crop)


@observer(
    id="paper.identity_small", version=1, kind="frame", makes=IdentityTokens, inputs=("phases",), choose=_compared,
    size="long_side", weights=("dinov2-small",),
)  # fmt: skip
def identity_tokens_small(
    batch: Batch, *, samples: int = 9, crop: bool = False, long_side: int | None = None
) -> IdentityTokens:
    """DINOv2-S's patch tokens of the first frame and of `samples` frames spread over the returned phase."""
    return identity("dinov2-small", batch, crop)


@observer(
    id="paper.identity_large", version=1, kind="frame", makes=IdentityTokens, inputs=("phases",), choose=_compared,
    size="long_side", weights=("dinov2-large",),
)  # fmt: skip
def identity_tokens_large(
    batch: Batch, *, samples: int = 9, crop: bool = False, long_side: int | None = None
) -> IdentityTokens:
    """DINOv2-L's patch tokens of the first frame and of `samples` frames spread over the returned phase."""
    return identity("dinov2-large", batch, crop)


def identity(id: str, batch: Batch, crop: bool) -> IdentityTokens:
    """Patch tokens of unit length."""
    from revisit.networks import dino, pictures, runtime

    net = dino.network(id)
    with runtime.inference(dino.HALF):
        shown = runtime.on_device(batch.rgb)
        if crop:
            levels = middle(shown, odd="even")
        else:
            size = pictures.short_side(tuple(shown.shape[-2:]), CROP)
            levels = pictures.resized(shown, pictures.multiple(size, net.patch))
        _, tokens = net(pictures.normalised(levels), as_hub=crop)
        unit = pictures.unit(tokens)
    return IdentityTokens(batch.index, runtime.numbers(unit, np.float16), id, crop)


@observer(
    id="paper.integrity", version=1, kind="frame", makes=IntegrityTokens, frames=per_second(3, at_most=24),
    weights=("dinov2-base",),
)  # fmt: skip
def integrity_tokens(batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """DINOv2-B's tokens of patches and of whole frames, three frames a second."""
    return integrity("dinov2-base", batch, crop)


@observer(
    id="paper.integrity_large", version=1, kind="frame", makes=IntegrityTokens, frames=per_second(3, at_most=24),
    weights=("dinov2-large",),
)  # fmt: skip
def integrity_tokens_large(batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """DINOv2-L's tokens of patches and of whole frames, three frames a second."""
    return integrity("dinov2-large", batch, crop)


def integrity(id: str, batch: Batch, crop: bool) -> IntegrityTokens:
    """Tokens of unit length, and which patches hold nothing but picture."""
    from revisit.networks import dino, pictures, runtime

    net = dino.network(id)
    with runtime.inference(dino.HALF):
        shown = runtime.on_device(batch.rgb)
        if crop:
            levels = middle(shown, odd="before")
        else:
            levels = pictures.resized(shown, pictures.long_side(tuple(shown.shape[-2:]), LONG_SIDE))
        # Padding after normalisation: zero is the mean colour.
        pixels, inside = pictures.padded_to_grid(pictures.normalised(levels), net.patch)
        whole, tokens = net(pixels)
        whole, tokens = pictures.unit(whole), pictures.unit(tokens)
    valid = np.tile(inside.flatten().cpu().numpy(), (len(batch.index), 1))
    return IntegrityTokens(
        batch.index, runtime.numbers(tokens, np.float16), valid, runtime.numbers(whole), id, crop
    )  # fmt: skip


def covering_pair(pair: tuple[Frame, Frame], *, rescaled_twice: bool) -> tuple[np.ndarray, np.ndarray]:
    """A frame and its reference at one size: their own, or where these differ MIND's, in whole levels."""
    shown, truth = pair[0].rgb, pair[1].rgb
    if shown.shape == truth.shape:
        return shown, truth
    height, width = MIND_SIZE
    first, second = (np.rint(cover(rgb, width, height)).astype(np.uint8) for rgb in (shown, truth))
    return first, second


@observer(
    id="paper.feature_error", version=2, kind="frame", makes=FeatureError, pairs=True, prepare=covering_pair,
    weights=("dinov3-base",),
)  # fmt: skip
def feature_error(batch: Batch, *, rescaled_twice: bool = False) -> FeatureError:
    """Squared difference of DINOv3-B's unit patch tokens from those of the aligned reference frame."""
    from revisit.networks import dino, pictures, runtime

    net = dino.network("dinov3-base")

    def tokens(shown: Tensor) -> Tensor:
        levels = pictures.resized(pictures.covering(shown, MIND_SIZE), MIND_SQUARE, "bilinear", exact=True)
        return pictures.unit(net(pictures.normalised(levels / 255 if rescaled_twice else levels))[1])

    # Half precision knows ten levels between the darkest and the brightest pixel of what upstream shows the network.
    with runtime.inference(None if rescaled_twice else dino.HALF):
        difference = tokens(runtime.on_device(batch.rgb)) - tokens(runtime.on_device(batch.reference))
        error = difference.square().mean(dim=(1, 2))
    maker = "dinov3-base, rescaled twice" if rescaled_twice else "dinov3-base"
    return FeatureError(batch.index, batch.reference_index, runtime.numbers(error, np.float64), maker)


def middle(shown: Tensor, odd: str) -> Tensor:
    """The middle 224 x 224 of a shorter side of 256; `odd` says who gets the odd pixel (networks.pictures)."""
    from revisit.networks import pictures

    scaled = pictures.resized(shown, pictures.short_side(tuple(shown.shape[-2:]), SHORT_SIDE))
    return pictures.centre_crop(scaled, (CROP, CROP), odd="even" if odd == "even" else "before")
