"""SCRFD: single-shot face detection with five landmarks. Guo et al., 2021 (arXiv:2105.04714); `det_10g` of InsightFace.

A picture is letterboxed to 640 x 640 (upper left corner, black), RGB, (level - 127.5) / 128. The network has three
feature levels of strides 8, 16 and 32 with two anchors at each cell: a score, distances to the sides of the box, and
offsets of the landmarks, all in strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.networks import onnx
from revisit.networks.faces import Faces, non_maximum_suppression

SIDE = 640
STRIDES = (8, 16, 32)
EACH = 2  # anchors at each cell
SURE, MOST = 0.5, 0.4  # least score, largest overlap: as InsightFace has them
OUTPUTS = tuple((None, width) for width in (1, 1, 1, 4, 4, 4, 10, 10, 10))


def detect_faces(path: Path, rgb: np.ndarray) -> Faces:
    """Faces in a picture, the surest first."""
    onnx.require_shapes(path, (1, 3, None, None), OUTPUTS)
    square, scale = letterbox_with_scale(rgb)
    numbers = (square.astype(np.float32) - 127.5) / 128
    return decode_faces(onnx.run(path, numbers.transpose(2, 0, 1)[None]), scale)


def letterbox_with_scale(rgb: np.ndarray) -> tuple[np.ndarray, float]:
    """(the picture in the upper left corner of the square, by how much it was scaled)."""
    import cv2

    height, width = rgb.shape[:2]
    scale = SIDE / max(height, width)
    size = max(1, int(width * scale + 1e-6)), max(1, int(height * scale + 1e-6))
    square = np.zeros((SIDE, SIDE, 3), np.uint8)
    square[: size[1], : size[0]] = cv2.resize(rgb, size, interpolation=cv2.INTER_LINEAR)
    return square, size[1] / height if height >= width else size[0] / width


def decode_faces(outputs: Sequence[np.ndarray], scale: float) -> Faces:
    """Faces from scores, boxes and points of the three grids, in that order, in pixels of the picture."""
    boxes, scores, points = [], [], []
    for k, stride in enumerate(STRIDES):
        cells = SIDE // stride
        score, box, point = (outputs[k + 3 * part].reshape(-1, width) for part, width in enumerate((1, 4, 10)))
        y, x = np.divmod(np.arange(cells * cells).repeat(EACH), cells)
        at = np.stack([x, y], axis=1) * float(stride)
        sure = np.flatnonzero(score[:, 0] >= SURE)
        at, sides = at[sure], box[sure].astype(float) * stride
        boxes.append(np.hstack([at - sides[:, :2], at + sides[:, 2:]]))
        points.append(at[:, None] + point[sure].astype(float).reshape(-1, 5, 2) * stride)
        scores.append(score[sure, 0].astype(float))
    faces = Faces(np.concatenate(boxes) / scale, np.concatenate(scores), np.concatenate(points) / scale)
    return faces.select_rows(non_maximum_suppression(faces.box, faces.score, MOST))
