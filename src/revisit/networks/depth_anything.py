"""Depth Anything V2 (Yang et al., NeurIPS 2024): depth of one picture, up to scale and shift.

A folder of transformers is read (config.json, model.safetensors). Pictures are scaled as the published processor does:
so that the side which needs the least change has 518 pixels, the other in proportion, both rounded to whole patches of
14, by bicubic interpolation; ImageNet's mean and deviation. The answer is inverse depth: near things have large values.
It stays at the size that the network saw.

A GPU computes in float16 (autocast); maps are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.core import MissingPrerequisite
from revisit.networks import compiled, dino, hub, runtime
from revisit.networks.loading import fill
from revisit.networks.preprocessing import Size, normalised, resized
from revisit.networks.vit import Transformer, published, shapes_only

HALF = "float16"
SIDE, PATCH = 518, 14
# What config.json leaves out, as the small network has it.
DEPTHS, CHANNELS, FACTORS, JOINED, HEAD = (3, 6, 9, 12), (48, 96, 192, 384), (4, 2, 1, 0.5), 64, 32


# Parts of names here -> those that transformers publishes.
PUBLISHED = {
    "reassembled": "neck.reassemble_stage.layers", "narrowed": "neck.convs", "fused": "neck.fusion_stage.layers",
    "project": "projection", "given": "residual_layer1", "whole": "residual_layer2", "first": "convolution1",
    "second": "convolution2", "conv1": "head.conv1", "conv2": "head.conv2", "conv3": "head.conv3",
}  # fmt: skip
TRUNK = "backbone."
SHRINKS = 0.5  # the factor of a level that is halved


def _conv(inside: int, outside: int, kernel: int = 3, stride: int = 1, bias: bool = True) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=bias)


class Reassembled(nn.Module):
    """Tokens of one depth as a map with so many channels, enlarged or shrunk."""

    def __init__(self, inside: int, channels: int, factor: float) -> None:
        super().__init__()
        self.project = _conv(inside, channels, 1)
        self.resize: nn.Module = nn.Identity()
        if factor > 1:
            self.resize = nn.ConvTranspose2d(channels, channels, int(factor), int(factor))
        elif factor == SHRINKS:
            self.resize = _conv(channels, channels, stride=2)

    def forward(self, tokens: Tensor, rows: int) -> Tensor:
        grid = tokens.unflatten(1, (rows, -1)).permute(0, 3, 1, 2)  # channels last, as convolutions are fastest
        return self.resize(self.project(grid))


class Residual(nn.Module):
    """Two convolutions of what is above zero, added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = _conv(channels, channels), _conv(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.first(x.relu()).relu())


class Fused(nn.Module):
    """A level joined with the coarser ones, at the size of the next."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project, self.given, self.whole = _conv(channels, channels, 1), Residual(channels), Residual(channels)

    def forward(self, level: Tensor, coarser: Tensor | None, size: Size) -> Tensor:
        x = level if coarser is None else coarser + self.given(level)
        return self.project(enlarged(self.whole(x), size))


def enlarged(x: Tensor, size: Size) -> Tensor:
    return functional.interpolate(x, size, mode="bilinear", align_corners=True)


class Depth(nn.Module):
    """DINOv2, whose tokens at four depths become maps that are joined from coarse to fine (Ranftl et al. 2021)."""

    def __init__(
        self, trunk: Transformer, depths: Sequence[int], channels: Sequence[int], factors: Sequence[float], joined: int,
        head: int,
    ) -> None:  # fmt: skip
        super().__init__()
        width = trunk.positions.shape[-1]
        self.trunk, self.depths = trunk, tuple(depths)
        self.reassembled = nn.ModuleList(map(Reassembled, [width] * len(depths), channels, factors))
        self.narrowed = nn.ModuleList(_conv(one, joined, bias=False) for one in channels)
        self.fused = nn.ModuleList(Fused(joined) for _ in channels)
        self.conv1, self.conv2 = _conv(joined, joined // 2), _conv(joined // 2, head)
        self.conv3 = _conv(head, 1, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.maps(prepared(pictures))

    def maps(self, pixels: Tensor) -> Tensor:
        """(B, h, w) of normalised pictures on whole patches."""
        size = pixels.shape[-2], pixels.shape[-1]
        tokens = self.trunk.after(self.trunk.seen(pixels), self.depths)
        levels = [
            narrow(level(one[:, self.trunk.before :], size[0] // PATCH))
            for narrow, level, one in zip(self.narrowed, self.reassembled, tokens, strict=True)
        ][::-1]
        sizes = [(level.shape[-2], level.shape[-1]) for level in levels[1:]]
        sizes.append((2 * sizes[-1][0], 2 * sizes[-1][1]))
        x: Tensor | None = None
        for fuse, level, wanted in zip(self.fused, levels, sizes, strict=True):
            x = fuse(level, x, wanted)
        inside = self.conv2(enlarged(self.conv1(x), size)).relu()
        return self.conv3(inside).relu()[:, 0]


def build(path: Path) -> Depth:
    """The network in the folder of this file."""
    folder = path.parent
    settings = hub.described(folder, of=("depth_anything",))
    if settings.get("depth_estimation_type", "relative") != "relative":
        raise MissingPrerequisite(
            f"{folder / hub.CONFIG}: this network tells depth in metres; expected one of relative depth, such as "
            "Depth-Anything-V2-Small-hf"
        )
    state = {name: tensor for name, tensor in hub.tensors(folder).items() if name != TRUNK + dino.UNUSED}
    below = settings.get("backbone_config") or {}
    trunk, called = dino.trunk(state, folder / hub.WEIGHTS, TRUNK, below.get("num_attention_heads"))
    stages = below.get("out_indices") or [int(name.removeprefix("stage")) for name in below.get("out_features") or ()]
    with shapes_only():
        net = Depth(
            trunk, [stage % (len(trunk.blocks) + 1) for stage in stages or DEPTHS],
            settings.get("neck_hidden_sizes", CHANNELS), settings.get("reassemble_factors", FACTORS),
            settings.get("fusion_hidden_size", JOINED), settings.get("head_hidden_size", HEAD),
        )  # fmt: skip

    def name_there(name: str) -> str:
        place, _, rest = name.partition(".")
        return called(rest) if place == "trunk" else published(name, PUBLISHED)

    return fill(net, state, folder / hub.WEIGHTS, name_there).to(memory_format=torch.channels_last)


def depth(id: str, pictures: Tensor) -> Tensor:
    """(B, h, w) inverse depth of (B, 3, H, W) pictures from 0 to 255."""
    network = runtime.network(id, build)
    with runtime.inference(HALF):
        return compiled.run(network.forward, pictures).float()


def prepared(pictures: Tensor) -> Tensor:
    """The pictures as the network wants them."""
    height, width = pictures.shape[-2:]
    return normalised(resized(pictures, seen_size((height, width)), "bicubic"))


def seen_size(size: Size) -> Size:
    """(height, width) at which the network sees a picture of this size."""
    scale = min((SIDE / size[0], SIDE / size[1]), key=lambda one: abs(1 - one))  # the height on a draw
    return round(scale * size[0] / PATCH) * PATCH, round(scale * size[1] / PATCH) * PATCH
