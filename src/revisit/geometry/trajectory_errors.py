"""Trajectory errors: how far one camera path is from another of the same frames.

*Absolute* errors compare pose i with pose i, after an alignment of the caller's choice. *Relative* errors
compare the motion from i to j, so drift before i does not count. With Q the reference and P the estimate
(Sturm et al., IROS 2012):

    absolute   translation ‖c(Q_i) - c(P_i)‖,  rotation angle(Q_iᵀ P_i)
    relative   E = (Q_i⁻¹ Q_j)⁻¹ (P_i⁻¹ P_j),  translation ‖t(E)‖,  rotation angle(E)

A rotation and translation of the estimate's whole world cancel in E; only its scale matters there. Angles are
in degrees; lengths in the unit of the reference. Pose i of one trajectory belongs to pose i of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.geometry.alignment import SAME_PLACE, require_same_length
from revisit.geometry.poses import InvalidPoses, Trajectory, invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations


@dataclass(frozen=True)
class Statistics:
    """What is usually reported of a series of errors; `std` divides by n."""

    n: int
    rmse: float
    mean: float
    median: float
    std: float
    min: float
    max: float
    sse: float


@dataclass(frozen=True, eq=False)
class PoseErrors:
    """Errors of each pose, or of the motion over each pair of poses."""

    translation: np.ndarray  # (N,) in the unit of the reference
    rotation: np.ndarray  # (N,) degrees


@dataclass(frozen=True, eq=False)
class Directions:
    """How the directions of both motions agree, pair by pair; pairs in which one camera rests are left out."""

    start: np.ndarray  # (M,) position of the first pose of each pair
    cosine: np.ndarray  # (M,) 1 the same direction, -1 the opposite one
    resting: int  # pairs left out


def statistics(errors: np.ndarray) -> Statistics:
    """Summary of at least one error."""
    e = np.asarray(errors, dtype=float)
    if not e.size:
        raise InvalidPoses("there are no errors to sum up; a path needs at least one pose, or one pair of poses")
    return Statistics(
        n=int(e.size),
        rmse=float(np.sqrt(np.mean(e * e))),
        mean=float(e.mean()),
        median=float(np.median(e)),
        std=float(e.std()),
        min=float(e.min()),
        max=float(e.max()),
        sse=float(np.sum(e * e)),
    )


def absolute_errors(estimate: Trajectory, reference: Trajectory) -> PoseErrors:
    """The absolute trajectory error (ATE) of every pose, of an estimate that is aligned already."""
    require_same_length(estimate, reference)
    return PoseErrors(
        translation=np.linalg.norm(reference.centres - estimate.centres, axis=1),
        rotation=angle_between_rotations(reference.rotations, estimate.rotations),
    )


def relative_errors(
    estimate: Trajectory, reference: Trajectory, pairs: tuple[np.ndarray, np.ndarray] | None = None
) -> PoseErrors:
    """The relative pose error (RPE) over pairs of poses, by default from each pose to the next."""
    require_same_length(estimate, reference)
    start, stop = frame_pairs(len(reference)) if pairs is None else pairs
    expected = relative_motions(reference.c2w, start, stop)
    off = invert_rigid_poses(expected) @ relative_motions(estimate.c2w, start, stop)
    return PoseErrors(np.linalg.norm(off[:, :3, 3], axis=1), angle_between_rotations(np.eye(3), off[:, :3, :3]))


def direction_agreement(estimate: Trajectory, reference: Trajectory) -> Directions:
    """Cosines between the directions in which both cameras move from pose to pose, each as that camera sees it.

    Free of scale and of how the two worlds are turned, so it needs no alignment.
    """
    require_same_length(estimate, reference)
    start, stop = frame_pairs(len(reference))
    steps = [relative_motions(path.c2w, start, stop)[:, :3, 3] for path in (estimate, reference)]
    lengths = [np.linalg.norm(step, axis=1) for step in steps]
    least = [SAME_PLACE * max(1.0, np.abs(path.centres).max()) for path in (estimate, reference)]
    moving = (lengths[0] > least[0]) & (lengths[1] > least[1])
    first, second = (step[moving] / length[moving, None] for step, length in zip(steps, lengths, strict=True))
    cosine = np.clip((first * second).sum(axis=1), -1, 1)
    return Directions(start[moving], cosine, int((~moving).sum()))


def relative_motions(c2w: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The motions (M, 4, 4) from poses `start` to poses `stop`, as the camera at `start` sees them."""
    return invert_rigid_poses(c2w[start]) @ c2w[stop]


def frame_pairs(n: int, delta: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i, i + delta) among n poses."""
    if delta < 1:
        raise InvalidPoses(f"pairs {delta} frames apart were asked for; the distance must be 1 or more")
    start = np.arange(max(n - delta, 0))
    return start, start + delta


def distance_pairs(path: Trajectory, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that follow each other, each closed as soon as the path between them is `delta` long or longer."""
    if not delta > 0:
        raise InvalidPoses(f"pairs {delta:g} apart on the path were asked for; the distance must be above 0")
    marks, travelled = [0], 0.0
    for i, length in enumerate(step_lengths(path), start=1):
        travelled += length
        if travelled >= delta:
            marks.append(i)
            travelled = 0.0
    return np.array(marks[:-1], dtype=int), np.array(marks[1:], dtype=int)


def step_lengths(path: Trajectory) -> np.ndarray:
    """Distances (N-1,) from each camera centre to the next."""
    return np.linalg.norm(np.diff(path.centres, axis=0), axis=1)


def path_length(path: Trajectory) -> float:
    """Length of the way the camera went."""
    return float(step_lengths(path).sum())
