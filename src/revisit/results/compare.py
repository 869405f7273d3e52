"""Compare: one model, checkpoint or run against another, clip by clip, with corrected p and the clips to look at.

Seeds of one clip are folded into their mean, so that two runs compare also where they drew different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from revisit.core import METRICS, Case
from revisit.results.results import Interval, Results, differences_of, span, within
from revisit.stats.paired import holm, paired_test, wilcoxon

ALPHA = 0.05
Spot = tuple[str, str, str]  # subset, condition, sample: what is the same clip of two models


@dataclass(frozen=True)
class Entry:
    """One side of a comparison: a model of a run."""

    name: str
    results: Results


@dataclass(frozen=True)
class Look:
    """A clip of both sides, and what each scored: what to look at."""

    sample: str
    condition: str
    first: float
    second: float
    cases: tuple[str, str]

    @property
    def difference(self) -> float:
        return self.second - self.first


@dataclass(frozen=True)
class Part:
    """The difference in some of the clips."""

    group: str
    clips: int
    difference: float
    interval: Interval | None
    wins: int
    losses: int


@dataclass(frozen=True)
class Delta:
    """How the second does beside the first in one metric, on the clips that both have a score of."""

    metric: str
    first: str
    second: str
    clips: int
    scenes: int
    seeds: int  # scores that were folded, of both sides
    means: tuple[float, float]
    difference: float
    interval: Interval | None
    p: float | None
    corrected: float | None  # by Holm, for all metrics and pairs compared at once
    signed_ranks: float | None  # p of Wilcoxon's test
    wins: int  # of the second, by the direction of the metric
    losses: int
    looks: tuple[Look, ...] = ()  # the largest differences first, for the second and against it
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)

    @property
    def better(self) -> str | None:
        """Who is better beyond doubt."""
        higher = METRICS[self.metric].higher_is_better
        if higher is None or self.corrected is None or self.corrected > ALPHA or not self.difference:
            return None
        return self.second if (self.difference > 0) == higher else self.first


def compare(
    first: Entry,
    others: Sequence[Entry],
    metrics: Sequence[str],
    by: Mapping[str, Callable[[Case], str]] | None = None,
) -> list[Delta]:
    """All others beside the first in all metrics; a metric without a clip in common is left out."""
    made = [delta for other in others for id in metrics if (delta := _delta(first, other, id, by or {})) is not None]
    tested = [delta.p for delta in made if delta.p is not None]
    corrected = iter(holm(tested))
    return [delta if delta.p is None else replace(delta, corrected=next(corrected)) for delta in made]


def _delta(first: Entry, second: Entry, metric: str, by: Mapping[str, Callable[[Case], str]]) -> Delta | None:
    one, other = spots_of(first.results, metric), spots_of(second.results, metric)
    spots = [spot for spot in one if spot in other]
    if not spots:
        return None
    looks = [
        Look(spot[2], " ".join(filter(None, spot[:2])), one[spot][0], other[spot][0],
             (one[spot][1][0].id, other[spot][1][0].id))
        for spot in spots
    ]  # fmt: skip
    single = all(len(side[spot][1]) == 1 for side in (one, other) for spot in spots)
    both = first.results.two_valued(metric) and second.results.two_valued(metric)
    range = span(metric) if single and both else None
    tested = _tested(looks, range)
    higher = METRICS[metric].higher_is_better is not False
    wins, losses = _counts(looks, higher)
    ordered = sorted(looks, key=lambda look: (-abs(look.difference), look.sample, look.condition))
    parts = {}
    for name, group in by.items():
        groups: dict[str, list[Look]] = {}
        for spot, look in zip(spots, looks, strict=True):
            groups.setdefault(group(one[spot][1][0]), []).append(look)
        parts[name] = tuple(_part(value, some, range, higher) for value, some in groups.items())
    ranks = wilcoxon([look.first for look in looks], [look.second for look in looks])
    n = len(looks)
    return Delta(
        metric, first.name, second.name, n, len({look.sample for look in looks}),
        sum(len(side[spot][1]) for side in (one, other) for spot in spots) - 2 * n,
        (sum(look.first for look in looks) / n, sum(look.second for look in looks) / n),
        sum(look.difference for look in looks) / n,
        None if tested is None else within(tested.interval(), differences_of(metric)),
        None if tested is None else tested.p,
        None, None if ranks is None else ranks.p, wins, losses, tuple(ordered), parts,
    )  # fmt: skip


def _part(group: str, looks: Sequence[Look], range: float | None, higher: bool) -> Part:
    tested = _tested(looks, range)
    mean = sum(look.difference for look in looks) / len(looks)
    return Part(group, len(looks), mean, None if tested is None else tested.interval(), *_counts(looks, higher))


def spots_of(results: Results, metric: str) -> dict[Spot, tuple[float, list[Case]]]:
    """Clip -> the mean over its seeds, and the cases it rests on."""
    found: dict[Spot, list[tuple[float, Case]]] = {}
    for record in results.scores(metric):
        case = record.case
        if record.value is not None:
            found.setdefault((case.subset, case.condition, case.sample), []).append((record.value, case))
    return {
        spot: (sum(value for value, _ in seeds) / len(seeds), [case for _, case in seeds])
        for spot, seeds in found.items()
    }


def _tested(looks: Sequence[Look], range: float | None) -> Any:
    return paired_test(
        [look.first for look in looks], [look.second for look in looks], [look.sample for look in looks], range
    )


def _counts(looks: Sequence[Look], higher: bool) -> tuple[int, int]:
    up, down = (sum(sign * look.difference > 0 for look in looks) for sign in (1, -1))
    return (up, down) if higher else (down, up)


def as_json(delta: Delta) -> dict[str, Any]:
    """As `compare --json` prints it."""
    return {**asdict(delta), "better": delta.better}
