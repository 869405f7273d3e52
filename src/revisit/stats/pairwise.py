"""Several models on the same clips: which pairs differ, and is one of them the best?

Two claims, with an error of 5 % each. *X beats Y* is family-wise: it is claimed after a test of whether the models
differ at all, with Shaffer's (1986) step-down correction for the pairs that can still be equal then. *X is the best* is
one claim, so every pair with X is tested at 5 % by itself (Berger 1982: if X is not the best, one of them is wrong).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from revisit.stats.paired import ALPHA, PairedTest, paired_test

PERMUTATIONS = 999


@dataclass(frozen=True)
class ModelPair:
    """Two models on common clips; differences are `ahead` minus `behind`, and `ahead` has the better mean."""

    ahead: str
    behind: str
    wins: int  # clips on which `ahead` is better
    losses: int
    test: PairedTest
    p: float | None  # family-wise: corrected for all pairs; None for too few scenes
    decided: bool  # whether `ahead` beats `behind`, by one of the two claims


@dataclass(frozen=True)
class Ranking:
    """Models from the best mean to the worst on the clips that all of them have, and what is sure of it."""

    order: tuple[str, ...]
    means: Mapping[str, float]
    pairs: tuple[ModelPair, ...]
    best: str | None  # the model that beats every other one
    clips: int
    scenes: int
    p: float | None  # of the test whether the models differ at all
    higher_is_better: bool = True

    def is_better(self, one: str, other: str) -> bool:
        """Whether the mean of one is better than that of another, however little."""
        difference = self.means[one] - self.means[other]
        return difference > 0 if self.higher_is_better else difference < 0

    def places(self, model: str) -> tuple[int, int]:
        """The first and the last place that a model may have: behind all that beat it, before all that it beats."""
        beaten = sum(pair.decided and pair.behind == model for pair in self.pairs)
        beats = sum(pair.decided and pair.ahead == model for pair in self.pairs)
        return 1 + beaten, len(self.order) - beats


def rank_models(
    scores: Mapping[str, Mapping[Hashable, float]],
    scenes: Mapping[Hashable, Hashable],
    higher_is_better: bool = True,
    range: float | None = None,
) -> Ranking:
    """Rank models by their mean on common clips, and test all pairs.

    Parameters
    ----------
    scores
        Model -> clip -> score.
    scenes
        Clip -> its scene; scenes are independent of each other, clips of one scene are not.
    higher_is_better
        Which way is better.
    range
        How far apart two scores can be, where every score is one end of its scale or the other.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> scores = {"a": {k: 0.5 + 0.01 * k for k in range(9)}, "b": {k: 0.3 + 0.013 * k for k in range(9)}}
    >>> rank_models(scores, {k: k for k in range(9)}).best
    'a'
    """
    clips = [clip for clip in next(iter(scores.values()), {}) if all(clip in mine for mine in scores.values())]
    values = tuple(tuple(mine[clip] for clip in clips) for mine in scores.values())
    return _ranked(tuple(scores), values, tuple(scenes[clip] for clip in clips), higher_is_better, range)


@lru_cache(maxsize=256)  # verdict, tables and boards ask the same
def _ranked(
    models: tuple[str, ...],
    scores: tuple[tuple[float, ...], ...],
    clusters: tuple[Hashable, ...],
    higher_is_better: bool,
    range: float | None,
) -> Ranking:
    sign = 1 if higher_is_better else -1
    values = dict(zip(models, scores, strict=True)) if clusters else {}
    means = {model: sum(mine) / len(mine) for model, mine in values.items()}
    order = sorted(means, key=lambda model: (-sign * means[model], model))
    tested = []
    for ahead, behind in combinations(order, 2):
        test = paired_test(values[behind], values[ahead], clusters, range)
        assert test is not None
        change = [sign * (a - b) for a, b in zip(values[ahead], values[behind], strict=True)]
        tested.append((ahead, behind, sum(x > 0 for x in change), sum(x < 0 for x in change), test))
    raw = [test.p for *_, test in tested]
    tested_p = [p for p in raw if p is not None]
    overall = _overall(values, order, clusters, tested_p)
    corrected = iter(step_down(tested_p, len(order), overall) if overall is not None else ())
    adjusted = [None if p is None else next(corrected) for p in raw]
    best = _best(order, tested)
    pairs = tuple(
        ModelPair(*pair, p, ((p is not None and p <= ALPHA) or pair[0] == best) and pair[2] != pair[3])
        for pair, p in zip(tested, adjusted, strict=True)
    )
    scenes = len(set(clusters))
    return Ranking(tuple(order), means, pairs, best, len(clusters), scenes, overall, higher_is_better)


def _best(order: Sequence[str], tested: Sequence[tuple[str, str, int, int, PairedTest]]) -> str | None:
    """The first model, if it beats each of the others at 5 %."""
    mine = [(wins, losses, test) for ahead, _, wins, losses, test in tested if ahead == order[0]]
    sure = all(test.p is not None and test.p <= ALPHA and wins != losses for wins, losses, test in mine)
    return order[0] if mine and sure else None


def _overall(
    values: Mapping[str, Sequence[float]], order: Sequence[str], clusters: Sequence[Hashable], p: Sequence[float]
) -> float | None:
    if not p or len(order) < 3:
        return p[0] if p else None
    place = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    rows = [place[name] for name in clusters]
    return permutation_test(np.column_stack([np.bincount(rows, values[model]) for model in order]))


def permutation_test(sums: np.ndarray) -> float:
    """P of whether several models differ at all: their scores are exchanged at random within each scene.

    Parameters
    ----------
    sums
        Array (scenes, models): the sum of a model's scores in a scene.

    Returns
    -------
    float
        How often the largest |mean difference| over its spread, of all pairs, is as large by chance (mid-p), plus
        the standard error that this has with 999 exchanges.
    """
    centred = sums - sums.mean(axis=1, keepdims=True)
    draws = np.random.default_rng(0).random((PERMUTATIONS, *sums.shape)).argsort(axis=2)
    exchanged = np.take_along_axis(np.broadcast_to(centred, draws.shape), draws, axis=2)
    observed, chance = _largest(centred[None])[0], _largest(exchanged)
    beyond, level = int((chance > observed + 1e-9).sum()), int((np.abs(chance - observed) <= 1e-9).sum())
    p = (beyond + level / 2 + 0.5) / (PERMUTATIONS + 1)
    return min(1.0, p + float(np.sqrt(p * (1 - p) / PERMUTATIONS)))


def _largest(sums: np.ndarray) -> np.ndarray:
    """The largest |sum of differences| / sqrt(sum of their squares) of all pairs; arrays (draws, scenes, models)."""
    totals = sums.sum(axis=1)
    products = np.einsum("nsi,nsj->nij", sums, sums)
    own = np.einsum("nii->ni", products)
    i, j = np.triu_indices(sums.shape[2], 1)
    squares = own[:, i] + own[:, j] - 2 * products[:, i, j]
    scale = 1e-12 * max(float(np.abs(own).max()), 1e-300)
    difference = np.abs(totals[:, i] - totals[:, j])
    return np.asarray(np.where(squares > scale, difference / np.sqrt(np.maximum(squares, scale)), 0.0).max(axis=1))


def step_down(p: Sequence[float], models: int, overall: float) -> list[float]:
    """Family-wise p of all pairs of models, after a test of all of them whose p is `overall` (Shaffer 1986).

    The j-th smallest p is multiplied by how many pairs can still be equal when j - 1 of them are not, and the models
    are not all equal.
    """
    values = np.asarray(p, dtype=float)
    if models < 3:
        return [float(value) for value in values]
    order = np.argsort(values, kind="stable")
    possible = sorted(count for count in _numbers_of_equal_pairs(models) if count < models * (models - 1) // 2)
    factors = [max([n for n in possible if n <= len(values) - j], default=1) for j in range(len(values))]
    raised = np.maximum.accumulate(values[order] * np.maximum(factors, 1))
    placed = np.empty_like(raised)
    placed[order] = np.minimum(1, np.maximum(raised, overall))
    return [float(value) for value in placed]


@lru_cache(maxsize=64)
def _numbers_of_equal_pairs(models: int) -> frozenset[int]:
    """How many pairs can be equal: the models fall into groups of equals."""
    if models < 2:
        return frozenset({0})
    return frozenset(
        size * (size - 1) // 2 + rest
        for size in range(1, models + 1)
        for rest in _numbers_of_equal_pairs(models - size)
    )
