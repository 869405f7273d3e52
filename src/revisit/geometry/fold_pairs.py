"""Pairs of frames that see the same view before and after a detour, from the poses of a camera.

Poses are camera-to-world. How far two poses are apart is the distance of their centres, over the depth of the scene,
plus their angle over 180 degrees (MBench, arXiv:2606.00793, eq. 18). The paper takes the translation vectors as a pose
network writes them (world-to-camera, in a unit of its own); `literal=True` does so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.geometry.poses import InvalidPoses, invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations

MOST_FOLDS, MOST_SEGMENT_PAIRS = 20, 5
LEAST_GAP = 0.1  # of the clip between the frames of a pair: nearer ones are no memory
EDGE = 0.1  # a turnaround in the first or last tenth of a clip leaves no way out or back
LEAST_TURN, LEAST_WAY = 5.0, 0.05  # degrees, depths: less is what pose networks make of a camera at rest
SEGMENTS = 5  # of a text-conditioned clip whose captions are not known
PER_SEGMENT = 8  # frames taken of each early and late segment
FADES = 0.1, 10.0  # depths and degrees over which a return counts for 1/e


@dataclass(frozen=True)
class Pairs:
    """Rows of the poses that belong together, the largest span (or best return) first."""

    row: np.ndarray  # (P,) early
    other: np.ndarray  # (P,) late
    distance: np.ndarray  # (P,)
    turnaround: int  # row at which the camera turns back; the middle one where that is not clear
    how: str  # "fold", "symmetric" or "segments"
    note: str = ""


def frame_numbers_of_poses(poses: int, indices: np.ndarray | None, count: int) -> tuple[np.ndarray, str]:
    """(frame number of each pose in a clip of `count` frames, what had to be assumed)."""
    if indices is not None and len(indices):
        numbers = np.asarray(indices, dtype=np.int64)
        if len(numbers) != poses or (np.diff(numbers) <= 0).any() or numbers[0] < 0:
            raise InvalidPoses(f"frame_indices needs {poses} increasing numbers from 0, one per pose")
        if numbers[-1] >= count:
            raise InvalidPoses(
                f"the poses go up to frame {numbers[-1]} and the clip has {count} frames; they belong to another clip"
            )
        return numbers, ""
    if poses == count:
        return np.arange(count), ""
    if poses > count:
        raise InvalidPoses(f"there are {poses} poses and the clip has {count} frames; they belong to another clip")
    for step in range(2, count + 1):
        if -(-count // step) == poses:
            return np.arange(poses) * step, f"{poses} poses of {count} frames: taken for every {step}th frame"
    spread = np.linspace(0, count - 1, poses).round().astype(np.int64)
    return spread, f"{poses} poses of {count} frames: taken for evenly spread ones"


def pairwise_pose_distances(c2w: np.ndarray, depth: float, literal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(distances of all centres, angles in degrees), each (N, N); distances over the depth, unless literal."""
    at = invert_rigid_poses(c2w)[:, :3, 3] if literal else c2w[:, :3, 3] / depth
    distance = np.linalg.norm(at[:, None] - at[None], axis=2)
    turn = angle_between_rotations(c2w[:, None, :3, :3], c2w[None, :, :3, :3])
    return distance, np.asarray(turn)


def out_and_back_pairs(
    c2w: np.ndarray, depth: float = 1.0, *, least_gap: float = LEAST_GAP, literal: bool = False
) -> Pairs:
    """Each pose of the way out with the nearest one of the way back, at most 20 with the largest span."""
    n = len(c2w)
    distance, turn = pairwise_pose_distances(c2w, depth, literal)
    apart = distance + turn / 180
    far = int(apart[0].argmax())
    moves = literal or turn[0, far] >= LEAST_TURN or distance[0, far] >= LEAST_WAY
    inside = literal or EDGE * n < far < (1 - EDGE) * n
    if not (moves and inside and 0 < far < n - 1):
        why = "the camera rests" if not moves else f"the farthest pose is number {far} of {n}"
        return symmetric_pairs(n, apart, least_gap=least_gap, note=f"no clear turnaround: {why}")
    row = np.arange(far)
    gap = 1 if literal else max(1, int(np.ceil(least_gap * n)))
    late = np.arange(far + 1, n)
    near = np.where(late[None] - row[:, None] >= gap, apart[np.ix_(row, late)], np.inf)
    other = late[near.argmin(axis=1)]
    has_pair = np.isfinite(near.min(axis=1))
    return _pairs_with_widest_span(row[has_pair], other[has_pair], apart, far, "fold", "")


def symmetric_pairs(n: int, apart: np.ndarray | None = None, *, least_gap: float = LEAST_GAP, note: str = "") -> Pairs:
    """Row i with row n-1-i: where poses do not say when the camera turned back."""
    row = np.arange(n // 2)
    row = row[(n - 1 - 2 * row) >= max(1, int(np.ceil(least_gap * n)))]
    return _pairs_with_widest_span(row, n - 1 - row, apart, (n - 1) // 2, "symmetric", note)


def segment_bounds(count: int, segments: int) -> np.ndarray:
    """(segments + 1,) first frame of each of equal segments of a clip, and its end."""
    return np.linspace(0, count, segments + 1).round().astype(int)


def early_late_segment_pairs(
    c2w: np.ndarray,
    frames: np.ndarray,
    count: int,
    segments: int,
    depth: float = 1.0,
    *,
    literal: bool = False,
) -> Pairs:
    """Frames of the first two and the last two segments, ranked by how well the pose returns, then by span."""
    bounds = segment_bounds(count, segments)
    early, late = (
        np.unique(np.concatenate([_spread_rows_of_segment(frames, bounds, k) for k in parts]))
        for parts in ([0, 1][:segments], range(max(segments - 2, 0), segments))
    )
    distance, turn = pairwise_pose_distances(c2w, depth, literal)
    pairs = [(int(i), int(j)) for i in early for j in late if frames[j] - frames[i] >= LEAST_GAP * count]
    score = {(i, j): np.exp(-distance[i, j] / FADES[0] - turn[i, j] / FADES[1]) for i, j in pairs}
    best = sorted(pairs, key=lambda pair: (-score[pair], frames[pair[0]] - frames[pair[1]], pair))[:MOST_SEGMENT_PAIRS]
    rows = np.array(best, dtype=int).reshape(-1, 2)
    middle = int(np.abs(frames - (count - 1) / 2).argmin())
    apart = (distance + turn / 180)[rows[:, 0], rows[:, 1]]
    note = "" if len(rows) else f"with {segments} segments there are no separate early and late frames"
    return Pairs(rows[:, 0], rows[:, 1], apart, middle, "segments", note)


def segment_or_out_and_back_pairs(
    c2w: np.ndarray, frames: np.ndarray, count: int, annotations: Mapping[str, Any], depth: float, literal: bool
) -> Pairs:
    """The pairs of a clip of `count` frames: of segments in MBench's setting T, else of the ways out and back."""
    if annotations.get("setting") == "T":
        segments = len(annotations.get("segments") or ()) or SEGMENTS
        return early_late_segment_pairs(c2w, frames, count, segments, depth, literal=literal)
    return out_and_back_pairs(c2w, depth, literal=literal)


def _spread_rows_of_segment(frames: np.ndarray, bounds: Sequence[int] | np.ndarray, segment: int) -> np.ndarray:
    rows = np.flatnonzero((frames >= bounds[segment]) & (frames < bounds[segment + 1]))
    return rows[np.linspace(0, len(rows) - 1, min(PER_SEGMENT, len(rows))).round().astype(int)] if len(rows) else rows


def _pairs_with_widest_span(
    row: np.ndarray, other: np.ndarray, apart: np.ndarray | None, turnaround: int, method: str, note: str
) -> Pairs:
    order = np.argsort(-(other - row), kind="stable")[:MOST_FOLDS]
    row, other = row[order], other[order]
    distance = np.full(len(row), np.nan) if apart is None else apart[row, other]
    return Pairs(row, other, distance, turnaround, method, note)
