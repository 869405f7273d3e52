"""LAION's aesthetic predictors: a linear head on the unit CLIP ViT-L/14 embedding of a picture, about 0 to 10.

    sac+logos+ava1-l14-linearMSE.pth   five linear layers without activations (MemoBench)
    sa_0_4_vit_l_14_linear.pth         one linear layer (MIND)

The embedding is OpenAI's, whose ViT-L/14 has QuickGELU. Runs in float32; the embedding may come from half precision.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.preprocessing import (
    CLIP_MEAN,
    CLIP_STD,
    centre_crop,
    normalise_by_channel,
    size_with_short_side,
    unit_vectors,
)

WIDTHS = (1024, 128, 64, 16, 1)
PLACES = (0, 2, 4, 6, 7)  # of the linear layers in the checkpoint; dropouts lie between
LINEAR = {"weight", "bias"}


class ScoreHead(nn.Module):
    """Five linear layers without activations between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = zip((width, *WIDTHS), WIDTHS, strict=False)
        layers = {str(place): nn.Linear(*size) for place, size in zip(PLACES, sizes, strict=True)}
        self.layers = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def load_aesthetic_head(path: Path, width: int = 768) -> nn.Module:
    """The predictor of a checkpoint, whichever of the two it is, for embeddings of this width."""
    tensors = weights.tensors(path)
    net: nn.Module = nn.Linear(width, 1) if tensors.keys() == LINEAR else ScoreHead(width)
    return load_tensors_strictly(net, tensors, path)


def aesthetic_scores(net: nn.Module, embedding: Tensor) -> Tensor:
    """(B,) for embeddings (B, width) of any length."""
    return net(unit_vectors(embedding))[:, 0]


def preprocess_for_clip_without_antialias(levels: Tensor, side: int) -> Tensor:
    """Pictures for CLIP as MIND makes them: the shorter side bicubic without antialiasing, the middle square."""
    size = size_with_short_side(tuple(levels.shape[-2:]), side)
    smaller = functional.interpolate(levels, size, mode="bicubic", align_corners=False)
    return normalise_by_channel(centre_crop(smaller, (side, side), odd="even"), CLIP_MEAN, CLIP_STD)
