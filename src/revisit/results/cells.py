"""Cells: the mean of a metric over scored clips, its 95 % interval, and the count of clips without a score."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from revisit.results.score_names import find_metric_of_score
from revisit.stats.intervals import interval_of_two_valued_mean, mean_interval
from revisit.stats.paired import PairedTest

SCENES_FOR_RARE_FAILURES = 29  # 0.9^29 < 5 %: so many show a failure of one scene in ten
GOOD = 0.25  # of the range of a metric, from its best end: nothing in such scores is a failure
Limits = tuple[float | None, float | None]
Interval = tuple[float, float]
CellEntry = dict[str, Any]  # a cell as summary.json has it; what is unknown or empty is left out, but for the counts


@dataclass(frozen=True)
class Cell:
    """A mean over scored clips, and what became of the others."""

    n: int  # scored
    of: int  # asked, missing ones included
    mean: float | None = None
    interval: Interval | None = None  # 95 %; None where fewer than two samples leave it unknown
    failed: int = 0
    unscored: Mapping[str, int] = field(default_factory=dict)  # kind of reason -> clips
    few_scenes: bool = False  # too few to see rare failures: all scores are good, and an interval would hide that
    clips: Mapping[Hashable, tuple[float, str]] = field(default_factory=dict, repr=False, compare=False)
    # clip -> its score and its scene, by which models are compared; not written to files

    def as_json(self) -> CellEntry:
        """As summary.json has it."""
        entry: CellEntry = {"n": self.n, "of": self.of, "failed": self.failed}
        if self.mean is not None:
            entry["mean"] = self.mean
            entry["interval"] = None if self.interval is None else list(self.interval)
            if self.few_scenes:
                entry["few_scenes"] = True
        if self.unscored:
            entry["unscored"] = dict(sorted(self.unscored.items()))
        return entry

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Cell:
        """The cell that summary.json has."""
        interval = content.get("interval")
        return cls(
            content["n"],
            content["of"],
            content.get("mean"),
            (interval[0], interval[1]) if interval else None,
            content.get("failed", 0),
            content.get("unscored", {}),
            bool(content.get("few_scenes")),
        )


def make_mean_cell(values_and_scenes: Sequence[tuple[float, str]], asked: int, limits: Limits = (None, None)) -> Cell:
    """A cell of (value, sample) that are no scores themselves, such as facts of them."""
    return Cell(len(values_and_scenes), asked, *mean_and_interval(values_and_scenes, limits))


def make_score_cell(
    values_and_scenes: Sequence[tuple[float, str]],
    asked: int,
    limits: Limits,
    higher_is_better: bool | None,
    two_valued: bool = False,
    failed: int = 0,
    unscored: Mapping[str, int] | None = None,
    clips: Mapping[Hashable, tuple[float, str]] | None = None,
) -> Cell:
    """The cell of a metric's scores: one rule for tables, verdict, trend and monitor, so that intervals agree.

    Parameters
    ----------
    values_and_scenes
        Scores, each with its scene.
    asked
        Clips that were asked.
    limits, higher_is_better
        Range and direction of the metric.
    two_valued
        Whether every score is one end of the range or the other.
    failed, unscored, clips
        As the cell has them.

    Returns
    -------
    Cell
        Without an interval where fewer than two scenes leave it unknown, or too few would hide rare failures.

    Examples
    --------
    >>> make_score_cell([(0.98, "a"), (0.97, "b"), (0.99, "c")], 3, (0, 1), True).few_scenes
    True
    >>> make_score_cell([(1.0, "a"), (1.0, "b"), (1.0, "c")], 3, (0, 1), True, two_valued=True).interval[1]
    1.0
    """
    mean, interval = mean_and_interval(values_and_scenes, limits, two_valued)
    few = not two_valued and interval_hides_rare_failures(values_and_scenes, interval, limits, higher_is_better)
    return Cell(
        len(values_and_scenes), asked, mean, None if few else interval, failed, unscored or {}, few, clips or {}
    )


def mean_and_interval(
    values_and_scenes: Sequence[tuple[float, str]], limits: Limits, two_valued: bool = False
) -> tuple[float | None, Interval | None]:
    """The mean of (value, sample), and its interval within the limits; `two_valued` are only ever one or the other."""
    if not values_and_scenes:
        return None, None
    numbers, samples = [value for value, _ in values_and_scenes], [sample for _, sample in values_and_scenes]
    if two_valued and limits[0] is not None and limits[1] is not None:
        interval = interval_of_two_valued_mean(numbers, samples, (limits[0], limits[1]))
    else:
        interval = mean_interval(numbers, samples)
    return sum(numbers) / len(numbers), None if interval is None else clamp_interval(interval, limits)


def interval_hides_rare_failures(
    values_and_scenes: Sequence[tuple[float, str]],
    interval: Interval | None,
    limits: Limits,
    higher_is_better: bool | None,
) -> bool:
    """Whether all scores are good, and so alike that one failing scene more would lie outside their mean's interval.

    If one scene in ten fails, fewer than 29 scenes show no failure at all in more than 5 % of cases, and nothing in
    them tells how far down a failure would be.
    """
    low, high = limits
    scenes = len({scene for _, scene in values_and_scenes})
    if interval is None or low is None or high is None or higher_is_better is None:
        return False
    worst, best = (low, high) if higher_is_better else (high, low)
    good = all(abs(value - best) <= GOOD * (high - low) for value, _ in values_and_scenes)
    mean = sum(value for value, _ in values_and_scenes) / len(values_and_scenes)
    with_a_failure = (mean * scenes + worst) / (scenes + 1)
    return good and scenes < SCENES_FOR_RARE_FAILURES and not interval[0] <= with_a_failure <= interval[1]


def clamp_interval(interval: Interval, limits: Limits) -> Interval:
    """The interval, cut off at the limits."""
    low, high = limits
    return (
        interval[0] if low is None else max(interval[0], low),
        interval[1] if high is None else min(interval[1], high),
    )


def range_limits_of_metric(metric: str) -> Limits:
    """The range of a metric; none where its code is not installed here."""
    card = find_metric_of_score(metric)
    return (None, None) if card is None else card.range


def metric_range_width(metric: str) -> float | None:
    """How far two scores of a metric can be apart; None where there is no limit."""
    low, high = range_limits_of_metric(metric)
    return None if low is None or high is None else high - low


def difference_interval(test: PairedTest, metric: str) -> Interval | None:
    """The interval of a tested difference, within what two scores of the metric can differ by."""
    most = metric_range_width(metric)
    return test.interval if test.interval is None or most is None else clamp_interval(test.interval, (-most, most))
