"""SFace: face embeddings of 128 numbers, by a MobileFaceNet. Zhong et al., 2021 (arXiv:2205.12010).

Reads aligned faces of 112 x 112 as RGB levels; the file itself subtracts 127.5 and divides by 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.networks import onnx
from revisit.networks.faces import SIDE

WIDTH = 128
# Of 108 cuts of photos without a face none is longer than 6.2; of 31 faces, shrunk to 16 pixels, none is shorter than
# 8.6. Faces that somebody blurred lie between.
LEAST_LENGTH = 7.0


def unit_face_embeddings_and_norms(path: Path, faces: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(N, 128) descriptors of aligned faces, each of length 1, and (N,) how long they came out of the network.

    The length tells how much of a face there is: below `LEAST_LENGTH` the descriptor says little of who it is.
    """
    onnx.require_shapes(path, (1, 3, SIDE, SIDE), ((1, WIDTH),))
    rows = [onnx.run(path, face.transpose(2, 0, 1)[None])[0][0] for face in faces]  # the file takes one at a time
    vectors = np.array(rows, dtype=np.float32).reshape(-1, WIDTH)
    length = np.linalg.norm(vectors, axis=1)
    return np.asarray(vectors / np.maximum(length[:, None], 1e-12)), length
