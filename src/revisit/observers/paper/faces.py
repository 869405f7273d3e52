"""Faces by InsightFace's `buffalo_l` (SCRFD and ArcFace), bodies by SAM 2.1 and DINOv2, as MBench takes them.

All faces count that the detector is sure of by 0.5. Two faces are one person's from a cosine of 0.15 on, as published.
SAM 2.1 is shown the box of the body, in each frame anew; what lies outside of the box is cut off. DINOv2 describes the
body as `paper.object_features` does an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Sight, observer
from revisit.evidence.mbench import BodyFeatures, FaceFeatures
from revisit.observers import people
from revisit.observers.paper.masks import SAM2
from revisit.observers.paper.objects import DINOV2, described

FACES = ("buffalo-detector", "buffalo-arcface")


@observer(
    id="paper.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=people.searched_frames, weights=FACES,
)  # fmt: skip
def faces(clip: ClipInfo, annotations: Mapping[str, Any]) -> Sight:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from people.face_features(find, 512, "buffalo_l", FaceFeatures.same))


def find(picture: np.ndarray) -> people.Found:
    """The faces in a frame, the surest first."""
    from revisit import weights
    from revisit.networks import arcface, scrfd
    from revisit.networks.faces import aligned

    detector, embedder = (weights.file(id) for id in FACES)
    scrfd.check(detector)
    arcface.check(embedder)
    seen = scrfd.detect(detector, picture)
    return people.Found(seen.box, arcface.embed(embedder, [aligned(picture, points) for points in seen.points]))


@observer(
    id="paper.bodies", version=1, kind="sequence", makes=BodyFeatures, inputs=("annotations",),
    choose=people.searched_frames, weights=(*FACES, SAM2, DINOV2),
)  # fmt: skip
def bodies(clip: ClipInfo, annotations: Mapping[str, Any]) -> Sight:
    """Descriptors of the bodies below these faces, in the same frames."""
    looked = people.searched_frames(clip.count, clip.fps, annotations)
    return (yield from people.body_features(find, describe, f"{DINOV2} on masks by {SAM2}", looked))


def describe(picture: np.ndarray, face: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """(rows of the faces whose body was found, descriptors of these bodies)."""
    from revisit.networks import runtime, sam2

    height, width = picture.shape[:2]
    box = people.body_boxes(face, height, width)
    x0, y0, x1, y1 = (box / (width, height, width, height)).T.tolist()
    with runtime.inference():
        shown = runtime.on_device([picture])
        following = sam2.Following(sam2.network(SAM2), shown, list(zip(x0, y0, x1, y1, strict=True)))
        found = people.bodies_in(sam2.masks_at(following.first[0], (height, width)), face, box)
        return list(found), [described(shown, mask) for mask in found.values()]
