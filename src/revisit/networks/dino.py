"""DINOv2 (Oquab et al. 2023) and DINOv3 (Simeoni et al. 2025): self-supervised features of pictures and patches.

Models of transformers: pre-norm transformer blocks with LayerScale, an MLP with GELU or SwiGLU (silu(gate) x value).

Two formats are read: that of transformers (model.safetensors, and for DINOv3 config.json), and for DINOv2 the state
dict that Meta publishes for torch.hub (`dinov2_vitb14_pretrain.pth`, with or without registers); both hold the same.
They differ in one step: DINOv2 was trained at 518 pixels, and where its table of positions is resized, torch.hub
scales it by (patches + 0.1) / 37 and transformers by patches / 37. `as_hub=True` does the former.

Tokens are those behind the last normalisation, the CLS token first and register tokens left out; patches go row by
row. Pictures are RGB, normalised as ImageNet's. A GPU computes in float16 (autocast) and adds up in float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks import compiled, gpu_layers, hub, runtime

HALF = "float16"
HUB_OFFSET = 0.1
TYPES = {"dinov2": "Dinov2Model", "dinov2_with_registers": "Dinov2WithRegistersModel", "dinov3_vit": "DINOv3ViTModel"}
# Names of torch.hub -> names that transformers publishes; `qkv` is three tensors there.
NAMES = (
    (r"^cls_token$", "embeddings.cls_token"),
    (r"^mask_token$", "embeddings.mask_token"),
    (r"^register_tokens$", "embeddings.register_tokens"),
    (r"^pos_embed$", "embeddings.position_embeddings"),
    (r"^patch_embed\.proj\.", "embeddings.patch_embeddings.projection."),
    (r"^norm\.", "layernorm."),
    (r"^blocks\.(\d+)\.attn\.proj\.", r"encoder.layer.\1.attention.output.dense."),
    (r"^blocks\.(\d+)\.ls([12])\.gamma$", r"encoder.layer.\1.layer_scale\2.lambda1"),
    (r"^blocks\.(\d+)\.mlp\.w12\.", r"encoder.layer.\1.mlp.weights_in."),
    (r"^blocks\.(\d+)\.mlp\.w3\.", r"encoder.layer.\1.mlp.weights_out."),
    (r"^blocks\.(\d+)\.(norm[12]|mlp\.fc[12])\.", r"encoder.layer.\1.\2."),
)
BLOCKS = "encoder.layer."
HEAD_WIDTH = 64
FUSED = re.compile(r"^blocks\.(\d+)\.attn\.qkv\.(weight|bias)$")


class Dino(nn.Module):
    """Dinov2Model, Dinov2WithRegistersModel or DINOv3ViTModel of transformers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = gpu_layers.use_compiled_layers(model)
        self.patch = int(model.config.patch_size)
        self.prefix_tokens = 1 + int(getattr(model.config, "num_register_tokens", 0))  # CLS and registers

    def forward(self, pixels: Tensor, *, as_hub: bool = False) -> tuple[Tensor, Tensor]:
        """(CLS tokens (B, D), patch tokens (B, patches, D)) in float32, of normalised pictures on whole patches."""
        height, width = pixels.shape[-2:]
        if height % self.patch or width % self.patch:
            raise ValueError(f"pictures of {width} x {height} are not whole patches of {self.patch}")
        # DINOv3 has rotary positions, and models with registers no offset.
        if as_hub and self.model.config.model_type == "dinov2":
            tokens = self._tokens_with_torch_hub_positions(pixels).float()
        else:
            tokens = compiled.run(self._normalised_tokens, pixels).float()
        return tokens[:, 0], tokens[:, self.prefix_tokens :]

    def _normalised_tokens(self, pixels: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() or self.model.config.model_type == "dinov3_vit":
            return self.model(pixel_values=pixels).last_hidden_state
        tokens = self.model.embeddings(pixels)
        return self.model.layernorm(gpu_layers.block_outputs(self.model.encoder.layer, tokens)[-1])

    def _tokens_with_torch_hub_positions(self, pixels: Tensor) -> Tensor:
        """Tokens with the position embeddings that torch.hub would make."""
        embeddings = self.model.embeddings
        rows, columns = (side // self.patch for side in pixels.shape[-2:])
        patches = embeddings.patch_embeddings(pixels)
        x = torch.cat([embeddings.cls_token.expand(len(patches), -1, -1), patches], dim=1)
        x = x + resize_positions_as_torch_hub(embeddings.position_embeddings, rows, columns)
        return self.model.layernorm(self.model.encoder(x).last_hidden_state)


def resize_positions_as_torch_hub(table: Tensor, rows: int, columns: int) -> Tensor:
    """(1, 1 + rows * columns, D): a square table of positions, resized bicubically with torch.hub's offset."""
    side = math.isqrt(table.shape[1] - 1)
    if rows == columns == side:
        return table
    grid = table[:, 1:].float().unflatten(1, (side, side)).permute(0, 3, 1, 2)
    scale = ((rows + HUB_OFFSET) / side, (columns + HUB_OFFSET) / side)
    resized = functional.interpolate(grid, scale_factor=scale, mode="bicubic")
    return torch.cat([table[:, :1].float(), resized.flatten(2).transpose(1, 2)], dim=1)


def network(id: str) -> Dino:
    """The DINO network of these weights, on the device."""
    return runtime.network(id, build)


def build(path: Path) -> Dino:
    """The network in a folder of transformers, named by one of its files, or in a single file of DINOv2."""
    folder = path if path.is_dir() else path.parent
    if (folder / hub.CONFIG).is_file():
        return Dino(hub.load_model(folder, model_types=TYPES))
    return Dino(dinov2_from_tensors(weights.tensors(path), path))


def dinov2_from_tensors(tensors: Mapping[str, Tensor], source: Path) -> Any:
    """DINOv2 from a state dict with the names of transformers or torch.hub, whose shapes tell its settings."""
    state = rename_tensors_for_transformers(tensors)
    swiglu = f"{BLOCKS}0.mlp.weights_in.weight" in state
    try:
        width = state["embeddings.cls_token"].shape[-1]
        hidden = len(state[f"{BLOCKS}0.mlp.{'weights_in' if swiglu else 'fc1'}.weight"])
        patch = state["embeddings.patch_embeddings.projection.weight"].shape[-1]
        positions = state["embeddings.position_embeddings"].shape[1]
    except (KeyError, IndexError):
        raise MissingPrerequisite(
            f"{source}: this is not a state dict of DINOv2. Expected a file such as dinov2_vitb14_pretrain.pth, or the "
            f"model.safetensors of transformers, for DINOv3 with its {hub.CONFIG} beside it"
        ) from None
    settings: dict[str, object] = {
        "hidden_size": width,
        "num_attention_heads": max(1, width // HEAD_WIDTH),
        "num_hidden_layers": hub.layer_count(state, BLOCKS),
        # SwiGLU keeps gate and value in one tensor, each with two thirds of the channels.
        "mlp_ratio": round(hidden * 3 / 4 / width) if swiglu else hidden // width,
        "use_swiglu_ffn": swiglu,
        "patch_size": patch,
        "image_size": patch * math.isqrt(positions - 1),
    }
    registers = state.get("embeddings.register_tokens")
    if registers is None:
        settings["use_mask_token"] = "embeddings.mask_token" in state
        return hub.model_from_tensors("Dinov2Model", settings, state, source)
    settings["num_register_tokens"] = registers.shape[1]
    return hub.model_from_tensors("Dinov2WithRegistersModel", settings, state, source)


def rename_tensors_for_transformers(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a state dict under the names that transformers publishes, if they have torch.hub's."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if fused := FUSED.match(name):
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                target = f"encoder.layer.{fused[1]}.attention.attention.{part}.{fused[2]}"
                renamed[target] = piece.clone()
            continue
        for pattern, target in NAMES:
            if re.match(pattern, name):
                name = re.sub(pattern, target, name)
                break
        renamed[name] = tensor
    return renamed
