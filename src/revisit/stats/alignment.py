"""Alignment: do a metric's differences go the way that people prefer (docs/labels.md)?

A comparison is of two clips, first and second. People's verdict on it is 1 (the first is better), 0 (a tie) or -1, and
the metric's difference is score(first) - score(second), turned so that more is better. Differences within the tie
region, |difference| <= tau, are ties; `tau` is fitted on some scenes and reported on others. A reversal is a decision
for the clip that people find worse. Of a gate, J is the share of what people can judge that it lets pass, NJ the share
of what they cannot judge that it holds back.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.stats.agreement import cohen_kappa
from revisit.stats.correlation import kendall_tau, spearman

RESAMPLES = 1000
Interval = tuple[float, float]


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
