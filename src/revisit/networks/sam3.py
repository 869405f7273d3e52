"""SAM 3 (Carion et al. 2025; SAM License, gated): open-vocabulary instance segmentation from a text prompt.

From a folder in the format of transformers (Sam3Model; the published one also holds a video tracker, which is not
read). Pictures are squashed to 1008 x 1008 (PIL's bilinear) and normalised with 0.5 and 0.5; the words are tokens of
CLIP, 32 at most. The score of a mask is sigmoid(its logit) x sigmoid(presence of any such thing). Logits of masks are
brought to the picture's size bilinearly and cut at 0, a probability of 0.5. Runs in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit.networks import hub, runtime
from revisit.networks.preprocessing import HALF_MEAN, HALF_STD, normalise_by_channel, resize_levels

TYPES = {"sam3": "Sam3Model", "sam3_video": "Sam3Model"}  # published: detector and tracker, of which the first is read
WORDS = 32  # tokens that it reads
MASKS = 32  # upsampled at a time


@dataclass(frozen=True)
class TextDetections:
    """What was found in one picture."""

    score: np.ndarray  # (M,) 0-1
    coverage: np.ndarray  # (M,) share of the picture's pixels
    box: np.ndarray  # (M, 4) fractions


class Sam3(nn.Module):
    """Sam3Model of transformers with its tokenizer and preprocessing."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.side = int(model.config.vision_config.image_size)

    def preprocess(self, pictures: Tensor) -> Tensor:
        """(B, 3, side, side) of pictures (B, 3, H, W) with levels 0 to 255."""
        return normalise_by_channel(resize_levels(pictures, (self.side, self.side), "bilinear"), HALF_MEAN, HALF_STD)

    def tokenize_with_mask(self, text: str) -> tuple[Tensor, Tensor]:
        """Tokens and which of them count, (1, 32) each."""
        tokens = self.tokenizer(
            text, return_tensors="pt", padding="max_length", max_length=WORDS, truncation=True
        ).to(runtime.device())  # fmt: skip
        return tokens["input_ids"], tokens["attention_mask"]

    def detect_named_objects(self, pictures: Tensor, text: str, *, threshold: float = 0.0) -> list[TextDetections]:
        """What the words name in each picture, every mask with a score above the threshold."""
        tokens, counting = (part.expand(len(pictures), -1) for part in self.tokenize_with_mask(text))
        out = self.model(pixel_values=self.preprocess(pictures), input_ids=tokens, attention_mask=counting)
        score = out.pred_logits.float().sigmoid() * out.presence_logits.float().sigmoid()
        size = (int(pictures.shape[-2]), int(pictures.shape[-1]))
        rows = zip(score, out.pred_masks.float(), out.pred_boxes.float(), strict=True)
        return [_detections_above_threshold(*row, size, threshold) for row in rows]


def _detections_above_threshold(
    score: Tensor, logits: Tensor, boxes: Tensor, size: tuple[int, int], threshold: float
) -> TextDetections:
    keep = score > threshold
    coverage = [torch.zeros(0)]
    for some in logits[keep].split(MASKS):  # a few at a time: 200 masks of a large picture would fill a small GPU
        fine = functional.interpolate(some[:, None], size, mode="bilinear", align_corners=False)[:, 0] > 0
        coverage.append(fine.float().mean((1, 2)).cpu())
    return TextDetections(runtime.to_numpy(score[keep]), torch.cat(coverage).numpy(), runtime.to_numpy(boxes[keep]))


def network(id: str) -> Sam3:
    """The network of these weights, on the device."""
    return runtime.network(id, build)


def build(path: Path) -> Sam3:
    """The network in the folder of this file: config.json, model.safetensors and the files of its tokenizer."""
    folder = path.parent
    return Sam3(hub.load_model(folder, model_types=TYPES), hub.load_tokenizer(folder))
