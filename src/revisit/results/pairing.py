"""Clips of two models paired by scene and seed, the comparison of two models, and the places of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from revisit.core import METRICS, Case, Record
from revisit.results.cells import Interval, difference_interval, metric_range_width
from revisit.results.score_names import strip_held_suffix, zero_below_noise_floor
from revisit.stats.paired import ALPHA, paired_test
from revisit.stats.pairwise import Ranking, rank_models

PairingKey = tuple[str | int, ...]  # Case.pairing_key
ClipKey = tuple[str, ...]  # what is the same clip of two models, whatever its seed


def clip_key_without_seed(case: Case) -> ClipKey:
    """Equal for clips of two models that are compared with each other, by any seed."""
    name = case.clip_name
    return (name,) if name is not None else (case.subset, case.condition, case.sample)


@dataclass(frozen=True)
class Pair:
    """One clip of two models: the same sample under the same conditions."""

    first: Record
    second: Record

    @property
    def compared_scores(self) -> tuple[float, float]:
        """Both scores, as models are compared by them."""
        assert self.first.value is not None and self.second.value is not None
        metric = self.first.question
        return zero_below_noise_floor(metric, self.first.value), zero_below_noise_floor(metric, self.second.value)

    @property
    def difference(self) -> float:
        """How much the second scores above the first."""
        first, second = self.compared_scores
        return second - first


@dataclass(frozen=True)
class Paired:
    """Two models on the clips that both have a score of; differences are second - first."""

    metric: str
    first: str
    second: str
    pairs: tuple[Pair, ...]  # the largest differences first
    difference: float | None
    interval: Interval | None  # None where there is no p
    p: float | None  # of the two-sided test over scenes, of this pair alone; None for too few scenes
    wins: int  # of the second, by the direction of the metric
    ties: int
    losses: int
    ambiguous: int = 0  # clips that have no counterpart, because several of a scene bear one name

    @property
    def better(self) -> str | None:
        """The model that is better at 5 %, this pair taken by itself, or None where that is not known."""
        metric = METRICS[strip_held_suffix(self.metric)]
        if self.p is None or self.p > ALPHA or metric.higher_is_better is None or self.wins == self.losses:
            return None
        return self.second if ((self.difference or 0.0) > 0) == metric.higher_is_better else self.first


@dataclass(frozen=True)
class Rank:
    """The place of a model under a metric, and the places it may have: `low` is the best of them.

    Places come from clips that models have in common; `mean` is over all `n` clips of the model.
    """

    model: str
    rank: int
    low: int
    high: int
    mean: float
    n: int


def count_ambiguous_clips(scores: Iterable[Record]) -> dict[tuple[str, PairingKey], int]:
    """Model and key of clips that cannot be paired, because several clips of the model bear that key."""
    counts = Counter((record.case.model, record.case.pairing_key) for record in scores)
    return {named: count for named, count in counts.items() if count > 1}


def rank_models_by_scores(scores: Sequence[Record], metric: str, two_valued: bool) -> Ranking:
    """Models from best to worst, with tests of all pairs on their common clips; models without a score are left out.

    Several clips of one model that bear the same key are left out: none of them has a counterpart of its own.
    """
    ambiguous = count_ambiguous_clips(scores)
    by_model: dict[str, dict[Hashable, float]] = {}
    for record in sorted(scores, key=lambda record: record.case.model):
        key = record.case.pairing_key
        if record.value is not None and (record.case.model, key) not in ambiguous:
            by_model.setdefault(record.case.model, {})[key] = zero_below_noise_floor(metric, record.value)
    scenes: dict[Hashable, Hashable] = {record.case.pairing_key: record.case.scene for record in scores}
    higher = METRICS[strip_held_suffix(metric)].higher_is_better is not False
    return rank_models(by_model, scenes, higher, metric_range_width(metric) if two_valued else None)


def ranks_from_ranking(ranking: Ranking) -> list[Rank]:
    """The place of each model, the best first; equals share a place."""
    return [
        Rank(
            model,
            1 + sum(ranking.is_better(other, model) for other in ranking.order),
            *ranking.possible_places(model),
            ranking.means[model],
            ranking.counts[model],
        )
        for model in ranking.order
    ]


def compare_two_models(scores: Sequence[Record], metric: str, first: str, second: str, two_valued: bool) -> Paired:
    """Two models on the clips that both have a score of."""
    ambiguous = count_ambiguous_clips(scores)
    by_clip: dict[PairingKey, dict[str, Record]] = {}
    for record in scores:
        case = record.case
        if case.model in (first, second) and (case.model, case.pairing_key) not in ambiguous:
            by_clip.setdefault(case.pairing_key, {})[case.model] = record
    pairs = [Pair(both[first], both[second]) for both in by_clip.values() if len(both) == 2]
    differences = [pair.difference for pair in pairs]
    higher = METRICS[strip_held_suffix(metric)].higher_is_better is not False
    won = [difference > 0 if higher else difference < 0 for difference in differences if difference]
    test = paired_test(
        [pair.compared_scores[0] for pair in pairs],
        [pair.compared_scores[1] for pair in pairs],
        [pair.first.case.scene for pair in pairs],
        metric_range_width(metric) if two_valued else None,
    )
    return Paired(
        metric,
        first,
        second,
        tuple(sorted(pairs, key=lambda pair: (-abs(pair.difference), pair.first.case.id))),
        None if test is None else test.difference,
        None if test is None else difference_interval(test, metric),
        None if test is None else test.p,
        sum(won),
        len(pairs) - len(won),
        len(won) - sum(won),
        sum(count for (model, _), count in ambiguous.items() if model in (first, second)),
    )
