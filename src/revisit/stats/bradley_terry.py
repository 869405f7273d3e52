"""Strengths from pairs in which one of two was preferred (Bradley and Terry 1952).

The chance that A is preferred to B is 1 / (1 + exp(b - a)) with a and b their strengths, which add up to 0. They are
those under which the preferences seen are the most likely; their intervals come from the curvature there, and of
preferences in clusters (all that one rater or one clip gave) from how much clusters pull apart. A tie counts as half
a preference each way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.stats.intervals import t_quantile
from revisit.stats.pairwise import linked_by_chains

MOST_STEPS = 100
UPPER = (1 + 0.95) / 2  # where intervals end


@dataclass(frozen=True)
class Preference:
    """One answer: `winner` was preferred to `loser`. Two with a weight of a half, one each way, make a tie."""

    winner: str
    loser: str
    weight: float = 1.0
    cluster: Hashable = None


# Of one of the compared: `model`, its `strength` with the 95 % interval from `low` to `high`, the `share`, which is the
# chance to be preferred to any other one, and the number of `comparisons`.
Strength = dict[str, Any]


@dataclass(frozen=True)
class BradleyTerry:
    """All strengths, the strongest first, and their covariance in that order."""

    strengths: tuple[Strength, ...]
    covariance: np.ndarray


def half_preferences_of_tie(one: str, other: str, cluster: Hashable = None) -> tuple[Preference, Preference]:
    """A tie as two halves."""
    return Preference(one, other, 0.5, cluster), Preference(other, one, 0.5, cluster)


def fit_bradley_terry(preferences: Iterable[Preference], *, prior: float = 0.0) -> BradleyTerry:
    """The strengths of all that were compared.

    `prior` adds so many preferences each way to every pair that was compared. Without one there is no answer where
    somebody was always preferred, or two groups never met: their strengths could be any distance apart.
    """
    weighted = [one for one in preferences if one.weight > 0]
    names = sorted({name for one in weighted for name in (one.winner, one.loser)})
    if len(names) < 2 or any(one.winner == one.loser for one in weighted):
        raise UsageError("at least two different names are needed")
    place = {name: number for number, name in enumerate(names)}
    real = np.array([(place[one.winner], place[one.loser]) for one in weighted])
    weight = np.array([one.weight for one in weighted], dtype=float)
    pairs, weights = real, weight
    if prior > 0:
        compared = np.unique(np.sort(real, axis=1), axis=0)
        pairs = np.concatenate([real, compared, compared[:, ::-1]])
        weights = np.concatenate([weight, np.full(2 * len(compared), float(prior))])
    if not _is_strongly_connected(pairs, len(names)):
        raise UsageError(
            "some won every time, or were never compared with the others, so their strengths are unbounded; use a "
            "prior of 0.5"
        )
    values = _maximise_likelihood(pairs, weights, len(names))
    bread = np.linalg.pinv(_information_matrix(pairs, weights, values))
    clusters = {one.cluster for one in weighted}
    far, covariance = NormalDist().inv_cdf(UPPER), bread
    if clusters != {None}:
        if len(clusters) < 2:
            raise UsageError("at least two clusters of preferences are needed to estimate their spread")
        covariance = (
            bread @ _clustered_score_covariance(real, weight, values, [one.cluster for one in weighted]) @ bread
        )
        far = t_quantile(UPPER, float(len(clusters) - 1))
    margin = far * np.sqrt(np.clip(np.diag(covariance), 0, None))
    chances = 1 / (1 + np.exp(values[None, :] - values[:, None]))
    share = (chances.sum(axis=1) - 0.5) / (len(names) - 1)
    counts = np.bincount(real.ravel(), np.repeat(weight, 2), minlength=len(names))
    order = sorted(range(len(names)), key=lambda i: (-values[i], names[i]))
    low, high = values - margin, values + margin
    columns = {"strength": values, "low": low, "high": high, "share": share, "comparisons": counts}
    strengths = tuple({"model": names[i], **{key: float(column[i]) for key, column in columns.items()}} for i in order)
    return BradleyTerry(strengths, covariance[np.ix_(order, order)])


def _maximise_likelihood(pairs: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """Newton's method with halved steps; the likelihood has one summit."""
    values = np.zeros(n)
    likelihood = _log_likelihood(pairs, weights, values)
    for _ in range(MOST_STEPS):
        missed = weights * (1 - _preference_chances(pairs, values))
        slope = np.bincount(pairs[:, 0], missed, n) - np.bincount(pairs[:, 1], missed, n)
        step = np.linalg.pinv(_information_matrix(pairs, weights, values)) @ slope
        while _log_likelihood(pairs, weights, values + step) < likelihood - 1e-12:
            step = step / 2
        values = values + step
        values -= values.mean()
        likelihood = _log_likelihood(pairs, weights, values)
        if np.abs(step).max() < 1e-12:
            break
    return values


def _preference_chances(pairs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The chance of each preference."""
    return np.asarray(1 / (1 + np.exp(values[pairs[:, 1]] - values[pairs[:, 0]])))


def _log_likelihood(pairs: np.ndarray, weights: np.ndarray, values: np.ndarray) -> float:
    return -float((weights * np.logaddexp(0, values[pairs[:, 1]] - values[pairs[:, 0]])).sum())


def _information_matrix(pairs: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    chance = _preference_chances(pairs, values)
    bend = weights * chance * (1 - chance)
    hessian = np.zeros((len(values), len(values)))
    np.add.at(hessian, (pairs[:, 0], pairs[:, 1]), -bend)
    hessian = hessian + hessian.T
    return hessian - np.diag(hessian.sum(axis=1))


def _clustered_score_covariance(
    pairs: np.ndarray, weights: np.ndarray, values: np.ndarray, clusters: Sequence[Hashable]
) -> np.ndarray:
    """The sum over clusters of the outer product of their slopes, with the correction for few of them."""
    place = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    rows = np.array([place[name] for name in clusters])
    missed = weights * (1 - _preference_chances(pairs, values))
    slopes = np.zeros((len(place), len(values)))
    np.add.at(slopes, (rows, pairs[:, 0]), missed)
    np.add.at(slopes, (rows, pairs[:, 1]), -missed)
    return np.asarray(slopes.T @ slopes) * len(place) / (len(place) - 1)


def _is_strongly_connected(pairs: np.ndarray, n: int) -> bool:
    """Whether preferences lead from everybody to everybody: only then is there a finite summit (Ford 1957)."""
    preferred = np.eye(n, dtype=bool)
    preferred[pairs[:, 0], pairs[:, 1]] = True
    return bool(linked_by_chains(preferred).all())
