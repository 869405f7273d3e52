"""TransNetV2 (Soucek & Lokoc 2020): the probability that one shot of a video ends at a frame.

Frames are looked at in 48 x 27 pixels. Three stages of convolutions look 1, 2, 4 and 8 frames ahead and back; beside
them stand how alike each frame is to the 50 before and after, by these features and by colour histograms.

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

from revisit.networks import runtime
from revisit.networks.loading import load_strictly

ID = "transnetv2"
HEIGHT, WIDTH = 27, 48
WINDOW, STEP = 100, 50
MARGIN = (WINDOW - STEP) // 2
DILATIONS = (1, 2, 4, 8)
FILTERS = (16, 32, 64)
REACH = 50  # frames before and after with which a frame is compared
BINS = 8  # of each colour channel


class Separable(nn.Module):
    """A convolution over the picture, then one over time."""

    def __init__(self, inside: int, outside: int, dilation: int) -> None:
        super().__init__()
        over_picture = nn.Conv3d(inside, 2 * outside, (1, 3, 3), padding=(0, 1, 1), bias=False)
        over_time = nn.Conv3d(
            2 * outside, outside, (3, 1, 1), padding=(dilation, 0, 0), dilation=(dilation, 1, 1), bias=False
        )
        self.layers = nn.ModuleList([over_picture, over_time])


class Dilated(nn.Module):
    """Four convolutions with different reach in time, beside each other."""

    def __init__(self, inside: int, filters: int) -> None:
        super().__init__()
        for dilation in DILATIONS:
            self.add_module(f"Conv3D_{dilation}", Separable(inside, filters, dilation))
        self.bn = nn.BatchNorm3d(4 * filters, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Of (B, T, C, H, W). All four look at one picture at a time and then add up over time, so that their sums
        are those of two convolutions over pictures, for which processors are made: a third of the time."""
        count = x.shape[:2]
        pairs = [self.get_submodule(f"Conv3D_{dilation}.layers") for dilation in DILATIONS]
        over_picture = torch.cat([pair.get_parameter("0.weight")[:, :, 0] for pair in pairs])
        x = functional.conv2d(x.flatten(0, 1), over_picture, padding=1)
        # one row of outputs for the frame before, the frame itself and the frame after
        over_time = [pair.get_parameter("1.weight")[..., 0, 0].permute(2, 0, 1).flatten(0, 1) for pair in pairs]
        x = functional.conv2d(x, torch.cat(over_time)[..., None, None], groups=len(DILATIONS)).unflatten(0, count)
        parts = []
        for part, dilation in zip(x.chunk(len(DILATIONS), dim=2), DILATIONS, strict=True):
            before, total, after = part.chunk(3, dim=2)
            total = total.clone()
            total[:, dilation:] += before[:, :-dilation]
            total[:, :-dilation] += after[:, dilation:]
            parts.append(total)
        return self.bn(torch.cat(parts, dim=2).transpose(1, 2)).transpose(1, 2)


class Stage(nn.Module):
    """Two such layers, the first added to the second, at half the size."""

    def __init__(self, inside: int, filters: int) -> None:
        super().__init__()
        self.DDCNN = nn.ModuleList([Dilated(inside, filters), Dilated(4 * filters, filters)])

    def forward(self, x: Tensor) -> Tensor:
        first = self.DDCNN[0](x).relu()
        both = self.DDCNN[1](first).relu() + first
        return functional.avg_pool2d(both.flatten(0, 1), 2).unflatten(0, both.shape[:2])


class Alike(nn.Module):
    """What the likeness of a frame to its neighbours in time says, given (B, T, C) unit vectors of the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2 * REACH + 1, 128)

    def forward(self, vectors: Tensor) -> Tensor:
        likeness = functional.pad(vectors @ vectors.transpose(1, 2), (REACH, REACH))
        count = vectors.shape[1]
        near = torch.stack([likeness[:, k, k : k + 2 * REACH + 1] for k in range(count)], dim=1)
        return self.fc(near).relu()


class AlikeFeatures(Alike):
    """The same, given the maps of all stages."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(4 * sum(FILTERS), 128)

    def forward(self, *stages: Tensor) -> Tensor:
        means = torch.cat([maps.mean(dim=(3, 4)) for maps in stages], dim=2)
        return super().forward(functional.normalize(self.projection(means), dim=2))


class TransNetV2(nn.Module):
    """Two logits (B, T) of frames (B, T, 27, 48, 3) from 0 to 255: a shot ends here, and it is being left here."""

    def __init__(self) -> None:
        super().__init__()
        insides = (3, *(4 * filters for filters in FILTERS))
        self.SDDCNN = nn.ModuleList(Stage(inside, filters) for inside, filters in zip(insides, FILTERS, strict=False))
        self.frame_sim_layer, self.color_hist_layer = AlikeFeatures(), Alike()
        cells = (HEIGHT // 8) * (WIDTH // 8)
        self.fc1 = nn.Linear(128 + 128 + 4 * FILTERS[-1] * cells, 1024)
        self.cls_layer1, self.cls_layer2 = nn.Linear(1024, 1), nn.Linear(1024, 1)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        maps = [frames.permute(0, 1, 4, 2, 3).float() / 255]
        for stage in self.SDDCNN:
            maps.append(stage(maps[-1]))
        flat = maps[-1].permute(0, 1, 3, 4, 2).flatten(2)
        seen = [self.color_hist_layer(histograms(frames)), self.frame_sim_layer(*maps[1:]), flat]
        x = self.fc1(torch.cat(seen, dim=2)).relu()
        return self.cls_layer1(x)[..., 0], self.cls_layer2(x)[..., 0]


def histograms(frames: Tensor) -> Tensor:
    """(B, T, 512) counts of colours in 8 x 8 x 8 bins, as unit vectors."""
    level = frames.long() // (256 // BINS)
    place = (level[..., 0] * BINS + level[..., 1]) * BINS + level[..., 2]
    counts = place.new_zeros(*frames.shape[:2], BINS**3).scatter_add_(
        2, place.flatten(2), torch.ones_like(place).flatten(2)
    )
    return functional.normalize(counts.float(), dim=2)


def probabilities(network: TransNetV2, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) each: a shot ends at this frame, and a transition is under way, of (N, 27, 48, 3) uint8 frames."""
    count = len(frames)
    after = MARGIN + -count % STEP
    padded = np.concatenate([frames[:1].repeat(MARGIN, axis=0), frames, frames[-1:].repeat(after, axis=0)])
    parts: list[np.ndarray] = []
    with runtime.inference():
        for start in range(0, len(padded) - WINDOW + 1, STEP):
            window = torch.from_numpy(padded[start : start + WINDOW]).to(runtime.device())
            logits = torch.stack(network(window[None]))[:, 0, MARGIN : MARGIN + STEP]
            parts.append(runtime.numbers(logits.sigmoid()))
    ends, during = np.concatenate(parts, axis=1)[:, :count]
    return ends, during


def build(path: Path) -> TransNetV2:
    """The network with the weights of this file."""
    return load_strictly(TransNetV2(), path)
