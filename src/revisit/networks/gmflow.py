"""GMFlow (Xu et al., CVPR 2022) at two scales: optical flow by global matching.

Features of both pictures at 1/8 resolution go through six Swin transformer layers of self- and cross-attention; flow is
the softmax-weighted mean of all correspondences, so that no motion is too large. Self-attention propagates flow to
occluded pixels. The same layers refine it at 1/4 resolution, with local matching within four pixels. Both directions
come from one pass.

Layers are named as in the published state dict (`flownet.pkl`), which is loaded strictly. Pictures are RGB from 0 to 1
with sides that are multiples of 32. Runs in float32: the global softmax adds up thousands of places.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks.flow_parts import coordinate_grid, sample_bilinear, shifted_neighbours, upsample_flow_convexly
from revisit.networks.loading import load_strictly
from revisit.networks.preprocessing import IMAGENET_MEAN, IMAGENET_STD

ID = "gmflow"
MULTIPLE = 32  # of a side: windows at both scales come out whole
SMALLEST = 192  # of a side: on smaller pictures even plain shifts are lost
CHANNELS, LAYERS = 128, 6
COARSE_WINDOWS, FINE_WINDOWS = 2, 8  # a side is cut into so many windows of attention
REACH = 4  # places around in which the finer scale looks
APART = -100.0  # added to the likeness of places that a shifted window holds from opposite edges of the picture


class GmflowResidual(nn.Module):
    """Residual block with instance norm."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride), nn.InstanceNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.instance_norm(self.conv1(x)).relu()
        y = functional.instance_norm(self.conv2(y)).relu()
        return (self.downsample(x) + y).relu()


class GmflowEncoder(nn.Module):
    """CNN encoder: features at 1/4 and 1/8 resolution, by one weight-shared convolution with strides 1 and 2."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.layer1 = nn.Sequential(GmflowResidual(64, 64, 1), GmflowResidual(64, 64, 1))
        self.layer2 = nn.Sequential(GmflowResidual(64, 96, 2), GmflowResidual(96, 96, 1))
        self.layer3 = nn.Sequential(GmflowResidual(96, CHANNELS, 1), GmflowResidual(CHANNELS, CHANNELS, 1))
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.trident_conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.instance_norm(self.conv1(x)).relu()
        x = self.conv2(self.layer3(self.layer2(self.layer1(x))))
        return self.trident_conv(x), functional.conv2d(x, self.trident_conv.weight, stride=2, padding=1)


class ShiftedWindowAttention(nn.Module):
    """Single-head attention within (shifted) windows; with `feeds`, a feed-forward network follows."""

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
        # Every other layer shifts its windows by half of their size (Swin).
        shift = (height // splits // 2, width // splits // 2) if self.shifts else (0, 0)
        query, key, value = (
            cut_into_windows(layer(maps).roll((-shift[0], -shift[1]), (1, 2)), splits)
            for layer, maps in ((self.q_proj, x), (self.k_proj, other), (self.v_proj, other))
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=apart if self.shifts else None)
        message = self.norm1(self.merge(join_windows(attended, splits, height, width).roll(shift, (1, 2))))
        if self.feeds:
            message = self.norm2(self.mlp(torch.cat([x, message], dim=-1)))
        return x + message


class FeatureTransformer(nn.Module):
    """Transformer of self- and cross-attention between the features of two pictures, (B, C, H, W) each."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for shifts in [False, True] * (LAYERS // 2):
            within, across = (ShiftedWindowAttention(shifts, feeds) for feeds in (False, True))
            self.layers.append(nn.ModuleDict({"self_attn": within, "cross_attn_ffn": across}))

    def forward(self, a: Tensor, b: Tensor, splits: int) -> tuple[Tensor, Tensor]:
        height, width = a.shape[-2:]
        place = sinusoidal_position_encoding(height // splits, width // splits, a).repeat(1, splits, splits)
        both = (torch.cat([a, b]) + place).permute(0, 2, 3, 1)
        apart = shifted_window_attention_mask(height, width, splits, a)[None]  # the same for all pictures
        for layer in self.layers:
            other = torch.cat(both.chunk(2)[::-1])
            within = layer["self_attn"](both, both, splits, apart)
            both = layer["cross_attn_ffn"](within, other, splits, apart)
        a, b = both.permute(0, 3, 1, 2).chunk(2)
        return a, b


class FlowPropagation(nn.Module):
    """Flow propagated by self-similarity of features: softmax attention within one picture."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)

    def propagate_globally(self, features: Tensor, flow: Tensor) -> Tensor:
        # The key is made from the query, not from the features: the published weights were trained so.
        query = self.q_proj(features.flatten(2).transpose(1, 2))
        likeness = query @ self.k_proj(query).transpose(1, 2) / CHANNELS**0.5
        return (likeness.softmax(dim=-1) @ flow.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(flow.shape)

    def propagate_to_neighbours(self, features: Tensor, flow: Tensor) -> Tensor:
        query, key = (layer(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) for layer in (self.q_proj, self.k_proj))
        likeness = likeness_to_neighbours(query, key, 1)
        near = torch.stack(shifted_neighbours(flow, 1), dim=2)
        return torch.einsum("bnhw,bcnhw->bchw", likeness.softmax(dim=1), near)


class GMFlow(nn.Module):
    """Forward and backward flow, (B, 2, H, W) each, of pairs of pictures (B, 3, H, W) from 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = GmflowEncoder()
        self.transformer = FeatureTransformer()
        self.feature_flow_attn = FlowPropagation()
        self.upsampler = nn.Sequential(
            nn.Conv2d(CHANNELS + 2, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 4 * 4 * 9, 1)
        )

    def forward(self, earlier: Tensor, later: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = (earlier.new_tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
        quarter, eighth = self.backbone((torch.cat([earlier, later]) - mean) / std)
        a, b = self.transformer(*eighth.chunk(2), COARSE_WINDOWS)
        flow = self.feature_flow_attn.propagate_globally(torch.cat([a, b]), global_matching_flow_both_ways(a, b))
        flow = 2 * functional.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=True)
        # From here on the backward flow is another row of the batch.
        places = coordinate_grid(quarter.shape[-2], quarter.shape[-1], like=quarter) + flow
        warped = sample_bilinear(torch.cat(quarter.chunk(2)[::-1]), places[:, 0], places[:, 1])
        a, b = self.transformer(quarter, warped, FINE_WINDOWS)
        flow = self.feature_flow_attn.propagate_to_neighbours(a, flow + local_matching_flow(a, b))
        forward, backward = upsample_flow_convexly(flow, self.upsampler(torch.cat([flow, a], dim=1)), 4).chunk(2)
        return forward, backward


def cut_into_windows(maps: Tensor, windows_per_side: int) -> Tensor:
    """(B, H, W, C) cut into (B, splits * splits, places, C)."""
    cut = maps.unflatten(2, (windows_per_side, -1)).unflatten(1, (windows_per_side, -1))
    return cut.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def join_windows(windows: Tensor, windows_per_side: int, height: int, width: int) -> Tensor:
    """The maps that `windows` cut."""
    places = height // windows_per_side, width // windows_per_side
    parts = windows.unflatten(2, places).unflatten(1, (windows_per_side, windows_per_side))
    return parts.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def shifted_window_attention_mask(height: int, width: int, windows_per_side: int, like: Tensor) -> Tensor:
    """(splits * splits, pixels, pixels) attention mask of shifted windows (Swin)."""

    def window_part_labels(length: int) -> Tensor:
        """0, 1 or 2 for the places of a side: before the last window, in its first half, in its second, wrapped one."""
        window = length // windows_per_side
        place = torch.arange(length, device=like.device)
        return (place >= length - window).int() + (place >= length - window // 2).int()

    part = (3 * window_part_labels(height)[:, None] + window_part_labels(width)[None])[None, :, :, None]
    label = cut_into_windows(part, windows_per_side)[0, :, :, 0]
    return (label[:, :, None] != label[:, None, :]).to(like.dtype) * APART


def sinusoidal_position_encoding(height: int, width: int, like: Tensor) -> Tensor:
    """(C, height, width) sinusoidal position encoding within a window, first of y, then of x."""
    half = CHANNELS // 2
    wave = 10000 ** (2 * (torch.arange(half, device=like.device) // 2) / half)

    def sinusoids_along_side(length: int) -> Tensor:
        turns = torch.arange(1, length + 1, device=like.device, dtype=like.dtype) / (length + 1e-6) * 2 * torch.pi
        angle = turns[None] / wave[:, None]
        even = torch.arange(half, device=like.device)[:, None] % 2 == 0
        return torch.where(even, angle.sin(), angle.cos())

    rows, columns = sinusoids_along_side(height)[:, :, None], sinusoids_along_side(width)[:, None]
    return torch.cat([rows.expand(half, height, width), columns.expand(half, height, width)])


def global_matching_flow_both_ways(a: Tensor, b: Tensor) -> Tensor:
    """Global matching: (2B, 2, H, W) flow from a to b and from b to a, by softmax over all correlations."""
    height, width = a.shape[-2:]
    likeness = a.flatten(2).transpose(1, 2) @ b.flatten(2) / CHANNELS**0.5
    cells = coordinate_grid(height, width, like=a)
    places = cells.flatten(1).T
    ends = torch.cat([likeness, likeness.transpose(1, 2)]).softmax(dim=-1) @ places
    return ends.transpose(1, 2).reshape(-1, 2, height, width) - cells


def likeness_to_neighbours(a: Tensor, b: Tensor, radius: int) -> Tensor:
    """(B, neighbours, H, W) correlation of each place of a with those of b around it."""
    return torch.stack([(a * near).sum(dim=1) for near in shifted_neighbours(b, radius)], dim=1) / CHANNELS**0.5


def local_matching_flow(a: Tensor, b: Tensor) -> Tensor:
    """Local matching: (B, 2, H, W) flow from a to b by softmax over correlations within `REACH`, inside the picture."""
    likeness = likeness_to_neighbours(a, b, REACH)
    inside = torch.stack(shifted_neighbours(a.new_ones(a.shape[-2:]), REACH)) > 0
    shares = likeness.masked_fill(~inside, -1e9).softmax(dim=1)
    steps = coordinate_grid(2 * REACH + 1, 2 * REACH + 1, like=a).flatten(1) - REACH
    return torch.einsum("bnhw,cn->bchw", shares, steps)


def build(path: Path) -> GMFlow:
    """The network with the weights of this file."""
    return load_strictly(GMFlow(), path)
