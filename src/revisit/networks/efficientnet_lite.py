"""EfficientNet-Lite0 (Tan & Le 2019, without squeeze-and-excitation): features of patches and of pictures.

All activations are ReLU6. Convolutions are padded as TensorFlow does ("same"), so that with a stride of 2 one more row
is added below than above. Layers are named as in the published state dict, which
is loaded strictly. Input: RGB from 0 to 255, (x - 127) / 128.

Patches are described by the fifth of its seven stages: 112 channels, a cell for each 16 pixels. Of all stages it told
best which patches of two views show the same place, in rendered rooms with known depth and in 7-Scenes
(docs/observers.md). Pictures as wholes are described by the 1280 channels before the classifier. Runs in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks import openvino, runtime
from revisit.networks.loading import fold_batch_norms, load_strictly
from revisit.networks.preprocessing import nearest_size_of_multiples, resize_levels, size_with_long_side, unit_vectors

ID = "efficientnet-lite0"
EPSILON = 1e-3  # of batch normalisation, as TensorFlow's
STEM, HEAD, CLASSES = 32, 1280, 1000
STAGES = (  # blocks, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
LONG_SIDE = 320  # pixels, at which frames are described: 20 patches
PATCHES, PATCH = 4, 16  # the stage that describes patches, and pixels to a side of one


def pad_as_tensorflow_same(x: Tensor, kernel: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Maps (B, C, ...) with zeros around them as TensorFlow's "same" has them. After a ReLU no maximum changes."""
    sides: list[int] = []
    for length, size, step in zip(x.shape[2:], kernel, stride, strict=True):
        missing = max((-(-length // step) - 1) * step + size - length, 0)
        sides = [missing // 2, missing - missing // 2, *sides]  # functional.pad begins with the last axis
    return functional.pad(x, sides) if any(sides) else x


class Same(nn.Conv2d):
    """Convolution with TensorFlow's "same" padding: the output is the input's size over the stride, rounded up."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(pad_as_tensorflow_same(x, self.kernel_size, self.stride))


def same_convolution_without_bias(inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1) -> Same:
    """A "same" convolution without bias."""
    return Same(inside, outside, kernel, stride, groups=groups, bias=False)


class InvertedResidual(nn.Module):
    """Inverted residual (MBConv): 1 x 1 expansion, depthwise convolution, 1 x 1 projection, and a skip connection."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inside * expansion
        self.widens = expansion > 1
        self.adds = stride == 1 and inside == outside
        if self.widens:
            self._expand_conv = same_convolution_without_bias(inside, wide, 1)
            self._bn0 = nn.BatchNorm2d(wide, eps=EPSILON)
        self._depthwise_conv = same_convolution_without_bias(wide, wide, kernel, stride, groups=wide)
        self._bn1 = nn.BatchNorm2d(wide, eps=EPSILON)
        self._project_conv = same_convolution_without_bias(wide, outside, 1)
        self._bn2 = nn.BatchNorm2d(outside, eps=EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return y + x if self.adds else y


class EfficientNetLite0(nn.Module):
    """The classifier; `descriptors` are its features of patches and of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = same_convolution_without_bias(3, STEM, 3, 2)
        self._bn0 = nn.BatchNorm2d(STEM, eps=EPSILON)
        blocks, inside = [], STEM
        for count, kernel, stride, expansion, outside in STAGES:
            for number in range(count):
                blocks.append(InvertedResidual(inside, outside, kernel, stride if number == 0 else 1, expansion))
                inside = outside
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = same_convolution_without_bias(inside, HEAD, 1)
        self._bn1 = nn.BatchNorm2d(HEAD, eps=EPSILON)
        self._fc = nn.Linear(HEAD, CLASSES)

    def stage_maps(self, pictures: Tensor) -> list[Tensor]:
        """Maps after each of the seven stages, (B, channels, rows, columns); pictures are (B, 3, H, W), 0-255."""
        x = functional.relu6(self._bn0(self._conv_stem((pictures.float() - 127) / 128)))
        maps, ends = [], set(accumulate(count for count, *_ in STAGES))
        for number, block in enumerate(self._blocks, start=1):
            x = block(x)
            if number in ends:
                maps.append(x)
        return maps

    def last(self, pictures: Tensor) -> tuple[Tensor]:
        """(B, 1280, rows, columns) features of the head."""
        return (self.head_map(self.stage_maps(pictures)[-1]),)

    def descriptors(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 112, rows, columns) of patches, and (B, 1280) of pictures: the mean of the head's features."""
        maps = self.stage_maps(pictures)
        return maps[PATCHES], self.head_map(maps[-1]).mean(dim=(2, 3))

    def head_map(self, last: Tensor) -> Tensor:
        """The 1280-channel map before global average pooling, of the map after the last stage."""
        return functional.relu6(self._bn1(self._conv_head(last)))

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, 1000) logits of the classes of ImageNet."""
        return self._fc(self.descriptors(pictures)[1])


# Convolutions and the batch norms behind them.
FOLDED: Mapping[type, tuple[tuple[str, str], ...]] = {
    EfficientNetLite0: (("_conv_stem", "_bn0"), ("_conv_head", "_bn1")),
    InvertedResidual: (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")),
}


def unit_patch_and_picture_descriptors(levels: Tensor) -> tuple[Tensor, Tensor]:
    """(B, rows, columns, 112) unit descriptors of patches and (B, 1280) of pictures, whose levels are (B, 3, H, W)."""
    patches, pooled = _run_method_on_levels("descriptors", levels)
    return unit_vectors(patches.permute(0, 2, 3, 1)), unit_vectors(pooled)


def head_maps(levels: Tensor) -> Tensor:
    """(B, rows, columns, 1280) features of the head at each cell of 32 pixels, before they are pooled."""
    return _run_method_on_levels("last", levels)[0].permute(0, 2, 3, 1)


def _run_method_on_levels(method_name: str, levels: Tensor) -> tuple[Tensor, ...]:
    """A step of the network; by OpenVINO one picture at a time, because their number changes from call to call."""
    run = getattr(runtime.network(ID, build_with_folded_norms), method_name)
    if not runtime.uses_openvino():
        return run(levels.contiguous(memory_format=torch.channels_last))
    rows = [openvino.run(run, one.float()) for one in levels.split(1)]
    return tuple(torch.cat(one) for one in zip(*rows, strict=True))


def build_with_folded_norms(path: Path) -> EfficientNetLite0:
    """The network with batch norm folded into its convolutions, channels last: half the time on a CPU."""
    return fold_batch_norms(build(path), FOLDED).to(memory_format=torch.channels_last)


def build(path: Path) -> EfficientNetLite0:
    """The network with the weights of this file."""
    return load_strictly(EfficientNetLite0(), path)


def resize_to_whole_patches(pictures: Tensor) -> Tensor:
    """The pictures with a longer side of 320 pixels, stretched to whole patches by half a patch at most."""
    size = size_with_long_side(tuple(pictures.shape[-2:]), LONG_SIDE)
    return resize_levels(pictures, nearest_size_of_multiples(size, PATCH))
