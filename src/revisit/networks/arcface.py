"""ArcFace: face embeddings of 512 numbers. Deng et al., 2019 (arXiv:1801.07698); `w600k_r50` of InsightFace.

Reads aligned faces of 112 x 112, RGB, (level - 127.5) / 127.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.networks import onnx
from revisit.networks.faces import SIDE

WIDTH = 512


def unit_face_embeddings(path: Path, faces: Sequence[np.ndarray]) -> np.ndarray:
    """(N, 512) descriptors of aligned faces, each of length 1."""
    onnx.require_shapes(path, (None, 3, SIDE, SIDE), ((None, WIDTH),))
    # One at a time: some files of this network are fixed to that.
    rows = [onnx.run(path, (face.astype(np.float32).transpose(2, 0, 1)[None] - 127.5) / 127.5)[0][0] for face in faces]
    vectors = np.array(rows, dtype=np.float32).reshape(-1, WIDTH)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
