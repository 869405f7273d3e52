"""FastDepth (Wofk et al., ICRA 2019): monocular depth by a small network that was trained on rooms.

An ONNX file for one picture of 224 x 224, RGB from 0 to 1 without further normalisation. The answer is depth, in
metres where the scene is like those it knows: near things have small values.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from revisit import weights
from revisit.networks import onnx

ID = "fastdepth"
SIDE = 224


def depth_maps(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """(N, 224, 224) depth of RGB pictures of 224 x 224, uint8."""
    path = weights.file(ID)
    onnx.require_shapes(path, (1, 3, SIDE, SIDE), ((1, 1, SIDE, SIDE),))
    maps = [onnx.run(path, np.asarray(rgb, np.float32).transpose(2, 0, 1)[None] / 255)[0][0, 0] for rgb in pictures]
    return np.stack(maps)
