"""Faces: detections in a picture, non-maximum suppression, and alignment to the ArcFace template.

Recognition networks of the ArcFace family read 112 x 112 pictures in which the eyes, the nose and the corners of the
mouth lie at fixed places. A face is warped there by the least-squares similarity transform of its five landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIDE = 112
# Eyes, nose, corners of the mouth in the picture of 112 x 112; the left ones of the picture come first.
TEMPLATE = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)


@dataclass(frozen=True)
class Faces:
    """Faces in one picture, the surest first. Pixels; the middle of the first pixel is (0, 0)."""

    box: np.ndarray  # (N, 4) x0, y0, x1, y1
    score: np.ndarray  # (N,) 0 to 1
    points: np.ndarray  # (N, 5, 2) eyes, nose, corners of the mouth; the left ones of the picture first

    def __len__(self) -> int:
        return len(self.score)

    def select_rows(self, rows: np.ndarray) -> Faces:
        """These of them, in this order."""
        return Faces(self.box[rows], self.score[rows], self.points[rows])


def empty_faces() -> Faces:
    """No face."""
    return Faces(np.zeros((0, 4)), np.zeros(0), np.zeros((0, 5, 2)))


def non_maximum_suppression(
    box: np.ndarray, score: np.ndarray, max_overlap: float, *, relative_to_smaller: bool = False
) -> np.ndarray:
    """Greedy non-maximum suppression: rows of boxes that overlap no surer one by over `max_overlap`, the surest first.

    Overlap is intersection over union, or over the smaller box.

    Of equal scores the first row is the surer.
    """
    remaining = np.argsort(-score, kind="stable")
    x0, y0, x1, y1 = box.T
    area = (x1 - x0) * (y1 - y0)
    rows = []
    while len(remaining):
        best, remaining = remaining[0], remaining[1:]
        rows.append(best)
        wide = np.minimum(x1[best], x1[remaining]) - np.maximum(x0[best], x0[remaining])
        high = np.minimum(y1[best], y1[remaining]) - np.maximum(y0[best], y0[remaining])
        common = np.maximum(wide, 0) * np.maximum(high, 0)
        denominator = area[best] + area[remaining] - common
        if relative_to_smaller:
            denominator = np.minimum(area[best], area[remaining])
        remaining = remaining[common <= max_overlap * denominator]
    return np.array(rows, dtype=np.int64)


def fit_similarity_transform(points: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(2, 3) least-squares similarity transform (rotation, scale, translation) of points to places.

    In the plane a rotation with a scale is one complex factor, and the best one has a closed form.
    """
    a, b = points @ (1, 1j), targets @ (1, 1j)
    off, to = a - a.mean(), b - b.mean()
    factor = np.vdot(off, to) / max(np.vdot(off, off).real, 1e-12)
    shift = b.mean() - factor * a.mean()
    return np.array([[factor.real, -factor.imag, shift.real], [factor.imag, factor.real, shift.imag]])


def align_face(rgb: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """(112, 112, 3) the face with these five points, where recognition expects it; black outside the picture."""
    import cv2

    warp = fit_similarity_transform(landmarks, TEMPLATE)
    return np.asarray(cv2.warpAffine(rgb, warp, (SIDE, SIDE), flags=cv2.INTER_LINEAR))
