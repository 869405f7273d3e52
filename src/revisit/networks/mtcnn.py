"""MTCNN: faces with five landmarks, by a cascade of three CNNs. Zhang et al., 2016 (arXiv:1604.02878).

P-Net scans an image pyramid in windows of 12 x 12 pixels; R-Net and O-Net classify its candidates again at 24 x 24 and
48 x 48; each regresses the boxes. Pictures are RGB, (level - 127.5) / 128.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from revisit.networks import onnx
from revisit.networks.faces import Faces, empty_faces, non_maximum_suppression

WINDOW, STRIDE = 12, 2  # of the first network
STEP = math.sqrt(0.5)  # from one level of the pyramid to the next: half the area
SURE = (0.6, 0.7, 0.7)  # least score after each network, as published
MOST = (0.5, 0.7, 0.7, 0.7)  # overlap within a level of the pyramid, over all levels, after the second and the third


def detect_faces(stage_files: tuple[Path, Path, Path], rgb: np.ndarray, *, min_face_px: float) -> Faces:
    """Faces of at least `least` pixels, the surest first."""
    first, second, third = stage_files
    onnx.require_shapes(first, (1, 3, None, None), ((1, 4, None, None), (1, 2, None, None)))
    onnx.require_shapes(second, (None, 3, 24, 24), ((None, 4), (None, 2)))
    onnx.require_shapes(third, (None, 3, 48, 48), ((None, 10), (None, 4), (None, 2)))
    box, score = _first_stage_boxes_and_scores(first, rgb, min_face_px)
    if not len(box):
        return empty_faces()

    box = _expand_to_squares(box)
    offset, chance = onnx.run(second, _network_input_of_boxes(rgb, box, 24))
    rows = np.flatnonzero(chance[:, 1] >= SURE[1])
    box, score, offset = box[rows], chance[rows, 1], offset[rows]
    rows = non_maximum_suppression(box, score, MOST[2])
    if not len(rows):
        return empty_faces()

    box = _expand_to_squares(_move_boxes_by_offsets(box[rows], offset[rows]))
    place, offset, chance = onnx.run(third, _network_input_of_boxes(rgb, box, 48))
    rows = np.flatnonzero(chance[:, 1] >= SURE[2])
    box, score, offset, place = box[rows], chance[rows, 1], offset[rows], place[rows]
    corner, side = box[:, None, :2], (box[:, 2:] - box[:, :2])[:, None]
    points = corner + side * place.reshape(-1, 2, 5).transpose(0, 2, 1) - 0.5
    box = _move_boxes_by_offsets(box, offset)
    rows = non_maximum_suppression(box, score, MOST[3], relative_to_smaller=True)
    return Faces(box[rows], score[rows].astype(float), points[rows])


def pyramid_scales(height: int, width: int, min_face_px: float) -> list[float]:
    """Scales of the image pyramid: a face of `min_face_px` pixels just fills a window of the first."""
    factors = []
    scale = WINDOW / min_face_px
    while min(height, width) * scale >= WINDOW:
        factors.append(scale)
        scale *= STEP
    return factors


def _first_stage_boxes_and_scores(path: Path, rgb: np.ndarray, min_face_px: float) -> tuple[np.ndarray, np.ndarray]:
    """Boxes and scores from all levels of the pyramid."""
    import cv2

    height, width = rgb.shape[:2]
    boxes, scores = [np.zeros((0, 4))], [np.zeros(0)]
    for scale in pyramid_scales(height, width, min_face_px):
        size = math.ceil(width * scale), math.ceil(height * scale)
        small = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
        offset, chance = onnx.run(path, _normalise_channels_first(small[None]))
        row, column = np.nonzero(chance[0, 1] >= SURE[0])
        corner = STRIDE * np.stack([column, row], axis=1).astype(float)
        ratio = np.array([width / size[0], height / size[1]])
        box = np.hstack([corner * ratio, (corner + WINDOW) * ratio])
        score = chance[0, 1, row, column].astype(float)
        rows = non_maximum_suppression(box, score, MOST[0])
        boxes.append(_move_boxes_by_offsets(box[rows], offset[0, :, row, column][rows]))
        scores.append(score[rows])
    box, score = np.concatenate(boxes), np.concatenate(scores)
    rows = non_maximum_suppression(box, score, MOST[1])
    return box[rows], score[rows]


def _move_boxes_by_offsets(box: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Bounding box regression: boxes moved by offsets in shares of their sides."""
    side = box[:, 2:] - box[:, :2]
    return np.asarray(box + np.hstack([side, side]) * offset)


def _expand_to_squares(box: np.ndarray) -> np.ndarray:
    """The squares of the longer sides around the same middles, on whole pixels."""
    middle = (box[:, :2] + box[:, 2:]) / 2
    side = np.round((box[:, 2:] - box[:, :2]).max(axis=1, keepdims=True))
    corner = np.round(middle - side / 2)
    return np.hstack([corner, corner + np.maximum(side, 1)])


def _network_input_of_boxes(rgb: np.ndarray, boxes: np.ndarray, size: int) -> np.ndarray:
    """(N, 3, size, size) what lies in square boxes, as a network reads it; black outside the picture."""
    import cv2

    height, width = rgb.shape[:2]
    crops = np.empty((len(boxes), size, size, 3), np.uint8)
    for k, (x0, y0, x1, y1) in enumerate(boxes.astype(int).tolist()):
        cut = np.zeros((y1 - y0, x1 - x0, 3), np.uint8)
        inside = rgb[max(y0, 0) : min(y1, height), max(x0, 0) : min(x1, width)]
        if inside.size:
            top, left = max(-y0, 0), max(-x0, 0)
            cut[top : top + inside.shape[0], left : left + inside.shape[1]] = inside
        shrinks = cut.shape[0] > size
        crops[k] = cv2.resize(cut, (size, size), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return _normalise_channels_first(crops)


def _normalise_channels_first(pictures: np.ndarray) -> np.ndarray:
    return ((pictures.astype(np.float32) - 127.5) / 128).transpose(0, 3, 1, 2)
