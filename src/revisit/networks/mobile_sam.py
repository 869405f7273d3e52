"""MobileSAM: masks of things in pictures, from a box or points (Zhang et al., arXiv:2306.14289; Apache-2.0).

A picture is brought to a longer side of 1024 pixels (PIL's bilinear), normalised as ImageNet is, and padded with zeros
below or to the right to a square. `embed` costs nearly all the time and is done once per picture; `masks` then answers
any number of prompts. All prompts are fractions of the picture. Runs in float32: it is small, and the tracker compares
embeddings. The padding is computed, too: without it, masks of unclear prompts differ (measured overlaps down to 0.7).

The encoder is TinyViT-5M (Wu et al., arXiv:2207.10666): four stages at 1/4, 1/8, 1/16 and 1/16 resolution, the first of
MBConv blocks, the others of window attention blocks with a depthwise convolution and an MLP. There are no absolute
positions, so a picture of any size with sides that 16 divides will do. Prompt encoder and mask decoder are those of
Segment Anything (Kirillov et al., arXiv:2304.02643): points and boxes are positions in the square of `SIDE` pixels
that the encoder sees. A prompt yields four masks: the first for prompts that leave no doubt (a box), the other three,
a part, a thing and a group of things, for those that do (a point). Each comes with the overlap (IoU) with the truth
that the network expects of it. Names of the layers are those of the published checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.networks import runtime
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.preprocessing import normalise_by_channel, resize_levels

ID = "mobile-sam"
UNUSED = ("image_encoder.head.", "image_encoder.norm_head.")  # the classifier of ImageNet that it was first trained as
PROMPTS = 16  # answered at a time
Box = tuple[float, float, float, float]
Point = tuple[float, float]
Which = Literal["one", "three", "all"]
CHANNELS, DEPTHS, HEADS = (64, 128, 160, 320), (2, 2, 6, 2), (2, 4, 5, 10)
WINDOWS = (7, 7, 14, 7)
STRIDE = 16  # pixels of the picture to one cell of the embedding
SIDE = 1024
WIDTH = 256  # channels of the embedding and of the tokens
BACKGROUND, FOREGROUND, FIRST_CORNER, SECOND_CORNER, NOTHING = 0, 1, 2, 3, -1  # what a position of a prompt is


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


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of a (B, C, H, W) map."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class TinyViT(nn.Module):
    """(B, 3, H, W) of normalised pictures to (B, 256, H / 16, W / 16)."""

    def __init__(
        self,
        channels: tuple[int, ...] = CHANNELS,
        depths: tuple[int, ...] = DEPTHS,
        heads: tuple[int, ...] = HEADS,
        out: int = WIDTH,
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


class RandomFourierFeatures(nn.Module):
    """Position encoding by random Fourier features."""

    positional_encoding_gaussian_matrix: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("positional_encoding_gaussian_matrix", torch.zeros(2, width // 2))

    def forward(self, place: Tensor) -> Tensor:
        """(..., 2) x and y from 0 to 1, to (..., width)."""
        with torch.autocast(place.device.type, enabled=False):  # half precision would blur positions
            phase = 2 * math.pi * ((2 * place.float() - 1) @ self.positional_encoding_gaussian_matrix.float())
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class PromptEncoder(nn.Module):
    """Prompts to tokens, and the dense position encoding of an embedding."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.pe_layer = RandomFourierFeatures(width)
        self.point_embeddings = nn.ModuleList(nn.Embedding(1, width) for _ in range(4))
        self.not_a_point_embed = nn.Embedding(1, width)
        self.no_mask_embed = nn.Embedding(1, width)
        self.mask_downscaling = nn.Sequential(
            nn.Conv2d(1, 4, 2, 2), ChannelNorm(4), nn.GELU(),
            nn.Conv2d(4, 16, 2, 2), ChannelNorm(16), nn.GELU(), nn.Conv2d(16, width, 1),
        )  # fmt: skip

    def forward(self, places: Tensor, labels: Tensor, side: int = SIDE) -> Tensor:
        """(P, N, 2) positions in pixels and what each is (P, N), to (P, N, width)."""
        embeddings = torch.cat([self.not_a_point_embed.weight, *(part.weight for part in self.point_embeddings)])
        waves = self.pe_layer((places.float() + 0.5) / side)
        return torch.where((labels == NOTHING)[..., None], 0.0, waves) + embeddings[labels + 1]

    def dense_position_encoding(self, rows: int, columns: int, cells: int) -> Tensor:
        """(1, width, rows, columns) positions of the upper left part of a square of `cells` x `cells`."""
        device = self.no_mask_embed.weight.device
        y, x = ((torch.arange(n, device=device) + 0.5) / cells for n in (rows, columns))
        place = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
        return self.pe_layer(place).permute(2, 0, 1)[None]


class SamAttention(nn.Module):
    """Multi-head attention whose projections have `shrink` times fewer channels."""

    def __init__(self, width: int, heads: int, shrink: int = 1) -> None:
        super().__init__()
        self.heads = heads
        inner = width // shrink
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, inner) for _ in range(3))
        self.out_proj = nn.Linear(inner, width)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        parts = (self.q_proj(q), self.k_proj(k), self.v_proj(v))
        split = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        attended = functional.scaled_dot_product_attention(split[0], split[1], split[2])
        return self.out_proj(attended.transpose(1, 2).flatten(2))


class TwoWayBlock(nn.Module):
    """Two-way transformer block: self-attention, cross-attention to the picture, MLP, cross-attention back."""

    def __init__(self, width: int, heads: int, hidden: int, first: bool) -> None:
        super().__init__()
        self.first = first
        self.self_attn = SamAttention(width, heads)
        self.cross_attn_token_to_image = SamAttention(width, heads, 2)
        self.mlp = nn.ModuleDict({"lin1": nn.Linear(width, hidden), "lin2": nn.Linear(hidden, width)})
        self.cross_attn_image_to_token = SamAttention(width, heads, 2)
        self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens: Tensor, picture: Tensor, prompt: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        if self.first:  # the tokens are the prompt itself
            tokens = self.self_attn(tokens, tokens, tokens)
        else:
            placed = tokens + prompt
            tokens = tokens + self.self_attn(placed, placed, tokens)
        tokens = self.norm1(tokens)
        tokens = self.norm2(tokens + self.cross_attn_token_to_image(tokens + prompt, picture + place, picture))
        tokens = self.norm3(tokens + self.mlp["lin2"](functional.relu(self.mlp["lin1"](tokens))))
        picture = self.norm4(picture + self.cross_attn_image_to_token(picture + place, tokens + prompt, tokens))
        return tokens, picture


class TwoWayTransformer(nn.Module):
    """Two-way blocks, and a final cross-attention of the tokens to the picture."""

    def __init__(self, width: int, heads: int, hidden: int, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TwoWayBlock(width, heads, hidden, k == 0) for k in range(depth))
        self.final_attn_token_to_image = SamAttention(width, heads, 2)
        self.norm_final_attn = nn.LayerNorm(width)

    def forward(self, prompt: Tensor, picture: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        tokens = prompt
        for layer in self.layers:
            tokens, picture = layer(tokens, picture, prompt, place)
        last = self.final_attn_token_to_image(tokens + prompt, picture + place, picture)
        return self.norm_final_attn(tokens + last), picture


class Mlp(nn.Module):
    """MLP of three layers with ReLU."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, out)])

    def forward(self, x: Tensor) -> Tensor:
        first, second, third = self.layers
        return third(functional.relu(second(functional.relu(first(x)))))


class MaskDecoder(nn.Module):
    """Mask decoder: prompt tokens and an image embedding to four masks and their predicted IoUs."""

    def __init__(self, width: int = WIDTH, heads: int = 8, hidden: int = 2048) -> None:
        super().__init__()
        self.transformer = TwoWayTransformer(width, heads, hidden)
        self.iou_token = nn.Embedding(1, width)
        self.mask_tokens = nn.Embedding(4, width)
        self.output_upscaling = nn.Sequential(
            nn.ConvTranspose2d(width, width // 4, 2, 2), ChannelNorm(width // 4), nn.GELU(),
            nn.ConvTranspose2d(width // 4, width // 8, 2, 2), nn.GELU(),
        )  # fmt: skip
        self.output_hypernetworks_mlps = nn.ModuleList(Mlp(width, width // 8) for _ in range(4))
        self.iou_prediction_head = Mlp(width, 4)

    def forward(self, embedding: Tensor, place: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor]:
        """(P, width, h, w), (1, width, h, w) and (P, N, width), to logits (P, 4, 4h, 4w) and IoUs (P, 4)."""
        own = torch.cat([self.iou_token.weight, self.mask_tokens.weight])
        tokens = torch.cat([own.expand(len(prompt), -1, -1), prompt], dim=1)
        rows, columns = embedding.shape[-2:]
        picture = embedding.flatten(2).transpose(1, 2)
        tokens, picture = self.transformer(tokens, picture, place.flatten(2).transpose(1, 2))
        fine = self.output_upscaling(picture.transpose(1, 2).unflatten(2, (rows, columns)))
        weights = [net(tokens[:, 1 + k]) for k, net in enumerate(self.output_hypernetworks_mlps)]
        masks = torch.einsum("pkc,pchw->pkhw", torch.stack(weights, 1), fine)
        return masks, self.iou_prediction_head(tokens[:, 0])


@dataclass(frozen=True)
class PictureEmbedding:
    """One picture as the decoder wants it."""

    features: Tensor  # (256, 64, 64), the padding included
    size: tuple[int, int]  # height and width of the picture that went in
    scaled: tuple[int, int]  # and of the one that the encoder saw, without padding

    @property
    def features_without_padding(self) -> Tensor:
        """(256, rows, columns) of the picture alone."""
        rows, columns = (max(1, round(side / STRIDE)) for side in self.scaled)
        return self.features[:, :rows, :columns]


@dataclass(frozen=True)
class Masks:
    """Answers to prompts: logits at a quarter of the encoder's pixels, padding included, and expected overlaps."""

    logits: Tensor  # (P, K, h, w); above 0 is the thing
    iou: Tensor  # (P, K)
    picture: PictureEmbedding

    def binary_masks_at(self, size: tuple[int, int] | None = None) -> np.ndarray:
        """(P, K, height, width) bool, at the size of the picture or another one."""
        height, width = self.picture.scaled
        interpolate = partial(functional.interpolate, mode="bilinear", align_corners=False)
        fine = interpolate(self.logits.float(), scale_factor=4)[..., :height, :width]
        return np.asarray((interpolate(fine, size or self.picture.size) > 0).cpu().numpy())

    def coarse_binary_masks(self) -> np.ndarray:
        """(P, K, height, width) bool at about a quarter of the encoder's pixels: enough to choose by."""
        height, width = (max(1, round(side / 4)) for side in self.picture.scaled)
        return np.asarray((self.logits[..., :height, :width] > 0).cpu().numpy())

    def select_one_per_prompt(self, which: Sequence[int]) -> Masks:
        """One mask of each prompt."""
        rows, columns = torch.arange(len(which)), torch.tensor(which)
        return Masks(self.logits[rows, columns, None], self.iou[rows, columns, None], self.picture)

    def stability_scores(self, offset: float = 1.0) -> Tensor:
        """(P, K) overlap of the masks cut `offset` above and below the usual logit: 1 for a sharp edge."""
        inner, outer = ((self.logits > cut).sum((-2, -1)) for cut in (offset, -offset))
        return inner / outer.clamp(min=1)


class MobileSam(nn.Module):
    """The whole network."""

    def __init__(
        self,
        encoder: TinyViT | None = None,
        prompts: PromptEncoder | None = None,
        decoder: MaskDecoder | None = None,
        side: int = SIDE,
    ) -> None:
        super().__init__()
        self.side = side
        self.image_encoder = encoder or TinyViT()
        self.prompt_encoder = prompts or PromptEncoder()
        self.mask_decoder = decoder or MaskDecoder()

    def embed(self, pictures: Tensor) -> list[PictureEmbedding]:
        """Embeddings of pictures of one size, (B, 3, H, W) with levels 0 to 255."""
        size = (int(pictures.shape[-2]), int(pictures.shape[-1]))
        scale = self.side / max(size)
        scaled = (max(1, int(size[0] * scale + 0.5)), max(1, int(size[1] * scale + 0.5)))
        levels = normalise_by_channel(resize_levels(pictures, scaled, "bilinear"))
        padded = functional.pad(levels, (0, self.side - scaled[1], 0, self.side - scaled[0]))
        return [PictureEmbedding(row, size, scaled) for row in self.image_encoder(padded).float()]

    def predict_masks(
        self,
        picture_embedding: PictureEmbedding,
        boxes: Sequence[Box] = (),
        points: Sequence[Sequence[Point]] = (),
        *,
        which: Which = "one",
    ) -> Masks:
        """Masks for each prompt: a box, or one or more points on the thing, or a box with points in it.

        With boxes and points, there are as many of one as of the other. `which` of the network's four masks: the one
        for clear prompts, the three (a part, a thing, a group) for points in doubt, or all.
        """
        count = max(len(boxes), len(points))
        corners = [[box[:2], box[2:]] for box in boxes] or [[]] * count
        places = [[*corners[k], *(points[k] if points else ())] for k in range(count)]
        kinds = [FIRST_CORNER, SECOND_CORNER] * bool(boxes) + [FOREGROUND] * (len(points[0]) if points else 0)
        if not boxes:  # the network was trained to expect two positions at least
            places, kinds = [[*place, (0.0, 0.0)] for place in places], [*kinds, NOTHING]
        device = picture_embedding.features.device
        where = torch.tensor(places, dtype=torch.float32, device=device).reshape(count, len(kinds), 2)
        where = where * torch.tensor(picture_embedding.scaled[::-1], dtype=torch.float32, device=device)
        labels = torch.tensor(kinds, device=device).expand(count, -1)
        tokens = self.prompt_encoder(where, labels, self.side)
        rows, columns = picture_embedding.features.shape[-2:]
        place = self.prompt_encoder.dense_position_encoding(rows, columns, self.side // STRIDE)
        picture = (picture_embedding.features + self.prompt_encoder.no_mask_embed.weight[0][:, None, None])[None]
        prompts = tokens.split(PROMPTS)
        parts = [self.mask_decoder(picture.expand(len(some), -1, -1, -1), place, some) for some in prompts]
        logits, iou = (torch.cat(part) for part in zip(*parts, strict=True))
        keep = {"one": slice(0, 1), "three": slice(1, 4), "all": slice(0, 4)}[which]
        return Masks(logits[:, keep], iou[:, keep], picture_embedding)


def load(path: Path) -> MobileSam:
    """The network with the published weights."""
    published = {name: value for name, value in weights.tensors(path).items() if not name.startswith(UNUSED)}
    net = load_tensors_strictly(MobileSam(), published, path)
    net.image_encoder.fold_batch_norms()
    return net


def network() -> MobileSam:
    """The network on the device."""
    return runtime.network(ID, load)
