"""Kernels in Triton, which comes with torch for NVIDIA's GPUs: imported only where one is at work."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 4096  # that one program computes


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
