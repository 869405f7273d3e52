"""Colour and texture statistics of whole frames.

CIELAB is OpenCV's, from float32 sRGB in 0-1 (D65, sRGB transfer curve): L in 0-100, a and b unscaled.
It lies within 0.3 of scikit-image's in each mean; OpenCV's 8-bit Lab is another family and is not used.
Frames are never averaged down first: Lab is not linear in sRGB, and averaging raises L where there is
fine texture. Large frames are thinned to every k-th pixel in both directions instead, which keeps the
statistics unbiased.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Batch, observer
from revisit.evidence.appearance import LabStats, StyleStats
from revisit.observers.pictures import VIEWED, rgb_at_shared_size, vector_lengths

THINNED_LONG_SIDE = 400  # 832 is thinned by 2, 1920 by 4; up to 799 every pixel counts
STYLE_SCALES = 3  # each half the size of the one before


@observer(id="lite.lab", version=4, kind="frame", makes=LabStats, frames=VIEWED, sets=("lite",))
def lab_stats(frames: Batch) -> LabStats:
    """Mean and standard deviation of CIELAB of every frame."""
    import cv2

    statistics = []
    for rgb in frames.rgb:
        step = max(1, max(rgb.shape[:2]) // THINNED_LONG_SIDE)
        # whole pixels of four bytes are thinned in a quarter of the time
        pixels = cv2.cvtColor(rgb[::step], cv2.COLOR_RGB2RGBA).view(np.uint32)[..., 0]
        some = np.ascontiguousarray(pixels[:, ::step])[..., None].view(np.uint8)
        thinned = cv2.cvtColor(some, cv2.COLOR_RGBA2RGB).astype(np.float32)
        thinned /= 255
        statistics.append(cv2.meanStdDev(cv2.cvtColor(thinned, cv2.COLOR_RGB2LAB)))
    mean, std = np.array(statistics, dtype=np.float32)[..., 0].swapaxes(0, 1)
    return LabStats(frames.index, mean, std)


@observer(
    id="lite.style",
    version=4,
    kind="frame",
    makes=StyleStats,
    frames=VIEWED,
    prepare=rgb_at_shared_size,
    sets=("lite",),
)
def style_stats(frames: Batch) -> StyleStats:
    """Gradient strength at three scales, contrast and saturation of every frame."""
    import cv2

    gradient = np.zeros((len(frames.rgb), STYLE_SCALES), dtype=np.float32)
    contrast = np.zeros(len(frames.rgb), dtype=np.float32)
    saturation = np.zeros(len(frames.rgb), dtype=np.float32)
    for k, rgb in enumerate(frames.rgb):
        luma = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.float32) / 255
        contrast[k] = luma.std()
        r, g, b = cv2.split(rgb)
        chroma = cv2.subtract(cv2.max(cv2.max(r, g), b), cv2.min(cv2.min(r, g), b))
        saturation[k] = cv2.mean(chroma)[0] / 255
        for scale in range(STYLE_SCALES):
            dx, dy = luma[:-1, 1:] - luma[:-1, :-1], luma[1:, :-1] - luma[:-1, :-1]
            gradient[k, scale] = vector_lengths(dx, dy).mean() if dx.size else 0.0
            luma = cv2.resize(luma, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return StyleStats(index=frames.index, gradient=gradient, contrast=contrast, saturation=saturation)
