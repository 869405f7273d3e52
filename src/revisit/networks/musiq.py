"""MUSIQ (Ke et al. 2021): technical quality of a picture at its native aspect ratio, from patches at three scales.

The picture is cut into patches of 32 x 32 at its own size and with its longer side at 224 and at 384. A small ResNet
stem with weight standardisation embeds each patch; a hash-based spatial embedding (grid of 10 x 10) and a scale
embedding are added; a transformer encoder of 14 layers and a linear head give one number: about 0 to 100 on the
checkpoints of KonIQ-10k, SPAQ and PaQ-2-PiQ.

Layers are named as in the checkpoints of IQA-PyTorch (musiq_spaq_ckpt-358bb6af.pth), and resizing follows it too:
bicubic, a = -0.75, without antialiasing. The tokens that it adds to fill a scale up and then masks are left out: they
change no sum. Input: RGB from 0 to 1.

Runs in float32; sizes are read from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.networks.efficientnet_lite import Same
from revisit.networks.loading import load_tensors_strictly

PATCH, GRID, STEM = 32, 10, 64
SCALES = (224, 384)  # longer sides; the picture's own comes last
HEAD_WIDTH, EPSILON = 64, 1e-6
AT_ONCE = 1 << 15  # patches: kernels of some GPUs count them in 16 bits


class StandardisedConv(Same):
    """Convolution with weight standardisation: kernels of mean 0 and deviation 1."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        deviation, mean = torch.std_mean(weight, (1, 2, 3), keepdim=True)
        return super()._conv_forward(input, (weight - mean) / (deviation + 1e-5), bias)


class MusiqBottleneck(nn.Module):
    """ResNet bottleneck block with group norm, the only one of the stem."""

    def __init__(self, inside: int) -> None:
        super().__init__()
        outside = 4 * inside
        for name, to, kernel in (("1", inside, 1), ("2", inside, 3), ("3", outside, 1), ("_proj", outside, 1)):
            self.add_module(f"conv{name}", StandardisedConv(inside, to, kernel, bias=False))
            self.add_module(f"gn{name}", nn.GroupNorm(32, to, eps=1e-4))

    def convolve_and_group_norm(self, name: str, x: Tensor) -> Tensor:
        return self.get_submodule(f"gn{name}")(self.get_submodule(f"conv{name}")(x))

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolve_and_group_norm("2", self.convolve_and_group_norm("1", x).relu()).relu()
        return (self.convolve_and_group_norm("3", y) + self.convolve_and_group_norm("_proj", x)).relu()


class MusiqBlock(nn.Module):
    """Pre-norm transformer block: multi-head self-attention, then an MLP with GELU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.attention = nn.ModuleDict({part: nn.Linear(width, width) for part in ("query", "key", "value", "out")})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, hidden), "fc2": nn.Linear(hidden, width)})

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        query, key, value = (
            self.attention[part](y).unflatten(2, (-1, HEAD_WIDTH)).transpose(1, 2) for part in ("query", "key", "value")
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.attention["out"](attended.transpose(1, 2).flatten(2))
        return x + self.mlp["fc2"](functional.gelu(self.mlp["fc1"](self.norm2(x))))


class MusiqEncoder(nn.Module):
    """Transformer encoder with learnt embeddings of the grid cell and of the scale, and a CLS token."""

    def __init__(self, width: int, hidden: int, depth: int) -> None:
        super().__init__()
        self.posembed_input = nn.ParameterDict({"position_emb": torch.zeros(1, GRID * GRID, width)})
        self.scaleembed_input = nn.ParameterDict({"scale_emb": torch.zeros(len(SCALES) + 1, width)})
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.encoder_norm = nn.LayerNorm(width, EPSILON)
        self.transformer = nn.ModuleDict({f"encoderblock_{k}": MusiqBlock(width, hidden) for k in range(depth)})

    def forward(self, tokens: Tensor, cell: Tensor, scale: Tensor) -> Tensor:
        """The CLS token, (B, width)."""
        positions, scales = self.posembed_input["position_emb"], self.scaleembed_input["scale_emb"]
        tokens = tokens + positions[0, cell] + scales[scale]
        x = torch.cat([self.cls.expand(len(tokens), -1, -1), tokens], 1)
        for block in self.transformer.values():
            x = block(x)
        return self.encoder_norm(x[:, 0])


class Musiq(nn.Module):
    """Quality of pictures of one size."""

    def __init__(self, width: int = 384, hidden: int = 1152, depth: int = 14) -> None:
        super().__init__()
        self.conv_root = StandardisedConv(3, STEM, 7, 2, bias=False)
        self.gn_root = nn.GroupNorm(32, STEM, eps=1e-6)
        self.block1 = MusiqBottleneck(STEM)
        self.embedding = nn.Linear(4 * STEM * (PATCH // 4) ** 2, width)
        self.transformer_encoder = MusiqEncoder(width, hidden, depth)
        self.head = nn.Linear(width, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        """(B,) for pictures (B, 3, H, W) from 0 to 1."""
        height, width = pictures.shape[-2:]
        levels = pictures * 2 - 1
        scales = []
        for number, side in enumerate((*SCALES, None)):
            scaled = levels
            if side is not None:
                size = round(height * (side / max(height, width))), round(width * (side / max(height, width)))
                scaled = functional.interpolate(levels, size, mode="bicubic", align_corners=False)
            cut, place = cut_into_patches_with_grid_cells(scaled)
            scales.append((cut, place.to(cut.device), torch.full_like(place, number, device=cut.device)))
        cut, place, scale = (torch.cat(parts, 1 if k == 0 else 0) for k, parts in enumerate(zip(*scales, strict=True)))
        features = torch.cat([self.embed_patches_by_stem(some) for some in cut.flatten(0, 1).split(AT_ONCE)])
        tokens = self.embedding(features.unflatten(0, cut.shape[:2]))
        return self.head(self.transformer_encoder(tokens, place, scale))[:, 0]

    def embed_patches_by_stem(self, cut: Tensor) -> Tensor:
        """(P, features) for patches (P, 3, 32, 32): rows, then columns, then channels."""
        x = self.gn_root(self.conv_root(cut)).relu()
        x = functional.max_pool2d(functional.pad(x, (0, 1, 0, 1)), 3, 2)
        return self.block1(x).permute(0, 2, 3, 1).flatten(1)


def cut_into_patches_with_grid_cells(pictures: Tensor) -> tuple[Tensor, Tensor]:
    """((B, P, 3, 32, 32) patches that cover pictures with zeros around them, (P,) their places on the grid)."""
    sides = []
    for length in (pictures.shape[-1], pictures.shape[-2]):
        missing = -length % PATCH
        sides += [missing // 2, missing - missing // 2]
    cut = functional.pad(pictures, sides).unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH)
    rows, columns = cut.shape[2:4]
    row, column = (nearest_grid_cells(count) for count in (rows, columns))
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(1, 2), (row[:, None] * GRID + column[None, :]).flatten()


def nearest_grid_cells(rows_or_columns: int) -> Tensor:
    """The grid cell of each of so many rows or columns, by torch's own nearest-neighbour rounding."""
    cells = torch.arange(GRID, dtype=torch.float32)[None, None]
    return functional.interpolate(cells, rows_or_columns, mode="nearest")[0, 0].long()


def load(path: Path) -> Musiq:
    """The network of a checkpoint."""
    tensors = weights.tensors(path)
    return load_tensors_strictly(Musiq(*encoder_sizes(tensors)), tensors, path)


def encoder_sizes(state: Mapping[str, Tensor]) -> tuple[int, int, int]:
    """(width, width of the hidden layers, depth) of a checkpoint; the published ones where it does not say."""
    depth = sum(name.endswith("mlp.fc1.weight") for name in state)
    first = state.get("transformer_encoder.transformer.encoderblock_0.mlp.fc1.weight")
    hidden, width = (1152, 384) if first is None or first.ndim != 2 else first.shape
    return width, hidden, depth or 14
