"""MobileSAM: masks of things in pictures, from a box or points (Zhang et al., arXiv:2306.14289; Apache-2.0).

A picture is brought to a longer side of 1024 pixels (PIL's bilinear), normalised as ImageNet is, and padded with zeros
below or to the right to a square. `embed` costs nearly all the time and is done once per picture; `masks` then answers
any number of prompts. All prompts are fractions of the picture. Runs in float32: it is small, and the tracker compares
embeddings. The padding is computed, too: without it, masks of unclear prompts differ (measured overlaps down to 0.7).
"""

from __future__ import annotations

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
from revisit.networks.sam import FIRST_CORNER, FOREGROUND, NOTHING, SECOND_CORNER, SIDE, MaskDecoder, PromptEncoder
from revisit.networks.tiny_vit import STRIDE, TinyViT

ID = "mobile-sam"
UNUSED = ("image_encoder.head.", "image_encoder.norm_head.")  # the classifier of ImageNet that it was first trained as
PROMPTS = 16  # answered at a time
Box = tuple[float, float, float, float]
Point = tuple[float, float]
Which = Literal["one", "three", "all"]


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
