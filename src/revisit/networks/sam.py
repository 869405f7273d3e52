"""Prompt encoder and mask decoder of Segment Anything (Kirillov et al., arXiv:2304.02643).

Points and boxes are positions in the square of `SIDE` pixels that the encoder sees. Names of the layers are those of
the published checkpoints. A prompt yields four masks: the first for prompts that leave no doubt (a box), the other
three, a part, a thing and a group of things, for those that do (a point). Each comes with the overlap (IoU) with the
truth that the network expects of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks.tiny_vit import ChannelNorm

SIDE = 1024
WIDTH = 256
BACKGROUND, FOREGROUND, FIRST_CORNER, SECOND_CORNER, NOTHING = 0, 1, 2, 3, -1  # what a position of a prompt is


class RandomFourierFeatures(nn.Module):
    """Position encoding by random Fourier features."""

    positional_encoding_gaussian_matrix: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("positional_encoding_gaussian_matrix", torch.zeros(2, width // 2))

    def forward(self, place: Tensor) -> Tensor:
        """(..., 2) x and y from 0 to 1, to (..., width)."""
        with torch.autocast(place.device.type, enabled=False):  # half precision would blur positions
            phase = 2 * math.pi * ((2 * place.float() - 1) @ self.positional_encoding_gaussian_matrix.float())
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class PromptEncoder(nn.Module):
    """Prompts to tokens, and the dense position encoding of an embedding."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.pe_layer = RandomFourierFeatures(width)
        self.point_embeddings = nn.ModuleList(nn.Embedding(1, width) for _ in range(4))
        self.not_a_point_embed = nn.Embedding(1, width)
        self.no_mask_embed = nn.Embedding(1, width)
        self.mask_downscaling = nn.Sequential(
            nn.Conv2d(1, 4, 2, 2), ChannelNorm(4), nn.GELU(),
            nn.Conv2d(4, 16, 2, 2), ChannelNorm(16), nn.GELU(), nn.Conv2d(16, width, 1),
        )  # fmt: skip

    def forward(self, places: Tensor, labels: Tensor, side: int = SIDE) -> Tensor:
        """(P, N, 2) positions in pixels and what each is (P, N), to (P, N, width)."""
        embeddings = torch.cat([self.not_a_point_embed.weight, *(part.weight for part in self.point_embeddings)])
        waves = self.pe_layer((places.float() + 0.5) / side)
        return torch.where((labels == NOTHING)[..., None], 0.0, waves) + embeddings[labels + 1]

    def dense_position_encoding(self, rows: int, columns: int, cells: int) -> Tensor:
        """(1, width, rows, columns) positions of the upper left part of a square of `cells` x `cells`."""
        device = self.no_mask_embed.weight.device
        y, x = ((torch.arange(n, device=device) + 0.5) / cells for n in (rows, columns))
        place = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
        return self.pe_layer(place).permute(2, 0, 1)[None]


class SamAttention(nn.Module):
    """Multi-head attention whose projections have `shrink` times fewer channels."""

    def __init__(self, width: int, heads: int, shrink: int = 1) -> None:
        super().__init__()
        self.heads = heads
        inner = width // shrink
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, inner) for _ in range(3))
        self.out_proj = nn.Linear(inner, width)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        parts = (self.q_proj(q), self.k_proj(k), self.v_proj(v))
        split = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        attended = functional.scaled_dot_product_attention(split[0], split[1], split[2])
        return self.out_proj(attended.transpose(1, 2).flatten(2))


class TwoWayBlock(nn.Module):
    """Two-way transformer block: self-attention, cross-attention to the picture, MLP, cross-attention back."""

    def __init__(self, width: int, heads: int, hidden: int, first: bool) -> None:
        super().__init__()
        self.first = first
        self.self_attn = SamAttention(width, heads)
        self.cross_attn_token_to_image = SamAttention(width, heads, 2)
        self.mlp = nn.ModuleDict({"lin1": nn.Linear(width, hidden), "lin2": nn.Linear(hidden, width)})
        self.cross_attn_image_to_token = SamAttention(width, heads, 2)
        self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens: Tensor, picture: Tensor, prompt: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        if self.first:  # the tokens are the prompt itself
            tokens = self.self_attn(tokens, tokens, tokens)
        else:
            placed = tokens + prompt
            tokens = tokens + self.self_attn(placed, placed, tokens)
        tokens = self.norm1(tokens)
        tokens = self.norm2(tokens + self.cross_attn_token_to_image(tokens + prompt, picture + place, picture))
        tokens = self.norm3(tokens + self.mlp["lin2"](functional.relu(self.mlp["lin1"](tokens))))
        picture = self.norm4(picture + self.cross_attn_image_to_token(picture + place, tokens + prompt, tokens))
        return tokens, picture


class TwoWayTransformer(nn.Module):
    """Two-way blocks, and a final cross-attention of the tokens to the picture."""

    def __init__(self, width: int, heads: int, hidden: int, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TwoWayBlock(width, heads, hidden, k == 0) for k in range(depth))
        self.final_attn_token_to_image = SamAttention(width, heads, 2)
        self.norm_final_attn = nn.LayerNorm(width)

    def forward(self, prompt: Tensor, picture: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        tokens = prompt
        for layer in self.layers:
            tokens, picture = layer(tokens, picture, prompt, place)
        last = self.final_attn_token_to_image(tokens + prompt, picture + place, picture)
        return self.norm_final_attn(tokens + last), picture


class Mlp(nn.Module):
    """MLP of three layers with ReLU."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, out)])

    def forward(self, x: Tensor) -> Tensor:
        first, second, third = self.layers
        return third(functional.relu(second(functional.relu(first(x)))))


class MaskDecoder(nn.Module):
    """Mask decoder: prompt tokens and an image embedding to four masks and their predicted IoUs."""

    def __init__(self, width: int = WIDTH, heads: int = 8, hidden: int = 2048) -> None:
        super().__init__()
        self.transformer = TwoWayTransformer(width, heads, hidden)
        self.iou_token = nn.Embedding(1, width)
        self.mask_tokens = nn.Embedding(4, width)
        self.output_upscaling = nn.Sequential(
            nn.ConvTranspose2d(width, width // 4, 2, 2), ChannelNorm(width // 4), nn.GELU(),
            nn.ConvTranspose2d(width // 4, width // 8, 2, 2), nn.GELU(),
        )  # fmt: skip
        self.output_hypernetworks_mlps = nn.ModuleList(Mlp(width, width // 8) for _ in range(4))
        self.iou_prediction_head = Mlp(width, 4)

    def forward(self, embedding: Tensor, place: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor]:
        """(P, width, h, w), (1, width, h, w) and (P, N, width), to logits (P, 4, 4h, 4w) and IoUs (P, 4)."""
        own = torch.cat([self.iou_token.weight, self.mask_tokens.weight])
        tokens = torch.cat([own.expand(len(prompt), -1, -1), prompt], dim=1)
        rows, columns = embedding.shape[-2:]
        picture = embedding.flatten(2).transpose(1, 2)
        tokens, picture = self.transformer(tokens, picture, place.flatten(2).transpose(1, 2))
        fine = self.output_upscaling(picture.transpose(1, 2).unflatten(2, (rows, columns)))
        weights = [net(tokens[:, 1 + k]) for k, net in enumerate(self.output_hypernetworks_mlps)]
        masks = torch.einsum("pkc,pchw->pkhw", torch.stack(weights, 1), fine)
        return masks, self.iou_prediction_head(tokens[:, 0])
