"""Distances between two sets of features: Fréchet's and the kernel distance, without the bias of few samples.

Clips of one scene are not independent, nor is a model's clip of the truth of its scene, so whole scenes are left out,
in both sets at once.

*Fréchet* (Dowson and Landau 1982; FID, FVD): the distance of samples is too large by about a / n. It is computed of all
scenes and of the six halves that four quarters make, and extrapolated to n → ∞ as 2 D(n) - D(n / 2). Its error comes
from the first-order influence of every scene on a distance that was fitted without it, with eighths and with quarters
left out; what such estimates have too much (Efron and Stein 1981) grows with the part left out, which tells how much.
`least_scenes` says from how many scenes on this holds; `benchmarks/distances.py` is the simulation.

*Kernel* (Bińkowski et al. 2018; KID, KVD): the squared maximum mean discrepancy with the cubic kernel
(x·y / d + 1)³, over pairs of clips of different scenes alone. That has no bias at any n. Its error is the jackknife's
over scenes, less its own second-order part. Sets that lie far apart by chance also look more scattered, so the interval
reaches farther up than down, by the second-order term of the studentised U-statistic (Helmers 1991).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from revisit.stats.intervals import Estimate, Interval

EIGHTHS = 8
QUARTERS = ((0, 1), (2, 3), (4, 5), (6, 7))  # in eighths
EXCESS = 1.25  # times the gain from eighths to quarters left out is taken off the variance: see `_variance`
Features = np.ndarray  # (clips, dimensions)


@dataclass(frozen=True)
class SetDistance:
    """A distance between two sets with its error; `contributions` are those of the scenes to that error."""

    value: float
    error: float
    scenes: int  # of the smaller set
    plain: float  # without the correction for few samples
    contributions: dict[Hashable, float] = field(repr=False)
    curvature_skew: float = 0.0  # skew beyond that of the contributions, from pairs of scenes

    @property
    def estimate(self) -> Estimate:
        """The distance as other estimates of this house, whose intervals have room for skew."""
        return _estimate(self.value, self.error, list(self.contributions.values()), self.scenes, self.curvature_skew)

    @property
    def interval(self) -> Interval:
        """At 95 %."""
        return self.estimate.interval()

    def minus(self, other: SetDistance) -> Estimate:
        """How much larger this is than another distance to the same set; scenes that both have in common cancel."""
        names = self.contributions.keys() | other.contributions.keys()
        apart = [self.contributions.get(name, 0.0) - other.contributions.get(name, 0.0) for name in names]
        error = math.sqrt(math.fsum(one * one for one in apart))
        return _estimate(self.value - other.value, error, apart, min(self.scenes, other.scenes))


def _estimate(
    value: float, error: float, contributions: Sequence[float], scenes: int, curvature_skew: float = 0.0
) -> Estimate:
    size = np.asarray(contributions, dtype=float)
    spread = float((size**2).sum())
    skew = float((size**3).sum()) / spread**1.5 if spread > 0 else 0.0
    return Estimate(value, error, max(scenes - 1.0, 1.0), scenes, skew + curvature_skew)


def least_scenes(dimensions: int) -> int:
    """Scenes in each set from which on the Fréchet distance of so many dimensions is given.

    From there on its bias is below 5 % of distances of an eighth of the variance, and its interval covers 93 to 97 %.
    """
    return 4 * dimensions + 32


def least_scenes_of_kernel(dimensions: int) -> int:
    """The same for the kernel distance, which has no bias: with fewer scenes its interval covers less than 93 %."""
    return 20 if dimensions >= 64 else 128  # in few dimensions its values are skewed


def gaussian_distance(mean_a: np.ndarray, cov_a: np.ndarray, mean_b: np.ndarray, cov_b: np.ndarray) -> float:
    """Squared Fréchet distance of two normal distributions."""
    factor = _factor(cov_a)
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(factor.T @ cov_b @ factor), 0, None)).sum()
    apart = mean_a - mean_b
    return float(apart @ apart + np.trace(cov_a) + np.trace(cov_b) - 2 * cross)


def frechet_distance(
    a: Features, b: Features, scenes_a: Sequence[Hashable] | None = None, scenes_b: Sequence[Hashable] | None = None
) -> SetDistance:
    """Squared Fréchet distance of the distributions that two sets were drawn from.

    Parameters
    ----------
    a, b
        Features, a row per clip.
    scenes_a, scenes_b
        The scene of each row; scenes of both sets may have the same names. By default every row is one of its own.

    Returns
    -------
    SetDistance
        Also below `least_scenes`, where it is not to be trusted; the caller refuses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near = frechet_distance(rng.normal(size=(400, 4)), rng.normal(1, 1, size=(400, 4)))
    >>> near.interval[0] < 4 < near.interval[1]
    True
    """
    sets = _Sets.of(a, b, scenes_a, scenes_b)
    block = _eighths(sets)
    parts = [sets.moments(block == k) for k in range(EIGHTHS)]
    plain = gaussian_distance(*_joined(parts))
    halves = [
        gaussian_distance(*_joined([parts[k] for quarter in pair for k in quarter]))
        for pair in combinations(QUARTERS, 2)
    ]
    value = 2 * plain - float(np.mean(halves))
    by_eighths = _influences(sets, block, parts, [(k,) for k in range(EIGHTHS)])
    by_quarters = _influences(sets, block, parts, QUARTERS)
    error = math.sqrt(_variance(by_eighths, by_quarters))
    scale = error / max(math.sqrt(float((by_eighths**2).sum())), 1e-300)
    return SetDistance(
        value, error, sets.smaller, plain, dict(zip(sets.names, (scale * by_eighths).tolist(), strict=True))
    )


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
    sets = _Sets.of(a, b, scenes_a, scenes_b)
    in_a, in_b = sets.count(sets.a_scene), sets.count(sets.b_scene)
    blocks = [
        _Pairs(_kernel_sums(sets.a, sets.a, sets.a_scene, sets.a_scene, len(sets.names)), np.outer(in_a, in_a)),
        _Pairs(_kernel_sums(sets.b, sets.b, sets.b_scene, sets.b_scene, len(sets.names)), np.outer(in_b, in_b)),
        _Pairs(_kernel_sums(sets.a, sets.b, sets.a_scene, sets.b_scene, len(sets.names)), np.outer(in_a, in_b)),
    ]
    means = [pairs.mean() for pairs in blocks]
    value = means[0] + means[1] - 2 * means[2]
    without = [pairs.mean_without() for pairs in blocks]
    count = len(sets.names)
    left_out = without[0] + without[1] - 2 * without[2]
    contributions = math.sqrt((count - 1) / count) * (left_out.mean() - left_out)
    second = blocks[0].centred() + blocks[1].centred() - blocks[2].centred() - blocks[2].centred().T
    first = float((contributions**2).sum())
    error = math.sqrt(max(first - 2 * float((second**2).sum()), first / 4))
    # Studentised, a mean is off by (2 t² + 1) / 6 of its skew, and a U-statistic by (t² + 1) / 2 of this beside it.
    between_pairs = 2 * float(contributions @ second @ contributions) / max(first, 1e-300) ** 1.5
    by_scene = dict(zip(sets.names, contributions.tolist(), strict=True))
    return SetDistance(value, error, sets.smaller, value, by_scene, 1.5 * between_pairs)


@dataclass(frozen=True)
class _Sets:
    """Two sets of features about their common centre, and the number of the scene of each row."""

    a: Features
    b: Features
    a_scene: np.ndarray
    b_scene: np.ndarray
    names: list[Hashable]

    @classmethod
    def of(
        cls, a: Features, b: Features, scenes_a: Sequence[Hashable] | None, scenes_b: Sequence[Hashable] | None
    ) -> _Sets:
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not len(a) or not len(b):
            raise ValueError(f"two sets are rows of as many features each, not arrays of {a.shape} and {b.shape}")
        names_a = [("a", k) for k in range(len(a))] if scenes_a is None else list(scenes_a)
        names_b = [("b", k) for k in range(len(b))] if scenes_b is None else list(scenes_b)
        names: list[Hashable] = list(dict.fromkeys([*names_a, *names_b]))
        place = {name: number for number, name in enumerate(names)}
        return cls(a, b, np.array([place[n] for n in names_a]), np.array([place[n] for n in names_b]), names)

    def count(self, scene: np.ndarray) -> np.ndarray:
        return np.bincount(scene, minlength=len(self.names)).astype(float)

    @property
    def smaller(self) -> int:
        return int(min(len(np.unique(self.a_scene)), len(np.unique(self.b_scene))))

    def moments(self, chosen: np.ndarray) -> tuple[_Moments, _Moments]:
        """Of the rows of these scenes, in either set."""
        centre = self.a.mean(axis=0)
        return (_Moments.of(self.a[chosen[self.a_scene]] - centre), _Moments.of(self.b[chosen[self.b_scene]] - centre))


@dataclass(frozen=True)
class _Moments:
    """How many rows, their sum, and the sum of their outer products."""

    count: int
    total: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> _Moments:
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)


Parts = Sequence[tuple[_Moments, _Moments]]


def _joined(parts: Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the first set and of the second, over these parts."""
    out: list[np.ndarray] = []
    for side in (0, 1):
        count = max(sum(part[side].count for part in parts), 2)
        mean = sum((part[side].total for part in parts), np.zeros(1)) / count
        products = sum((part[side].products for part in parts), np.zeros(1))
        out += [mean, (products - count * np.outer(mean, mean)) / (count - 1)]
    return out[0], out[1], out[2], out[3]


def _factor(covariance: np.ndarray) -> np.ndarray:
    """A matrix F with F Fᵀ = covariance: Cholesky's, or by eigenvectors where some direction has no variance."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.clip(values, 0, None)))


def _eighths(sets: _Sets) -> np.ndarray:
    """The eighth of each scene, by lot with a fixed seed; those of both sets, of one and of the other evenly."""
    in_a, in_b = sets.count(sets.a_scene) > 0, sets.count(sets.b_scene) > 0
    rng, block, start = np.random.default_rng(0), np.zeros(len(sets.names), int), 0
    for kind in (in_a & in_b, in_a & ~in_b, in_b & ~in_a):
        rows = rng.permutation(np.flatnonzero(kind))
        block[rows] = (start + np.arange(len(rows))) % EIGHTHS
        start += len(rows)
    return block


def _influences(sets: _Sets, block: np.ndarray, parts: Parts, folds: Sequence[tuple[int, ...]]) -> np.ndarray:
    """First-order contribution of each scene to the distance fitted without its fold."""
    out = np.zeros(len(sets.names))
    centre = sets.a.mean(axis=0)
    for fold in folds:
        mean_a, cov_a, mean_b, cov_b = _joined([part for k, part in enumerate(parts) if k not in fold])
        there, back = _transport(cov_a, cov_b)
        apart, here = mean_a - mean_b, np.isin(block, fold)
        for rows, scene, mean, move, sign in (
            (sets.a, sets.a_scene, mean_a, there, 2),
            (sets.b, sets.b_scene, mean_b, back, -2),
        ):
            held = here[scene]
            off = rows[held] - centre - mean
            slope = sign * off @ apart + np.einsum("ij,ij->i", off, off - off @ move)
            if len(slope) > 1:
                np.add.at(
                    out, scene[held], (slope - slope.mean()) / len(rows) * math.sqrt(len(slope) / (len(slope) - 1))
                )
    return out


def _transport(cov_a: np.ndarray, cov_b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrices of the optimal transport from a to b and back.

    With A = L Lᵀ these are L⁻ᵀ (Lᵀ B L)^½ L⁻¹ and L (Lᵀ B L)^-½ Lᵀ. Directions without variance get a trace of it.
    """
    floor = max(1e-12 * float(np.trace(cov_a)), 1e-300)
    lower = _factor(cov_a + floor * np.eye(len(cov_a)))
    values, vectors = np.linalg.eigh(lower.T @ cov_b @ lower)
    values = np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-300)))
    out, back = np.linalg.solve(lower.T, vectors), lower @ vectors
    return (out * values) @ out.T, (back / values) @ back.T


def _variance(by_eighths: np.ndarray, by_quarters: np.ndarray) -> float:
    """Of the extrapolated distance.

    With first- and second-order parts of variance f and s, leaving out one of k parts gives f + 2 s k / (k - 1), and
    the extrapolated distance has f + 4/3 s. Half of what follows is taken off; the rest is room for errors of this
    estimate itself and for skew.
    """
    eighths, quarters = float((by_eighths**2).sum()), float((by_quarters**2).sum())
    return max(eighths - EXCESS * max(quarters - eighths, 0.0), eighths / 3)


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

    def mean_without(self) -> np.ndarray:
        """The mean without each scene."""
        left = self.sums.sum() - self.sums.sum(axis=0) - self.sums.sum(axis=1)
        return np.asarray(left / np.maximum(self.counts.sum() - self.counts.sum(axis=0) - self.counts.sum(axis=1), 1))

    def centred(self) -> np.ndarray:
        """Second-order part of each pair of scenes, as a share of the mean."""
        total = max(self.counts.sum(), 1)
        rows = self.sums.sum(axis=1) / np.maximum(self.counts.sum(axis=1), 1)
        columns = self.sums.sum(axis=0) / np.maximum(self.counts.sum(axis=0), 1)
        return np.asarray((self.sums - self.counts * (rows[:, None] + columns[None] - self.mean())) / total)


def _kernel_sums(a: Features, b: Features, a_scene: np.ndarray, b_scene: np.ndarray, scenes: int) -> np.ndarray:
    """(scenes, scenes) sums of the cubic kernel; some thousand rows at a time."""
    sums = np.zeros((scenes, scenes))
    a, a_scene = _by_scene(a, a_scene)
    b, b_scene = _by_scene(b, b_scene)
    names_b, starts_b = np.unique(b_scene, return_index=True)
    for start in range(0, len(a), 2000):
        rows = slice(start, start + 2000)
        kernel = a[rows] @ b.T / a.shape[1] + 1
        kernel *= kernel * kernel
        names_a, starts_a = np.unique(a_scene[rows], return_index=True)
        per_scene = np.add.reduceat(np.add.reduceat(kernel, starts_a, axis=0), starts_b, axis=1)
        sums[np.ix_(names_a, names_b)] += per_scene
    return sums


def _by_scene(rows: Features, scene: np.ndarray) -> tuple[Features, np.ndarray]:
    order = np.argsort(scene, kind="stable")
    return rows[order], scene[order]
