"""RAFT-Large (Teed & Deng, ECCV 2020): optical flow by 12 recurrent updates on a correlation pyramid.

Features of both pictures at 1/8 resolution give an all-pairs correlation volume, pooled to four levels. In each update
a convolutional GRU sees the correlations around the current flow and context features, and predicts a change of flow.

Layers are named as in torchvision's published state dict (`raft_large_C_T_SKHT_V2`), which is loaded strictly. Pictures
are RGB from -1 to 1 with sides that are multiples of 8, and 128 at least. Runs in float32.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks.flow_parts import coordinate_grid, sample_bilinear, upsample_flow_convexly
from revisit.networks.loading import load_strictly

ID = "raft-large"
MULTIPLE, SMALLEST = 8, 128  # of a side in pixels
ROUNDS = 12
LEVELS, REACH = 4, 4  # of the correlation pyramid, and radius of the lookup at each
HIDDEN = 128
SOFTER = 0.25  # factor of the upsampling logits, as published


def convolution_norm_relu(
    inside: int, outside: int, kernel: int, stride: int = 1, norm: type[nn.Module] | None = None
) -> nn.Sequential:
    """Convolution, norm, ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inside, outside, kernel, stride, kernel // 2)]
    return nn.Sequential(*layers, *([norm(outside)] if norm is not None else []), nn.ReLU())


class RaftResidual(nn.Module):
    """Residual block."""

    def __init__(self, inside: int, outside: int, stride: int, norm: type[nn.Module]) -> None:
        super().__init__()
        self.convnormrelu1 = convolution_norm_relu(inside, outside, 3, stride, norm)
        self.convnormrelu2 = convolution_norm_relu(outside, outside, 3, 1, norm)
        # The shortcut has no ReLU, and is the identity where the stride is 1.
        self.downsample = convolution_norm_relu(inside, outside, 1, stride, norm)[:-1] if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return (self.downsample(x) + self.convnormrelu2(self.convnormrelu1(x))).relu()


class RaftEncoder(nn.Module):
    """Residual encoder: 256 features at 1/8 resolution."""

    def __init__(self, norm: type[nn.Module]) -> None:
        super().__init__()
        self.convnormrelu = convolution_norm_relu(3, 64, 7, 2, norm)
        self.layer1 = nn.Sequential(RaftResidual(64, 64, 1, norm), RaftResidual(64, 64, 1, norm))
        self.layer2 = nn.Sequential(RaftResidual(64, 96, 2, norm), RaftResidual(96, 96, 1, norm))
        self.layer3 = nn.Sequential(RaftResidual(96, 128, 2, norm), RaftResidual(128, 128, 1, norm))
        self.conv = nn.Conv2d(128, 256, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.layer3(self.layer2(self.layer1(self.convnormrelu(x)))))


class MotionEncoder(nn.Module):
    """Motion encoder: 126 features of the correlations and the flow, and the flow itself."""

    def __init__(self) -> None:
        super().__init__()
        self.convcorr1 = convolution_norm_relu(LEVELS * (2 * REACH + 1) ** 2, 256, 1)
        self.convcorr2 = convolution_norm_relu(256, 192, 3)
        self.convflow1, self.convflow2 = convolution_norm_relu(2, 128, 7), convolution_norm_relu(128, 64, 3)
        self.conv = convolution_norm_relu(192 + 64, 126, 3)

    def forward(self, flow: Tensor, likeness: Tensor) -> Tensor:
        features = self.convcorr2(self.convcorr1(likeness)), self.convflow2(self.convflow1(flow))
        return torch.cat([self.conv(torch.cat(features, dim=1)), flow], dim=1)


class ConvGru(nn.Module):
    """Convolutional GRU along one axis (half of a separable one)."""

    def __init__(self, kernel: tuple[int, int]) -> None:
        super().__init__()
        padding = kernel[0] // 2, kernel[1] // 2
        self.convz, self.convr, self.convq = (
            nn.Conv2d(HIDDEN + 256, HIDDEN, kernel, padding=padding) for _ in range(3)
        )

    def forward(self, state: Tensor, x: Tensor) -> Tensor:
        both = torch.cat([state, x], dim=1)
        update, reset = self.convz(both).sigmoid(), self.convr(both).sigmoid()
        return (1 - update) * state + update * self.convq(torch.cat([reset * state, x], dim=1)).tanh()


class RecurrentUpdate(nn.Module):
    """Recurrent update: the new hidden state, and the change of the flow."""

    def __init__(self) -> None:
        super().__init__()
        self.motion_encoder = MotionEncoder()
        self.recurrent_block = nn.ModuleDict({"convgru1": ConvGru((1, 5)), "convgru2": ConvGru((5, 1))})
        head = {"conv1": nn.Conv2d(HIDDEN, 256, 3, padding=1), "conv2": nn.Conv2d(256, 2, 3, padding=1)}
        self.flow_head = nn.ModuleDict(head)

    def forward(self, state: Tensor, context: Tensor, likeness: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.cat([context, self.motion_encoder(flow, likeness)], dim=1)
        for gru in self.recurrent_block.values():  # rows, then columns
            state = gru(state, x)
        return state, self.flow_head["conv2"](self.flow_head["conv1"](state).relu())


class RAFT(nn.Module):
    """Flow (B, 2, H, W) of pairs of pictures (B, 3, H, W) from -1 to 1."""

    rounds = ROUNDS

    def __init__(self) -> None:
        super().__init__()
        self.feature_encoder, self.context_encoder = RaftEncoder(nn.InstanceNorm2d), RaftEncoder(nn.BatchNorm2d)
        self.update_block = RecurrentUpdate()
        # Logits of the weights of convex upsampling by 8.
        shares = {"convrelu": convolution_norm_relu(HIDDEN, 256, 3), "conv": nn.Conv2d(256, 8 * 8 * 9, 1)}
        self.mask_predictor = nn.ModuleDict(shares)

    def forward(self, earlier: Tensor, later: Tensor) -> Tensor:
        levels = correlation_pyramid(*self.feature_encoder(torch.cat([earlier, later])).chunk(2))
        state, context = self.context_encoder(earlier).split(HIDDEN, dim=1)
        state, context = state.tanh(), context.relu()
        cells = coordinate_grid(state.shape[-2], state.shape[-1], like=state)
        flow = torch.zeros_like(state[:, :2])
        for _ in range(self.rounds):
            state, change = self.update_block(state, context, look_up_correlation(levels, cells + flow), flow)
            flow = flow + change
        logits = self.mask_predictor["conv"](self.mask_predictor["convrelu"](state))
        return upsample_flow_convexly(flow, SOFTER * logits, 8)


def correlation_pyramid(a: Tensor, b: Tensor) -> list[Tensor]:
    """All-pairs correlation of a and b, (B * pixels, 1, h, w), average-pooled to each level."""
    channels, height, width = a.shape[1:]
    product = a.flatten(2).transpose(1, 2) @ b.flatten(2) / channels**0.5
    levels = [product.reshape(-1, 1, height, width)]
    for _ in range(LEVELS - 1):
        levels.append(functional.avg_pool2d(levels[-1], 2))
    return levels


def look_up_correlation(levels: list[Tensor], ends: Tensor) -> Tensor:
    """(B, levels * 81, H, W) correlations around the points (B, 2, H, W); columns of the window come first."""
    batch, _, height, width = ends.shape
    side = 2 * REACH + 1
    steps = coordinate_grid(side, side, like=ends).transpose(1, 2) - REACH
    x, y = (ends[:, axis].reshape(-1, 1, 1) for axis in (0, 1))
    windows = [
        sample_bilinear(level, x / 2**k + steps[0], y / 2**k + steps[1]).reshape(batch, height, width, -1)
        for k, level in enumerate(levels)
    ]
    return torch.cat(windows, dim=-1).permute(0, 3, 1, 2).contiguous()


def build(path: Path) -> RAFT:
    """The network with the weights of this file."""
    return load_strictly(RAFT(), path)
