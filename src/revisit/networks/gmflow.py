"""GMFlow (Xu et al., CVPR 2022) at two scales: optical flow by comparing every place with every other.

Features of both pictures at an eighth of their size talk to each other through six layers of attention; each place then
goes to the mean of all places of the other picture, weighted by likeness, so that no motion is too large. Attention
within the picture carries flow to places that have no partner. The same layers refine it at a quarter, within four
places around. Both directions come from one pass.

Layers are named as in the published state dict (`flownet.pkl`), which is loaded strictly. Pictures are RGB from 0 to 1
with sides that are multiples of 32. Runs in float32: the global softmax adds up thousands of places.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks.flow_parts import around, finer, grid, sampled
from revisit.networks.loading import load_strictly
from revisit.networks.preprocessing import IMAGENET_MEAN, IMAGENET_STD

ID = "gmflow"
MULTIPLE = 32  # of a side: windows at both scales come out whole
SMALLEST = 192  # of a side: on smaller pictures even plain shifts are lost
CHANNELS, LAYERS = 128, 6
COARSE_WINDOWS, FINE_WINDOWS = 2, 8  # a side is cut into so many windows of attention
REACH = 4  # places around in which the finer scale looks
APART = -100.0  # added to the likeness of places that a shifted window holds from opposite edges of the picture


class Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        changes = stride > 1 or inside != outside
        self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride)) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        y = functional.instance_norm(self.conv1(x)).relu()
        y = functional.instance_norm(self.conv2(y)).relu()
        if self.downsample is not None:
            x = functional.instance_norm(self.downsample(x))
        return (x + y).relu()


class Encoder(nn.Module):
    """Features at a quarter and at an eighth of the size; one kernel makes both, with strides 1 and 2."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 96, 2), Block(96, 96, 1))
        self.layer3 = nn.Sequential(Block(96, CHANNELS, 1), Block(CHANNELS, CHANNELS, 1))
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.trident_conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.instance_norm(self.conv1(x)).relu()
        x = self.conv2(self.layer3(self.layer2(self.layer1(x))))
        return self.trident_conv(x), functional.conv2d(x, self.trident_conv.weight, stride=2, padding=1)


class Attention(nn.Module):
    """Each place of one map gathers from the places of another in its window; with `feeds`, two layers digest it."""

    def __init__(self, shifts: bool, feeds: bool) -> None:
        super().__init__()
        self.shifts = shifts
        self.q_proj, self.k_proj, self.v_proj, self.merge = (
            nn.Linear(CHANNELS, CHANNELS, bias=False) for _ in range(4)
        )
        self.norm1 = nn.LayerNorm(CHANNELS)
        if feeds:
            wide = 8 * CHANNELS
            self.mlp = nn.Sequential(
                nn.Linear(2 * CHANNELS, wide, bias=False), nn.GELU(), nn.Linear(wide, CHANNELS, bias=False)
            )
            self.norm2 = nn.LayerNorm(CHANNELS)
        self.feeds = feeds

    def forward(self, x: Tensor, other: Tensor, splits: int, apart: Tensor) -> Tensor:
        """`x` and `other` are (B, H, W, C)."""
        height, width = x.shape[1:3]
        # Every other layer has its windows shifted by half of their size, so that neighbours across an edge meet.
        shift = (height // splits // 2, width // splits // 2) if self.shifts else (0, 0)
        query, key, value = (
            windows(layer(maps).roll((-shift[0], -shift[1]), (1, 2)), splits)
            for layer, maps in ((self.q_proj, x), (self.k_proj, other), (self.v_proj, other))
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=apart if self.shifts else None)
        message = self.norm1(self.merge(whole(seen, splits, height, width).roll(shift, (1, 2))))
        if self.feeds:
            message = self.norm2(self.mlp(torch.cat([x, message], dim=-1)))
        return x + message


class Conversation(nn.Module):
    """Features of two pictures, (B, C, H, W) each, after they have seen each other."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"self_attn": Attention(shifts, False), "cross_attn_ffn": Attention(shifts, feeds=True)})
            for shifts in [False, True] * (LAYERS // 2)
        )

    def forward(self, a: Tensor, b: Tensor, splits: int) -> tuple[Tensor, Tensor]:
        height, width = a.shape[-2:]
        place = position(height // splits, width // splits, a).repeat(1, splits, splits)
        both = (torch.cat([a, b]) + place).permute(0, 2, 3, 1)
        apart = from_opposite_edges(height, width, splits, a)[None]  # the same for all pictures
        for layer in self.layers:
            other = torch.cat(both.chunk(2)[::-1])
            within = layer["self_attn"](both, both, splits, apart)
            both = layer["cross_attn_ffn"](within, other, splits, apart)
        a, b = both.permute(0, 3, 1, 2).chunk(2)
        return a, b


class Spread(nn.Module):
    """Flow of a place as the mean of flow at places that look alike in the same picture."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)

    def everywhere(self, features: Tensor, flow: Tensor) -> Tensor:
        # The key is made from the query, not from the features: the published weights were trained so.
        query = self.q_proj(features.flatten(2).transpose(1, 2))
        likeness = query @ self.k_proj(query).transpose(1, 2) / CHANNELS**0.5
        return (likeness.softmax(dim=-1) @ flow.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(flow.shape)

    def nearby(self, features: Tensor, flow: Tensor) -> Tensor:
        query, key = (layer(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) for layer in (self.q_proj, self.k_proj))
        likeness = torch.stack([(query * near).sum(dim=1) for near in around(key, 1)], dim=1) / CHANNELS**0.5
        return torch.einsum("bnhw,bcnhw->bchw", likeness.softmax(dim=1), torch.stack(around(flow, 1), dim=2))


class GMFlow(nn.Module):
    """Flow there and back, (B, 2, H, W) each, of pairs of pictures (B, 3, H, W) from 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Encoder()
        self.transformer = Conversation()
        self.feature_flow_attn = Spread()
        self.upsampler = nn.Sequential(
            nn.Conv2d(CHANNELS + 2, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 4 * 4 * 9, 1)
        )

    def forward(self, earlier: Tensor, later: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = (earlier.new_tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
        quarter, eighth = self.backbone((torch.cat([earlier, later]) - mean) / std)
        a, b = self.transformer(*eighth.chunk(2), COARSE_WINDOWS)
        flow = self.feature_flow_attn.everywhere(torch.cat([a, b]), matched_anywhere(a, b))
        flow = 2 * functional.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=True)
        # From here on the way back is just another pair.
        places = grid(quarter.shape[-2], quarter.shape[-1], like=quarter) + flow
        others = sampled(torch.cat(quarter.chunk(2)[::-1]), places[:, 0], places[:, 1])
        a, b = self.transformer(quarter, others, FINE_WINDOWS)
        flow = self.feature_flow_attn.nearby(a, flow + matched_nearby(a, b))
        there, back = finer(flow, self.upsampler(torch.cat([flow, a], dim=1)), 4).chunk(2)
        return there, back


def windows(maps: Tensor, splits: int) -> Tensor:
    """(B, H, W, C) cut into (B, splits * splits, places, C)."""
    batch, height, width, channels = maps.shape
    cut = maps.reshape(batch, splits, height // splits, splits, width // splits, channels)
    return cut.transpose(2, 3).reshape(batch, splits * splits, -1, channels)


def whole(cut: Tensor, splits: int, height: int, width: int) -> Tensor:
    """The maps that `windows` cut."""
    batch, _, _, channels = cut.shape
    parts = cut.reshape(batch, splits, splits, height // splits, width // splits, channels)
    return parts.transpose(2, 3).reshape(batch, height, width, channels)


def from_opposite_edges(height: int, width: int, splits: int, like: Tensor) -> Tensor:
    """(splits * splits, places, places) what is added to likeness in shifted windows."""

    def parts(length: int) -> Tensor:
        """0, 1 or 2 for the places of a side: before the last window, in its first half, in its second, wrapped one."""
        window = length // splits
        place = torch.arange(length, device=like.device)
        return (place >= length - window).int() + (place >= length - window // 2).int()

    part = (3 * parts(height)[:, None] + parts(width)[None])[None, :, :, None]
    label = windows(part, splits)[0, :, :, 0]
    return (label[:, :, None] != label[:, None, :]).to(like.dtype) * APART


def position(height: int, width: int, like: Tensor) -> Tensor:
    """(C, height, width) sines and cosines of the place in a window, first of y, then of x."""
    half = CHANNELS // 2
    wave = 10000 ** (2 * (torch.arange(half, device=like.device) // 2) / half)

    def waves(length: int) -> Tensor:
        turns = torch.arange(1, length + 1, device=like.device, dtype=like.dtype) / (length + 1e-6) * 2 * torch.pi
        angle = turns[None] / wave[:, None]
        even = torch.arange(half, device=like.device)[:, None] % 2 == 0
        return torch.where(even, angle.sin(), angle.cos())

    rows, columns = waves(height)[:, :, None], waves(width)[:, None]
    return torch.cat([rows.expand(half, height, width), columns.expand(half, height, width)])


def matched_anywhere(a: Tensor, b: Tensor) -> Tensor:
    """(2B, 2, H, W) flow from a to b and from b to a: to the mean of all places, weighted by likeness."""
    height, width = a.shape[-2:]
    likeness = a.flatten(2).transpose(1, 2) @ b.flatten(2) / CHANNELS**0.5
    here = grid(height, width, like=a)
    places = here.flatten(1).T
    ends = torch.cat([likeness, likeness.transpose(1, 2)]).softmax(dim=-1) @ places
    return ends.transpose(1, 2).reshape(-1, 2, height, width) - here


def matched_nearby(a: Tensor, b: Tensor) -> Tensor:
    """(B, 2, H, W) flow from a to b among the places around, weighted by likeness; none outside the picture."""
    likeness = torch.stack([(a * near).sum(dim=1) for near in around(b, REACH)], dim=1) / CHANNELS**0.5
    inside = torch.stack(around(a.new_ones(a.shape[-2:]), REACH)) > 0
    shares = likeness.masked_fill(~inside, -1e9).softmax(dim=1)
    steps = grid(2 * REACH + 1, 2 * REACH + 1, like=a).flatten(1) - REACH
    return torch.einsum("bnhw,cn->bchw", shares, steps)


def build(path: Path) -> GMFlow:
    """The network with the weights of this file."""
    return load_strictly(GMFlow(), path)
