"""SAM 2 and 2.1 (Ravi et al., arXiv:2408.00714; Apache-2.0): video object segmentation from a box or a point.

From a folder in the format of transformers (Sam2VideoModel). Frames are squashed to the network's square (1024, PIL's
bilinear) and normalised as ImageNet's. The network remembers the frame with the box and the last ones it has seen; so
frames are shown in order, and what it answers depends on which are shown. Runs in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks import hub, runtime
from revisit.networks.preprocessing import normalise_by_channel, resize_levels

Prompt = tuple[float, ...]  # in fractions: x0, y0, x1, y1 of a box, or x, y of a point on the thing
LABELS = {4: (2, 3), 2: (1,)}  # corners of a box, a point that belongs to the thing


class Sam2(nn.Module):
    """Sam2VideoModel of transformers with its preprocessing."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.side = int(model.config.prompt_encoder_config.image_size)

    def preprocess(self, pictures: Tensor) -> Tensor:
        """(B, 3, side, side) of pictures (B, 3, H, W) with levels 0 to 255."""
        return normalise_by_channel(resize_levels(pictures, (self.side, self.side), "bilinear"))


class Sam2Tracker:
    """Things followed through one clip from boxes around them, or points on them, in its first frame."""

    def __init__(self, net: Sam2, pictures: Tensor, prompts: Sequence[Prompt]) -> None:
        self.net, self.number = net, 0
        session = hub.transformers_class("Sam2VideoInferenceSession")
        height, width = (int(side) for side in pictures.shape[-2:])
        where = pictures.device
        self.session = session(
            video_height=height, video_width=width, inference_device=where, inference_state_device=where,
            video_storage_device=where, dtype=torch.float32,
        )  # fmt: skip
        for number, prompt in enumerate(prompts):
            row = self.session.obj_id_to_idx(number)
            points = torch.tensor(prompt, dtype=torch.float32).reshape(1, 1, -1, 2) * net.side
            labels = torch.tensor([[LABELS[len(prompt)]]], dtype=torch.int32)
            self.session.add_point_inputs(row, 0, {"point_coords": points, "point_labels": labels})
        self.session.obj_with_new_inputs = list(range(len(prompts)))
        self.first = self.next_logits(pictures)

    def next_logits(self, pictures: Tensor) -> Tensor:
        """Logits (things, h, w) of the masks in the next frame, (1, 3, H, W).

        Those of the network, at a quarter of its square; where a thing is not seen they are far below 0.
        """
        out = self.net.model(
            inference_session=self.session, frame=self.net.preprocess(pictures)[0], frame_idx=self.number
        )
        self.session.processed_frames.pop(self.number, None)  # never read again
        self.number += 1
        return out.pred_masks.float().reshape(-1, *out.pred_masks.shape[-2:])


def masks_at(logits: Tensor, size: tuple[int, int]) -> np.ndarray:
    """(things, height, width) bool."""
    fine = functional.interpolate(logits[:, None].float(), size, mode="bilinear", align_corners=False)[:, 0]
    return np.asarray((fine > 0).cpu().numpy())


def network(id: str) -> Sam2:
    """The network of these weights, on the device."""
    return runtime.network(id, build)


def build(path: Path) -> Sam2:
    """The network in the folder of this file: config.json and model.safetensors."""
    return Sam2(hub.load_model(path.parent, model_types={"sam2_video": "Sam2VideoModel"}))
