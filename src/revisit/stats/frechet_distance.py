"""The Fréchet distance between two sets of features (FID, FVD), without the bias of few samples.

The squared distance of two normal distributions (Dowson and Landau 1982) with the moments of samples is too large by
about a / n. It is computed of all scenes and of the six halves that four quarters make, and extrapolated to n → ∞ as
2 D(n) - D(n / 2). Where scenes have several clips, one of each counts at a time, and the mean over up to four of them
is taken: the bias falls as 1 / n for independent rows alone, and all of them at once would leave some percent of it.

The error comes from the first-order influence of every scene on a distance that was fitted without it, with eighths
and with quarters left out. What such estimates have too much grows with the part left out (Efron and Stein 1981), so
that the two tell how much that is. `least_scenes_of_frechet` says from how many scenes on this holds;
`benchmarks/distances.py` is the simulation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from revisit.stats.distribution_distance import Features, SceneSets, SetDistance

EIGHTHS = tuple((k,) for k in range(8))
QUARTERS = ((0, 1), (2, 3), (4, 5), (6, 7))  # in eighths
EXCESS = 2.5  # times the gain from eighths to quarters left out is taken off the variance: see `_variance_and_freedom`
LEAST_SHARE = 1 / 3  # of the variance by eighths that is left at least
MOST_ROWS = 4  # of a scene that count; clips and frames of one scene are much alike


def least_scenes_of_frechet(dimensions: int) -> int:
    """Scenes in each set from which on the Fréchet distance of so many dimensions is given.

    From there on its bias is below 5 % of distances of an eighth of the variance, and its interval covers 95 % but for
    two points more or less (docs/distances.md).
    """
    return 4 * dimensions + 32


def squared_frechet_of_gaussians(mean_a: np.ndarray, cov_a: np.ndarray, mean_b: np.ndarray, cov_b: np.ndarray) -> float:
    """Squared Fréchet distance of two normal distributions."""
    factor = _covariance_factor(cov_a)
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
        Features, a row per clip or frame.
    scenes_a, scenes_b
        The scene of each row; scenes of both sets may have the same names. By default every row is one of its own.

    Returns
    -------
    SetDistance
        Also below `least_scenes_of_frechet`, where it is not to be trusted; the caller refuses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near = frechet_distance(rng.normal(size=(400, 4)), rng.normal(1, 1, size=(400, 4)))
    >>> near.interval[0] < 4 < near.interval[1]
    True
    """
    sets = SceneSets.from_features(a, b, scenes_a, scenes_b)
    eighth = _assign_scenes_to_eighths(sets)
    turns = [_distance_and_influences(one, eighth) for one in _subsets_with_one_row_per_scene(sets)]
    by_eighths = np.mean([turn.by_eighths for turn in turns], axis=0)
    variance, freedom = _variance_and_freedom(by_eighths, np.mean([turn.by_quarters for turn in turns], axis=0))
    scale = math.sqrt(variance / max(float((by_eighths**2).sum()), 1e-300))
    return SetDistance(
        value=float(np.mean([turn.extrapolated for turn in turns])),
        error=math.sqrt(variance),
        scenes=sets.scenes_of_smaller_set,
        plain=float(np.mean([turn.plain for turn in turns])),
        contributions=dict(zip(sets.names, (scale * by_eighths).tolist(), strict=True)),
        freedom=min(freedom, sets.scenes_of_smaller_set - 1.0),
    )


@dataclass(frozen=True)
class _Turn:
    """The distance of one row of each scene, and the influence of every scene with eighths and quarters left out."""

    plain: float
    extrapolated: float
    by_eighths: np.ndarray
    by_quarters: np.ndarray


@dataclass(frozen=True)
class _Moments:
    """How many rows, their sum, and the sum of their outer products."""

    count: int
    total: np.ndarray
    products: np.ndarray

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> _Moments:
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)


Parts = Sequence[tuple[_Moments, _Moments]]


def _subsets_with_one_row_per_scene(sets: SceneSets) -> list[SceneSets]:
    """The sets with one row of each scene, the first to the fourth of them; rows of smaller scenes come again."""
    rows_a, rows_b = _row_numbers_by_scene(sets.a_scene), _row_numbers_by_scene(sets.b_scene)
    count = min(MOST_ROWS, max(len(rows) for rows in (*rows_a.values(), *rows_b.values())))
    some = []
    for turn in range(count):
        first, second = (
            [rows[turn * len(rows) // count] for rows in by_scene.values()] for by_scene in (rows_a, rows_b)
        )
        some.append(SceneSets(sets.a[first], sets.b[second], sets.a_scene[first], sets.b_scene[second], sets.names))
    return some


def _row_numbers_by_scene(scene: np.ndarray) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = defaultdict(list)
    for row, number in enumerate(scene.tolist()):
        rows[number].append(row)
    return rows


def _distance_and_influences(sets: SceneSets, eighth: np.ndarray) -> _Turn:
    centre = sets.a.mean(axis=0)
    a, b = sets.a - centre, sets.b - centre
    a_eighth, b_eighth = eighth[sets.a_scene], eighth[sets.b_scene]
    parts = [(_Moments.of_rows(a[a_eighth == k]), _Moments.of_rows(b[b_eighth == k])) for k in range(len(EIGHTHS))]
    plain = squared_frechet_of_gaussians(*_pooled_means_and_covariances(parts))
    halves = [
        squared_frechet_of_gaussians(*_pooled_means_and_covariances([parts[k] for k in (*one, *two)]))
        for one, two in combinations(QUARTERS, 2)
    ]
    influences = []
    for folds in (EIGHTHS, QUARTERS):
        by_scene = np.zeros(len(sets.names))
        for fold in folds:
            fit = _pooled_means_and_covariances([part for k, part in enumerate(parts) if k not in fold])
            in_a, in_b = np.isin(a_eighth, fold), np.isin(b_eighth, fold)
            of_a, of_b = _influence_of_rows(a[in_a], b[in_b], *fit)
            np.add.at(by_scene, sets.a_scene[in_a], of_a / len(a))
            np.add.at(by_scene, sets.b_scene[in_b], of_b / len(b))
        influences.append(by_scene)
    return _Turn(plain, 2 * plain - float(np.mean(halves)), *influences)


def _pooled_means_and_covariances(parts: Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the first set and of the second, over these parts."""
    out: list[np.ndarray] = []
    for side in (0, 1):
        count = max(sum(part[side].count for part in parts), 2)
        mean = sum((part[side].total for part in parts), np.zeros(1)) / count
        products = sum((part[side].products for part in parts), np.zeros(1))
        out += [mean, (products - count * np.outer(mean, mean)) / (count - 1)]
    return out[0], out[1], out[2], out[3]


def _covariance_factor(covariance: np.ndarray) -> np.ndarray:
    """A matrix F with F Fᵀ = covariance: Cholesky's, or by eigenvectors where some direction has no variance."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.clip(values, 0, None)))


def _assign_scenes_to_eighths(sets: SceneSets) -> np.ndarray:
    """The eighth of each scene, by lot with a fixed seed; those of both sets, of one and of the other evenly."""
    in_a, in_b = sets.rows_per_scene(sets.a_scene) > 0, sets.rows_per_scene(sets.b_scene) > 0
    rng, eighth, start = np.random.default_rng(0), np.zeros(len(sets.names), int), 0
    for kind in (in_a & in_b, in_a & ~in_b, in_b & ~in_a):
        scenes = rng.permutation(np.flatnonzero(kind))
        eighth[scenes] = (start + np.arange(len(scenes))) % len(EIGHTHS)
        start += len(scenes)
    return eighth


def _influence_of_rows(
    a: np.ndarray, b: np.ndarray, mean_a: np.ndarray, cov_a: np.ndarray, mean_b: np.ndarray, cov_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First-order influence of each row on the distance of a fit that they are no part of, about their mean.

    A row x of a moves it by 2 (x - mean_a)·(mean_a - mean_b) + |x - mean_a|² - (x - mean_a)ᵀ T (x - mean_a), where T is
    the optimal transport from a to b; rows of b likewise, with the transport back.
    """
    there, back, roots = _optimal_transport_factors(cov_a, cov_b)
    apart, off_a, off_b = mean_a - mean_b, a - mean_a, b - mean_b
    of_a = 2 * off_a @ apart + (off_a**2).sum(axis=1) - (off_a @ there) ** 2 @ roots
    of_b = -2 * off_b @ apart + (off_b**2).sum(axis=1) - (off_b @ back) ** 2 @ (1 / roots)
    return _centre_and_scale(of_a), _centre_and_scale(of_b)


def _centre_and_scale(values: np.ndarray) -> np.ndarray:
    """Values less their mean, scaled so that their squares sum to n times the variance."""
    count = len(values)
    return (values - values.mean()) * math.sqrt(count / (count - 1)) if count > 1 else np.zeros(count)


def _optimal_transport_factors(cov_a: np.ndarray, cov_b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors of the optimal transport from a to b and back: F diag(r) Fᵀ and G diag(1 / r) Gᵀ as (F, G, r).

    With A = L Lᵀ the two are L⁻ᵀ (Lᵀ B L)^½ L⁻¹ and L (Lᵀ B L)^-½ Lᵀ. Directions without variance get a trace of it.
    """
    floor = max(1e-12 * float(np.trace(cov_a)), 1e-300)
    lower = _covariance_factor(cov_a + floor * np.eye(len(cov_a)))
    values, vectors = np.linalg.eigh(lower.T @ cov_b @ lower)
    roots = np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-300)))
    return np.linalg.solve(lower.T, vectors), lower @ vectors, roots


def _variance_and_freedom(by_eighths: np.ndarray, by_quarters: np.ndarray) -> tuple[float, float]:
    """Of the extrapolated distance, and its degrees of freedom.

    With first- and second-order parts of variance f and s, leaving out one of k parts gives f + 2 s k / (k - 1): with
    eighths E = f + 16/7 s, with quarters Q = f + 8/3 s. The extrapolated distance has f + 4/3 s = E - 5/2 (Q - E). How
    much that scatters from scene to scene says how well it is known (Satterthwaite 1946).
    """
    eighths = float((by_eighths**2).sum())
    each = by_eighths**2 - EXCESS * (by_quarters**2 - by_eighths**2)
    variance = max(float(each.sum()), LEAST_SHARE * eighths)
    scatter = len(each) * float(each.var(ddof=1)) if len(each) > 1 else 0.0
    return variance, 2 * variance**2 / max(scatter, 1e-300) if variance > 0 else 1.0
