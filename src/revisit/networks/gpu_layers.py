"""Layers of torch in forms that a GPU computes in less time, for networks that are compiled (see `compiled`).

A convolution whose stride is its kernel reads every pixel once: it is a matrix product, which libraries do several
times as fast, above all with three channels. So is its transpose. A compiler that is given bilinear interpolation works
out the four neighbours of every number by itself; here they are looked up in tables. Sums are the same, in another
order. Code that is not compiled runs the layers as torch has them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

ALIGNED = 8  # numbers in half precision that a matrix product on a GPU wants its rows to be a multiple of
Taps = tuple[Tensor, Tensor, Tensor]  # the neighbour before, the one behind, and the weight of the latter


def use_matrix_products(network: nn.Module) -> nn.Module:
    """Let convolutions of a network whose stride is their kernel be matrix products where it is compiled.

    Parameters
    ----------
    network : nn.Module
        Its layers change in place; names and numbers of their weights stay.

    Returns
    -------
    nn.Module
        The same network.
    """
    for layer in network.modules():
        if type(layer) is nn.Conv2d and _tiles(layer):
            layer.__class__ = PatchConv2d
        elif type(layer) is nn.ConvTranspose2d and _tiles(layer) and not any(layer.output_padding):
            layer.__class__ = PatchConvTranspose2d
    return network


def _tiles(layer: nn.Conv2d | nn.ConvTranspose2d) -> bool:
    """Whether a layer sees every pixel once."""
    plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding in ("valid", (0, 0), 0)
    return plain and tuple(layer.kernel_size) == tuple(layer.stride)


class PatchConv2d(nn.Conv2d):
    """A convolution whose stride is its kernel, such as the patch embedding of a vision transformer."""

    def forward(self, input: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            return super().forward(input)
        high, wide = self.kernel_size
        rows, columns = input.shape[-2] // high, input.shape[-1] // wide
        patches = input[..., : rows * high, : columns * wide].unflatten(3, (columns, wide)).unflatten(2, (rows, high))
        patches = patches.permute(0, 2, 4, 1, 3, 5).flatten(3)
        weight = self.weight.flatten(1)
        if len(weight) == 1:  # one sum for each patch, which joins the step before
            output = (patches * weight[0]).sum(dim=-1, keepdim=True)
            output = output if self.bias is None else output + self.bias
        else:
            spare = -weight.shape[1] % ALIGNED
            output = functional.linear(
                functional.pad(patches, (0, spare)), functional.pad(weight, (0, spare)), self.bias
            )
        return output.permute(0, 3, 1, 2)


class PatchConvTranspose2d(nn.ConvTranspose2d):
    """A transposed convolution whose stride is its kernel: every pixel becomes a tile."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if not torch.compiler.is_compiling() or output_size is not None:
            return super().forward(input, output_size)
        high, wide = self.kernel_size
        weight = self.weight.permute(2, 3, 1, 0).flatten(0, 2)  # (rows, columns and channels of a tile, inputs)
        tiles = functional.linear(input.permute(0, 2, 3, 1), weight).unflatten(3, (high, wide, self.out_channels))
        output = tiles.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(1, 2)
        output = output if self.bias is None else output + self.bias
        return output.permute(0, 3, 1, 2)


def corner_taps(before: int, after: int, device: torch.device) -> Taps:
    """Neighbours and weights that make a line of another length, whose ends stay (`align_corners=True`)."""
    places = torch.linspace(0, before - 1, after, dtype=torch.float64)
    first = places.floor().clamp_(max=max(0, before - 2)).long()
    weight = (places - first).float()
    return first.to(device), (first + 1).clamp_(max=before - 1).to(device), weight.to(device)


def upsampled(maps: Tensor, down: Taps, across: Taps) -> Tensor:
    """(B, C, H, W) maps by bilinear interpolation, for rows and columns by tables; channels last in memory."""
    lines = maps.permute(0, 2, 3, 1)
    (top, bottom, low), (left, right, near) = down, across
    low, near = low[:, None, None], near[:, None]

    def line(rows: Tensor) -> Tensor:
        here = lines[:, rows]
        return torch.lerp(here[:, :, left].float(), here[:, :, right].float(), near)

    return torch.lerp(line(top), line(bottom), low).to(maps.dtype).permute(0, 3, 1, 2)
