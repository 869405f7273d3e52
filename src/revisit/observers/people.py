"""People in a clip: which frames are searched for faces, and the body that belongs to a face.

32 frames are spread over the clip; in MBench's setting T, where each part of a clip has its own caption, 32 over each
part. Frames are searched at a longer side of 1280 pixels at most. The observers of faces and of bodies share all this,
so that both number the same faces in the same way, and a face is searched for once.

A body is what a segmentation network finds in the box of 3 face widths and 7 face heights that begins at the top of
the face. Its mask must hold the middle of the face, or it is of something else. Positions are pixels of the frame as it
is searched.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import Sight
from revisit.evidence.mbench import BodyFeatures, FaceFeatures
from revisit.geometry.fold_pairs import SEGMENTS, segment_bounds

FRAMES = 32  # of a clip, or of each part of it
LONG_SIDE = 1280
WIDE, HIGH = 3.0, 7.0  # the box of a body, in widths and heights of the face
CHEST = 2.2  # heights of the face below its top
LEAST_AREA = 0.001  # of the frame: smaller masks show nothing
LEAST_FACE = 0.5  # of the middle of the face that a body's mask must hold
KEPT = 1024  # frames whose faces are remembered, for the observer that comes second


@dataclass(frozen=True)
class Found:
    """The faces of a frame."""

    box: np.ndarray  # (N, 4) x0, y0, x1, y1 in pixels
    vector: np.ndarray  # (N, D)


Find = Callable[[np.ndarray], Found]
# Frame and boxes of faces -> which of them have a body, and what it looks like.
Describe = Callable[[np.ndarray, np.ndarray], tuple[Sequence[int], Sequence[np.ndarray] | np.ndarray]]


def searched_frames(count: int, fps: float, annotations: Mapping[str, Any], **params: Any) -> np.ndarray:
    """Numbers of the frames in which faces are searched."""
    parts = (len(annotations.get("segments") or ()) or SEGMENTS) if annotations.get("setting") == "T" else 1
    bounds = segment_bounds(count, parts)
    spread = [np.linspace(a, b - 1, FRAMES) for a, b in pairwise(bounds) if b > a]
    return np.unique(np.concatenate([np.zeros(0), *spread]).round().astype(np.int64))


def face_features(find: Find, width: int, maker: str, same: float) -> Sight:
    """Observe faces: what `find` finds in each frame that is sent."""
    index, frame, vectors = [], [], [np.zeros((0, width), np.float32)]
    while (seen := (yield)) is not None:
        found = remembered(find, seen.at(LONG_SIDE))
        index.append(seen.index)
        frame += [seen.index] * len(found.box)
        vectors.append(found.vector)
    return FaceFeatures(np.array(index, np.int64), np.array(frame, np.int64), np.concatenate(vectors), maker, same)


def body_features(find: Find, describe: Describe, maker: str, looked: np.ndarray) -> Sight:
    """Observe bodies: what `describe` says of those that belong to faces, in the frames with the numbers `looked`."""
    wanted = set(looked.tolist())
    rows: list[int] = []
    vectors: list[np.ndarray] = []
    before = 0
    while (seen := (yield)) is not None:
        picture = seen.at(LONG_SIDE)
        found = remembered(find, picture)
        if seen.index in wanted and len(found.box):
            which, some = describe(picture, found.box)
            rows += [before + k for k in which]
            vectors += list(some)
        before += len(found.box)
    table = np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
    return BodyFeatures(np.array(rows, np.int64), table, maker)


_known: OrderedDict[tuple[Find, bytes], Found] = OrderedDict()


def remembered(find: Find, picture: np.ndarray) -> Found:
    """The faces of a frame; those of the last frames are known already."""
    key = find, hashlib.blake2b(picture.tobytes(), digest_size=16).digest()
    if key not in _known:
        _known[key] = find(picture)
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return _known[key]


def forget() -> None:
    """Forget all faces: other weights may find others."""
    _known.clear()


def body_boxes(face: np.ndarray, height: int, width: int) -> np.ndarray:
    """(N, 4) boxes of the bodies below faces, within the frame."""
    middle = (face[:, 0] + face[:, 2]) / 2
    half = WIDE * (face[:, 2] - face[:, 0]) / 2
    bottom = face[:, 1] + HIGH * (face[:, 3] - face[:, 1])
    box = np.stack([middle - half, face[:, 1], middle + half, bottom], axis=1)
    return np.clip(box, 0, (width, height, width, height))


def body_points(face: np.ndarray, box: np.ndarray, height: int, width: int) -> list[list[tuple[float, float]]]:
    """Two points on each person as fractions of the frame: the middle of the face, and the chest below it."""
    x, y = (face[:, 0] + face[:, 2]) / 2, (face[:, 1] + face[:, 3]) / 2
    chest = face[:, 1] + CHEST * (face[:, 3] - face[:, 1])
    chest = np.minimum(chest, (face[:, 3] + box[:, 3]) / 2)  # near the lower edge of the frame there is less of it
    places = np.stack([x, y, x, chest], axis=1) / (width, height, width, height)
    return [[(a, b), (c, d)] for a, b, c, d in places.tolist()]


def bodies_in(masks: np.ndarray, face: np.ndarray, box: np.ndarray) -> dict[int, np.ndarray]:
    """Face -> mask of its body, cut to the box of the body, for those masks that are of a body."""
    found = {}
    for k, mask in enumerate(masks):
        if is_body(mask, face[k]):
            x0, y0, x1, y1 = (int(v) for v in (*np.floor(box[k, :2]), *np.ceil(box[k, 2:])))
            found[k] = np.zeros_like(mask)
            found[k][y0:y1, x0:x1] = mask[y0:y1, x0:x1]
    return found


def is_body(mask: np.ndarray, face: np.ndarray) -> bool:
    """Whether a mask is large enough and holds the middle of the face."""
    height, width = mask.shape
    x0, y0, x1, y1 = face
    quarter = (x1 - x0) / 4, (y1 - y0) / 4
    left, right = (int(np.clip(round(x), 0, width)) for x in (x0 + quarter[0], x1 - quarter[0]))
    top, bottom = (int(np.clip(round(y), 0, height)) for y in (y0 + quarter[1], y1 - quarter[1]))
    middle = mask[top:bottom, left:right]
    return bool(middle.size and middle.mean() >= LEAST_FACE and mask.mean() >= LEAST_AREA)
