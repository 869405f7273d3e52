"""LPIPS: perceptual distance of two pictures (Zhang et al. 2018, version 0.1).

The pictures, from -1 to 1, are shifted and scaled, and go through the convolutions of AlexNet or VGG16. At five depths
the features of each pixel are made unit vectors; the squared differences are weighted by channel with learned weights,
summed over channels and averaged over pixels; the distance is the sum of the five. Lower is closer.

Names of weights are those of the state dict of `lpips.LPIPS(net=...)` in the lpips package. Computed
in float32; where half precision is asked for, a GPU computes the features in it (autocast), never their distances.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.networks import compiled, openvino
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.output_cache import FeatureCache

SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
# Pixels of pairs that go through the network at once on a GPU, and how many times that by the number of convolutions:
# VGG16 takes 2 GB for a million of them, AlexNet a tenth.
PIXELS, ON_GPU = 1280 * 720, {5: 32, 13: 2}
WINOGRAD = platform.machine() in ("aarch64", "arm64")  # where OpenVINO has it
REPEATED = ("lins.", "scaling_layer.")  # the lpips package lists these twice, or as constants


class Conv(NamedTuple):
    """A convolution with a ReLU behind it; `number` is its place in the names of the weights."""

    number: int
    outputs: int
    kernel: int = 3
    stride: int = 1
    padding: int = 1


class Pool(NamedTuple):
    """Max pooling."""

    kernel: int
    stride: int = 2


# One row for each depth at which features are compared.
Table = tuple[tuple[Conv | Pool, ...], ...]
ALEX: Table = (
    (Conv(0, 64, kernel=11, stride=4, padding=2),),
    (Pool(3), Conv(3, 192, kernel=5, padding=2)),
    (Pool(3), Conv(6, 384)),
    (Conv(8, 256),),
    (Conv(10, 256),),
)
VGG: Table = (
    (Conv(0, 64), Conv(2, 64)),
    (Pool(2), Conv(5, 128), Conv(7, 128)),
    (Pool(2), Conv(10, 256), Conv(12, 256), Conv(14, 256)),
    (Pool(2), Conv(17, 512), Conv(19, 512), Conv(21, 512)),
    (Pool(2), Conv(24, 512), Conv(26, 512), Conv(28, 512)),
)


class Lpips(nn.Module):
    """The trunk of a network and a weight for each channel at five depths."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.kept = FeatureCache()
        self.net = nn.ModuleDict()
        inputs = 3
        for depth, layers in enumerate(table):
            self.net[f"slice{depth + 1}"] = part = nn.ModuleDict()
            for layer in layers:
                if isinstance(layer, Conv):
                    conv = nn.Conv2d(inputs, layer.outputs, layer.kernel, layer.stride, layer.padding)
                    part[str(layer.number)] = conv
                    inputs = layer.outputs
            model = nn.ModuleDict({"1": nn.Conv2d(inputs, 1, 1, bias=False)})
            self.add_module(f"lin{depth}", nn.ModuleDict({"model": model}))

    def conv_features(self, x: Tensor) -> list[Tensor]:
        """Features at the five depths of normalised pictures (B, 3, H, W)."""
        features = []
        for depth, layers in enumerate(self.table):
            for layer in layers:
                if isinstance(layer, Pool):
                    x = functional.max_pool2d(x, layer.kernel, layer.stride)
                else:
                    conv = self.get_submodule(f"net.slice{depth + 1}.{layer.number}")
                    if layer.kernel == 5 and WINOGRAD and torch.jit.is_tracing():  # for OpenVINO
                        x = conv_5x5_as_3x3(conv, x)
                    elif layer.stride > 1 and torch.compiler.is_compiling():
                        x = strided_conv_as_unstrided(conv, x, layer.stride, layer.padding)
                    else:
                        x = conv(x)
                    x = x.relu_()
            features.append(x)
        return features

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The distance of each pair of pictures (B, 3, H, W) with levels from 0 to 255.

        On a CPU pictures go through one by one, where more are no faster, and what the network sees in `b` is kept for
        the next that is compared with it.
        """
        if a.device.type == "cpu":
            distances = []
            for x, y in zip(a.split(1), b.split(1), strict=True):
                features = self._unit_features_by_openvino(x, keep=False)
                true_features = self._unit_features_by_openvino(y, keep=True)
                distances.append(self._weighted_feature_distance(features, true_features))
            return torch.cat(distances)
        convolutions = sum(isinstance(layer, Conv) for layers in self.table for layer in layers)
        few = max(1, PIXELS * ON_GPU[convolutions] // (a.shape[-1] * a.shape[-2]))
        if len(a) > few:
            return torch.cat([self(a[k : k + few], b[k : k + few]) for k in range(0, len(a), few)])
        return compiled.run(self._distances_of_pairs, a, b)

    def _distances_of_pairs(self, a: Tensor, b: Tensor) -> Tensor:
        units = self._unit_features(torch.cat([a.contiguous(), b.contiguous()]))
        return self._weighted_feature_distance([unit[: len(a)] for unit in units], [unit[len(a) :] for unit in units])

    def _unit_features_by_openvino(self, picture: Tensor, *, keep: bool) -> list[Tensor]:
        see = partial(openvino.run, self.channels_last, picture)
        return [one.permute(0, 3, 1, 2) for one in (self.kept.cached_or_made(picture, see) if keep else see())]

    def channels_last(self, pictures: Tensor) -> tuple[Tensor, ...]:
        """(B, H, W, channels) at the five depths: as they lie in memory, so that nobody has to move them."""
        return tuple(one.permute(0, 2, 3, 1) for one in self._unit_features(pictures))

    def _unit_features(self, pictures: Tensor) -> tuple[Tensor, ...]:
        """Features at the five depths, those of each place divided by their length."""
        x = pictures.float() / 127.5 - 1
        x = (x - x.new_tensor(SHIFT)[:, None, None]) / x.new_tensor(SCALE)[:, None, None]
        x = x.contiguous(memory_format=torch.channels_last)  # a GPU's units for half precision and most CPUs want it so
        features = [depth.float() for depth in self.conv_features(x)]
        return tuple(depth / (depth.square().sum(dim=1, keepdim=True).sqrt() + 1e-10) for depth in features)

    def _weighted_feature_distance(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
        total = a[0].new_zeros(len(a[0]))
        for depth, (one, other) in enumerate(zip(a, b, strict=True)):
            weight = self.get_parameter(f"lin{depth}.model.1.weight")
            total += (one - other).square_().mul_(weight).sum(dim=1).mean(dim=(1, 2))
        return total


def conv_5x5_as_3x3(conv: nn.Module, x: Tensor) -> Tensor:
    """A convolution of 5 x 5 with a padding of 2 as one of 3 x 3, over four copies of its input three pixels apart.

    Winograd's method takes a quarter of the multiplications for these, and OpenVINO has it for 3 x 3 only.
    """
    rows, columns = x.shape[-2:]
    weight, x = functional.pad(conv.get_parameter("weight"), (0, 1, 0, 1)), functional.pad(x, (2, 3, 2, 3))
    places = [(top, left) for top in (0, 3) for left in (0, 3)]
    weight = torch.cat([weight[..., top : top + 3, left : left + 3] for top, left in places], dim=1)
    x = torch.cat([x[..., top : top + rows + 2, left : left + columns + 2] for top, left in places], dim=1)
    return functional.conv2d(x, weight, conv.get_parameter("bias"))


def strided_conv_as_unstrided(conv: nn.Module, x: Tensor, stride: int, padding: int) -> Tensor:
    """A convolution with a stride as one without, over tiles of that many pixels whose pixels are channels.

    A GPU is slow with three channels: for 11 x 11 over every fourth pixel it takes five times as long as for 3 x 3
    over 48 channels, with kernels filled up by zeros.
    """
    weight = conv.get_parameter("weight")
    kernel = weight.shape[-1]
    tiles = -(-kernel // stride)  # a kernel sees so many, across and down
    rows, columns = ((side + 2 * padding - kernel) // stride + tiles for side in x.shape[-2:])
    behind = (columns * stride - x.shape[-1] - padding, rows * stride - x.shape[-2] - padding)
    x = functional.pad(x, (padding, behind[0], padding, behind[1]))
    x = x.unflatten(3, (columns, stride)).unflatten(2, (rows, stride)).permute(0, 2, 4, 3, 5, 1).flatten(3)
    weight = functional.pad(weight, (0, tiles * stride - kernel) * 2)
    weight = weight.unflatten(3, (tiles, stride)).unflatten(2, (tiles, stride)).permute(0, 2, 4, 3, 5, 1).flatten(3)
    weight = weight.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    return functional.conv2d(x.permute(0, 3, 1, 2), weight, conv.get_parameter("bias"))


def load_lpips(table: Table, path: Path) -> Lpips:
    """The network with the weights of a file."""
    tensors = {name: one.float() for name, one in weights.tensors(path).items() if not name.startswith(REPEATED)}
    return load_tensors_strictly(Lpips(table), tensors, path)


lpips_alex, lpips_vgg = partial(load_lpips, ALEX), partial(load_lpips, VGG)
