"""Compare: one model, checkpoint or run against another, clip by clip, with corrected p and the clips to look at.

Seeds of one clip are folded into their mean, so that two runs compare also where they drew different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from revisit.core import METRICS, Case
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names
from revisit.results.ceilings import LOOK_AWAY
from revisit.results.cells import Interval, difference_interval, metric_range_width
from revisit.results.collapses import picture_fault_unlike_truth
from revisit.results.display import interval_ends_text, p_value_text
from revisit.results.funnel import RETURN_GATES
from revisit.results.metric_columns import NO_ANSWER
from revisit.results.pairing import ClipKey, clip_key_without_seed
from revisit.results.results import Results
from revisit.results.score_names import strip_held_suffix, zero_below_noise_floor
from revisit.stats.paired import (
    ALPHA,
    PairedTest,
    holm_corrected_p,
    one_sided_sign_test,
    paired_test,
    wilcoxon_signed_rank,
)

FEWER = 0.5  # of the clips of the first: with fewer that pose the test, a warning says so even where it may be chance
Tested = TypeVar("Tested", "Delta", "Coverage")


@dataclass(frozen=True)
class Contender:
    """One side of a comparison: a model of a run."""

    name: str
    results: Results


@dataclass(frozen=True)
class ClipDifference:
    """A clip of both sides, and what each scored: what to look at."""

    sample: str
    condition: str
    first: float
    second: float
    cases: tuple[str, str]
    scene: str  # what clips share that are alike

    @property
    def difference(self) -> float:
        return self.second - self.first

    @property
    def name(self) -> str:
        """The clip in words."""
        return " ".join(filter(None, (self.sample, self.condition)))


@dataclass(frozen=True)
class GroupDifference:
    """The difference in some of the clips."""

    group: str
    clips: int
    difference: float
    interval: Interval | None
    wins: int
    losses: int

    @property
    def interval_text(self) -> str:
        return interval_ends_text(self.interval, of_difference=True) if self.interval else "too few scenes"


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
    looks: tuple[ClipDifference, ...] = ()  # the largest differences first, for the second and against it
    method: str = ""  # the test, or why there is none
    parts: Mapping[str, tuple[GroupDifference, ...]] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """What the second is beside the first, beyond doubt: `better`, `worse`, or nothing where that is open."""
        higher = METRICS[strip_held_suffix(self.metric)].higher_is_better
        if higher is None or self.corrected is None or self.corrected > ALPHA or not self.difference:
            return ""
        return "better" if (self.difference > 0) == higher else "worse"

    @property
    def significantly_better_side(self) -> str | None:
        """Who is better beyond doubt."""
        return {"better": self.second, "worse": self.first}.get(self.word)

    @property
    def significant_only_uncorrected(self) -> bool:
        """Whether it differs at 5 % by itself, but not among everything that is compared."""
        return self.p is not None and self.corrected is not None and self.p <= ALPHA < self.corrected

    @property
    def p_text(self) -> str:
        """`0.391 (0.016 alone)`: p after the correction; the p by itself, too, where only that is significant."""
        if self.p is None or self.corrected is None:
            return ""
        alone = f" ({p_value_text(self.p)} alone)" if self.significant_only_uncorrected else ""
        return f"{p_value_text(self.corrected)}{alone}"

    @property
    def interval_text(self) -> str:
        """The interval of this difference by itself, or why there is none."""
        return interval_ends_text(self.interval, of_difference=True) if self.interval else self.method


def compare_with_first(
    first: Contender,
    others: Sequence[Contender],
    metrics: Sequence[str],
    by: Mapping[str, Callable[[Case], str]] | None = None,
) -> list[Delta]:
    """All others beside the first in all metrics; a metric without a clip in common is left out."""
    deltas = [
        delta
        for other in others
        for id in metrics
        if (delta := _delta_in_metric(first, other, id, by or {})) is not None
    ]
    return correct_p_values_by_holm(deltas)


def correct_p_values_by_holm(deltas: Sequence[Delta]) -> list[Delta]:
    """The same with Holm's correction over all of them: what is shown at once is corrected at once."""
    return _apply_holm_correction(deltas, "p", "corrected")


def _apply_holm_correction(tests: Sequence[Tested], p_name: str, corrected_name: str) -> list[Tested]:
    """The same with Holm's correction of a p over all that have one, under a name of its own or the same."""
    corrected = iter(holm_corrected_p([p for one in tests if (p := getattr(one, p_name)) is not None]))
    changes: list[dict[str, Any]] = [
        {} if getattr(one, p_name) is None else {corrected_name: next(corrected)} for one in tests
    ]
    return [replace(one, **change) for one, change in zip(tests, changes, strict=True)]


def _delta_in_metric(
    first: Contender, second: Contender, metric: str, by: Mapping[str, Callable[[Case], str]]
) -> Delta | None:
    one, other = mean_scores_by_clip(first.results, metric), mean_scores_by_clip(second.results, metric)
    spots = [spot for spot in one if spot in other]
    if not spots:
        return None
    looks = [_make_clip_difference(one[spot], other[spot]) for spot in spots]
    seeds = sum(len(side[spot].cases) - 1 for side in (one, other) for spot in spots)
    both = first.results.two_valued(metric) and second.results.two_valued(metric)
    score_range = metric_range_width(metric) if both and not seeds else None
    tested = _paired_test_over_scenes(looks, score_range)
    higher = METRICS[strip_held_suffix(metric)].higher_is_better is not False
    wins, losses = _wins_and_losses(looks, higher)
    ordered = sorted(looks, key=lambda look: (-abs(look.difference), look.sample, look.condition))
    parts = {}
    for name, group in by.items():
        groups = group_items(zip(spots, looks, strict=True), lambda pair: group(one[pair[0]].cases[0]))  # noqa: B023
        parts[name] = tuple(
            _make_group_difference(metric, value, [look for _, look in some], score_range, higher)
            for value, some in groups.items()
        )
    ranks = wilcoxon_signed_rank([look.first for look in looks], [look.second for look in looks])
    n = len(looks)
    return Delta(
        metric, first.name, second.name, n, len({look.scene for look in looks}), seeds,
        (sum(look.first for look in looks) / n, sum(look.second for look in looks) / n),
        sum(look.difference for look in looks) / n,
        difference_interval(tested, metric), tested.p, None,
        None if ranks is None else ranks.p, wins, losses, tuple(ordered), tested.method, parts,
    )  # fmt: skip


def _make_clip_difference(one: FoldedClip, other: FoldedClip) -> ClipDifference:
    case = one.cases[0]
    condition = " ".join(dict.fromkeys(filter(None, (case.subset, case.condition))))
    if case.clip_name not in (None, case.sample):  # one of several clips of a scene
        condition = " ".join(filter(None, (condition, str(case.clip_name))))
    return ClipDifference(case.sample, condition, one.mean, other.mean, (case.id, other.cases[0].id), case.scene)


def _make_group_difference(
    metric: str, group: str, looks: Sequence[ClipDifference], score_range: float | None, higher: bool
) -> GroupDifference:
    tested = _paired_test_over_scenes(looks, score_range)
    mean = sum(look.difference for look in looks) / len(looks)
    return GroupDifference(
        group, len(looks), mean, difference_interval(tested, metric), *_wins_and_losses(looks, higher)
    )


class FoldedClip(NamedTuple):
    """A clip of one side: the mean over its seeds, and the cases it rests on."""

    mean: float
    cases: list[Case]


def mean_scores_by_clip(results: Results, metric: str) -> dict[ClipKey, FoldedClip]:
    """The scores of all clips."""
    return _mean_over_seeds_by_clip(
        [
            (record.case, zero_below_noise_floor(metric, record.value))
            for record in results.scores(metric)
            if record.value is not None
        ]
    )


def _mean_over_seeds_by_clip(clips: Iterable[tuple[Case, float]]) -> dict[ClipKey, FoldedClip]:
    """Clips by their keys, with the mean over their seeds.

    Clips that bear one name, but are no seeds of each other, have no counterpart and are left out.
    """
    return {
        key: FoldedClip(sum(value for _, value in seeds) / len(seeds), [case for case, _ in seeds])
        for key, seeds in group_items(clips, lambda item: clip_key_without_seed(item[0])).items()
        if len({case.seed for case, _ in seeds}) == len(seeds)
    }


def _mean_over_equal_seeds_of_common_clips(
    first: Iterable[tuple[Case, float]], second: Iterable[tuple[Case, float]]
) -> tuple[dict[ClipKey, FoldedClip], dict[ClipKey, FoldedClip]]:
    """The clips that both sides have, with the mean over as many seeds of each, the lowest.

    The side with more seeds would show a rare failure more often.
    """
    sides = [group_items(side, lambda item: clip_key_without_seed(item[0])) for side in (first, second)]
    chosen: tuple[list[tuple[Case, float]], list[tuple[Case, float]]] = ([], [])
    for key in [key for key in sides[0] if key in sides[1]]:
        clips = [sorted(side[key], key=lambda item: item[0].seed) for side in sides]
        if all(len({case.seed for case, _ in seeds}) == len(seeds) for seeds in clips):
            for some, seeds in zip(chosen, clips, strict=True):
                some += seeds[: min(map(len, clips))]
    return _mean_over_seeds_by_clip(chosen[0]), _mean_over_seeds_by_clip(chosen[1])


def _paired_test_over_scenes(looks: Sequence[ClipDifference], score_range: float | None) -> PairedTest:
    tested = paired_test(
        [look.first for look in looks], [look.second for look in looks], [look.scene for look in looks], score_range
    )
    assert tested is not None
    return tested


@dataclass(frozen=True)
class Coverage:
    """How many clips of two sides were delivered, and on how many the test was posed."""

    first: str
    second: str
    asked: tuple[int, int]  # clips that the dataset expects
    delivered: tuple[int, int]  # of them, those that are there and can be read
    posed: tuple[int, int] | None  # of them, those whose camera left and came back; None where no gate asks that
    p: float | None = None  # of fewer posed clips by chance, one-sided over scenes, corrected for all pairs at once
    lacking: tuple[str, ...] = ()  # clips that the first delivered and the second did not
    # Of clips of both, as many seeds of each, those whose picture collapses; None if not asked.
    collapsed: tuple[int, int] | None = None
    newly_collapsed: tuple[str, ...] = ()  # samples on which the second collapses more often than the first
    collapse_p: float | None = None  # of more collapses by chance, in the same way
    collapse_untested: str = ""  # why collapses were not tested, where one side was asked for them
    other_seeds: int = 0  # clips of both sides that have no seed in common

    @property
    def seeds_text(self) -> str:
        """That the sides have other seeds, where they have."""
        if not self.other_seeds:
            return ""
        clips = count_and_noun(self.other_seeds, "clip")
        return (
            f"{clips} of {self.first} and {self.second} have no seed in common: they are compared by their names, "
            "returns and collapses scene by scene"
        )

    @property
    def delivery_text(self) -> str:
        """How many clips both delivered, with those that the second lacks."""
        one, other = (
            f"{n} of {count_and_noun(of, 'clip')}" if n != of else count_and_noun(n, "clip")
            for n, of in zip(self.delivered, self.asked, strict=True)
        )
        lacking = f"; it lacks {join_names(self.lacking)}" if self.lacking else ""
        return f"{self.second} delivered {other}, {self.first} {one}{lacking}"

    @property
    def collapse_text(self) -> str:
        """On how many clips the pictures collapse, where they do on any."""
        if self.collapsed is None or not any(self.collapsed):
            return ""
        new = f" ({join_names(self.newly_collapsed)})" if self.newly_collapsed else ""
        clips = count_and_noun(self.collapsed[1], "clip")
        text = f"the picture of {self.second} collapses on {clips}{new}, that of {self.first} on {self.collapsed[0]}"
        if self.collapse_p is None or not self._second_has_more_collapses:
            return text
        return (
            f"{text} ({'' if self.second_collapses_significantly_more else 'not significant, '}p "
            f"{p_value_text(self.collapse_p)})"
        )

    @property
    def _second_has_more_collapses(self) -> bool:
        """Whether more clips of the second collapse, be it by chance."""
        return self.collapsed is not None and self.collapsed[1] > self.collapsed[0]

    @property
    def second_collapses_significantly_more(self) -> bool:
        """Whether the picture of the second collapses on more scenes than that of the first, beyond chance."""
        return self.collapse_p is not None and self.collapse_p <= ALPHA

    @property
    def second_returns_significantly_less(self) -> bool:
        """Whether the camera of the second returns on fewer scenes than that of the first, beyond chance."""
        return self.p is not None and self.p <= ALPHA

    @property
    def return_text(self) -> str:
        """On how many clips the cameras looked away and came back."""
        if self.posed is None:
            return ""
        one, other = (f"{n} of {of}" for n, of in zip(self.posed, self.delivered, strict=True))
        return f"the camera of {self.second} looked away and came back on {other} clips, that of {self.first} on {one}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What the second lacks beside the first, as sentences."""
        sentences = []
        if self.delivered[1] < self.delivered[0]:
            sentences.append(self.delivery_text)
        if self.second_returns_significantly_less:
            sentences.append(self.return_text)
        if self.second_collapses_significantly_more:
            sentences.append(self.collapse_text)
        return tuple(sentences)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be worse in the second, but is not beyond chance, as sentences."""
        sentences = []
        if (
            self.posed is not None
            and self.posed[1] * self.delivered[0] < FEWER * self.posed[0] * self.delivered[1]  # of as many clips
            and not self.second_returns_significantly_less
        ):
            sentences.append(f"{self.return_text} (not significant, p {p_value_text(self.p or 1.0)})")
        if self._second_has_more_collapses and not self.second_collapses_significantly_more:
            sentences.append(self.collapse_text)
        if self.collapse_untested:
            sentences.append(self.collapse_untested)
        return tuple(sentences)


def compare_coverage(first: Contender, second: Contender) -> Coverage:
    """Compare how many clips two sides delivered, on how many the camera left and came back, and how many collapse."""
    sides = first.results, second.results
    clips_of_second = {clip_key_without_seed(case) for case in sides[1].readable.cases}
    absent = [case for case in sides[0].readable.cases if clip_key_without_seed(case) not in clips_of_second]
    coverage = Coverage(
        first.name,
        second.name,
        asked=(len(sides[0].entries), len(sides[1].entries)),
        delivered=(len(sides[0].readable.cases), len(sides[1].readable.cases)),
        posed=None,
        lacking=tuple(dict.fromkeys(case.clip_name or case.sample for case in absent)),
        other_seeds=_clips_without_common_seed(*sides),
    )
    one, other = (_testable_flags_of_clips(side) for side in sides)
    if one is not None and other is not None:
        counts = [sum(value == 1.0 for _, value in flags) for flags in (one, other)]
        p = _one_sided_sign_test_over_scenes(*_mean_over_equal_seeds_of_common_clips(one, other))
        coverage = replace(coverage, posed=(counts[0], counts[1]), p=p)
    return _with_collapse_counts(coverage, *sides)


def correct_coverage_p_values_by_holm(coverages: Sequence[Coverage]) -> list[Coverage]:
    """The same with Holm's correction of each test over all of them."""
    return _apply_holm_correction(_apply_holm_correction(coverages, "p", "p"), "collapse_p", "collapse_p")


def _one_sided_sign_test_over_scenes(
    more: Mapping[ClipKey, FoldedClip], fewer: Mapping[ClipKey, FoldedClip]
) -> float | None:
    """P of as many scenes on which the second has less than the first, by chance; None without a clip of both.

    A scene counts for the side that has more: exact one-sided sign test, which is McNemar's of one clip a scene.
    """
    excess: dict[str, float] = {}
    for key in more:
        scene = more[key].cases[0].scene
        excess[scene] = excess.get(scene, 0.0) + more[key].mean - fewer[key].mean
    up, down = (sum(sign * share > 1e-9 for share in excess.values()) for sign in (1, -1))
    return one_sided_sign_test(up, down) if excess else None


def _with_collapse_counts(coverage: Coverage, first: Results, second: Results) -> Coverage:
    """The coverage with the collapses of the clips that both sides have, tested over scenes, where that was asked."""
    flags = _collapse_flags_of_clips(first), _collapse_flags_of_clips(second)
    one, other = _mean_over_equal_seeds_of_common_clips(*flags)
    if not one:
        asked = [name for name, side in zip((coverage.first, coverage.second), flags, strict=True) if side]
        why = "no clip of both was asked for them" if len(asked) == 2 else f"only {' '.join(asked)} was asked for them"
        return replace(coverage, collapse_untested=f"collapses were not tested: {why}" if asked else "")
    counts = [round(sum(clip.mean * len(clip.cases) for clip in side.values())) for side in (one, other)]
    newly = [other[key].cases[0].sample for key in one if other[key].mean > one[key].mean]
    return replace(
        coverage,
        collapsed=(counts[0], counts[1]),
        newly_collapsed=tuple(dict.fromkeys(newly)),
        collapse_p=_one_sided_sign_test_over_scenes(other, one),
    )


def _clips_without_common_seed(first: Results, second: Results) -> int:
    """How many clips both sides have, but no seed of them."""
    seeds: list[dict[ClipKey, set[int]]] = [
        {key: {case.seed for case in cases} for key, cases in group_items(side.cases, clip_key_without_seed).items()}
        for side in (first.readable, second.readable)
    ]
    return sum(not seeds[0][key] & seeds[1][key] for key in seeds[0].keys() & seeds[1].keys())


def _collapse_flags_of_clips(results: Results) -> list[tuple[Case, float]]:
    """Every readable clip of which that was asked, and 1 where its picture collapses."""
    faults = [(case, picture_fault_unlike_truth(results, case)) for case in results.readable.cases]
    return [(case, float(bool(fault))) for case, fault in faults if fault is not None]


def _testable_flags_of_clips(results: Results) -> list[tuple[Case, float]] | None:
    """Every readable clip, and 1 where a gate of return is open; None where no gate was asked."""
    gates = [gate for gate in results.gates if gate in RETURN_GATES and results.was_asked(gate)]
    if not gates:
        return None
    clips: list[tuple[Case, float]] = []
    for case in results.readable.cases:
        states = [(results.answer(case, gate) or NO_ANSWER).status for gate in gates]
        rests = (results.answer(case, LOOK_AWAY) or NO_ANSWER).status == "closed"
        clips.append((case, float("open" in states and not rests)))
    return clips


def _wins_and_losses(looks: Sequence[ClipDifference], higher: bool) -> tuple[int, int]:
    up, down = (sum(sign * look.difference > 0 for look in looks) for sign in (1, -1))
    return (up, down) if higher else (down, up)


def delta_as_json(delta: Delta) -> dict[str, object]:
    """As `compare --json` prints it."""
    return {**asdict(delta), "better": delta.significantly_better_side}
