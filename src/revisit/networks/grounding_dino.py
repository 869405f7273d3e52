"""Grounding DINO (Liu et al., arXiv:2303.05499; Apache-2.0): open-vocabulary object detection from a text prompt.

From a folder in the format of transformers. Pictures have a shorter side of 800 and a longer one of 1333 at most (PIL's
bilinear), normalised as ImageNet's. The words are lower case and end in a full stop. A box counts where some word of it
reaches `threshold` (0.35 as published). Runs in float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from revisit.networks import hub, runtime
from revisit.networks.preprocessing import Size, normalise_by_channel, resize_levels

TYPES = {"grounding-dino": "GroundingDinoForObjectDetection"}
SHORT, LONG = 800, 1333
THRESHOLD = 0.35


class GroundingDino(nn.Module):
    """GroundingDinoForObjectDetection of transformers with its tokenizer and preprocessing."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer

    def detect_scores_and_boxes(
        self, pictures: Tensor, text: str, *, threshold: float = THRESHOLD
    ) -> list[tuple[Tensor, Tensor]]:
        """Scores (M,) and boxes (M, 4) of each picture, fractions x0, y0, x1, y1, the surest first."""
        size = size_with_limited_sides((int(pictures.shape[-2]), int(pictures.shape[-1])))
        pixels = normalise_by_channel(resize_levels(pictures, size, "bilinear"))
        words = self.tokenizer([format_prompt(text)] * len(pictures), return_tensors="pt").to(runtime.device())
        mask = torch.ones((len(pixels), *size), dtype=torch.long, device=pixels.device)
        out = self.model(pixel_values=pixels, pixel_mask=mask, **words)
        results = []
        for logits, boxes in zip(out.logits.float().sigmoid(), out.pred_boxes.float(), strict=True):
            score = logits.max(-1).values
            order = score.argsort(descending=True, stable=True)
            order = order[score[order] > threshold]
            centre, half = boxes[order, :2], boxes[order, 2:] / 2
            results.append((score[order], torch.cat([centre - half, centre + half], -1).clamp(0, 1)))
        return results


def format_prompt(text: str) -> str:
    """The words as the network was trained to read them."""
    return text.strip().lower().rstrip(".") + "."


def size_with_limited_sides(size: Size) -> Size:
    """The size with a shorter side of `SHORT`, or as much of it as a longer side of `LONG` allows."""
    least, most = min(size), max(size)
    target = float(SHORT)
    if most / least * SHORT > LONG:
        target = LONG * least / most
    short = round(target)
    if least == short:
        return size
    other = int(target * most / least)
    return (short, other) if size[0] <= size[1] else (other, short)


def network(id: str) -> GroundingDino:
    """The network of these weights, on the device."""
    return runtime.network(id, build)


def build(path: Path) -> GroundingDino:
    """The network in the folder of this file: config.json, model.safetensors and the files of its tokenizer."""
    folder = path.parent
    return GroundingDino(hub.load_model(folder, model_types=TYPES), hub.load_tokenizer(folder))
