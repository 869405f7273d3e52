"""Layers of torch in forms that a GPU computes in less time, for networks that are compiled (see `compiled`).

A convolution whose stride is its kernel reads every pixel once: it is a matrix product, which libraries do several
times as fast, above all with three channels. So is its transpose. A residual is added and normalised in one pass. Sums
are the same, in another order, with one exception: GELU behind a fully connected layer is the approximation by the
hyperbolic tangent, up to 5e-4 from the exact one, which a GPU adds to its matrix product for nothing. Code that is not
compiled runs the layers as torch and transformers have them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

ALIGNED = 8  # numbers in half precision that a matrix product on a GPU wants its rows to be a multiple of
Net = TypeVar("Net", bound=nn.Module)


def use_compiled_layers(network: Net) -> Net:
    """Let layers of a network take the forms of this module where it is compiled.

    These are convolutions whose stride is their kernel, and fully connected layers with GELU behind them.

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
        for name in ("activation_fn", "activation"):  # of an MLP, in versions of transformers
            if isinstance(getattr(layer, "fc1", None), nn.Linear) and _is_exact_gelu(getattr(layer, name, None)):
                layer.fc1.__class__ = LinearGelu
                setattr(layer, name, nn.Identity())
        if type(layer) is nn.Conv2d and _stride_equals_kernel(layer):
            layer.__class__ = PatchConv2d
        elif type(layer) is nn.ConvTranspose2d and _stride_equals_kernel(layer) and not any(layer.output_padding):
            layer.__class__ = PatchConvTranspose2d
    return network


def _stride_equals_kernel(layer: nn.Conv2d | nn.ConvTranspose2d) -> bool:
    """Whether a layer sees every pixel once."""
    plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding in ("valid", (0, 0), 0)
    return plain and tuple(layer.kernel_size) == tuple(layer.stride)


def _is_exact_gelu(function: object) -> bool:
    """Whether a function is GELU by the error function, torch's or that of transformers."""
    exact = isinstance(function, nn.GELU) and function.approximate == "none"
    return exact or type(function).__name__ == "GELUActivation"


def block_outputs(blocks: Any, tokens: Tensor) -> list[Tensor]:
    """Tokens behind each pre-norm transformer block of DINOv2, before the first one those that were given.

    Each sum is normalised for the layer that follows in the kernel that adds it.
    """
    states = [tokens]
    normal = blocks[0].norm1(tokens)
    for number, block in enumerate(blocks, 1):
        attended = _self_attention(block.attention, normal)
        residual, normal = _add_branch_and_normalise(states[-1], attended, block.layer_scale1, block.norm2)
        branch = block.mlp(normal)
        if number < len(blocks):
            residual, normal = _add_branch_and_normalise(residual, branch, block.layer_scale2, blocks[number].norm1)
        else:
            residual = residual + block.layer_scale2(branch)
        states.append(residual)
    return states


def _self_attention(attention: Any, tokens: Tensor) -> Tensor:
    """Self-attention of transformers, without the hooks by which it collects weights: a compiler cannot trace them."""
    inner = getattr(attention, "attention", None)
    if inner is None:
        return attention.forward(tokens)[0]
    context = inner.forward(tokens)  # in versions of transformers
    return attention.output.dense(context[0] if isinstance(context, tuple) else context)


def _add_branch_and_normalise(residual: Tensor, branch: Tensor, scale: Any, norm: Any) -> tuple[Tensor, Tensor]:
    """A residual with a branch added to it, and the same normalised."""
    return add_and_normalise(residual, branch, scale.lambda1, norm.weight, norm.bias, norm.eps)


@torch.library.custom_op("revisit::add_and_normalise", mutates_args=())
def add_and_normalise(
    residual: Tensor, branch: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The sum `residual + scale * branch`, and its layer normalisation in the precision of the branch."""
    if residual.is_cuda:
        from revisit.networks import gpu_kernels

        return gpu_kernels.add_and_normalise(residual.contiguous(), branch.contiguous(), scale, weight, bias, eps)
    total = residual + scale * branch
    return total, functional.layer_norm(total, scale.shape, weight, bias, eps).to(branch.dtype)


@add_and_normalise.register_fake
def _add_and_normalise_shapes(
    residual: Tensor, branch: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    return residual.new_empty(residual.shape), branch.new_empty(branch.shape)


class LinearGelu(nn.Linear):
    """A fully connected layer with GELU behind it; compiled, both are one kernel, with GELU's tanh approximation."""

    def forward(self, input: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() or self.bias is None:
            return functional.gelu(super().forward(input))
        rows, weight, bias = input.flatten(0, -2), self.weight, self.bias
        kind = input.device.type
        if torch.is_autocast_enabled(kind):
            rows, weight, bias = (one.to(torch.get_autocast_dtype(kind)) for one in (rows, weight, bias))
        return linear_gelu(rows, weight, bias).unflatten(0, input.shape[:-1])


@torch.library.custom_op("revisit::linear_gelu", mutates_args=())
def linear_gelu(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """GELU (tanh approximation on a GPU) of a fully connected layer: (N, inputs) rows to (N, outputs)."""
    return torch._addmm_activation(bias, rows, weight.t(), use_gelu=True)


@linear_gelu.register_fake
def _linear_gelu_shape(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return rows.new_empty(len(rows), len(weight))


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
            output = (patches.float() * weight[0].float()).sum(dim=-1, keepdim=True)
            output = output if self.bias is None else output + self.bias
        else:
            spare = 0, -weight.shape[1] % ALIGNED
            output = functional.linear(functional.pad(patches, spare), functional.pad(weight, spare), self.bias)
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
