"""What the target looks like, as MBench describes it: DINOv2 on the target cut out along its mask by SAM 2.1.

The box around the mask is cut out, what is not the target takes the mean colour of ImageNet (0 after normalisation),
and the crop is squashed to 224 x 224 (bicubic); its CLS token is the descriptor. Masks of less than 0.1 % of the frame
are left out, and at most 32 frames are looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import ClipInfo, Sight, Target, observer
from revisit.evidence.mbench import ObjectFeatures
from revisit.observers.paper.masks import DINO, SAM2, THRESHOLD, Follower, choose_frames
from revisit.observers.small.track import box_of

DINOV2 = "dinov2-base"
LEAST_SHARE = 0.001
SIDE = 224
AT_MOST = 32


@observer(
    id="paper.object_features", version=2, kind="sequence", makes=ObjectFeatures, inputs=("target_or_name",),
    weights=(SAM2, DINO, DINOV2), choose=choose_frames,
)  # fmt: skip
def object_features(
    clip: ClipInfo, sought: Target | str, *, at_most: int = AT_MOST, threshold: float = THRESHOLD
) -> Sight:
    """DINOv2 (base) vectors of the target, which SAM 2.1 follows from the first frame as in `paper.masks`."""
    from revisit.networks import runtime

    follower = Follower(sought, threshold)
    index: list[int] = []
    shown: list[int] = []
    vectors: list[np.ndarray] = []
    frame = yield
    while frame is not None:
        with runtime.inference():
            picture = runtime.on_device([frame.rgb])
            mask = follower.see(picture, (clip.height, clip.width))
            if mask.mean() >= LEAST_SHARE:
                vectors.append(described(picture, mask))
                shown.append(frame.index)
        index.append(frame.index)
        frame = yield
    table = np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
    maker = f"{DINOV2} on masks by {follower.maker}"
    return ObjectFeatures(np.array(index, dtype=np.int64), np.array(shown, dtype=np.int64), table, maker)


def described(picture: Any, mask: np.ndarray) -> np.ndarray:
    """(D,) CLS token of what the mask covers in a picture (1, 3, H, W) of levels."""
    import torch

    from revisit.networks import dino, runtime
    from revisit.networks.pictures import IMAGENET_MEAN, normalised, resized

    height, width = mask.shape
    x0, y0, x1, y1 = (round(edge * side) for edge, side in zip(box_of(mask), (width, height) * 2, strict=True))
    own = torch.from_numpy(np.ascontiguousarray(mask[y0:y1, x0:x1])).to(picture.device)
    mean = torch.tensor(IMAGENET_MEAN, device=picture.device)[:, None, None] * 255
    crop = torch.where(own, picture[0, :, y0:y1, x0:x1].float(), mean)[None]
    cls, _ = dino.network(DINOV2)(normalised(resized(crop, (SIDE, SIDE), "bicubic")))
    return runtime.numbers(cls[0])
