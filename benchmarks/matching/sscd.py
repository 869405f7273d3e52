"""SSCD (Pizzi et al., CVPR 2022): a descriptor of a whole picture by which copies of it are recognised.

Descriptors of length 1: their cosine is near 1 for one picture cropped, recoloured or overlaid, and near 0 for two
places. Two ONNX files read RGB bytes of any size and normalise them by themselves: `sscd`, the published ResNet-50 in
8 bits, and `sscd-distilled`, a MobileNetV4 trained to give the same descriptors in about a quarter of the time. Their
descriptors are compared with those of the same file only.

Pictures are resized to 288 x 288, whatever their shape. Processors with and without instructions for 8-bit sums may
round those of `sscd` differently; `sscd-distilled` computes in float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from revisit import weights
from revisit.networks import onnx

Variant = Literal["sscd", "sscd-distilled"]
SIDE = 288
WIDTH = 512


def embed(pictures: Iterable[np.ndarray], variant: Variant = "sscd") -> np.ndarray:
    """Descriptors of pictures.

    Parameters
    ----------
    pictures
        RGB arrays (height, width, 3) of bytes; frames, or cuts of them.
    variant
        Id of the weights; `sscd-distilled` is in no set, because its licence is proprietary.

    Returns
    -------
    ndarray
        (N, 512) float32, rows of length 1.
    """
    path = weights.file(variant)
    onnx.require_shapes(path, (None, None, None, 3), ((None, WIDTH),))
    network = onnx.load_session(path)
    name = network.get_inputs()[0].name
    rows = [network.run(None, {name: _resize_to_square(picture)[None]})[0][0] for picture in pictures]
    vectors = np.array(rows, dtype=np.float32).reshape(-1, WIDTH)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _resize_to_square(rgb: np.ndarray) -> np.ndarray:
    import cv2

    shrinks = max(rgb.shape[:2]) > SIDE
    return cv2.resize(rgb, (SIDE, SIDE), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
