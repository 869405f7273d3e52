"""Faces by MTCNN and SFace; bodies by MobileSAM and EfficientNet-Lite0.

A face counts from 24 pixels of width on: shrunk to that, 32 faces in photos kept a cosine of at least 0.68 with their
own large picture, and at 16 pixels 0.52 was left. It needs a score of 0.9, because three of four boxes below that, in
photos, were no faces, and a descriptor long enough (networks/sface.py). Of more than ten faces the largest count:
a crowd in the background is nobody to come back to, and each face costs time.

Two faces are one person's from a cosine of 0.363 on, which OpenCV's model zoo states for SFace. Of 312 pairs of
different people in photos one reaches it (0.368); three photos of one man have 0.74 to 0.78.

MobileSAM is shown a point on the face and one on the chest, and the surest of its answers counts, as far as it lies in
the box of the body. The box itself as a prompt gives parts of people in dark clothes.

A body is described by the mean of an early map of EfficientNet-Lite0 over it and by the channels before the classifier,
which count alike. The latter alone do not mind colours: where a photo of a woman in an orange suit makes it blue, they
keep a cosine of 0.94 (mirrored: 0.94, at 0.7 of the light: 0.96), and the early map 0.70 (0.99, 0.98).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Sight, observer
from revisit.evidence.mbench import BodyFeatures, FaceFeatures
from revisit.observers import people
from revisit.observers.small.objects import GREY, SIDE, cut_out

LEAST_WIDTH = 24.0
SURE = 0.9
MOST_FACES = 10
SAME = 0.363
BODY_FRAMES = 16  # segmentation takes two seconds for each on a CPU
CLOTH = 1  # stage of EfficientNet-Lite0 whose channels tell colours and cloth
CHANNELS = 24 + 1280


@observer(
    id="small.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=people.searched_frames, weights=("mtcnn", "sface"),
)  # fmt: skip
def faces(clip: ClipInfo, annotations: Mapping[str, Any]) -> Sight:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from people.face_features(find, 128, "mtcnn + sface", SAME))


@observer(
    id="small.bodies", version=1, kind="sequence", makes=BodyFeatures, inputs=("annotations",),
    choose=people.searched_frames, weights=("mtcnn", "sface", "mobile-sam", "efficientnet-lite0"),
)  # fmt: skip
def bodies(clip: ClipInfo, annotations: Mapping[str, Any]) -> Sight:
    """Descriptors of the bodies below these faces, in 16 frames at most."""
    searched = people.searched_frames(clip.count, clip.fps, annotations)
    looked = searched[np.linspace(0, len(searched) - 1, min(BODY_FRAMES, len(searched))).round().astype(int)]
    maker = "mobile-sam + efficientnet-lite0"
    return (yield from people.body_features(find, describe, maker, looked))


def find(picture: np.ndarray) -> people.Found:
    """The faces in a frame that count, the surest first."""
    from revisit import weights
    from revisit.networks import mtcnn, sface
    from revisit.networks.faces import aligned

    folder, embedder = weights.folder("mtcnn"), weights.file("sface")
    stages = folder / "pnet.onnx", folder / "rnet.onnx", folder / "onet.onnx"
    mtcnn.check(stages)
    sface.check(embedder)
    seen = mtcnn.detect(stages, picture, least=LEAST_WIDTH)
    wide = seen.box[:, 2] - seen.box[:, 0]
    rows = np.flatnonzero((seen.score >= SURE) & (wide >= LEAST_WIDTH))
    rows = np.sort(rows[np.argsort(-wide[rows], kind="stable")][:MOST_FACES])
    vector, length = sface.embed(embedder, [aligned(picture, points) for points in seen.points[rows]])
    clear = length >= sface.LEAST_LENGTH
    return people.Found(seen.box[rows][clear], vector[clear])


def describe(picture: np.ndarray, face: np.ndarray) -> tuple[list[int], np.ndarray]:
    """(rows of the faces whose body was found, (N, 1304) descriptors of these bodies)."""
    from revisit.networks import mobile_sam, runtime

    height, width = picture.shape[:2]
    box = people.body_boxes(face, height, width)
    with runtime.inference():
        network = runtime.network("mobile-sam", mobile_sam.load)
        [seen] = network.embed(runtime.on_device([picture]))
        answers = network.masks(seen, points=people.body_points(face, box, height, width))
        masks = answers.at()[:, 0]
    found = people.bodies_in(masks, face, box)
    return list(found), looks(picture, list(found.values()))


def looks(picture: np.ndarray, masks: Sequence[np.ndarray]) -> np.ndarray:
    """(N, 1304) unit descriptors of what lies under masks: 24 channels of colours and cloth, then 1280 of the kind."""
    import torch

    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import ID, build
    from revisit.networks.pictures import resized, unit

    if not masks:
        return np.zeros((0, CHANNELS), np.float32)
    with runtime.inference():
        network = runtime.network(ID, build)
        levels, there = (
            torch.cat([resized(runtime.on_device([cut_out(shown, mask)]), (SIDE, SIDE)) for mask in masks])
            for shown in (picture, np.full_like(picture, 255))
        )
        maps = network.stages(levels)
        early = maps[CLOTH]
        share = resized((there[:, :1] - GREY).clamp(min=0), tuple(early.shape[-2:]), "bilinear", exact=True)
        cloth = (early * share).sum(dim=(2, 3)) / share.sum(dim=(2, 3))
        whole = torch.cat([unit(cloth), unit(network.pooled(maps[-1]))], dim=1)
        return runtime.numbers(unit(whole))
