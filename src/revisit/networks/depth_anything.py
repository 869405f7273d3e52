"""Depth Anything V2 (Yang et al., NeurIPS 2024): monocular depth up to scale and shift.

A folder of transformers is read (config.json, model.safetensors). Pictures are scaled as the published processor does:
so that the side which needs the least change has 518 pixels, the other in proportion, both rounded to whole patches of
14, by bicubic interpolation; ImageNet's mean and deviation. The answer is inverse depth: near things have large values.
It stays at the size that the network saw.

A GPU computes in float16 (autocast); maps are float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from revisit.core import MissingPrerequisite
from revisit.networks import compiled, hub, runtime
from revisit.networks.preprocessing import Size, normalised, resized

HALF = "float16"
SIDE, PATCH = 518, 14
TYPES = ("depth_anything",)


class DepthAnything(nn.Module):
    """DepthAnythingForDepthEstimation of transformers, a DPT head on DINOv2 (Ranftl et al. 2021), with its pictures."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> Tensor:
        return self.maps(prepared(pictures))

    def maps(self, pixels: Tensor) -> Tensor:
        """(B, h, w) of normalised pictures on whole patches."""
        return self.model(pixel_values=pixels).predicted_depth


def build(path: Path) -> DepthAnything:
    """The network in the folder of this file."""
    folder = path.parent
    config = hub.read_config(folder, of=TYPES)
    if config.get("depth_estimation_type", "relative") != "relative":
        raise MissingPrerequisite(
            f"{folder / hub.CONFIG}: this network tells depth in metres; expected one of relative depth, such as "
            "Depth-Anything-V2-Small-hf"
        )
    model = hub.model(folder, of=TYPES)
    model.head.max_depth = 1  # a factor for metres: published files of relative depth have null here
    return DepthAnything(model.to(memory_format=torch.channels_last))


def depth(id: str, pictures: Tensor) -> Tensor:
    """(B, h, w) inverse depth of (B, 3, H, W) pictures from 0 to 255."""
    network = runtime.network(id, build)
    with runtime.inference(HALF):
        return compiled.run(network.forward, pictures).float()


def prepared(pictures: Tensor) -> Tensor:
    """The pictures as the network wants them."""
    height, width = pictures.shape[-2:]
    return normalised(resized(pictures, seen_size((height, width)), "bicubic"))


def seen_size(size: Size) -> Size:
    """(height, width) at which the network sees a picture of this size."""
    scale = min((SIDE / size[0], SIDE / size[1]), key=lambda one: abs(1 - one))  # the height on a draw
    return round(scale * size[0] / PATCH) * PATCH, round(scale * size[1] / PATCH) * PATCH
