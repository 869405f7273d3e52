"""Kernels in Triton, which comes with torch for NVIDIA's GPUs: imported only where one is at work."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 4096  # that one program computes


@triton.jit
def _interpolate_kernel(
    source, output, top, bottom, low, left, right, near, bias, height, width, rows, columns,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, PIXELS)
    line = program // blocks
    x = (program % blocks) * PIXELS + tl.arange(0, PIXELS)
    y = line % rows
    picture = (line // rows).to(tl.int64)
    inside = (x < columns)[:, None]
    channel = tl.arange(0, CHANNELS)[None, :]
    before = tl.load(left + x, mask=x < columns, other=0)[:, None] * CHANNELS + channel
    behind = tl.load(right + x, mask=x < columns, other=0)[:, None] * CHANNELS + channel
    across = tl.load(near + x, mask=x < columns, other=0.0)[:, None]
    upper = source + (picture * height + tl.load(top + y)) * width * CHANNELS
    lower = source + (picture * height + tl.load(bottom + y)) * width * CHANNELS
    first = tl.load(upper + before, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(upper + behind, mask=inside, other=0.0).to(tl.float32)
    third = tl.load(lower + before, mask=inside, other=0.0).to(tl.float32)
    fourth = tl.load(lower + behind, mask=inside, other=0.0).to(tl.float32)
    above = first + across * (second - first)
    below = third + across * (fourth - third)
    value = above + tl.load(low + y) * (below - above)
    if HAS_BIAS:
        value += tl.load(bias + channel).to(tl.float32)
    place = (picture * rows + y) * columns * CHANNELS + x[:, None] * CHANNELS + channel
    tl.store(output + place, value.to(output.dtype.element_ty), mask=inside)


def interpolate_bilinearly_into(
    lines: Tensor,
    output: Tensor,
    down: tuple[Tensor, Tensor, Tensor],
    across: tuple[Tensor, Tensor, Tensor],
    bias: Tensor | None,
) -> None:
    """Fill (B, rows, columns, C) maps by bilinear interpolation of (B, H, W, C) ones; C is a power of two."""
    count, height, width, channels = lines.shape
    rows, columns = output.shape[1:3]
    pixels = max(1, min(NUMBERS // channels, triton.next_power_of_2(columns)))
    programs = (count * rows * triton.cdiv(columns, pixels),)
    _interpolate_kernel[programs](
        lines, output, *down, *across, lines if bias is None else bias, height, width, rows, columns,
        CHANNELS=channels, PIXELS=pixels, HAS_BIAS=bias is not None,
    )  # fmt: skip


@triton.jit
def _add_and_normalise_kernel(
    residual, branch, scale, weight, bias, total, output, rows, width, eps, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    real = column < width
    inside = (row < rows) & real
    place = row * width + column
    addend = tl.load(branch + place, mask=inside, other=0.0).to(tl.float32)
    addend *= tl.load(scale + column, mask=real, other=0.0).to(tl.float32)
    value = tl.load(residual + place, mask=inside, other=0.0).to(tl.float32) + addend
    tl.store(total + place, value.to(total.dtype.element_ty), mask=inside)
    mean = tl.sum(value, axis=1)[:, None] / width
    centred = tl.where(inside, value - mean, 0.0)
    deviation = tl.sqrt(tl.sum(centred * centred, axis=1)[:, None] / width + eps)
    normal = centred / deviation * tl.load(weight + column, mask=real, other=0.0).to(tl.float32)
    normal += tl.load(bias + column, mask=real, other=0.0).to(tl.float32)
    tl.store(output + place, normal.to(output.dtype.element_ty), mask=inside)


def add_and_normalise(
    residual: Tensor, branch: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """(residual + scale * branch, its layer normalisation as `branch` is stored), over the last dimension."""
    total, output = torch.empty_like(residual), torch.empty_like(branch)
    width = residual.shape[-1]
    columns = triton.next_power_of_2(width)
    together = max(1, NUMBERS // 2 // columns)
    rows = residual.numel() // width
    _add_and_normalise_kernel[(triton.cdiv(rows, together),)](
        residual, branch, scale, weight, bias, total, output, rows, width, eps, ROWS=together, WIDTH=columns
    )
    return total, output
