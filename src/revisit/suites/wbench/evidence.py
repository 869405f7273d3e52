"""Evidence of WBench: how far frames are from the first view, what depth carries from frame to frame, and ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence
from revisit.evidence.judged import JudgedEvidence


@evidence(id="wb_dreamsim")
@dataclass(frozen=True)
class DreamSimDistances:
    """DreamSim's distance of frames from the first one, from a file."""

    index: Annotated[Array, "N; rising"]
    distance: Annotated[Array, "N; finite"]
    maker: str


@evidence(id="wb_first_view")
@dataclass(frozen=True)
class FirstViewDistance(DreamSimDistances):
    """How far frames look from the first one, 0 the same: by DreamSim, or 1 - cosine of other descriptors."""


@evidence(id="wb_background_vectors")
@dataclass(frozen=True)
class BackgroundVectors:
    """A network's descriptors of whole frames, two a second."""

    index: Annotated[Array, "N; rising"]
    vector: Annotated[Array, "N, D; finite"]
    maker: str


@evidence(id="wb_background_looks")
@dataclass(frozen=True)
class BackgroundLooks(BackgroundVectors):
    """Descriptors of whole frames: `BackgroundVectors`, or those of another network or method."""


@evidence(id="wb_reprojections")
@dataclass(frozen=True)
class Reprojections:
    """Points of a frame, carried to the next one by depth and poses, and how far they agree with what is there."""

    frame: Annotated[Array, "P"]
    other: Annotated[Array, "P"]
    mse: Annotated[Array, "P; finite"]  # of colours, 0 to 1; of the points that land in the other frame
    depth_error: Annotated[Array, "P; finite"]  # median relative difference of depths
    points: Annotated[Array, "P"]  # that landed
    refused: str  # why the poses cannot be used; "" where they can
    maker: str  # of depth and poses


@evidence(id="wb_neighbours")
@dataclass(frozen=True)
class NeighbourDifference:
    """Mean absolute difference of each frame from the one before it, 0 to 1."""

    index: Annotated[Array, "N; rising"]  # the later frame
    difference: Annotated[Array, "N; finite, 0 to 1"]


@evidence(id="wb_results")
@dataclass(frozen=True)
class ResultFile:
    """Scores of a case by the benchmark's own evaluator, from its result files."""

    name: tuple[str, ...]
    value: Annotated[Array, "N; finite"]
    maker: str


@evidence(id="wb_ratings")
@dataclass(frozen=True)
class CaseRatings(JudgedEvidence):
    """What a judge says of a case: a share from 0 to 1 by question; nan where it gave no valid answer."""

    question: tuple[str, ...]
    value: Annotated[Array, "N"]
