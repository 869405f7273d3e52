"""Faces: which frames are searched for them, and a descriptor of each that is found (docs/networks.md).

The observers of faces and of bodies share all this, so that both number the same faces in the same way, and a face is
searched for once. Positions are pixels of the frame as it is searched. `small.faces` is MTCNN and SFace, with
thresholds chosen on photos; `paper.faces` is InsightFace's `buffalo_l` (SCRFD and ArcFace) as published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.geometry.fold_pairs import SEGMENTS, segment_bounds
from revisit.suites.mbench.evidence import CaseAnnotations, FaceFeatures

FRAMES = 32  # of a clip, or of each part of it
LONG_SIDE = 1280
KEPT = 1024  # frames whose faces are remembered, for the observer that comes second
BUFFALO = ("buffalo-detector", "buffalo-arcface")
LEAST_WIDTH = 24.0
SURE = 0.9
MOST_FACES = 10
SAME = 0.363


@dataclass(frozen=True)
class DetectedFaces:
    """The faces of a frame."""

    box: np.ndarray  # (N, 4) x0, y0, x1, y1 in pixels
    vector: np.ndarray  # (N, D)


Find = Callable[[np.ndarray], DetectedFaces]


def frames_searched_for_faces(count: int, fps: float, annotations: CaseAnnotations, **params: Any) -> np.ndarray:
    """Numbers of the frames in which faces are searched."""
    parts = (len(annotations.get("segments") or ()) or SEGMENTS) if annotations.get("setting") == "T" else 1
    bounds = segment_bounds(count, parts)
    spread = [np.linspace(a, b - 1, FRAMES) for a, b in pairwise(bounds) if b > a]
    return np.unique(np.concatenate([np.zeros(0), *spread]).round().astype(np.int64))


@observer(
    id="small.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=("mtcnn", "sface"),
)  # fmt: skip
def faces_by_mtcnn(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from observe_faces(find_faces_by_mtcnn, 128, "mtcnn + sface", SAME))


@observer(
    id="paper.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=BUFFALO,
)  # fmt: skip
def faces_by_buffalo(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from observe_faces(find_faces_by_buffalo, 512, "buffalo_l", FaceFeatures.same))


def observe_faces(find: Find, width: int, maker: str, same: float) -> FrameStream:
    """Observe faces: what `find` finds in each frame that is sent."""
    index, frame, vectors = [], [], [np.zeros((0, width), np.float32)]
    while (current := (yield)) is not None:
        faces = find_faces_cached(find, current.at(LONG_SIDE))
        index.append(current.index)
        frame += [current.index] * len(faces.box)
        vectors.append(faces.vector)
    return FaceFeatures(np.array(index, np.int64), np.array(frame, np.int64), np.concatenate(vectors), maker, same)


def find_faces_by_mtcnn(picture: np.ndarray) -> DetectedFaces:
    """The faces in a frame that count, the surest first."""
    from revisit import weights
    from revisit.networks import mtcnn, sface
    from revisit.networks.faces import align_face

    folder = weights.folder("mtcnn")
    stages = folder / "pnet.onnx", folder / "rnet.onnx", folder / "onet.onnx"
    detections = mtcnn.detect_faces(stages, picture, min_face_px=LEAST_WIDTH)
    wide = detections.box[:, 2] - detections.box[:, 0]
    rows = np.flatnonzero((detections.score >= SURE) & (wide >= LEAST_WIDTH))
    rows = np.sort(rows[np.argsort(-wide[rows], kind="stable")][:MOST_FACES])
    vector, length = sface.unit_face_embeddings_and_norms(
        weights.file("sface"), [align_face(picture, points) for points in detections.points[rows]]
    )
    clear = length >= sface.LEAST_LENGTH
    return DetectedFaces(detections.box[rows][clear], vector[clear])


def find_faces_by_buffalo(picture: np.ndarray) -> DetectedFaces:
    """The faces in a frame, the surest first."""
    from revisit import weights
    from revisit.networks import arcface, scrfd
    from revisit.networks.faces import align_face

    detector, embedder = (weights.file(weights_id) for weights_id in BUFFALO)
    detections = scrfd.detect_faces(detector, picture)
    faces = [align_face(picture, points) for points in detections.points]
    return DetectedFaces(detections.box, arcface.unit_face_embeddings(embedder, faces))


_known: dict[tuple[Find, bytes], DetectedFaces] = {}


def find_faces_cached(find: Find, picture: np.ndarray) -> DetectedFaces:
    """The faces of a frame; those of the last frames are known already."""
    key = find, hashlib.blake2b(picture.tobytes(), digest_size=16).digest()
    if key not in _known:
        _known[key] = find(picture)
        if len(_known) > KEPT:
            del _known[next(iter(_known))]
    return _known[key]
