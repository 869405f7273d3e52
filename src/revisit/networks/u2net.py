"""U2-Net (small, "u2netp"): salient object detection (Qin et al. 2020; Apache-2.0).

The picture is resized to 320 x 320 (PIL's bilinear), divided by its brightest level, and normalised as ImageNet's. The
first of the seven maps of the file is the answer, stretched to 0-1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from revisit import weights
from revisit.networks import onnx
from revisit.networks.preprocessing import IMAGENET_MEAN, IMAGENET_STD, resize_levels

ID = "u2netp"
SIDE = 320
CUT = 0.5
LEAST, MOST = 0.002, 0.7  # share of the frame of a thing; more is a view, and less a speck


def saliency_map(rgb: np.ndarray, path: Path | None = None) -> np.ndarray:
    """(320, 320) from 0 to 1 for one picture."""
    levels = resize_levels(torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None], (SIDE, SIDE), "bilinear")
    numbers = levels[0].numpy() / max(float(levels.max()), 1e-6)
    mean, std = (np.array(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    logits = onnx.run(path or weights.file(ID), ((numbers - mean) / std)[None])[0][0, 0]
    return np.asarray((logits - logits.min()) / max(float(logits.max() - logits.min()), 1e-9))


def largest_salient_box(rgb: np.ndarray, path: Path | None = None) -> tuple[float, float, float, float] | None:
    """Fractions x0, y0, x1, y1 around the largest salient thing; None where nothing of a fair size stands out."""
    import cv2

    count, labels, stats, _ = cv2.connectedComponentsWithStats((saliency_map(rgb, path) > CUT).astype(np.uint8))
    if count < 2:
        return None
    left, top, width, height, area = stats[1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())].tolist()
    if not LEAST <= area / labels.size <= MOST:
        return None
    return left / SIDE, top / SIDE, (left + width) / SIDE, (top + height) / SIDE
