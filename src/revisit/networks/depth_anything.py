"""Depth Anything V2 (Yang et al., NeurIPS 2024): monocular depth up to scale and shift.

A folder of transformers is read (config.json, model.safetensors). Pictures are scaled as the published processor does:
so that the side which needs the least change has 518 pixels, the other in proportion, both rounded to whole patches of
14, by bicubic interpolation; ImageNet's mean and deviation. The answer is inverse depth: near things have large values.
It stays at the size that the network saw.

A GPU computes in float16 (autocast); maps are float32.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.core import MissingPrerequisite
from revisit.networks import compiled, gpu_layers, hub, runtime
from revisit.networks.preprocessing import Size, normalise_by_channel, resize_levels

HALF = "float16"
SIDE, PATCH = 518, 14
TYPES = {"depth_anything": "DepthAnythingForDepthEstimation"}


class DepthAnything(nn.Module):
    """DepthAnythingForDepthEstimation of transformers, a DPT head on DINOv2 (Ranftl et al. 2021), with its pictures."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = gpu_layers.use_compiled_layers(model)
        backbone = model.config.backbone_config
        plain = backbone.apply_layernorm and not backbone.reshape_hidden_states and backbone.model_type == "dinov2"
        # Its head reads the last map, and maps are normalised tokens, as in all published ones.
        self.is_as_published = model.config.head_in_index == -1 and plain

    def forward(self, pictures: Tensor) -> Tensor:
        return self.inverse_depth_of_preprocessed(preprocess(pictures))

    def inverse_depth_of_preprocessed(self, pixels: Tensor) -> Tensor:
        """(B, h, w) of normalised pictures on whole patches."""
        if torch.compiler.is_compiling() and self.is_as_published:
            return self._inverse_depth_in_fewer_steps(pixels)
        return self.model(pixel_values=pixels).predicted_depth

    def _decoder_map_sizes(self, size: Size) -> list[Size]:
        """Sizes of the maps that the DPT head makes of pictures of this size, from the smallest to their own."""
        rows, columns = size[0] // PATCH, size[1] // PATCH
        factors = self.model.config.reassemble_factors
        sizes = [(math.ceil(rows * factor), math.ceil(columns * factor)) for factor in reversed(factors)]
        return [*sizes, (2 * sizes[-1][0], 2 * sizes[-1][1]), size]

    def _inverse_depth_in_fewer_steps(self, pixels: Tensor) -> Tensor:
        """The same as the model of transformers gives.

        Each 1 x 1 projection comes before its interpolation, where maps are smaller: the two can change places, since
        the weights of bilinear interpolation add up to one.
        """
        neck, head = self.model.neck, self.model.head
        height, width = pixels.shape[-2:]
        rows, columns = height // PATCH, width // PATCH
        sizes = self._decoder_map_sizes((height, width))
        levels = []
        for tokens, stage, conv in zip(
            self._tokens_that_head_reads(pixels), neck.reassemble_stage.layers, neck.convs, strict=True
        ):
            patches = tokens[:, 1:].unflatten(1, (rows, columns)).permute(0, 3, 1, 2)
            levels.append(conv(stage(patches)))
        fused = None
        for number, layer in enumerate(neck.fusion_stage.layers):
            level = levels[-1 - number]
            fused = level if fused is None else fused + layer.residual_layer1(level)
            fused = upsample_to(layer.projection(layer.residual_layer2(fused)), sizes[number + 1])
        large = upsample_to(head.conv1(fused), sizes[-1])
        return head.activation2(head.conv3(head.activation1(head.conv2(large)))).squeeze(dim=1)

    def _tokens_that_head_reads(self, pixels: Tensor) -> list[Tensor]:
        """(B, 1 + patches, D) normalised tokens behind those blocks of DINOv2 that the head reads."""
        backbone = self.model.backbone
        states = gpu_layers.block_outputs(backbone.encoder.layer, backbone.embeddings(pixels))
        named = zip(backbone.stage_names, states, strict=True)
        return [backbone.layernorm(tokens) for name, tokens in named if name in backbone.out_features]


def upsample_to(maps: Tensor, size: Size) -> Tensor:
    """Maps at another size, by bilinear interpolation that keeps the corners."""
    return functional.interpolate(maps, size, mode="bilinear", align_corners=True)


def build(path: Path) -> DepthAnything:
    """The network in the folder of this file."""
    folder = path.parent
    config = hub.read_config(folder, model_types=TYPES)
    if config.get("depth_estimation_type", "relative") != "relative":
        raise MissingPrerequisite(
            f"{folder / hub.CONFIG}: this network tells depth in metres; expected one of relative depth, such as "
            "Depth-Anything-V2-Small-hf"
        )
    model = hub.load_model(folder, model_types=TYPES)
    model.head.max_depth = 1  # a factor for metres: published files of relative depth have null here
    return DepthAnything(model.to(memory_format=torch.channels_last))


def inverse_depth(id: str, pictures: Tensor) -> Tensor:
    """(B, h, w) inverse depth of (B, 3, H, W) pictures from 0 to 255."""
    network = runtime.network(id, build)
    with runtime.inference(HALF):
        return compiled.run(network.forward, pictures).float()


def preprocess(pictures: Tensor) -> Tensor:
    """The pictures as the network wants them."""
    height, width = pictures.shape[-2:]
    return normalise_by_channel(resize_levels(pictures, network_input_size((height, width)), "bicubic"))


def network_input_size(size: Size) -> Size:
    """(height, width) at which the network sees a picture of this size."""
    scale = min((SIDE / size[0], SIDE / size[1]), key=lambda one: abs(1 - one))  # the height on a draw
    return round(scale * size[0] / PATCH) * PATCH, round(scale * size[1] / PATCH) * PATCH
