"""Parts of optical flow networks: coordinate grid, bilinear sampling, convex upsampling.

Flow is (B, 2, H, W): x and y in pixels, from the earlier to the later.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def coordinate_grid(height: int, width: int, like: Tensor) -> Tensor:
    """(2, height, width) coordinate grid: x and y of each pixel."""
    sides = (torch.arange(length, device=like.device, dtype=like.dtype) for length in (width, height))
    return torch.stack(torch.meshgrid(*sides, indexing="xy"))


def sample_bilinear(maps: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Bilinear samples of maps (B, C, H, W) at pixel coordinates x and y (B, h, w); 0 outside."""
    height, width = maps.shape[-2:]
    places = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)
    return functional.grid_sample(maps, places, mode="bilinear", padding_mode="zeros", align_corners=True)


def shifted_neighbours(maps: Tensor, radius: int) -> list[Tensor]:
    """Unfolded neighbourhood: the maps shifted by each offset up to `radius`, row by row; 0 outside."""
    height, width = maps.shape[-2:]
    padded = functional.pad(maps, [radius] * 4)
    span = range(2 * radius + 1)
    return [padded[..., top : top + height, left : left + width] for top in span for left in span]


def upsample_flow_convexly(flow: Tensor, weight_logits: Tensor, factor: int) -> Tensor:
    """Convex upsampling by `factor` (Teed & Deng): each new pixel is a convex combination of its 3 x 3 neighbours.

    `weight_logits` (B, 9 * factor * factor, H, W) are the logits of its weights.
    """
    batch, _, height, width = flow.shape
    mix = weight_logits.reshape(batch, 9, factor * factor, height, width).softmax(dim=1)
    near = torch.stack(shifted_neighbours(factor * flow, 1), dim=2)
    mixed = torch.einsum("bnkhw,bcnhw->bckhw", mix, near)
    return functional.pixel_shuffle(mixed.flatten(1, 2), factor)
