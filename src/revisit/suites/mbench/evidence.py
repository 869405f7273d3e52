"""MBench: camera and depth of a clip, pairs of frames that see the same view, and what networks say of its contents.

Files from outside fill most of these kinds; `maker` names the network that wrote one and is told with every score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

from revisit.core import Array, evidence
from revisit.evidence.judged import JudgedEvidence


class CaseAnnotations(TypedDict, total=False):
    """What MBench's observers read of a case's annotations."""

    setting: str  # "A" or "T": driven by actions or by text
    segments: Sequence[str]  # captions of the segments of a clip driven by text


@evidence(id="geometry_track")
@dataclass(frozen=True)
class GeometryTrack:
    """Camera of a clip from a file with poses, intrinsics and depth; all pixels are those of the depth's grid."""

    frame: Annotated[Array, "K"]  # frame numbers; empty where the file has none, `fold_pairs.frame_numbers_of_poses`
    c2w: Annotated[Array, "N, 4, 4; finite"]  # camera to world, OpenCV axes
    intrinsics: Annotated[Array, "N, 3, 3; finite"]
    median_depth: Annotated[Array, "N"]  # in the unit of the centres; nan without depth
    width: int  # of the grid
    height: int
    convention: str  # how the file writes poses: "w2c" or "c2w"
    found: str  # who says so: "the file", "the user" or "the depth"
    error_w2c: float  # how far depths of two frames differ where both see a point, as a share; nan without depth
    error_c2w: float
    refused: str  # why the convention could not be told; "" where it could
    maker: str


@evidence(id="fold_pairs")
@dataclass(frozen=True)
class FoldPairs:
    """Frames that see one view on the way out and on the way back: worked out from `GeometryTrack` and the case."""

    frame: Annotated[Array, "P"]  # early frame
    other: Annotated[Array, "P"]  # late frame
    distance: Annotated[Array, "P"]  # between their poses, as pairs are chosen by; nan without poses
    turnaround: int  # frame at which the camera turns back; the middle one where that is not clear
    how: str  # "fold", "symmetric" or "segments"
    note: str


@evidence(id="pair_matches")
@dataclass(frozen=True)
class PairMatches:
    """Points that match between the two frames of each pair, in pixels of the grid of `GeometryTrack`."""

    frame: Annotated[Array, "P"]
    other: Annotated[Array, "P"]
    row: Annotated[Array, "P"]  # rows of these frames in the track
    other_row: Annotated[Array, "P"]
    distance: Annotated[Array, "P"]  # between their poses
    offsets: Annotated[Array, "P + 1"]  # the matches of pair k are points[offsets[k]:offsets[k + 1]]
    points: Annotated[Array, "M, 4"]  # x and y in the frame, x and y in the other one
    how: str  # how pairs were chosen: "fold", "symmetric" or "segments"
    note: str
    matcher: str


@evidence(id="warped_views")
@dataclass(frozen=True)
class WarpedViews:
    """The late frame of each pair, brought to the place of the early one by its depth and both poses. Grey levels."""

    frame: Annotated[Array, "P"]
    other: Annotated[Array, "P"]
    picture: Annotated[Array, "P, height, width"]  # uint8: the early frame
    warped: Annotated[Array, "P, height, width"]  # uint8: the late one as the early camera would see it
    visible: Annotated[Array, "P, height, width"]  # bool: where both frames see one point of the scene
    how: str
    note: str


@evidence(id="object_region")
@dataclass(frozen=True)
class ObjectRegion:
    """Where the target is: its masks, or a box around it where nobody segmented it."""

    index: Annotated[Array, "N"]
    visible: Annotated[Array, "N"]  # bool
    box: Annotated[Array, "N, 4"]  # fractions x0, y0, x1, y1; of the mask, where there is one
    mask: Annotated[Array, "N, height, width"]  # bool; (N, 0, 0) where there are boxes only
    source: str


@evidence(id="face_features")
@dataclass(frozen=True)
class FaceFeatures:
    """A descriptor of every face found."""

    index: Annotated[Array, "F"]  # frames that were looked at
    frame: Annotated[Array, "N"]  # the frame of each face, never falling
    vector: Annotated[Array, "N, D; finite"]
    maker: str
    same: float = 0.15  # least cosine of one person's faces, as it belongs to the network; published for ArcFace


@evidence(id="body_features")
@dataclass(frozen=True)
class BodyFeatures:
    """A descriptor of the body that belongs to a face."""

    face: Annotated[Array, "N"]  # the row of `FaceFeatures` it belongs to, each once
    vector: Annotated[Array, "N, D; finite"]
    maker: str


@evidence(id="gram_distances")
@dataclass(frozen=True)
class GramDistances:
    """How far Gram matrices of two frames differ, layer by layer, in Frobenius norms."""

    frame: Annotated[Array, "P"]  # the later frame
    other: Annotated[Array, "P"]  # the earlier one
    fold: Annotated[Array, "P"]  # bool: a pair out and back; otherwise two frames next to each other in the sample
    difference: Annotated[Array, "P, layers"]
    norm: Annotated[Array, "P, layers"]  # of the later frame's matrix
    other_norm: Annotated[Array, "P, layers"]
    maker: str


@evidence(id="text_features")
@dataclass(frozen=True)
class TextFeatures:
    """Descriptors of frames and of the caption of each segment, in one space."""

    frame: Annotated[Array, "N"]
    segment: Annotated[Array, "N"]  # the caption each frame belongs to, from 0
    image: Annotated[Array, "N, D; finite"]
    text: Annotated[Array, "M, D; finite"]
    cut: bool  # whether a caption was longer than the network reads
    maker: str


@evidence(id="trigger_answer")
@dataclass(frozen=True)
class TriggerAnswer(JudgedEvidence):
    """Whether a judge found that a clip poses the memory test of its subset at all (MBench)."""

    triggered: int  # 1, 0, or -1 where the judge gave no valid answer
    confidence: float  # 0-1; nan where there is none
    question: str  # which of the subset's questions was asked


@evidence(id="progress_ratings")
@dataclass(frozen=True)
class ProgressRatings(JudgedEvidence):
    """How far the asked-for change went, and how right it looks, each from 1 to 5 (MBench)."""

    progress: float  # nan where the judge gave no valid answer
    correctness: float
