"""Several models: which pairs differ, and is one of them the best?

Every pair is compared on the clips that the two have in common, so that a clip which a model lacks costs only the
pairs with that model. Two claims, with an error of 5 % each. *X beats Y* is family-wise: it is claimed after a test of
whether the models differ at all, with Shaffer's (1986) step-down correction for the pairs that can still be equal
then. *X is the best* is one claim, so every pair with X is tested at 5 % by itself (Berger 1982: if X is not the best,
one of them is wrong). Pairs on different clips can contradict each other (X beats Y beats Z beats X): such claims are
withdrawn.

How many clusters a paired difference needs before a test would find it is the number of a two-sided t-test which finds
the difference with 80 % power (Guenther 1981). The difference seen is itself uncertain, and so is the number. Its range
comes from the differences, in units of their spread, between which the true one lies in half of all cases, by the
normal approximation to the noncentral t (Johnson and Welch 1940). A range at 95 % would have no upper end: what is
undecided at 95 % may also be no difference at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist

import numpy as np

from revisit.stats.intervals import Estimate
from revisit.stats.paired import ALPHA, PairedTest, paired_test

PERMUTATIONS = 999
AT_ONCE = 4_000_000  # exchanged scores in memory
RARE = 0.5  # of the clips of the median model
POWER = 0.8
RANGE_LEVEL = 0.5  # of the range of clusters needed
MANY = 1000  # nobody will make so many clips to tell two models apart


@dataclass(frozen=True)
class ModelPair:
    """Two models on their common clips; differences are `ahead` minus `behind`, and `ahead` has the better mean."""

    ahead: str
    behind: str
    wins: int  # clips on which `ahead` is better
    losses: int
    test: PairedTest
    p: float | None = None  # family-wise: corrected for all pairs; None for too few scenes
    decided: bool = False  # whether `ahead` beats `behind`, by one of the two claims

    @property
    def is_significant_alone(self) -> bool:
        """Whether this pair, taken by itself, differs at 5 %."""
        return self.test.p is not None and self.test.p <= ALPHA and self.wins != self.losses


@dataclass(frozen=True)
class Ranking:
    """Models from the best to the worst, and what is sure of it."""

    order: tuple[str, ...]
    means: Mapping[str, float]  # over the clips that a model has
    adjusted: Mapping[str, float]  # as if every model had every clip; the order is by these
    counts: Mapping[str, int]  # clips that a model has
    pairs: tuple[ModelPair, ...]  # of models with common clips
    best: str | None  # the model that beats every other one
    higher_is_better: bool = True

    def is_better(self, model: str, other: str) -> bool:
        """Whether one stands before another, however little; not where they score the same on all common clips."""
        if any(
            not pair.wins and not pair.losses and {pair.ahead, pair.behind} == {model, other} for pair in self.pairs
        ):
            return False  # what one of them scores on further clips says nothing of the other
        difference = self.adjusted[model] - self.adjusted[other]
        return difference > 0 if self.higher_is_better else difference < 0

    def possible_places(self, model: str) -> tuple[int, int]:
        """The first and the last place that a model may have: behind all that beat it, before all that it beats."""
        beaten = sum(pair.decided and pair.behind == model for pair in self.pairs)
        beats = sum(pair.decided and pair.ahead == model for pair in self.pairs)
        return 1 + beaten, len(self.order) - beats


def models_with_few_clips(counts: Mapping[str, int]) -> set[str]:
    """The models that have too few clips to be compared: none, or fewer than half as many as the median model.

    Every further pair costs the others power, and a model with few clips gains little by it. Where fewer than two
    models would remain, only those without clips are rare.

    Examples
    --------
    >>> models_with_few_clips({"a": 14, "b": 12, "c": 3, "d": 0}) == {"c", "d"}
    True
    """
    some = [count for count in counts.values() if count]
    rare = {model for model, count in counts.items() if count < RARE * float(np.median(some or [1]))}
    return rare if len(counts) - len(rare) > 1 else {model for model, count in counts.items() if not count}


def rank_models(
    scores: Mapping[str, Mapping[Hashable, float]],
    scenes: Mapping[Hashable, Hashable],
    higher_is_better: bool = True,
    range: float | None = None,
) -> Ranking:
    """Rank models, and test each pair on the clips that both have.

    Parameters
    ----------
    scores
        Model -> clip -> score; models may lack clips.
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
    >>> scores = {"a": {k: 0.5 + 0.01 * k for k in range(9)}, "b": {k: 0.3 + 0.013 * k for k in range(2, 9)}}
    >>> rank_models(scores, {k: k for k in range(9)}).best
    'a'
    """
    scored = {model: mine for model, mine in scores.items() if mine}
    clips = list(dict.fromkeys(clip for mine in scored.values() for clip in mine))
    values = tuple(tuple(mine.get(clip) for clip in clips) for mine in scored.values())
    return _rank_models_cached(tuple(scored), values, tuple(scenes[clip] for clip in clips), higher_is_better, range)


@lru_cache(maxsize=256)  # verdict, tables and boards ask the same
def _rank_models_cached(
    models: tuple[str, ...],
    scores: tuple[tuple[float | None, ...], ...],
    clusters: tuple[Hashable, ...],
    higher_is_better: bool,
    range: float | None,
) -> Ranking:
    sign = 1 if higher_is_better else -1
    own = {model: [score for score in mine if score is not None] for model, mine in zip(models, scores, strict=True)}
    means = {model: math.fsum(mine) / len(mine) for model, mine in own.items()}  # the same in any order
    values = np.array(scores, dtype=float).reshape(len(models), len(clusters))
    adjusted = means if np.isfinite(values).all() else dict(zip(models, clip_adjusted_means(values), strict=True))
    order = sorted(adjusted, key=lambda model: (-sign * adjusted[model], model))
    row = {model: values[place] for place, model in enumerate(models)}
    pairs = _with_family_wise_p(_compare_all_pairs(order, row, clusters, sign, range), order, row, clusters)
    wins = Counter(pair.ahead for pair in pairs if pair.is_significant_alone)
    best = next((model for model in order if wins[model] == len(order) - 1 > 0), None)
    decided = [
        replace(
            pair, decided=pair.wins != pair.losses and (pair.ahead == best or (pair.p is not None and pair.p <= ALPHA))
        )
        for pair in pairs
    ]
    counts = {model: len(mine) for model, mine in own.items()}
    return Ranking(tuple(order), means, adjusted, counts, _undecide_pairs_in_cycles(decided), best, higher_is_better)


def _compare_all_pairs(
    order: Sequence[str], scores: Mapping[str, np.ndarray], clusters: Sequence[Hashable], sign: int, range: float | None
) -> list[ModelPair]:
    """Each two models on their common clips, the one with the better mean ahead; without those that have none."""
    pairs = []
    for one, other in combinations(order, 2):
        both = np.flatnonzero(np.isfinite(scores[one]) & np.isfinite(scores[other]))
        if not len(both):
            continue
        is_other_better = sign * (math.fsum(scores[one][both]) - math.fsum(scores[other][both])) < 0
        ahead, behind = (other, one) if is_other_better else (one, other)
        mine, others = scores[ahead][both], scores[behind][both]
        test = paired_test(others.tolist(), mine.tolist(), [clusters[int(place)] for place in both], range)
        assert test is not None
        change = sign * (mine - others)
        pairs.append(ModelPair(ahead, behind, int((change > 0).sum()), int((change < 0).sum()), test))
    return pairs


def clip_adjusted_means(values: np.ndarray) -> list[float]:
    """What models would score on average if each had every clip: least squares of a level per model and per clip.

    Parameters
    ----------
    values
        Array (models, clips), with nan where a model lacks a clip.

    Returns
    -------
    list of float
        One for each model; without any chain of common clips between two models, only their own clips speak for them.

    Examples
    --------
    >>> [round(mean, 6) for mean in clip_adjusted_means(np.array([[0.9, 0.2], [0.8, np.nan]]))]
    [0.55, 0.45]
    """
    has = np.isfinite(values)
    filled = np.where(has, values, 0.0)
    count = has.sum(axis=0)
    share = has / np.maximum(count, 1)
    residue = filled.sum(axis=1) - share @ filled.sum(axis=0)
    levels = np.linalg.pinv(np.diag(has.sum(axis=1)) - share @ has.T) @ residue
    clip_levels = (filled - np.where(has, levels[:, None], 0.0)).sum(axis=0) / np.maximum(count, 1)
    linked = linked_by_chains(has.astype(float) @ has.T > 0)
    clips = linked @ has  # of a model, and of all that it is linked with
    levels += (clips * clip_levels).sum(axis=1) / clips.sum(axis=1)
    return [float(level) for level in levels.round(12)]


def linked_by_chains(links: np.ndarray) -> np.ndarray:
    """Which of several things are linked through others; a square array of bool, everything linked with itself."""
    for _ in range(len(links).bit_length()):
        links = links @ links  # by a chain twice as long
    return links


def _with_family_wise_p(
    pairs: Sequence[ModelPair],
    order: Sequence[str],
    scores_by_model: Mapping[str, np.ndarray],
    clusters: Sequence[Hashable],
) -> list[ModelPair]:
    """The pairs with their family-wise p."""
    tested = [pair for pair in pairs if pair.test.p is not None]
    compared = [model for model in order if any(model in (pair.ahead, pair.behind) for pair in tested)]
    p = [pair.test.p for pair in tested if pair.test.p is not None]
    if not p:
        return list(pairs)
    overall = p[0]
    if len(compared) > 2:
        place = {model: number for number, model in enumerate(compared)}
        values = np.stack([scores_by_model[model] for model in compared])
        overall = _overall_permutation_p(values, clusters, [(place[pair.ahead], place[pair.behind]) for pair in tested])
    corrected = iter(shaffer_step_down_p(p, len(compared), overall))
    return [pair if pair.test.p is None else replace(pair, p=next(corrected)) for pair in pairs]


def _undecide_pairs_in_cycles(pairs: Sequence[ModelPair]) -> tuple[ModelPair, ...]:
    """The pairs; those that contradict each other along a cycle are not decided."""
    names = {name for pair in pairs for name in (pair.ahead, pair.behind)}
    models = {model: number for number, model in enumerate(names)}
    beats = np.eye(len(models), dtype=bool)
    for pair in pairs:
        beats[models[pair.ahead], models[pair.behind]] |= pair.decided
    beats = linked_by_chains(beats)
    return tuple(
        replace(pair, decided=pair.decided and not beats[models[pair.behind], models[pair.ahead]]) for pair in pairs
    )


def _overall_permutation_p(values: np.ndarray, clusters: Sequence[Hashable], pairs: Sequence[tuple[int, int]]) -> float:
    shared = np.flatnonzero(np.isfinite(values).sum(axis=0) > 1)  # a clip of one model alone compares nothing
    values, clusters = values[:, shared], [clusters[int(place)] for place in shared]
    number = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    scene = np.array([number[name] for name in clusters])
    if np.isfinite(values).all():  # then the sum of a scene stands for its clips
        values, scene = np.array([np.bincount(scene, mine) for mine in values]), np.arange(len(number))
        pairs = list(combinations(range(len(values)), 2))
    return permutation_test(values, scene, pairs)


def permutation_test(values: np.ndarray, scene: np.ndarray, pairs: Sequence[tuple[int, int]]) -> float:
    """P of whether several models differ at all: their scores are exchanged at random within each scene.

    Every clip's scores are exchanged among the models that have it, in one random order of all models per scene; what
    is missing stays missing.

    Parameters
    ----------
    values
        Array (models, clips), with nan where a model lacks a clip.
    scene
        Number of the scene of each clip.
    pairs
        Rows of the models that are compared.

    Returns
    -------
    float
        How often the largest |mean difference| over its spread, of these pairs, is as large by chance (mid-p), plus
        the standard error that this has with 999 exchanges.
    """
    has = np.isfinite(values).T
    filled = np.where(has, values.T, 0.0)
    centred = np.where(has, filled - (filled.sum(axis=1) / np.maximum(has.sum(axis=1), 1))[:, None], 0.0)
    clips = [np.flatnonzero(scene == number) for number in range(int(scene.max()) + 1)]
    orders, chance = _random_model_orders(len(clips), len(values)), []
    step = max(1, AT_ONCE // values.size)
    for start in range(0, PERMUTATIONS, step):
        order = orders[start : start + step, scene]
        exchanged = np.zeros(order.shape)
        present = np.take_along_axis(np.broadcast_to(has, order.shape), order, axis=2)
        drawn = np.take_along_axis(np.broadcast_to(centred, order.shape), order, axis=2)
        exchanged[np.broadcast_to(has, order.shape)] = drawn[present]  # as many in every clip, in the random order
        chance.append(_largest_pair_statistic(exchanged, has, clips, pairs))
    observed = float(_largest_pair_statistic(centred[None], has, clips, pairs)[0])
    return _mid_p_with_simulation_error(observed, np.concatenate(chance))


@lru_cache(maxsize=8)
def _random_model_orders(scenes: int, models: int) -> np.ndarray:
    """Random orders of the models, one for each exchange and scene."""
    return np.random.default_rng(0).random((PERMUTATIONS, scenes, models)).argsort(axis=2)


def _mid_p_with_simulation_error(observed: float, chance: np.ndarray) -> float:
    beyond, level = int((chance > observed + 1e-9).sum()), int((np.abs(chance - observed) <= 1e-9).sum())
    p = (beyond + level / 2 + 0.5) / (PERMUTATIONS + 1)
    return min(1.0, p + float(np.sqrt(p * (1 - p) / PERMUTATIONS)))


def _largest_pair_statistic(
    values: np.ndarray, has: np.ndarray, clips: Sequence[np.ndarray], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """The largest |sum of differences| / sqrt(sum of their squares) over scenes, on the common clips of each pair.

    `values` is an array (draws, clips, models), `clips` the clips of each scene.
    """
    totals = squares = np.zeros((len(values), has.shape[1], has.shape[1]))
    for mine in clips:
        sums = values[:, mine].transpose(0, 2, 1) @ has[mine].astype(float)  # of one model, on the clips of another
        difference = sums - sums.transpose(0, 2, 1)
        totals, squares = totals + difference, squares + difference**2
    scale = 1e-12 * max(float(squares.max()), 1e-280)  # above what flushing of denormals would make 0
    ratio = np.where(squares > scale, np.abs(totals) / np.sqrt(np.maximum(squares, scale)), 0.0)
    first, second = np.array(pairs).T
    return np.asarray(ratio[:, first, second].max(axis=1))


def shaffer_step_down_p(p: Sequence[float], models: int, overall: float) -> list[float]:
    """Family-wise p of all pairs of models, after a test of all of them whose p is `overall` (Shaffer 1986).

    The j-th smallest p is multiplied by how many pairs can still be equal when j - 1 of them are not, and the models
    are not all equal. Some pairs may have no p: those without common clips.
    """
    values = np.asarray(p, dtype=float)
    if models < 3:
        return [float(value) for value in values]
    order = np.argsort(values, kind="stable")
    every = models * (models - 1) // 2
    possible = sorted(count for count in _possible_numbers_of_equal_pairs(models) if count < every)
    factors = [max(min(n, len(values) - j) for n in possible if n <= every - j) for j in range(len(values))]
    raised = np.maximum.accumulate(values[order] * np.maximum(factors, 1))
    placed = np.empty_like(raised)
    placed[order] = np.minimum(1, np.maximum(raised, overall))
    return [float(value) for value in placed]


@lru_cache(maxsize=64)
def _possible_numbers_of_equal_pairs(models: int) -> frozenset[int]:
    """How many pairs can be equal: the models fall into groups of equals."""
    if models < 2:
        return frozenset({0})
    return frozenset(
        size * (size - 1) // 2 + rest
        for size in range(1, models + 1)
        for rest in _possible_numbers_of_equal_pairs(models - size)
    )


def clusters_to_detect(effect: float, alpha: float = 0.05) -> float:
    """How many clusters show a mean difference of `effect` standard deviations (of the clusters' differences)."""
    normal = NormalDist()
    sure = normal.inv_cdf(1 - alpha / 2)
    return ((sure + normal.inv_cdf(POWER)) / effect) ** 2 + sure**2 / 2


def clusters_needed(difference: Estimate, alpha: float = 0.05) -> list[float | None] | None:
    """How many clusters would decide, judging by what was seen; None where all differences are equal.

    In all, not more: the likely number, and the ends of its range; None where there is no end to it.
    """
    if difference.error == 0:
        return None
    t = abs(difference.mean) / difference.error

    def clusters_at_share(share: float) -> float | None:
        shift = _shift_exceeding_t_in_share(t, difference.freedom, share)
        return clusters_to_detect(shift / math.sqrt(difference.clusters), alpha) if shift > 0 else None

    return [clusters_at_share(share) for share in (0.5, (1 + RANGE_LEVEL) / 2, (1 - RANGE_LEVEL) / 2)]


def _shift_exceeding_t_in_share(t: float, freedom: float, share_of_cases: float) -> float:
    """The true difference, in standard errors, from which |t| comes out larger than seen in this share of cases.

    0 where it would in more cases even without a difference.
    """
    normal = NormalDist()
    centre, spread = t * (1 - 1 / (4 * freedom)), math.sqrt(1 + t * t / (2 * freedom))

    def chance_of_larger_t(shift: float) -> float:
        return normal.cdf((shift - centre) / spread) + normal.cdf((-shift - centre) / spread)

    if chance_of_larger_t(0.0) >= share_of_cases:
        return 0.0
    low, high = 0.0, centre + 10 * spread
    for _ in range(60):
        midpoint = (low + high) / 2
        low, high = (midpoint, high) if chance_of_larger_t(midpoint) < share_of_cases else (low, midpoint)
    return (low + high) / 2
