"""How far the picture moves away from the first frame, and patches of frames from those of aligned reference frames.

lite.outset          so that clips cannot win by not moving
small.feature_error  EfficientNet-Lite0 at a longer side of 320
paper.feature_error  MIND: DINOv3-B. Frames cover 1280 x 720 (bilinear, no antialias) and are squashed to 224 x 224
                     (bilinear, antialias). Upstream divides by 255 twice, so that the network sees pictures that are
                     almost black; `rescaled_twice` does the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revisit.core import Batch, Frame, every, observer
from revisit.observers.fidelity import resize_to_cover_and_crop
from revisit.observers.patches import EFFICIENTNET
from revisit.suites.mind.evidence import DistanceFromStart, FeatureError

if TYPE_CHECKING:
    from torch import Tensor

MIND_SIZE, MIND_SQUARE = (720, 1280), (224, 224)


@observer(
    id="lite.outset", version=1, kind="clip", makes=DistanceFromStart, frames=every(at_most=3), size=320, sets=("lite",)
)
def distance_from_first_frame(batch: Batch) -> DistanceFromStart:
    """Squared difference to the first frame, of the first, the middle and the last frame."""
    import cv2

    first = batch.rgb[0]
    errors = [cv2.norm(first, rgb, cv2.NORM_L2SQR) / first.size / 255.0**2 for rgb in batch.rgb]
    return DistanceFromStart(index=np.asarray(batch.index, dtype=np.int64), mse=np.array(errors, dtype=np.float64))


@observer(id="small.feature_error", version=1, kind="frame", makes=FeatureError, pairs=True, weights=(EFFICIENTNET,))
def feature_error_by_efficientnet(batch: Batch) -> FeatureError:
    """Squared difference of the unit descriptors of patches from those of the aligned reference frame."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import resize_to_whole_patches, unit_patch_and_picture_descriptors

    with runtime.inference():
        pictures = (runtime.channels_first_on_device(rgb) for rgb in (batch.rgb, batch.reference))
        own, true = (unit_patch_and_picture_descriptors(resize_to_whole_patches(x))[0] for x in pictures)
        error = (own - true).square().mean(dim=(1, 2, 3))
    return FeatureError(batch.index, batch.reference_index, runtime.to_numpy(error), EFFICIENTNET)


def resize_pair_to_cover(pair: tuple[Frame, Frame], *, rescaled_twice: bool) -> tuple[np.ndarray, np.ndarray]:
    """A frame and its reference at one size: their own, or where these differ MIND's, in whole levels."""
    picture, truth = pair[0].rgb, pair[1].rgb
    if picture.shape == truth.shape:
        return picture, truth
    height, width = MIND_SIZE
    first, second = (np.rint(resize_to_cover_and_crop(rgb, width, height)).astype(np.uint8) for rgb in (picture, truth))
    return first, second


@observer(
    id="paper.feature_error", version=2, kind="frame", makes=FeatureError, pairs=True, prepare=resize_pair_to_cover,
    weights=("dinov3-base",),
)  # fmt: skip
def feature_error_by_dino(batch: Batch, *, rescaled_twice: bool = False) -> FeatureError:
    """Squared difference of DINOv3-B's unit patch tokens from those of the aligned reference frame."""
    from revisit.networks import dino, preprocessing, runtime

    net = dino.network("dinov3-base")

    def unit_patch_tokens(pictures: Tensor) -> Tensor:
        covering = preprocessing.resize_to_cover_and_crop(pictures, MIND_SIZE)
        levels = preprocessing.resize_levels(covering, MIND_SQUARE, "bilinear", unrounded=True)
        _, tokens = net(preprocessing.normalise_by_channel(levels / 255 if rescaled_twice else levels))
        return preprocessing.unit_vectors(tokens)

    # Half precision knows ten levels between the darkest and the brightest pixel of what upstream shows the network.
    with runtime.inference(None if rescaled_twice else dino.HALF):
        tokens, truth = (unit_patch_tokens(runtime.channels_first_on_device(x)) for x in (batch.rgb, batch.reference))
        error = (tokens - truth).square().mean(dim=(1, 2))
    maker = "dinov3-base, rescaled twice" if rescaled_twice else "dinov3-base"
    return FeatureError(batch.index, batch.reference_index, runtime.to_numpy(error, np.float64), maker)
