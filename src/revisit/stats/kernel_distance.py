"""The kernel distance between two sets of features (KID, KVD), which has no bias at any number of samples.

The squared maximum mean discrepancy with the cubic kernel (x·y / d + 1)³ (Bińkowski et al. 2018), over pairs of clips
of different scenes alone. Its error is the jackknife's over scenes, less its own second-order part. Sets that lie far
apart by chance also look more scattered, so the interval reaches farther up than down, by the second-order term of the
studentised U-statistic (Helmers 1991). `benchmarks/distances.py` is the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.stats.distribution_distance import Features, SceneSets, SetDistance


def least_scenes_of_kernel(dimensions: int) -> int:
    """Scenes in each set from which on the kernel distance is given: with fewer its interval covers less than 93 %."""
    return 20 if dimensions >= 64 else 128  # in few dimensions its values are skewed


def kernel_distance(
    a: Features, b: Features, scenes_a: Sequence[Hashable] | None = None, scenes_b: Sequence[Hashable] | None = None
) -> SetDistance:
    """Squared maximum mean discrepancy of two sets with the cubic kernel, unbiased; it may be below 0 by chance.

    Parameters
    ----------
    a, b
        Features, a row per clip.
    scenes_a, scenes_b
        The scene of each row; scenes of both sets may have the same names. By default every row is one of its own.

    Returns
    -------
    SetDistance
        The distance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> kernel_distance(rng.normal(size=(50, 4)), rng.normal(1, 1, size=(50, 4))).interval[0] > 0
    True
    """
    sets = SceneSets.from_features(a, b, scenes_a, scenes_b)
    in_a, in_b = sets.rows_per_scene(sets.a_scene), sets.rows_per_scene(sets.b_scene)
    blocks = [
        _Pairs(
            _kernel_sums_by_scene(sets.a, sets.a, sets.a_scene, sets.a_scene, len(sets.names)), np.outer(in_a, in_a)
        ),
        _Pairs(
            _kernel_sums_by_scene(sets.b, sets.b, sets.b_scene, sets.b_scene, len(sets.names)), np.outer(in_b, in_b)
        ),
        _Pairs(
            _kernel_sums_by_scene(sets.a, sets.b, sets.a_scene, sets.b_scene, len(sets.names)), np.outer(in_a, in_b)
        ),
    ]
    means = [pairs.mean() for pairs in blocks]
    value = means[0] + means[1] - 2 * means[2]
    without = [pairs.means_without_each_scene() for pairs in blocks]
    count = len(sets.names)
    left_out = without[0] + without[1] - 2 * without[2]
    contributions = math.sqrt((count - 1) / count) * (left_out.mean() - left_out)
    second = (
        blocks[0].second_order_parts()
        + blocks[1].second_order_parts()
        - blocks[2].second_order_parts()
        - blocks[2].second_order_parts().T
    )
    first = float((contributions**2).sum())
    error = math.sqrt(max(first - 2 * float((second**2).sum()), first / 4))
    # Studentised, a mean is off by (2 t² + 1) / 6 of its skew, and a U-statistic by (t² + 1) / 2 of this beside it.
    between_pairs = 2 * float(contributions @ second @ contributions) / max(first, 1e-300) ** 1.5
    by_scene = dict(zip(sets.names, contributions.tolist(), strict=True))
    return SetDistance(
        value, error, sets.scenes_of_smaller_set, value, by_scene, sets.scenes_of_smaller_set - 1.0, 1.5 * between_pairs
    )


@dataclass(frozen=True)
class _Pairs:
    """Sums of the kernel over the clips of each two scenes, and how many pairs of clips these are."""

    sums: np.ndarray
    counts: np.ndarray

    def __post_init__(self) -> None:
        for matrix in (self.sums, self.counts):
            np.fill_diagonal(matrix, 0.0)  # pairs within a scene would bring bias

    def mean(self) -> float:
        return float(self.sums.sum() / max(self.counts.sum(), 1))

    def means_without_each_scene(self) -> np.ndarray:
        """The mean without each scene."""
        left = self.sums.sum() - self.sums.sum(axis=0) - self.sums.sum(axis=1)
        return np.asarray(left / np.maximum(self.counts.sum() - self.counts.sum(axis=0) - self.counts.sum(axis=1), 1))

    def second_order_parts(self) -> np.ndarray:
        """Second-order part of each pair of scenes, as a share of the mean."""
        total = max(self.counts.sum(), 1)
        rows = self.sums.sum(axis=1) / np.maximum(self.counts.sum(axis=1), 1)
        columns = self.sums.sum(axis=0) / np.maximum(self.counts.sum(axis=0), 1)
        return np.asarray((self.sums - self.counts * (rows[:, None] + columns[None] - self.mean())) / total)


def _kernel_sums_by_scene(
    a: Features, b: Features, a_scene: np.ndarray, b_scene: np.ndarray, scenes: int
) -> np.ndarray:
    """(scenes, scenes) sums of the cubic kernel; some thousand rows at a time."""
    sums = np.zeros((scenes, scenes))
    a, a_scene = _sort_rows_by_scene(a, a_scene)
    b, b_scene = _sort_rows_by_scene(b, b_scene)
    names_b, starts_b = np.unique(b_scene, return_index=True)
    for start in range(0, len(a), 2000):
        rows = slice(start, start + 2000)
        kernel = a[rows] @ b.T / a.shape[1] + 1
        kernel *= kernel * kernel
        names_a, starts_a = np.unique(a_scene[rows], return_index=True)
        per_scene = np.add.reduceat(np.add.reduceat(kernel, starts_a, axis=0), starts_b, axis=1)
        sums[np.ix_(names_a, names_b)] += per_scene
    return sums


def _sort_rows_by_scene(rows: Features, scene: np.ndarray) -> tuple[Features, np.ndarray]:
    order = np.argsort(scene, kind="stable")
    return rows[order], scene[order]
