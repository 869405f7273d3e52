"""People: faces and the bodies that belong to them, and a descriptor of each (docs/networks.md).

The observers of faces and of bodies search the same frames, so that both number the same faces in the same way, and a
face is searched for once. Positions are pixels of the frame as it is searched. `small.faces` is MTCNN and SFace, with
thresholds chosen on photos; `paper.faces` is InsightFace's `buffalo_l` (SCRFD and ArcFace) as published.

A body is what a segmentation network finds in the box of 3 face widths and 7 face heights that begins at the top of the
face. Its mask must hold the middle of the face, or it is of something else; what lies outside of the box is cut off.
MobileSAM is shown two points, because the box as a prompt gives parts of people in dark clothes; SAM 2.1 the box.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.geometry.fold_pairs import SEGMENTS
from revisit.observers.masks import DINOV2, GREY, SAM2, SIDE, cut_square_on_grey, dino_cls_of_masked_object
from revisit.suites.mbench.evidence import BodyFeatures, CaseAnnotations, FaceFeatures
from revisit.suites.mbench.observers.text import segment_by_sampled_frame

FRAMES = 32  # of a clip, or of each part of it
LONG_SIDE = 1280
KEPT = 1024  # frames whose faces are remembered, for the observer that comes second
BUFFALO = ("buffalo-detector", "buffalo-arcface")
LEAST_WIDTH = 24.0
SURE = 0.9
MOST_FACES = 10
SAME = 0.363
WIDE, HIGH = 3.0, 7.0  # the box of a body, in widths and heights of the face
CHEST = 2.2  # heights of the face below its top
LEAST_AREA = 0.001  # of the frame: smaller masks show nothing
LEAST_FACE = 0.5  # of the middle of the face that a body's mask must hold
BODY_FRAMES = 16  # segmentation takes two seconds for each on a CPU
CLOTH = 1  # stage of EfficientNet-Lite0 whose channels tell colours and cloth
CHANNELS = 24 + 1280


@dataclass(frozen=True)
class DetectedFaces:
    """The faces of a frame."""

    box: np.ndarray  # (N, 4) x0, y0, x1, y1 in pixels
    vector: np.ndarray  # (N, D)


Find = Callable[[np.ndarray], DetectedFaces]
# Frame and boxes of faces -> which of them have a body, and what it looks like.
Describe = Callable[[np.ndarray, np.ndarray], tuple[Sequence[int], Sequence[np.ndarray] | np.ndarray]]


def frames_searched_for_faces(count: int, fps: float, annotations: CaseAnnotations, **params: Any) -> np.ndarray:
    """Numbers of the frames in which faces are searched."""
    parts = (len(annotations.get("segments") or ()) or SEGMENTS) if annotations.get("setting") == "T" else 1
    return np.array(list(segment_by_sampled_frame(count, parts, FRAMES)), dtype=np.int64)


@observer(
    id="small.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=("mtcnn", "sface"),
)  # fmt: skip
def faces_by_mtcnn(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from collect_face_descriptors(find_faces_by_mtcnn, 128, "mtcnn + sface", SAME))


@observer(
    id="paper.faces", version=1, kind="sequence", makes=FaceFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=BUFFALO,
)  # fmt: skip
def faces_by_buffalo(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the faces in 32 frames, or in 32 of each part with a caption of its own."""
    return (yield from collect_face_descriptors(find_faces_by_buffalo, 512, "buffalo_l", FaceFeatures.same))


def collect_face_descriptors(find: Find, length: int, maker: str, same: float) -> FrameStream:
    """Descriptors, of so many numbers, of the faces that `find` finds in each frame that is sent."""
    index, frame, vectors = [], [], [np.zeros((0, length), np.float32)]
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


@observer(
    id="small.bodies", version=1, kind="sequence", makes=BodyFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=("mtcnn", "sface", "mobile-sam", "efficientnet-lite0"),
)  # fmt: skip
def bodies_by_mobile_sam(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the bodies below these faces, in 16 frames at most."""
    searched = frames_searched_for_faces(clip.count, clip.fps, annotations)
    looked = searched[np.linspace(0, len(searched) - 1, min(BODY_FRAMES, len(searched))).round().astype(int)]
    maker = "mobile-sam + efficientnet-lite0"
    return (yield from collect_body_descriptors(find_faces_by_mtcnn, describe_bodies_by_mobile_sam, maker, looked))


@observer(
    id="paper.bodies", version=1, kind="sequence", makes=BodyFeatures, inputs=("annotations",),
    choose=frames_searched_for_faces, weights=(*BUFFALO, SAM2, DINOV2),
)  # fmt: skip
def bodies_by_dino(clip: ClipInfo, annotations: CaseAnnotations) -> FrameStream:
    """Descriptors of the bodies below these faces, in the same frames."""
    looked = frames_searched_for_faces(clip.count, clip.fps, annotations)
    maker = f"{DINOV2} on masks by {SAM2}"
    return (yield from collect_body_descriptors(find_faces_by_buffalo, describe_bodies_by_dino, maker, looked))


def collect_body_descriptors(find: Find, describe: Describe, maker: str, wanted_frames: np.ndarray) -> FrameStream:
    """Descriptors of bodies: what `describe` says of those that belong to faces, in `wanted_frames`."""
    frame_numbers = set(wanted_frames.tolist())
    rows: list[int] = []
    vectors: list[np.ndarray] = []
    before = 0
    while (frame := (yield)) is not None:
        picture = frame.at(LONG_SIDE)
        boxes = find_faces_cached(find, picture).box
        if frame.index in frame_numbers and len(boxes):
            which, some = describe(picture, boxes)
            rows += [before + k for k in which]
            vectors += list(some)
        before += len(boxes)
    table = np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
    return BodyFeatures(np.array(rows, np.int64), table, maker)


def describe_bodies_by_mobile_sam(picture: np.ndarray, face_boxes: np.ndarray) -> tuple[list[int], np.ndarray]:
    """(rows of the faces whose body was found, (N, 1304) descriptors of these bodies)."""
    from revisit.networks import mobile_sam, runtime

    height, width = picture.shape[:2]
    box = body_boxes_of_faces(face_boxes, height, width)
    with runtime.inference():
        network = runtime.network("mobile-sam", mobile_sam.load)
        [embedding] = network.embed(runtime.channels_first_on_device([picture]))
        answers = network.predict_masks(embedding, points=face_and_chest_points(face_boxes, box, height, width))
        masks = answers.binary_masks_at()[:, 0]
    bodies = body_masks_by_face(masks, face_boxes, box)
    return list(bodies), describe_masked_regions(picture, list(bodies.values()))


def describe_masked_regions(picture: np.ndarray, masks: Sequence[np.ndarray]) -> np.ndarray:
    """(N, 1304) unit descriptors of what lies under masks: 24 channels of colours and cloth, then 1280 of the kind."""
    import torch

    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import ID, build
    from revisit.networks.preprocessing import resize_levels, unit_vectors

    if not masks:
        return np.zeros((0, CHANNELS), np.float32)

    def squares(image: np.ndarray) -> Any:
        cut = (runtime.channels_first_on_device([cut_square_on_grey(image, mask)]) for mask in masks)
        return torch.cat([resize_levels(square, (SIDE, SIDE)) for square in cut])

    with runtime.inference():
        network = runtime.network(ID, build)
        levels, there = squares(picture), squares(np.full_like(picture, 255))
        maps = network.stage_maps(levels)
        early = maps[CLOTH]
        share = resize_levels((there[:, :1] - GREY).clamp(min=0), tuple(early.shape[-2:]), "bilinear", unrounded=True)
        cloth = (early * share).sum(dim=(2, 3)) / share.sum(dim=(2, 3))
        whole = torch.cat([unit_vectors(cloth), unit_vectors(network.head_map(maps[-1]).mean(dim=(2, 3)))], dim=1)
        return runtime.to_numpy(unit_vectors(whole))


def describe_bodies_by_dino(picture: np.ndarray, face_boxes: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """(rows of the faces whose body was found, descriptors of these bodies)."""
    from revisit.networks import runtime, sam2

    height, width = picture.shape[:2]
    box = body_boxes_of_faces(face_boxes, height, width)
    x0, y0, x1, y1 = (box / (width, height, width, height)).T.tolist()
    with runtime.inference():
        images = runtime.channels_first_on_device([picture])
        following = sam2.Sam2Tracker(sam2.network(SAM2), images, list(zip(x0, y0, x1, y1, strict=True)))
        bodies = body_masks_by_face(sam2.masks_at(following.first, (height, width)), face_boxes, box)
        return list(bodies), [dino_cls_of_masked_object(images, mask) for mask in bodies.values()]


def body_boxes_of_faces(face_boxes: np.ndarray, height: int, width: int) -> np.ndarray:
    """(N, 4) boxes of the bodies below faces, within the frame."""
    middle = (face_boxes[:, 0] + face_boxes[:, 2]) / 2
    half = WIDE * (face_boxes[:, 2] - face_boxes[:, 0]) / 2
    bottom = face_boxes[:, 1] + HIGH * (face_boxes[:, 3] - face_boxes[:, 1])
    box = np.stack([middle - half, face_boxes[:, 1], middle + half, bottom], axis=1)
    return np.clip(box, 0, (width, height, width, height))


def face_and_chest_points(
    face_boxes: np.ndarray, body_boxes: np.ndarray, height: int, width: int
) -> list[list[tuple[float, float]]]:
    """Two points on each person as fractions of the frame: the middle of the face, and the chest below it."""
    x, y = (face_boxes[:, 0] + face_boxes[:, 2]) / 2, (face_boxes[:, 1] + face_boxes[:, 3]) / 2
    chest = face_boxes[:, 1] + CHEST * (face_boxes[:, 3] - face_boxes[:, 1])
    chest = np.minimum(
        chest, (face_boxes[:, 3] + body_boxes[:, 3]) / 2
    )  # near the lower edge of the frame there is less of it
    places = np.stack([x, y, x, chest], axis=1) / (width, height, width, height)
    return [[(a, b), (c, d)] for a, b, c, d in places.tolist()]


def body_masks_by_face(masks: np.ndarray, face_boxes: np.ndarray, body_boxes: np.ndarray) -> dict[int, np.ndarray]:
    """Face -> mask of its body, cut to the box of the body, for those masks that are of a body."""
    masks_by_face = {}
    for k, mask in enumerate(masks):
        if is_body_mask(mask, face_boxes[k]):
            x0, y0, x1, y1 = (int(v) for v in (*np.floor(body_boxes[k, :2]), *np.ceil(body_boxes[k, 2:])))
            masks_by_face[k] = np.zeros_like(mask)
            masks_by_face[k][y0:y1, x0:x1] = mask[y0:y1, x0:x1]
    return masks_by_face


def is_body_mask(mask: np.ndarray, face_box: np.ndarray) -> bool:
    """Whether a mask is large enough and holds the middle of the face."""
    height, width = mask.shape
    x0, y0, x1, y1 = face_box
    quarter = (x1 - x0) / 4, (y1 - y0) / 4
    left, right = (int(np.clip(round(x), 0, width)) for x in (x0 + quarter[0], x1 - quarter[0]))
    top, bottom = (int(np.clip(round(y), 0, height)) for y in (y0 + quarter[1], y1 - quarter[1]))
    middle = mask[top:bottom, left:right]
    return bool(middle.size and middle.mean() >= LEAST_FACE and mask.mean() >= LEAST_AREA)
