"""TransNetV2 (Soucek & Lokoc 2020): shot boundary detection.

Frames have 48 x 27 pixels. Three stages of dilated 3D convolutions (dilations 1, 2, 4 and 8 in time); beside them the
similarities of each frame to the 50 before and after, by these features and by colour histograms.

Layers are named as in the published state dict, which is loaded strictly. As published, windows of 100 frames are
looked at, 50 apart, of which the middle 50 count; the first and the last frame of a clip are repeated at its ends.
Runs in float32.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks import openvino, runtime
from revisit.networks.loading import load_strictly

ID = "transnetv2"
HEIGHT, WIDTH = 27, 48
WINDOW, STEP = 100, 50
MARGIN = (WINDOW - STEP) // 2
DILATIONS = (1, 2, 4, 8)
FILTERS = (16, 32, 64)
REACH = 50  # frames before and after with which a frame is compared
BINS = 8  # of each colour channel


class Dilated(nn.Module):
    """Dilated DCNN cell as published: four factorised 3D convolutions of different dilation; see `Joined`."""

    def __init__(self, inside: int, filters: int) -> None:
        super().__init__()
        for dilation in DILATIONS:
            over_picture = nn.Conv3d(inside, 2 * filters, (1, 3, 3), bias=False)
            over_time = nn.Conv3d(2 * filters, filters, (3, 1, 1), bias=False)
            both = nn.ModuleDict({"layers": nn.ModuleList([over_picture, over_time])})
            self.add_module(f"Conv3D_{dilation}", both)
        self.bn = nn.BatchNorm3d(4 * filters, eps=1e-3)


class Joined(nn.Module):
    """The same cell with batch norm folded in, as two 2D convolutions and sums of frames shifted in time.

    It takes a third of the time of 3D convolutions.
    """

    def __init__(self, dilated: Dilated) -> None:
        super().__init__()
        pairs = [dilated.get_submodule(f"Conv3D_{dilation}.layers") for dilation in DILATIONS]
        over_picture = torch.cat([pair.get_parameter("0.weight")[:, :, 0] for pair in pairs])
        scale = dilated.bn.weight / (dilated.bn.running_var + dilated.bn.eps).sqrt()
        shift = dilated.bn.bias - dilated.bn.running_mean * scale
        weights, biases = [], []
        for pair, by, plus in zip(pairs, scale.chunk(4), shift.chunk(4), strict=True):
            over_time = pair.get_parameter("1.weight")[..., 0, 0] * by[:, None, None]
            # one row of outputs for the frame before, the frame itself and the frame after
            weights.append(over_time.permute(2, 0, 1).flatten(0, 1))
            biases.append(torch.cat([torch.zeros_like(plus), plus, torch.zeros_like(plus)]))
        self.over_picture = nn.Parameter(over_picture.detach())
        self.over_time = nn.Parameter(torch.cat(weights)[..., None, None].detach())
        self.bias = nn.Parameter(torch.cat(biases).detach())

    def forward(self, x: Tensor) -> Tensor:
        """Of (T, C, H, W)."""
        x = functional.conv2d(x, self.over_picture, padding=1)
        x = functional.conv2d(x, self.over_time, self.bias, groups=len(DILATIONS))
        parts = []
        for part, dilation in zip(x.chunk(len(DILATIONS), dim=1), DILATIONS, strict=True):
            before, now, after = part.chunk(3, dim=1)
            nothing = torch.zeros_like(now[:dilation])
            parts.append(now + torch.cat([nothing, before[:-dilation]]) + torch.cat([after[dilation:], nothing]))
        return torch.cat(parts, dim=1)


class DilatedStage(nn.Module):
    """Stacked dilated DCNN: two cells with a skip connection, then average pooling."""

    def __init__(self, inside: int, filters: int) -> None:
        super().__init__()
        self.DDCNN = nn.ModuleList([Dilated(inside, filters), Dilated(4 * filters, filters)])

    def forward(self, x: Tensor) -> Tensor:
        first = self.DDCNN[0](x).relu()
        return functional.avg_pool2d(self.DDCNN[1](first).relu() + first, 2)


class SimilarityWindow(nn.Module):
    """Linear layer on the cosine similarities of a frame to its neighbours in time, given (B, T, C) unit vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2 * REACH + 1, 128)

    def forward(self, vectors: Tensor) -> Tensor:
        likeness = functional.pad(vectors @ vectors.transpose(1, 2), (REACH, REACH))
        count = vectors.shape[1]
        near = torch.stack([likeness[:, k, k : k + 2 * REACH + 1] for k in range(count)], dim=1)
        return self.fc(near).relu()


class FeatureSimilarity(SimilarityWindow):
    """The same on projected, pooled feature maps of all stages, (T, C, H, W) each."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(4 * sum(FILTERS), 128)

    def forward(self, *stages: Tensor) -> Tensor:
        means = torch.cat([maps.mean(dim=(2, 3)) for maps in stages], dim=1)[None]
        return super().forward(functional.normalize(self.projection(means), dim=2))


class TransNetV2(nn.Module):
    """Two logits (1, T) of frames (1, T, 27, 48, 3) from 0 to 255: a shot ends here, and it is being left here."""

    def __init__(self) -> None:
        super().__init__()
        insides = (3, *(4 * filters for filters in FILTERS))
        self.SDDCNN = nn.ModuleList(
            DilatedStage(inside, filters) for inside, filters in zip(insides, FILTERS, strict=False)
        )
        self.frame_sim_layer, self.color_hist_layer = FeatureSimilarity(), SimilarityWindow()
        cells = (HEIGHT // 8) * (WIDTH // 8)
        self.fc1 = nn.Linear(128 + 128 + 4 * FILTERS[-1] * cells, 1024)
        self.cls_layer1, self.cls_layer2 = nn.Linear(1024, 1), nn.Linear(1024, 1)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        maps = openvino.run(self.stage_maps, frames)
        flat = maps[-1].permute(0, 2, 3, 1).flatten(1)[None]
        features = [self.color_hist_layer(unit_colour_histograms(frames)), self.frame_sim_layer(*maps), flat]
        x = self.fc1(torch.cat(features, dim=2)).relu()
        return self.cls_layer1(x)[..., 0], self.cls_layer2(x)[..., 0]

    def stage_maps(self, frames: Tensor) -> tuple[Tensor, ...]:
        """(T, C, H, W) of each stage."""
        maps, x = [], frames[0].permute(0, 3, 1, 2).float() / 255
        for stage in self.SDDCNN:
            x = stage(x)
            maps.append(x)
        return tuple(maps)


def unit_colour_histograms(frames: Tensor) -> Tensor:
    """(B, T, 512) counts of colours in 8 x 8 x 8 bins, as unit vectors."""
    level = frames.long() // (256 // BINS)
    place = (level[..., 0] * BINS + level[..., 1]) * BINS + level[..., 2]
    place = place.flatten(2)
    counts = place.new_zeros(*frames.shape[:2], BINS**3).scatter_add_(2, place, torch.ones_like(place))
    return functional.normalize(counts.float(), dim=2)


def shot_end_and_transition_probabilities(network: TransNetV2, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) each: a shot ends at this frame, and a transition is under way, of (N, 27, 48, 3) uint8 frames."""
    count = len(frames)
    after = MARGIN + -count % STEP
    padded = np.concatenate([frames[:1].repeat(MARGIN, axis=0), frames, frames[-1:].repeat(after, axis=0)])
    parts: list[np.ndarray] = []
    with runtime.inference():
        for start in range(0, len(padded) - WINDOW + 1, STEP):
            window = torch.from_numpy(padded[start : start + WINDOW]).to(runtime.device())
            logits = torch.stack(network(window[None]))[:, 0, MARGIN : MARGIN + STEP]
            parts.append(runtime.to_numpy(logits.sigmoid()))
    ends, during = np.concatenate(parts, axis=1)[:, :count]
    return ends, during


def build(path: Path) -> TransNetV2:
    """The network with the weights of this file."""
    net = load_strictly(TransNetV2(), path)
    for stage in net.SDDCNN:
        stage.DDCNN = nn.ModuleList(Joined(dilated) for dilated in stage.DDCNN)
    return net
