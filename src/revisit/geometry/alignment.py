"""Alignment: brings two trajectories of the same frames into one world, and matches their frames.

An estimated path lives in a world of its own, often in a unit of its own. Four ways to compare it:
`none` (both worlds are the same), `origin` (the first poses are laid on each other), `se3` (the rotation and
translation that bring all centres closest) and `sim3` (and the scale). The last two minimise
Σ ‖ref - (s·R·est + t)‖² in closed form (Umeyama, PAMI 1991, eq. 39-42); a mirrored path is never answered
with a reflection.

A path may be too simple to say what the alignment is: a camera on the spot has no scale, a straight path may
be turned about itself. That is no error of the file, so it is returned as a name, in `degenerate`.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from revisit.geometry.poses import InvalidPoses, Trajectory, invert_rigid_poses

Method = Literal["none", "origin", "se3", "sim3"]

STILL = "no motion: all camera centres are in one place, so scale and rotation are not determined"
STRAIGHT = "straight path: all camera centres are on one line, so the rotation about it is not determined"

# Centres that differ by less are equal: what remains of doubles after a subtraction.
SAME_PLACE = 1e-9
# A path is straight when it bends by less than a thousandth of its length: no pose estimator is that exact, so
# the rotation about the line would be fitted to noise. The values compared are variances, hence the square.
NO_BEND = 1e-3**2
# A path counts as mirrored only if it is at least a tenth as deep as it is long; a flat one fits either way.
FLAT = 0.1**2


@dataclass(frozen=True, eq=False)
class TrajectoryAlignment:
    """A similarity that brings an estimate into the world of the reference: p -> scale · rotation @ p + translation."""

    rotation: np.ndarray  # (3, 3)
    translation: np.ndarray  # (3,)
    scale: float = 1.0
    degenerate: str | None = None  # why the alignment is not unique; None when it is
    mirrored: bool = False  # a reflection would fit better: one of the two paths has left-handed axes
    agreement: float | None = None  # 0-1: how alike both shapes are; scale and rotation mean little when low


def align(estimate: Trajectory, reference: Trajectory, method: Method = "sim3") -> TrajectoryAlignment:
    """The alignment of an estimate to the reference; pose i of one belongs to pose i of the other."""
    require_same_length(estimate, reference)
    if method == "none":
        return TrajectoryAlignment(np.eye(3), np.zeros(3))
    if method == "origin":
        first = reference.c2w[0] @ invert_rigid_poses(estimate.c2w[0])
        return TrajectoryAlignment(first[:3, :3], first[:3, 3])
    if method in ("se3", "sim3"):
        return umeyama(estimate.centres, reference.centres, with_scale=method == "sim3")
    raise InvalidPoses(f"there is no alignment called {method!r}; choose one of {', '.join(get_args(Method))}")


def umeyama(source: np.ndarray, target: np.ndarray, *, with_scale: bool = True) -> TrajectoryAlignment:
    """The similarity (or, without scale, the rigid motion) that brings points (N, 3) closest to their partners."""
    x, y = np.asarray(source, dtype=float), np.asarray(target, dtype=float)
    if x.ndim != 2 or x.shape[1:] != (3,) or x.shape != y.shape or not len(x):
        raise InvalidPoses(f"points of shapes {x.shape} and {y.shape} cannot be aligned; both need the same (N, 3)")
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    spread, y_spread = (np.square(points - points.mean(axis=0)).sum(axis=1).mean() for points in (x, y))
    if _are_all_in_one_place(x, spread) or _are_all_in_one_place(y, y_spread):
        return TrajectoryAlignment(np.eye(3), y_mean - x_mean, degenerate=STILL)

    u, d, vt = np.linalg.svd((y - y_mean).T @ (x - x_mean) / len(x))
    flip = np.linalg.det(u) * np.linalg.det(vt) < 0
    sign = np.array([1.0, 1.0, -1.0 if flip else 1.0])
    rotation = (u * sign) @ vt
    scale = float(d @ sign / spread) if with_scale else 1.0
    return TrajectoryAlignment(
        rotation,
        y_mean - scale * rotation @ x_mean,
        scale,
        degenerate=STRAIGHT if d[1] <= NO_BEND * d[0] else None,
        mirrored=bool(flip and d[2] > FLAT * d[0]),
        agreement=float(np.clip(d @ sign / np.sqrt(spread * y_spread), 0, 1)),
    )


def apply(alignment: TrajectoryAlignment, estimate: Trajectory) -> Trajectory:
    """The estimate in the world of the reference."""
    c2w = estimate.c2w.copy()
    c2w[:, :3, :3] = alignment.rotation @ estimate.rotations
    c2w[:, :3, 3] = alignment.scale * estimate.centres @ alignment.rotation.T + alignment.translation
    return replace(estimate, c2w=c2w)


def associate(first: np.ndarray, second: np.ndarray, tolerance: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Positions (i, j) of times that belong together: the closest first, each time once, none across another.

    Every time of `first` may join the one before or after it in `second`, if not further than `tolerance`.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    candidates = []
    for i, after in enumerate(np.searchsorted(second, first)):
        for j in (after - 1, after):
            if 0 <= j < len(second) and abs(first[i] - second[j]) <= tolerance:
                candidates.append((abs(first[i] - second[j]), i, int(j)))
    first_indices: list[int] = []  # both stay sorted: pairs that cross would run back in time
    second_indices: list[int] = []
    for _, i, j in sorted(candidates):
        k = bisect(first_indices, i)
        free = not k or (first_indices[k - 1] < i and second_indices[k - 1] < j)
        if free and (k == len(first_indices) or second_indices[k] > j):
            first_indices.insert(k, i)
            second_indices.insert(k, j)
    return np.array(first_indices, dtype=int), np.array(second_indices, dtype=int)


def match_by_time(
    estimate: Trajectory, reference: Trajectory, tolerance: float = 0.01
) -> tuple[Trajectory, Trajectory]:
    """Both trajectories cut down to the poses whose times belong together."""
    if estimate.time_unit != reference.time_unit:
        raise InvalidPoses(
            f"the estimate counts time in {estimate.time_unit} and the reference in {reference.time_unit}; "
            "convert one of them"
        )
    i, j = associate(estimate.times, reference.times, tolerance)
    if not len(i):
        raise InvalidPoses(
            f"no time of the estimate ({estimate.times[0]:g} to {estimate.times[-1]:g}) is within {tolerance:g} of one "
            f"of the reference ({reference.times[0]:g} to {reference.times[-1]:g}); do both clocks start at the same "
            "time?"
        )
    return estimate.take(i), reference.take(j)


def require_same_length(estimate: Trajectory, reference: Trajectory) -> None:
    """Raise InvalidPoses unless both have as many poses."""
    if len(estimate) != len(reference):
        raise InvalidPoses(
            f"the estimate has {len(estimate)} poses and the reference {len(reference)}; "
            "match them by time, or cut both to the same frames"
        )


def _are_all_in_one_place(points: np.ndarray, spread: float) -> bool:
    return bool(np.sqrt(spread) <= SAME_PLACE * max(1.0, np.abs(points).max()))
