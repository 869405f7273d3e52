"""Scoring on condition that the test is posed: reliability, coverage and M-Score, exact where triggers are unknown.

Reliability S is the mean score of the items that pose the memory test; coverage C is their share of all items that
the list of the model has, missing videos included; the M-Score is the harmonic mean 2SC / (S + C), 0 where nothing is
posed. An item of which a judge could not say whether it poses the test is neither posed nor not: coverage, reliability
and M-Score are then intervals over everything the judge might have said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from revisit.suites.mbench.names import AXES, DIMENSIONS

Interval = tuple[float, float]


@dataclass(frozen=True)
class ItemOutcome:
    """What an item comes to under a metric."""

    score: float | None  # None where the metric gave none
    raw: float | None = None
    posed: bool | None = True  # None: nobody knows


@dataclass(frozen=True)
class Standing:
    """What a model comes to under a metric."""

    n: int  # items that are averaged
    of: int  # items that the list has
    posed: int
    not_posed: int
    unknown: int
    reliability: float | None = None
    raw: float | None = None
    strict: float | None = None  # mean over all items, those without a score as 0
    ungated: float | None = None  # mean over all scored items, whether they pose the test or not
    coverage: Interval | None = None  # None where coverage is not part of the setting
    reliability_interval: Interval | None = None
    m_interval: Interval | None = None

    @property
    def m_score(self) -> float | None:
        """The M-Score, where unknown triggers leave no choice."""
        return self.m_interval[0] if self.m_interval and self.m_interval[0] == self.m_interval[1] else None


def harmonic_mean_or_zero(reliability: float, coverage: float) -> float:
    """2SC / (S + C), and 0 where both are 0."""
    total = reliability + coverage
    return 2 * reliability * coverage / total if total > 0 else 0.0


def model_standing(outcomes: Sequence[ItemOutcome], of: int, *, covers: bool) -> Standing:
    """The standing of a model; `of` counts missing items, `covers` whether coverage is part of the score."""
    triggered = [outcome for outcome in outcomes if outcome.posed]
    unknown = [outcome for outcome in outcomes if outcome.posed is None]
    sure = [outcome.score for outcome in triggered if outcome.score is not None]
    maybe = [outcome.score for outcome in unknown if outcome.score is not None]
    every = [outcome.score for outcome in outcomes if outcome.score is not None]
    raws = [outcome.raw for outcome in triggered if outcome.score is not None and outcome.raw is not None]
    choices = list(_reliability_and_coverage_choices(sure, len(triggered), maybe, len(unknown), of)) if of else []
    reliable = [s for s, _ in choices if s is not None]
    covers = covers and of > 0
    return Standing(
        n=len(sure),
        of=of,
        posed=len(triggered),
        not_posed=of - len(triggered) - len(unknown),
        unknown=len(unknown),
        reliability=_mean_or_none(sure),
        raw=_mean_or_none(raws),
        strict=math.fsum(sure) / of if of and sure else None,
        ungated=_mean_or_none(every),
        coverage=(len(triggered) / of, (len(triggered) + len(unknown)) / of) if covers else None,
        reliability_interval=(min(reliable), max(reliable)) if reliable else None,
        m_interval=_m_score_interval(choices) if covers else None,
    )


def _reliability_and_coverage_choices(
    sure: Sequence[float], triggered: int, maybe: Sequence[float], unknown: int, of: int
) -> Iterator[tuple[float | None, float]]:
    """Reliability and coverage for the choices of unknown items among which the extremes of both and of M are.

    For a number of unknown items that pose the test, the best and the worst of them give the extremes of reliability;
    unknown items without a score change coverage alone.
    """
    total = math.fsum(sure)
    for ordered in (sorted(maybe), sorted(maybe, reverse=True)):
        for count_of_maybe in range(len(ordered) + 1):
            count = len(sure) + count_of_maybe
            mean = (total + math.fsum(ordered[:count_of_maybe])) / count if count else None
            for unscored in {0, unknown - len(maybe)}:
                yield mean, (triggered + count_of_maybe + unscored) / of


def _m_score_interval(choices: Sequence[tuple[float | None, float]]) -> Interval | None:
    """Least and largest M-Score; where something is posed and nothing of it scored, there is none."""
    values = [harmonic_mean_or_zero(s or 0.0, coverage) for s, coverage in choices if s is not None or coverage == 0]
    scored = any(reliability is not None for reliability, _ in choices)
    hopeless = all(coverage == 0 for _, coverage in choices)
    return (min(values), max(values)) if values and (scored or hopeless) else None


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    """The mean; None where there is no value, or one of them is None."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present and len(present) == len(values) else None


def axis_and_total_means(
    values: Mapping[str, float | None], setting: str, reported: Sequence[str] | None = None
) -> dict[str, float | None]:
    """Axes and total of a model from its dimensions, by metric id: plain means, and None where one is missing.

    `reported` are the dimensions that count, all of the setting by default: those that somebody has a value of.
    In setting A text interaction is no part of its axis, as in the published table.
    """
    scores: dict[str, float | None] = {}
    for axis in AXES:
        mine = [d.id for d in DIMENSIONS if d.axis == axis and setting in d.averaged]
        scores[axis] = _mean_or_none([values.get(id) for id in mine if reported is None or id in reported])
    return {**scores, "total": _mean_or_none(list(scores.values()))}
