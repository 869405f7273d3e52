"""DINOv2 (Oquab et al. 2023) and DINOv3 (Simeoni et al. 2025): a descriptor of a picture and of each of its patches.

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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks import compiled, hub, runtime
from revisit.networks.loading import fill
from revisit.networks.vit import Transformer, published, shapes_only

HALF = "float16"
HUB_OFFSET = 0.1
TYPES = ("dinov2", "dinov2_with_registers", "dinov3_vit")
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
FUSED = re.compile(r"^blocks\.(\d+)\.attn\.qkv\.(weight|bias)$")


# Parts of names in networks/vit.py -> those that transformers publishes.
PUBLISHED = {
    "cls": "embeddings.cls_token", "registers": "embeddings.register_tokens",
    "positions": "embeddings.position_embeddings", "patches": "embeddings.patch_embeddings.projection",
    "blocks": "encoder.layer", "query": "attention.attention.query", "key": "attention.attention.key",
    "value": "attention.attention.value", "out": "attention.output.dense", "inner": "mlp.fc1", "outer": "mlp.fc2",
    "scale1": "layer_scale1.lambda1", "scale2": "layer_scale2.lambda1", "last": "layernorm",
}  # fmt: skip
GATED = {**PUBLISHED, "inner": "mlp.weights_in", "outer": "mlp.weights_out"}
UNUSED = "embeddings.mask_token"  # of training
EPSILON = 1e-6


class Dino(nn.Module):
    """A DINO network: ours of DINOv2, or that of transformers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        if isinstance(model, Transformer):
            self.patch, self.before = model.patch, model.before
        else:
            self.patch = int(model.config.patch_size)
            self.before = 1 + int(getattr(model.config, "num_register_tokens", 0))  # tokens that stand for no patch

    def forward(self, pixels: Tensor, *, as_hub: bool = False) -> tuple[Tensor, Tensor]:
        """(CLS tokens (B, D), patch tokens (B, patches, D)) in float32, of normalised pictures on whole patches."""
        height, width = pixels.shape[-2:]
        if height % self.patch or width % self.patch:
            raise ValueError(f"pictures of {width} x {height} are not whole patches of {self.patch}")
        # DINOv3 has no table of positions, and models with registers no offset.
        if as_hub and isinstance(self.model, Transformer) and self.model.registers is None:
            table = hub_positions(self.model.positions, height // self.patch, width // self.patch)
            tokens = self.model(pixels, table).float()
        else:
            tokens = compiled.run(self._tokens, pixels).float()
        return tokens[:, 0], tokens[:, self.before :]

    def _tokens(self, pixels: Tensor) -> Tensor:
        if isinstance(self.model, Transformer):
            return self.model(pixels)
        return self.model(pixel_values=pixels).last_hidden_state


def hub_positions(table: Tensor, rows: int, columns: int) -> Tensor:
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
    if not (folder / hub.CONFIG).is_file():
        return Dino(dinov2(weights.tensors(path), path))
    settings = hub.described(folder, of=TYPES)
    if settings["model_type"] == "dinov3_vit":
        return Dino(hub.model(folder, of=TYPES))
    return Dino(dinov2(hub.tensors(folder), folder / hub.WEIGHTS, settings.get("num_attention_heads")))


def dinov2(state: Mapping[str, Tensor], source: Path, heads: int | None = None) -> Transformer:
    """DINOv2 from a state dict with the names of transformers or torch.hub; sizes follow from the tensors."""
    state = {name: tensor.float() for name, tensor in published_names(state).items() if name != UNUSED}
    net, called = trunk(state, source, "", heads)
    return fill(net, state, source, called)


def trunk(
    state: Mapping[str, Tensor], source: Path, prefix: str, heads: int | None
) -> tuple[Transformer, Callable[[str], str]]:
    """An empty DINOv2 for the tensors whose names begin with `prefix`, and what its own are called there."""
    own = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    gated = published("blocks.0.inner.weight", GATED) in own
    names = GATED if gated else PUBLISHED
    needed = ("cls", "positions", "patches.weight", "blocks.0.inner.weight")
    if any(published(name, names) not in own for name in needed):
        raise MissingPrerequisite(
            f"{source}: this is not a state dict of DINOv2. Expected a file such as dinov2_vitb14_pretrain.pth, or the "
            f"model.safetensors of transformers, for DINOv3 with its {hub.CONFIG} beside it"
        )
    with shapes_only():
        made = Transformer(own, names, "gated" if gated else "gelu", EPSILON, heads)
    return made, lambda name: prefix + published(name, names)


def published_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
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
