"""XFeat (Potje et al., CVPR 2024): keypoints with 64-number descriptors, and their mutual nearest neighbours.

A picture is turned to grey and normalised by its own mean and deviation. One convolutional branch makes a descriptor
and a reliability for each cell of 8 x 8 pixels; a second one tells for each cell which of its 64 pixels is a keypoint,
or that none is. Descriptors are read at keypoints by bicubic interpolation. Layers are named as in the published state
dict, which is loaded strictly. Runs in float32.

Sides are rounded down to multiples of 32 (bilinear, without antialias), and positions are scaled back. Positions are
mapped to the maps as the published code does it, whose grid is wider than theirs by half a cell at each border;
keypoints that fall outside of them there (the last row and column) have a score of 0 and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from revisit.core import InvalidEvidence
from revisit.networks import openvino, runtime
from revisit.networks.loading import load_strictly
from revisit.networks.preprocessing import unit_vectors

ID = "xfeat"
CELL = 8  # pixels to a side of a cell of the coarse maps
MULTIPLE = 32  # of pixels: sides that all levels of the network divide
WIDTH = 64  # numbers in a descriptor
MOST = 4096  # keypoints of a picture
LEAST_PROBABILITY = 0.05  # of a keypoint
NEIGHBOURHOOD = 5  # pixels to a side of the window in which only the most probable keypoint stays
LEAST_COSINE = 0.82  # of descriptors that match, as published


@dataclass(frozen=True)
class LocalFeatures:
    """Keypoints of one picture, the best first."""

    xy: np.ndarray  # (N, 2) columns and rows in pixels of the picture, float32
    descriptors: np.ndarray  # (N, 64) of length 1, float32
    scores: np.ndarray  # (N,) probability of the keypoint times the reliability of its descriptor, 0-1

    def __len__(self) -> int:
        return len(self.xy)


class ConvBlock(nn.Module):
    """Convolution without bias, batch norm without scale and shift, ReLU."""

    def __init__(self, inside: int, outside: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__()
        convolution = nn.Conv2d(inside, outside, kernel, stride, padding=kernel // 2, bias=False)
        self.layer = nn.Sequential(convolution, nn.BatchNorm2d(outside, affine=False), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class XFeat(nn.Module):
    """The network; `maps` are its outputs for grey pictures whose sides are multiples of 32."""

    def __init__(self) -> None:
        super().__init__()
        self.skip1 = nn.Sequential(nn.AvgPool2d(4), nn.Conv2d(1, 24, 1))
        self.block1 = nn.Sequential(
            ConvBlock(1, 4), ConvBlock(4, 8, stride=2), ConvBlock(8, 8), ConvBlock(8, 24, stride=2)
        )
        self.block2 = nn.Sequential(ConvBlock(24, 24), ConvBlock(24, 24))
        self.block3 = nn.Sequential(ConvBlock(24, 64, stride=2), ConvBlock(64, 64), ConvBlock(64, 64, 1))
        self.block4 = nn.Sequential(ConvBlock(64, 64, stride=2), ConvBlock(64, 64), ConvBlock(64, 64))
        self.block5 = nn.Sequential(
            ConvBlock(64, 128, stride=2), ConvBlock(128, 128), ConvBlock(128, 128), ConvBlock(128, 64, 1)
        )
        self.block_fusion = nn.Sequential(ConvBlock(64, 64), ConvBlock(64, 64), nn.Conv2d(64, WIDTH, 1))
        self.heatmap_head = nn.Sequential(ConvBlock(64, 64, 1), ConvBlock(64, 64, 1), nn.Conv2d(64, 1, 1))
        self.keypoint_head = nn.Sequential(
            ConvBlock(64, 64, 1), ConvBlock(64, 64, 1), ConvBlock(64, 64, 1), nn.Conv2d(64, CELL**2 + 1, 1)
        )
        # Refines matches of cells (the semi-dense mode), which nothing here uses; it is part of the published file.
        layers: list[nn.Module] = []
        for inside in (2 * WIDTH, 512, 512, 512):
            layers += [nn.Linear(inside, 512), nn.BatchNorm1d(512, affine=False), nn.ReLU()]
        self.fine_matcher = nn.Sequential(*layers, nn.Linear(512, CELL**2))

    def maps(self, gray: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Descriptors, keypoint logits and reliability of pictures (B, 1, H, W).

        Descriptors are (B, 64, H / 8, W / 8), not yet of length 1; logits are (B, 65, H / 8, W / 8), the last of each
        cell for "no keypoint"; reliability is (B, 1, H / 8, W / 8), from 0 to 1.
        """
        x = functional.instance_norm(gray, eps=1e-5)
        fine = self.block3(self.block2(self.block1(x) + self.skip1(x)))
        middle = self.block4(fine)
        coarse = self.block5(middle)
        size = fine.shape[-2:]
        pyramid = fine
        for level in (middle, coarse):
            pyramid = pyramid + functional.interpolate(level, size=size, mode="bilinear", align_corners=False)
        descriptors = self.block_fusion(pyramid)
        logits = self.keypoint_head(functional.pixel_unshuffle(x, CELL))
        return descriptors, logits, self.heatmap_head(descriptors).sigmoid()

    def forward(self, gray: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.maps(gray)


def build(path: Path) -> XFeat:
    """The network with the weights of this file."""
    return load_strictly(XFeat(), path)


def build_with_folded_norms(path: Path) -> XFeat:
    """The network with batch norm folded into its convolutions."""
    net = build(path).eval()
    for part in net.modules():
        if isinstance(part, ConvBlock):
            convolution, norm, relu = part.layer
            part.layer = nn.Sequential(fuse_conv_bn_eval(convolution, norm), relu)
    return net


def local_features(
    pictures: Tensor, *, most: int = MOST, least_probability: float = LEAST_PROBABILITY
) -> list[LocalFeatures]:
    """Keypoints and descriptors of each picture.

    Parameters
    ----------
    pictures
        (B, 3, H, W) RGB levels from 0 to 255; no side below 32 pixels.
    most
        Keypoints of a picture at most, the best ones by score.
    least_probability
        Of a keypoint; pixels with less are none.

    Returns
    -------
    list of LocalFeatures
        One for each picture, positions in its pixels.
    """
    height, width = pictures.shape[-2:]
    if min(height, width) < MULTIPLE:
        raise InvalidEvidence(f"XFeat needs pictures of at least 32 x 32 pixels, and these have {width} x {height}")
    size = height // MULTIPLE * MULTIPLE, width // MULTIPLE * MULTIPLE
    levels = functional.interpolate(pictures.float(), size=size, mode="bilinear", align_corners=False)
    gray = levels.mean(dim=1, keepdim=True) / 255
    net = runtime.network(ID, build_with_folded_norms)
    if runtime.uses_openvino():  # one at a time, because their number changes from call to call
        rows = [openvino.run(net.maps, one) for one in gray.split(1)]
        descriptors, logits, reliability = (torch.cat(one) for one in zip(*rows, strict=True))
    else:
        descriptors, logits, reliability = net.maps(gray)
    scale = np.array([width / size[1], height / size[0]], np.float32)
    probability = functional.pixel_shuffle(logits.softmax(dim=1)[:, : CELL**2], CELL)
    peaks = functional.max_pool2d(probability, NEIGHBOURHOOD, stride=1, padding=NEIGHBOURHOOD // 2)
    is_keypoint = (probability == peaks) & (probability > least_probability)
    descriptors = functional.normalize(descriptors, dim=1)
    features = []
    for picture in range(len(pictures)):
        y, x = is_keypoint[picture, 0].nonzero(as_tuple=True)
        grid = torch.stack([2 * x / (size[1] - 1) - 1, 2 * y / (size[0] - 1) - 1], dim=-1)[None, None]
        scores = _sample_at_places(probability[picture], grid, "nearest")[:, 0]
        scores = scores * _sample_at_places(reliability[picture], grid, "bilinear")[:, 0]
        best = scores.argsort(descending=True, stable=True)[: min(most, int((scores > 0).sum()))]
        vectors = unit_vectors(_sample_at_places(descriptors[picture], grid[:, :, best], "bicubic"))
        xy = torch.stack([x[best], y[best]], dim=-1)
        features.append(
            LocalFeatures(runtime.to_numpy(xy) * scale, runtime.to_numpy(vectors), runtime.to_numpy(scores[best]))
        )
    return features


def _sample_at_places(values: Tensor, grid: Tensor, method: str) -> Tensor:
    """(N, C) of a map (C, h, w) at (1, 1, N, 2) places from -1 to 1."""
    return functional.grid_sample(values[None], grid, mode=method, align_corners=False)[0, :, 0].T


def match(a: LocalFeatures, b: LocalFeatures, *, least_cosine: float = LEAST_COSINE) -> np.ndarray:
    """Mutual nearest neighbours of two pictures' descriptors.

    Parameters
    ----------
    a, b
        Features of the two pictures.
    least_cosine
        Of two descriptors that match.

    Returns
    -------
    ndarray
        (M, 2) rows of `a` and of `b`, in the order of `a`.
    """
    if not len(a) or not len(b):
        return np.zeros((0, 2), np.int64)
    cosine = a.descriptors @ b.descriptors.T
    nearest = cosine.argmax(axis=1)
    rows = np.arange(len(a))
    keep = (cosine.argmax(axis=0)[nearest] == rows) & (cosine[rows, nearest] > least_cosine)
    return np.stack([rows[keep], nearest[keep]], axis=1)
