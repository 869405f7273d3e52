"""Alignment: do a metric's differences go the way that people prefer (docs/labels.md), and how strong are the models?

A comparison is of two clips, first and second. People's verdict on it is 1 (the first is better), 0 (a tie) or -1, and
the metric's difference is score(first) - score(second), turned so that more is better. Differences within the tie
region, |difference| <= tau, are ties; `tau` is fitted on some scenes and reported on others. A reversal is a decision
for the clip that people find worse. Of a gate, J is the share of what people can judge that it lets pass, NJ the share
of what they cannot judge that it holds back.

Strengths come from pairs in which one of two was preferred (Bradley and Terry 1952). The chance that A is preferred to
B is 1 / (1 + exp(b - a)) with a and b their strengths, which add up to 0. They are those under which the preferences
seen are the most likely; their intervals come from the curvature there, and of preferences in clusters (all that one
rater or one clip gave) from how much clusters pull apart. A tie counts as half a preference each way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.stats.agreement import cohen_kappa
from revisit.stats.correlation import kendall_tau, spearman
from revisit.stats.intervals import Interval, t_quantile
from revisit.stats.pairwise import linked_by_chains

RESAMPLES = 1000
MOST_STEPS = 100
UPPER = (1 + 0.95) / 2  # where intervals end


@dataclass(frozen=True)
class Comparison:
    """Two clips of one scene, what people say of them, and by how much the metric differs."""

    first: str  # model
    second: str
    verdict: int  # 1, 0 or -1
    difference: float
    scene: Hashable = None


@dataclass(frozen=True)
class WinRatios:
    """Shares of comparisons won, by model, and how the two orders agree."""

    people: Mapping[str, float]
    metric: Mapping[str, float]
    counts: Mapping[str, int]
    rho: float | None
    tau: float | None
    rho_interval: Interval | None  # over resampled scenes
    tau_interval: Interval | None


def compare_win_ratios(pairs: Sequence[Comparison], seed: int = 0) -> WinRatios | None:
    """Win ratios by people and by the metric, a tie half, with rho and tau between them; None without a pair."""
    if not pairs:
        return None
    scenes = {scene: k for k, scene in enumerate(dict.fromkeys(pair.scene for pair in pairs))}
    models = {model: k for k, model in enumerate(sorted({name for p in pairs for name in (p.first, p.second)}))}
    won = np.zeros((3, len(scenes), len(models)))  # by people, by the metric, and how many there were
    for pair in pairs:
        for name, side in ((pair.first, 1), (pair.second, -1)):
            for k, outcome in enumerate((pair.verdict, pair.difference)):
                won[k, scenes[pair.scene], models[name]] += (1 + side * np.sign(outcome)) / 2
            won[2, scenes[pair.scene], models[name]] += 1
    counts = won[2].sum(axis=0)
    people, metric = ((part.sum(axis=0) / counts).tolist() for part in won[:2])
    rho, tau = _spearman_and_kendall(people, metric)
    resamples = _bootstrap_rho_tau(won, seed) if rho is not None and len(scenes) >= 3 else []
    rho_interval, tau_interval = (_percentile_interval([one[k] for one in resamples]) for k in (0, 1))
    by_model = (dict(zip(models, values, strict=True)) for values in (people, metric, counts.astype(int).tolist()))
    won_by_people, won_by_metric, of = by_model
    return WinRatios(won_by_people, won_by_metric, of, rho, tau, rho_interval, tau_interval)


def _bootstrap_rho_tau(won: np.ndarray, seed: int) -> list[tuple[float | None, float | None]]:
    """Rho and tau over scenes drawn with replacement."""
    scenes = won.shape[1]
    times = np.random.default_rng(seed).multinomial(scenes, np.full(scenes, 1 / scenes), RESAMPLES)
    people, metric, counts = (times @ part for part in won)
    samples = []
    for k in range(RESAMPLES):
        compared = counts[k] > 0
        samples.append(
            _spearman_and_kendall(*((part[k, compared] / counts[k, compared]).tolist() for part in (people, metric)))
        )
    return samples


def spearman_of_pairs(pairs: Sequence[Comparison]) -> tuple[float, int] | None:
    """Spearman's correlation of verdicts and differences, and the number of pairs."""
    return spearman([pair.verdict for pair in pairs], [pair.difference for pair in pairs])


def decide_with_tie_region(difference: float, tau: float) -> int:
    """1, 0 or -1: which clip the metric prefers outside its tie region."""
    return 0 if abs(difference) <= tau else 1 if difference > 0 else -1


def fit_tie_region(pairs: Sequence[Comparison]) -> float:
    """The tie region under which decisions agree best with people (Cohen's kappa); the smallest of the best."""
    sizes = np.unique(np.abs([pair.difference for pair in pairs]))
    tried = np.unique([0.0, *(sizes[:-1] + sizes[1:]) / 2, *sizes[-1:]]).tolist()
    return max(tried, key=lambda tau: (_kappa_at_tie_region(pairs, tau), -tau))


def evaluate_decisions(pairs: Sequence[Comparison], tau: float) -> dict[str, float | None]:
    """How decisions with this tie region agree with people.

    `exact` is the share of verdicts, ties included, that the metric shares, `strict` that of the `preferred` pairs in
    which people prefer one, `tie` that of pairs that they find equal.
    """
    predicted = [decide_with_tie_region(pair.difference, tau) for pair in pairs]
    right = [pair.verdict for pair in pairs]
    agree = [a == b for a, b in zip(predicted, right, strict=True)]
    strict = [ok for ok, verdict in zip(agree, right, strict=True) if verdict]
    ties = [ok for ok, verdict in zip(agree, right, strict=True) if not verdict]
    reversals = sum(a * b == -1 for a, b in zip(predicted, right, strict=True))
    return {
        "tau": tau,
        "n": len(pairs),
        "exact": _mean_or_none(agree),
        "strict": _mean_or_none(strict),
        "tie": _mean_or_none(ties),
        "kappa": cohen_kappa(predicted, right),
        "weighted_kappa": cohen_kappa(predicted, right, "linear"),  # a tie is nearer to a preference than its opposite
        "reversals": reversals,
        "preferred": len(strict),
    }


def draw_fit_scenes(scenes: Sequence[Hashable], share: float = 0.5, seed: int = 0) -> set[Hashable]:
    """The scenes to fit on, drawn without a look at any label; the others are for reporting."""
    names = sorted(set(scenes), key=str)
    order = np.random.default_rng(seed).permutation(len(names))
    return {names[k] for k in order[: round(share * len(names))]}


def gate_judgeability(gate: Sequence[bool], people: Sequence[bool]) -> dict[str, float | int | None]:
    """Of a gate: J (`judgeable`), NJ (`not_judgeable`) and their mean (`balanced`), with the counts they rest on."""
    passed = [g for g, p in zip(gate, people, strict=True) if p]
    rejected = [not g for g, p in zip(gate, people, strict=True) if not p]
    j, nj = _mean_or_none(passed), _mean_or_none(rejected)
    both = None if j is None or nj is None else (j + nj) / 2
    return {"judgeable": j, "not_judgeable": nj, "balanced": both, "n_judgeable": len(passed), "n_not": len(rejected)}


def _kappa_at_tie_region(pairs: Sequence[Comparison], tau: float) -> float:
    predicted = [decide_with_tie_region(pair.difference, tau) for pair in pairs]
    kappa = cohen_kappa(predicted, [pair.verdict for pair in pairs])
    return -1.0 if kappa is None else round(kappa, 12)


def _spearman_and_kendall(people: Sequence[float], metric: Sequence[float]) -> tuple[float | None, float | None]:
    rho = spearman(people, metric)
    return None if rho is None else rho[0], kendall_tau(people, metric) if len(people) > 1 else None


def _percentile_interval(values: Sequence[float | None]) -> Interval | None:
    """The middle 95 %; None where a tenth of the resamples or more leave the value undefined."""
    defined = [value for value in values if value is not None]
    if not values or len(defined) < 0.9 * len(values):
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def _mean_or_none(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


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
        spread = _clustered_score_covariance(real, weight, values, [one.cluster for one in weighted])
        covariance = bread @ spread @ bread
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
