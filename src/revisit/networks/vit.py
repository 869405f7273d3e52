"""A transformer of pictures or words (Vaswani et al. 2017, Dosovitskiy et al. 2021), as DINOv2 and CLIP have it.

Its sizes are those of the tensors that it is filled with, under the names that transformers publishes; transformers
itself, which takes eight seconds to import, is the oracle of the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

HEAD = 64
Names = Mapping[str, str]  # part of a name here -> what it is called in published files
Activation = Callable[[Tensor], Tensor]


def quick_gelu(x: Tensor) -> Tensor:
    """OpenAI's form of GELU."""
    return x * torch.sigmoid(1.702 * x)


def gated(x: Tensor) -> Tensor:
    """SwiGLU: one half opens or shuts the other."""
    gate, value = x.chunk(2, dim=-1)
    return functional.silu(gate) * value


ACTIVATIONS: Mapping[str, Activation] = {"gelu": functional.gelu, "quick_gelu": quick_gelu, "gated": gated}


class Block(nn.Module):
    """Tokens look at each other, then each is changed by itself; `scaled` ones weigh both by channel."""

    def __init__(self, width: int, heads: int, inner: int, activation: str, epsilon: float, scaled: bool) -> None:
        super().__init__()
        self.heads, self.activation = heads, ACTIVATIONS[activation]
        self.norm1, self.norm2 = (nn.LayerNorm(width, epsilon) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner // 2 if activation == "gated" else inner, width)
        if scaled:
            self.scale1, self.scale2 = (nn.Parameter(torch.ones(width)) for _ in range(2))
        else:
            self.scale1 = self.scale2 = None

    def forward(self, x: Tensor, causal: bool) -> Tensor:
        seen = self.norm1(x)
        query, key, value = (
            part(seen).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        x = x + _weighed(self.out(attended.transpose(1, 2).flatten(2)), self.scale1)
        return x + _weighed(self.outer(self.activation(self.inner(self.norm2(x)))), self.scale2)


def _weighed(x: Tensor, scale: Tensor | None) -> Tensor:
    return x if scale is None else x * scale


class Transformer(nn.Module):
    """Tokens with positions, blocks, a last normalisation. Patches of pictures come behind a token of the whole."""

    def __init__(
        self, state: Mapping[str, Tensor], names: Names, activation: str, epsilon: float, heads: int | None = None
    ) -> None:
        """Empty, with the sizes that published tensors tell; heads are 64 channels wide unless told otherwise.

        Made within `shapes_only`, it costs no time for random numbers that nobody wants.
        """
        super().__init__()

        def shape(name: str) -> list[int]:
            return list(state[published(name, names)].shape)

        def has(name: str) -> bool:
            return published(name, names) in state

        width, first = shape("positions")[-1], "blocks.0."
        self.positions = nn.Parameter(torch.zeros(shape("positions")))
        if has("words"):
            self.words = nn.Parameter(torch.zeros(shape("words")))
        else:
            self.patch = shape("patches.weight")[-1]
            self.cls = nn.Parameter(torch.zeros(shape("cls")))
            self.registers = nn.Parameter(torch.zeros(shape("registers"))) if has("registers") else None
            self.patches = nn.Conv2d(3, width, self.patch, self.patch, bias=has("patches.bias"))
            self.first = nn.LayerNorm(width, epsilon) if has("first.weight") else None
        start = published(first, names).partition(".0.")[0] + "."
        numbers = (name.removeprefix(start).partition(".")[0] for name in state if name.startswith(start))
        count = 1 + max(int(number) for number in numbers if number.isdecimal())
        inner, scaled = shape(f"{first}inner.weight")[0], has(f"{first}scale1")
        self.blocks = nn.ModuleList(
            Block(width, heads or max(1, width // HEAD), inner, activation, epsilon, scaled) for _ in range(count)
        )
        self.last = nn.LayerNorm(width, epsilon)

    @property
    def before(self) -> int:
        """Tokens that stand for no patch."""
        return 1 if self.registers is None else 1 + self.registers.shape[1]

    def seen(self, pixels: Tensor, positions: Tensor | None = None) -> Tensor:
        """(B, tokens, D) tokens of normalised pictures on whole patches, as they enter the blocks."""
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), 1, -1), x], dim=1)
        rows, columns = (side // self.patch for side in pixels.shape[-2:])
        x = x + (self.resized(rows, columns) if positions is None else positions)
        if self.registers is not None:
            x = torch.cat([x[:, :1], self.registers.expand(len(x), -1, -1), x[:, 1:]], dim=1)
        return x if self.first is None else self.first(x)

    def resized(self, rows: int, columns: int) -> Tensor:
        """Positions for so many patches; with registers they were trained with antialiasing."""
        side = math.isqrt(self.positions.shape[-2] - 1)
        if rows == columns == side:
            return self.positions
        whole, patches = self.positions.view(1, side**2 + 1, -1).split([1, side**2], dim=1)
        grid = patches.float().unflatten(1, (side, side)).permute(0, 3, 1, 2)
        made = functional.interpolate(grid, (rows, columns), mode="bicubic", antialias=self.registers is not None)
        return torch.cat([whole, made.flatten(2).transpose(1, 2)], dim=1)

    def read(self, tokens: Tensor) -> Tensor:
        """(B, length, D) of the numbers of words, each of which knows those before it."""
        x = functional.embedding(tokens, self.words) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, causal=True)
        return self.last(x)

    def after(self, x: Tensor, layers: Iterable[int]) -> list[Tensor]:
        """What `seen` made, behind so many of the blocks each time, normalised."""
        wanted, found = list(layers), {}
        for number, block in enumerate(self.blocks, start=1):
            x = block(x, causal=False)
            if number in wanted:
                found[number] = self.last(x)
        return [found[number] for number in wanted]

    def forward(self, pixels: Tensor, positions: Tensor | None = None) -> Tensor:
        """(B, tokens, D) of normalised pictures: the whole, registers, patches row by row."""
        return self.after(self.seen(pixels, positions), [len(self.blocks)])[0]


def shapes_only() -> Any:
    """A context in which networks get shapes, and no numbers until they are filled."""
    return torch.device("meta")


def published(name: str, names: Names) -> str:
    """What a tensor of this name is called in published files."""
    return ".".join(names.get(part, part) for part in name.split("."))
