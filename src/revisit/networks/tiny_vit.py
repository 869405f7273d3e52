"""TinyViT-5M as the picture encoder of MobileSAM (Wu et al., arXiv:2207.10666; Zhang et al., arXiv:2306.14289).

Four stages at 1/4, 1/8, 1/16 and 1/16 resolution: the first of MBConv blocks, the others of window attention blocks
with a depthwise convolution and an MLP. Names of the layers are those of the published checkpoint. There are no
absolute positions, so a picture of any size with sides that 16 divides will do.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS, DEPTHS, HEADS = (64, 128, 160, 320), (2, 2, 6, 2), (2, 4, 5, 10)
WINDOWS = (7, 7, 14, 7)
OUT = 256  # channels of the embedding
STRIDE = 16  # pixels of the picture to one cell of the embedding


class ConvNorm(nn.Module):
    """Convolution without bias and batch norm; `fold` fuses both."""

    def __init__(self, inside: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.c = nn.Conv2d(inside, out, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn: nn.BatchNorm2d | nn.Identity = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.c(x))

    def fold_batch_norm(self) -> None:
        """Fold the batch norm into the convolution."""
        norm = self.bn
        with torch.no_grad():
            scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            self.c.weight.mul_(scale[:, None, None, None])
            self.c.bias = nn.Parameter(norm.bias - norm.running_mean * scale)
        self.bn = nn.Identity()


class MBConv(nn.Module):
    """Inverted residual (MBConv) with GELU; without `adds` there is no skip connection (patch merging)."""

    def __init__(self, channels: int, wide: int, out: int, stride: int = 1, adds: bool = False) -> None:
        super().__init__()
        self.adds = adds
        self.conv1, self.conv3 = ConvNorm(channels, wide), ConvNorm(wide, out)
        self.conv2 = ConvNorm(wide, wide, 3, stride, groups=wide)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv3(functional.gelu(self.conv2(functional.gelu(self.conv1(x)))))
        return functional.gelu(y + x) if self.adds else y


class WindowAttention(nn.Module):
    """Multi-head self-attention within a window, with a learnt relative position bias for each (|dy|, |dx|)."""

    distance: Tensor

    def __init__(self, channels: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.attention_biases = nn.Parameter(torch.zeros(heads, window * window))
        y, x = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        place = torch.stack([y.flatten(), x.flatten()], -1)
        apart = (place[:, None] - place[None]).abs()
        self.register_buffer("distance", apart[..., 0] * window + apart[..., 1], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        count, cells, channels = x.shape
        # the three parts lie side by side within each head
        q, k, v = self.qkv(self.norm(x)).view(count, cells, self.heads, -1).transpose(1, 2).chunk(3, dim=-1)
        bias = self.attention_biases[:, self.distance].to(q.dtype)
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.proj(attended.transpose(1, 2).reshape(count, cells, channels))


class TinyVitBlock(nn.Module):
    """TinyViT block: window attention, depthwise convolution, MLP, each with a skip connection but the second."""

    def __init__(self, channels: int, heads: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.attn = WindowAttention(channels, heads, window)
        self.local_conv = ConvNorm(channels, channels, 3, groups=channels)
        inner, outer = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.mlp = nn.ModuleDict({"norm": nn.LayerNorm(channels), "fc1": inner, "fc2": outer})

    def forward(self, x: Tensor) -> Tensor:
        x = self.local_conv(x + self._attend_in_windows(x))
        inner = functional.gelu(self.mlp["fc1"](self.mlp["norm"](x.permute(0, 2, 3, 1))))
        return x + self.mlp["fc2"](inner).permute(0, 3, 1, 2)

    def _attend_in_windows(self, x: Tensor) -> Tensor:
        count, channels, height, width = x.shape
        side = self.window
        down, across = -height % side, -width % side  # whole windows: zeros below and to the right
        cells = functional.pad(x, (0, across, 0, down)).permute(0, 2, 3, 1)
        rows, columns = (height + down) // side, (width + across) // side
        cells = cells.reshape(count, rows, side, columns, side, channels).transpose(2, 3)
        attended = self.attn(cells.reshape(-1, side * side, channels))
        attended = attended.view(count, rows, columns, side, side, channels).transpose(2, 3)
        return attended.reshape(count, rows * side, columns * side, channels)[:, :height, :width].permute(0, 3, 1, 2)


class TinyVitStage(nn.Module):
    """Blocks of one resolution, and the downsampling behind them."""

    def __init__(self, blocks: list[nn.Module], downsample: nn.Module) -> None:
        super().__init__()
        self.blocks, self.downsample = nn.Sequential(*blocks), downsample

    def forward(self, x: Tensor) -> Tensor:
        return self.downsample(self.blocks(x))


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of a (B, C, H, W) map."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        normed = functional.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias, eps=1e-6)
        return normed.permute(0, 3, 1, 2)


class TinyViT(nn.Module):
    """(B, 3, H, W) of normalised pictures to (B, 256, H / 16, W / 16)."""

    def __init__(
        self,
        channels: tuple[int, ...] = CHANNELS,
        depths: tuple[int, ...] = DEPTHS,
        heads: tuple[int, ...] = HEADS,
        out: int = OUT,
    ) -> None:
        super().__init__()
        half = channels[0] // 2
        stem = nn.Sequential(ConvNorm(3, half, 3, 2), nn.GELU(), ConvNorm(half, channels[0], 3, 2))
        self.patch_embed = nn.ModuleDict({"seq": stem})  # on a grid of a quarter of the picture's size
        stages: list[nn.Module] = []
        for k, (width, depth) in enumerate(zip(channels, depths, strict=True)):
            blocks: list[nn.Module] = [
                TinyVitBlock(width, heads[k], WINDOWS[k]) if k else MBConv(width, 4 * width, width, adds=True)
                for _ in range(depth)
            ]
            # more channels on half the grid; the last stage keeps that of the third: masks need one in 16 pixels
            after = channels[k + 1 : k + 2]
            leads_on = MBConv(width, after[0], after[0], 2 if k < 2 else 1) if after else nn.Identity()
            stages.append(TinyVitStage(blocks, leads_on))
        self.layers = nn.Sequential(*stages)
        self.neck = nn.Sequential(
            nn.Conv2d(channels[-1], out, 1, bias=False),
            ChannelNorm(out),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            ChannelNorm(out),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.neck(self.layers(self.patch_embed["seq"](x)))

    def fold_batch_norms(self) -> None:
        """Fold all batch norms into their convolutions."""
        for part in list(self.modules()):
            if isinstance(part, ConvNorm):
                part.fold_batch_norm()
