"""Depth Anything V2 (Yang et al., NeurIPS 2024): depth of one picture, up to scale and shift.

A folder of transformers is read (config.json, model.safetensors). Pictures are scaled as the published processor does:
so that the side which needs the least change has 518 pixels, the other in proportion, both rounded to whole patches of
14, by bicubic interpolation; ImageNet's mean and deviation. The answer is inverse depth: near things have large values.
It stays at the size that the network saw.

A GPU computes in float16 (autocast); maps are float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from revisit.networks import compiled, hub, runtime
from revisit.networks.pictures import Size, normalised, resized

HALF = "float16"
SIDE, PATCH = 518, 14


class Depth(nn.Module):
    """The network of transformers, from pictures to maps."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> Tensor:
        made: Tensor = self.model(pixel_values=prepared(pictures)).predicted_depth
        return made


def build(path: Path) -> Depth:
    """The network in the folder of this file."""
    return Depth(hub.model(path.parent, of=("depth_anything",)))


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
