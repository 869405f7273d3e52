"""Gram matrices of VGG features, a picture's style (Gatys et al. 2015).

Features are taken behind the first convolution of each of the five blocks (relu1_1 to relu5_1), after ImageNet's
normalisation. A Gram matrix is divided by channels x rows x columns, so that its size does not grow with the picture.
Runs in float32: sums over a hundred thousand cells lose digits in half precision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.preprocessing import normalise_by_channel

CHANNELS = (64, 128, 256, 512, 512)
VGG16, VGG19 = (2, 2, 3, 3, 3), (2, 2, 4, 4, 4)  # convolutions in each block
Grams = list[Tensor]  # one (B, C, C) for each depth


class Vgg(nn.Module):
    """The convolutions of VGG up to relu5_1, named as torchvision names them."""

    def __init__(self, blocks: Sequence[int]) -> None:
        super().__init__()
        layers: dict[str, nn.Module] = {}
        number, inside = 0, 3
        for depth, (count, outside) in enumerate(zip(blocks, CHANNELS, strict=True)):
            for _ in range(count if depth < len(blocks) - 1 else 1):
                layers[str(number)] = nn.Conv2d(inside, outside, 3, padding=1)
                number, inside = number + 2, outside  # a ReLU follows each
            number += 1  # and a pooling each block
        self.features = nn.ModuleDict(layers)
        self.firsts = {sum(blocks[:depth]) for depth in range(len(blocks))}

    def forward(self, levels: Tensor) -> Grams:
        """Gram matrices of pictures (B, 3, H, W) with levels from 0 to 255."""
        x = normalise_by_channel(levels)
        matrices: Grams = []
        for number, layer in enumerate(self.features.values()):
            if number in self.firsts and number:
                x = functional.max_pool2d(x, 2)
            x = functional.relu(layer(x))
            if number in self.firsts:
                matrices.append(gram(x))
        return matrices


def gram(maps: Tensor) -> Tensor:
    """(B, C, C) Gram matrices, divided by channels x rows x columns."""
    flat = maps.flatten(2)
    return flat @ flat.transpose(1, 2) / (flat.shape[1] * flat.shape[2])


def gram_difference_and_own_norms(later: Grams, earlier: Grams) -> tuple[Tensor, Tensor, Tensor]:
    """Frobenius norms of the difference, of the later and of the earlier matrices, each (B, depths)."""
    parts = [a - b for a, b in zip(later, earlier, strict=True)], later, earlier
    difference, norm, other = (torch.stack([torch.linalg.matrix_norm(one) for one in part], dim=1) for part in parts)
    return difference, norm, other


def build_vgg16_from_lpips_file(path: Path) -> Vgg:
    """VGG16 with the trunk in a file of LPIPS."""
    tensors = {re.sub(r"^net\.slice\d+", "features", name): one for name, one in weights.tensors(path).items()}
    return _build_vgg_up_to_relu5_1(VGG16, tensors, path)


def build_vgg19_from_torchvision_file(path: Path) -> Vgg:
    """VGG19 with the weights in a file of torchvision's."""
    return _build_vgg_up_to_relu5_1(VGG19, weights.tensors(path), path)


def _build_vgg_up_to_relu5_1(blocks: Sequence[int], tensors: Mapping[str, Tensor], path: Path) -> Vgg:
    net = Vgg(blocks)
    needed = net.state_dict().keys()  # what comes behind relu5_1 is of no use here
    return load_tensors_strictly(net, {name: value for name, value in tensors.items() if name in needed}, path)
