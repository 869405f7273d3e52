"""I3D on Kinetics-400 (Carreira & Zisserman 2017): actions in clips; the network of FVD (Unterthiner et al. 2018).

Inception-v1 inflated to three dimensions, RGB stream, for clips of 224 x 224 with levels from -1 to 1. Padding is
TensorFlow's SAME: where a stride leaves an odd rest, the end gets one more. Batch norm has no scale and an epsilon of
1e-3; it is folded into the convolutions. Features of FVD are the logits, averaged over time. Runs in float32.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks import openvino, runtime
from revisit.networks.efficientnet_lite import pad_as_tensorflow_same
from revisit.networks.loading import fold_batch_norms, load_strictly

ID = "i3d-kinetics-400"
SIDE = 224
LEAST_FRAMES = 9  # time is halved three times, and the last pool spans two steps
Size3 = tuple[int, int, int]
# Width of each branch: 1x1; reduced and 3x3; reduced and 3x3; after the pool.
MIXED = {
    "3b": (192, 64, (96, 128), (16, 32), 32),
    "3c": (256, 128, (128, 192), (32, 96), 64),
    "4b": (480, 192, (96, 208), (16, 48), 64),
    "4c": (512, 160, (112, 224), (24, 64), 64),
    "4d": (512, 128, (128, 256), (24, 64), 64),
    "4e": (512, 112, (144, 288), (32, 64), 64),
    "4f": (528, 256, (160, 320), (32, 128), 128),
    "5b": (832, 256, (160, 320), (32, 128), 128),
    "5c": (832, 384, (192, 384), (48, 128), 128),
}


def max_pool_same_padding(x: Tensor, kernel: Size3, stride: Size3) -> Tensor:
    """Max pooling with SAME padding."""
    return functional.max_pool3d(pad_as_tensorflow_same(x, kernel, stride), kernel, stride)


class ConvUnit(nn.Module):
    """3D convolution, batch norm, ReLU."""

    def __init__(self, inside: int, outside: int, size: int, step: int = 1) -> None:
        super().__init__()
        self.kernel, self.stride = (size,) * 3, (step,) * 3
        self.conv = nn.Conv3d(inside, outside, size, stride=step, bias=False)
        self.bn = nn.BatchNorm3d(outside, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.bn(self.conv(pad_as_tensorflow_same(x, self.kernel, self.stride))))


class Mixed(nn.Module):
    """Inception module: four branches beside each other."""

    def __init__(self, inside: int, first: int, second: tuple[int, int], third: tuple[int, int], last: int) -> None:
        super().__init__()
        self.branch_0 = ConvUnit(inside, first, 1)
        self.branch_1 = nn.Sequential(ConvUnit(inside, second[0], 1), ConvUnit(second[0], second[1], 3))
        self.branch_2 = nn.Sequential(ConvUnit(inside, third[0], 1), ConvUnit(third[0], third[1], 3))
        self.branch_3 = ConvUnit(inside, last, 1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.branch_3(max_pool_same_padding(x, (3, 3, 3), (1, 1, 1)))
        return torch.cat([self.branch_0(x), self.branch_1(x), self.branch_2(x), pooled], dim=1)


class I3D(nn.Module):
    """Logits (B, 400) of clips (B, 3, T, 224, 224) with levels from -1 to 1, averaged over time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1a, self.conv_2b, self.conv_2c = ConvUnit(3, 64, 7, 2), ConvUnit(64, 64, 1), ConvUnit(64, 192, 3)
        for name, widths in MIXED.items():
            self.add_module(f"mixed_{name}", Mixed(*widths))
        self.logits = nn.Conv3d(1024, 400, 1)

    def forward(self, clips: Tensor) -> Tensor:
        return openvino.run(self.mean_logits, clips)[0]

    def mean_logits(self, x: Tensor) -> tuple[Tensor, ...]:
        """The whole network, as a step that OpenVINO can take over."""
        x = max_pool_same_padding(self.conv_1a(x), (1, 3, 3), (1, 2, 2))
        x = max_pool_same_padding(self.conv_2c(self.conv_2b(x)), (1, 3, 3), (1, 2, 2))
        for name in MIXED:
            if name == "4b":
                x = max_pool_same_padding(x, (3, 3, 3), (2, 2, 2))
            if name == "5b":
                x = max_pool_same_padding(x, (2, 2, 2), (2, 2, 2))
            x = self.get_submodule(f"mixed_{name}")(x)
        x = self.logits(functional.avg_pool3d(x, (2, 7, 7), stride=1))
        return (x.mean(dim=(2, 3, 4)),)


def build(path: Path) -> I3D:
    """The network with the weights of this file, batch norm folded."""
    return fold_batch_norms(load_strictly(I3D(), path), {ConvUnit: [("conv", "bn")]})


def clip_logits(frames: np.ndarray | Tensor) -> np.ndarray:
    """(400,) logits of one clip of bytes (T, 224, 224, 3), nine frames or more."""
    with runtime.inference():
        levels = runtime.channels_first_on_device(frames).float() / 127.5 - 1  # (T, 3, H, W)
        return runtime.to_numpy(runtime.network(ID, build)(levels.permute(1, 0, 2, 3)[None]))[0]


@cache
def action_names() -> tuple[str, ...]:
    """The 400 actions of Kinetics, in the order of the logits."""
    return tuple((files("revisit.networks") / "kinetics_400.txt").read_text(encoding="utf-8").split("\n")[:400])
