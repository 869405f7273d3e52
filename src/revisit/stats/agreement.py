"""Agreement of raters: of two, one of whom may be right by definition, and of many with gaps.

Kappa is 1 - (observed disagreement) / (disagreement expected by chance), with every disagreement counted alike
(nominal), by its distance (linear) or by the square of that (quadratic). 1 is full agreement, 0 is chance.
Many raters: a row per thing that was rated, a column per rater, None where a rater did not rate it. Gwet's AC1 (2008)
and AC2 stay meaningful where nearly everybody gives the same rating; Cohen's kappa of more than two raters is the mean
over their pairs (Light 1971). Intervals are the jackknife's over things or clusters of them, with Student's t.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import multimode
from typing import Any, Literal

import numpy as np

from revisit.core import UsageError
from revisit.stats.intervals import Interval, t_quantile

Weights = Literal["nominal", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal"]
Ratings = Sequence[Sequence[Any]]  # a row per thing, a column per rater, None where there is no rating
LEVEL = 0.95  # of intervals


def yes_no_agreement(answers: Sequence[bool], right: Sequence[bool]) -> dict[str, float | None]:
    """How a judge's yes and no agree with the right ones, in equal order; a rate is None where nothing could show it.

    `balanced_accuracy` is the mean of the accuracies where yes is right and where no is; 0.5 is chance.
    """
    counts = Counter(zip(answers, right, strict=True))
    tp, fp, fn, tn = counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    recall, rejection = _ratio_or_none(tp, tp + fn), _ratio_or_none(tn, tn + fp)
    return {
        "n": len(answers),
        "right_yes": tp,
        "wrong_yes": fp,
        "wrong_no": fn,
        "right_no": tn,
        "accuracy": _ratio_or_none(tp + tn, len(answers)),
        "balanced_accuracy": None if recall is None or rejection is None else (recall + rejection) / 2,
        "precision": _ratio_or_none(tp, tp + fp),
        "recall": recall,
        "f1": _ratio_or_none(2 * tp, 2 * tp + fp + fn),
        "kappa": cohen_kappa(answers, right),
    }


def cohen_kappa(one: Sequence[Any], other: Sequence[Any], weights: Weights = "nominal") -> float | None:
    """Cohen's kappa of two raters; None where both always gave one and the same rating, or there are none.

    With linear and quadratic weights ratings are numbers, and their distance counts.
    """
    names = list(dict.fromkeys([*one, *other]))
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([[place[rating] for rating in both] for both in zip(one, other, strict=True)], int).reshape(-1, 2)
    return _cohen_kappa_of_codes(codes, names, weights)


def unanimous_and_pairwise_agreement(repeats: Sequence[Sequence[Hashable]]) -> tuple[float, float] | None:
    """The share of questions that were always answered alike, and the mean share of equal pairs of answers.

    One sequence of answers per question; None where no question was answered twice.
    """
    repeated = [answers for answers in repeats if len(answers) > 1]
    if not repeated:
        return None
    unanimous = [len(set(answers)) == 1 for answers in repeated]
    pairs = [[a == b for a, b in combinations(answers, 2)] for answers in repeated]
    return sum(unanimous) / len(unanimous), sum(sum(pair) / len(pair) for pair in pairs) / len(pairs)


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement; None where it is not defined."""

    value: float | None
    interval: Interval | None  # None where nothing varies, or too few things were rated twice
    things: int  # that two raters or more have rated
    ratings: int  # of these things


@dataclass(frozen=True)
class Coded:
    """Ratings as numbers: the place of each among the categories, -1 where there is none."""

    codes: np.ndarray  # things x raters
    names: tuple[Any, ...]


def encode_ratings(ratings: Ratings | Coded, categories: Sequence[Any] | None = None) -> Coded:
    """The ratings as numbers; the categories are those that occur, in order, unless they are given."""
    if isinstance(ratings, Coded):
        if categories is None or tuple(categories) == ratings.names:
            return ratings
        places = [list(categories).index(name) for name in ratings.names]
        return Coded(np.array([*places, -1])[ratings.codes], tuple(categories))
    categories_present = {rating for row in ratings for rating in row if rating is not None}
    names = tuple(sorted(categories_present) if categories is None else categories)
    unknown = categories_present - set(names)
    if unknown:
        raise UsageError(f"a rating is {sorted(unknown, key=str)[0]!r}; the categories are {list(names)}")
    place = {name: k for k, name in enumerate(names)}
    most = max((len(row) for row in ratings), default=0)
    codes = np.full((len(ratings), most), -1)
    for k, row in enumerate(ratings):
        codes[k, : len(row)] = [-1 if rating is None else place[rating] for rating in row]
    return Coded(codes, names)


def gwet_ac(
    ratings: Ratings | Coded, scale: Scale = "nominal", categories: Sequence[Any] | None = None
) -> float | None:
    """Gwet's AC1, or AC2 on a scale with an order; None where no thing was rated twice or there is one category only.

    Give `categories` where some were offered and never chosen: they count in what chance would do.
    """
    counts, several, names = _counts_per_category(ratings, categories)
    if not len(several) or len(names) < 2:
        return None
    weights = _agreement_weights(len(names), scale)
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    expected = weights.sum() * (shares * (1 - shares)).sum() / (len(names) * (len(names) - 1))
    return _chance_corrected_agreement(several, weights, float(expected))


def fleiss_kappa(ratings: Ratings | Coded) -> float | None:
    """Fleiss' kappa; None where it is not defined."""
    counts, several, names = _counts_per_category(ratings)
    if not len(several):
        return None
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return _chance_corrected_agreement(several, np.eye(len(names)), float(shares @ shares))


def krippendorff_alpha(ratings: Ratings | Coded, scale: Scale = "nominal") -> float | None:
    """Krippendorff's alpha; None where no thing was rated twice, or all ratings are the same."""
    _, several, names = _counts_per_category(ratings)
    if not len(several):
        return None
    sizes = several.sum(axis=1, keepdims=True)
    pairs = (several / (sizes - 1)).T @ several - np.diag((several / (sizes - 1)).sum(axis=0))
    totals = pairs.sum(axis=1)
    middles = np.cumsum(totals) - totals / 2
    apart = 1 - np.eye(len(names)) if scale == "nominal" else np.subtract.outer(middles, middles) ** 2
    expected = float((np.outer(totals, totals) * apart).sum()) / (totals.sum() - 1)
    return 1 - float((pairs * apart).sum()) / expected if expected else None


def light_kappa(ratings: Ratings | Coded) -> float | None:
    """The mean of Cohen's kappa over the pairs of raters who rated some things both; of two raters, theirs."""
    table = encode_ratings(ratings)
    pairs = [table.codes[:, pair] for pair in combinations(range(table.codes.shape[1]), 2)]
    every = [_cohen_kappa_of_codes(both[(both >= 0).all(axis=1)], table.names) for both in pairs]
    kappas = [kappa for kappa in every if kappa is not None]
    return math.fsum(kappas) / len(kappas) if kappas else None


def agreement_with_jackknife_interval(
    coefficient: Callable[[Coded], float | None],
    ratings: Ratings,
    clusters: Sequence[Hashable] | None = None,
) -> Agreement:
    """A coefficient with its jackknife interval: how it moves as each thing, or each cluster of them, is left out."""
    table = encode_ratings(ratings)
    names = list(range(len(ratings))) if clusters is None else list(clusters)
    sizes = (table.codes >= 0).sum(axis=1)
    several = sizes >= 2
    things, count = int(several.sum()), int(sizes[several].sum())
    value = coefficient(table)
    rated = (name for name, is_rated in zip(names, several, strict=True) if is_rated)
    groups = {name: k for k, name in enumerate(dict.fromkeys(rated))}
    interval, n = None, len(groups)
    if value is not None and n >= 3:
        member = np.array([groups.get(name, -1) for name in names])
        without = [coefficient(Coded(table.codes[member != group], table.names)) for group in range(n)]
        estimates = np.array([math.nan if one is None else one for one in without])
        variance = (n - 1) / n * float(((estimates - estimates.mean()) ** 2).sum())
        if variance > 1e-15:  # not where one of them is unknown
            margin = t_quantile((1 + LEVEL) / 2, n - 1) * math.sqrt(variance)
            interval = max(-1.0, value - margin), min(1.0, value + margin)
    return Agreement(value, interval, things, count)


def most_frequent_vote(votes: Sequence[Hashable]) -> Any | None:
    """The most frequent vote; None where several are most frequent, or there is none."""
    modes = multimode(votes)
    return modes[0] if len(modes) == 1 else None


def _counts_per_category(
    ratings: Ratings | Coded, categories: Sequence[Any] | None = None
) -> tuple[np.ndarray, np.ndarray, tuple[Any, ...]]:
    """How often each thing with a rating got each category, the same of those rated twice; and the categories."""
    table = encode_ratings(ratings, categories)
    counts = (table.codes[:, :, None] == np.arange(len(table.names))).sum(axis=1, dtype=float)
    ratings_of = counts.sum(axis=1)
    return counts[ratings_of > 0], counts[ratings_of >= 2], table.names


def _cohen_kappa_of_codes(both: np.ndarray, names: Sequence[Any], weights: Weights = "nominal") -> float | None:
    """Cohen's kappa of two columns of codes."""
    q = len(names)
    table = np.bincount(both[:, 0] * q + both[:, 1], minlength=q * q).reshape(q, q).astype(float)
    apart = 1 - np.eye(q) if weights == "nominal" else np.abs(np.subtract.outer(names, names)).astype(float)
    if weights == "quadratic":
        apart *= apart
    expected = float((np.outer(table.sum(axis=1), table.sum(axis=0)) * apart).sum())
    return 1 - float((table * apart).sum()) * table.sum() / expected if expected else None


def _chance_corrected_agreement(several: np.ndarray, weights: np.ndarray, expected: float) -> float | None:
    """The share of pairs of ratings of one thing that agree, by weight, as a mean over things, beyond chance."""
    sizes = several.sum(axis=1)
    observed = float(((several * (several @ weights - 1)).sum(axis=1) / (sizes * (sizes - 1))).mean())
    return (observed - expected) / (1 - expected) if expected < 1 else None


def _agreement_weights(categories: int, scale: Scale) -> np.ndarray:
    """What a pair of ratings counts as agreement: 1 for equal ones, less with their distance."""
    if scale == "nominal":
        return np.eye(categories)
    apart = np.abs(np.subtract.outer(np.arange(categories), np.arange(categories)))
    apart = (apart + 1) * apart / 2  # the number of pairs of categories between the two, ends included
    return np.asarray(1 - apart / apart.max())


def _ratio_or_none(part: int, whole: int) -> float | None:
    return part / whole if whole else None
