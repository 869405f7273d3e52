"""Trend: a score over checkpoints or dates, on the clips that all of them have a score of, and which of them to keep.

Means have the interval that tables give the same clips. Every metric is a question of its own, as in the verdict: p is
that of its slope alone, and of two points it is that of their difference.

The best checkpoint beats every other on the clips that both have a score of, tested over scenes; where it does not,
the sentence says between which it is open and how many more clips would probably decide. A checkpoint whose clips do
not pose the test, such as one that stands still, cannot win: coverage is a question of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from revisit.core import METRICS
from revisit.core.text import count_and_noun, join_names
from revisit.results.cells import Cell, make_score_cell, range_limits_of_metric
from revisit.results.compare import Contender, compare_coverage, mean_scores_by_clip
from revisit.results.display import COVERAGE_MAY_DIFFER, number_text, p_value_text, score_title, signed_number_text
from revisit.results.pairing import clip_key_without_seed
from revisit.results.question_ranking import NO_DIFFERENCE, more_clips_needed
from revisit.results.score_names import find_metric_of_score, strip_held_suffix
from revisit.stats.paired import ALPHA, PairedTest, mean_change_test
from revisit.stats.pairwise import ModelPair, Ranking, rank_models
from revisit.stats.sequential import PATIENCE, Looks, compare_with_best_so_far

COVERAGE = "coverage"


@dataclass(frozen=True)
class Trend:
    """A metric over points in order; cells are over common clips."""

    metric: str
    cells: tuple[Cell, ...]
    slope: PairedTest | None  # of a straight line through each clip's scores, per step, over scenes
    seeds: int = 0  # scores that were folded into the mean of their clip

    @property
    def monotone_direction(self) -> str:
        """`rises`, `falls`, `flat`, or nothing where it goes both ways; a step may leave it as it is."""
        steps = self._steps_between_means
        if not any(steps):
            return "flat" if self.cells else ""
        return "rises" if min(steps) >= 0 else "falls" if max(steps) <= 0 else ""

    @property
    def _steps_between_means(self) -> list[float]:
        means = [cell.mean for cell in self.cells if cell.mean is not None]
        return [after - before for before, after in pairwise(means)]

    @property
    def sentence(self) -> str:
        if not self.cells:
            return "no clip has a score at every point"
        way = {"rises": "rises and never falls", "falls": "falls and never rises", "flat": "does not change"}
        if all(self._steps_between_means):
            way |= {"rises": "rises at every step", "falls": "falls at every step"}
        direction = self.monotone_direction
        course = way.get(direction, "goes up and down")
        if self.slope is None or self.slope.p is None:
            scenes = 0 if self.slope is None else self.slope.scenes
            few = "one scene" if scenes == 1 else f"{scenes} scenes"
            return f"{course}; {few} cannot tell whether that is more than chance"
        if self.slope.p > ALPHA:
            return f"{course}; no trend beyond chance (p {p_value_text(self.slope.p)})"
        better = METRICS[strip_held_suffix(self.metric)].higher_is_better
        up = self.slope.difference > 0
        word = ("up" if up else "down") if better is None else "better" if up == better else "worse"
        if not direction:
            return f"{course}, on the whole {word} (p {p_value_text(self.slope.p)})"
        return f"{course}; a trend{'' if better is None else f' for the {word}'} (p {p_value_text(self.slope.p)})"

    def as_json(self) -> dict[str, object]:
        slope = None if self.slope is None else {"mean": self.slope.difference, "p": self.slope.p}
        cells = [cell.as_json() for cell in self.cells]
        texts = {"monotone": self.monotone_direction, "sentence": self.sentence}
        return {"metric": self.metric, "cells": cells, "slope": slope, **texts}


def common_clips_sentence(curves: Sequence[Trend]) -> str:
    """What the means and p of these curves are of, where that is not what each run's own summary has."""
    counts = [(cell.n, cell.of) for curve in curves for cell in curve.cells]
    if not counts:
        return ""
    sentences = []
    if any(n < of for n, of in counts):
        fewest, most = min(n for n, _ in counts), max(n for n, _ in counts)
        clips = count_and_noun(most, "clip") if fewest == most else f"{fewest} to {most} clips"
        sentences.append(f"means are over the {clips} that every point has a score of, and not over all of each run")
    if any(curve.seeds for curve in curves):
        sentences.append("several seeds of a clip are folded into their mean")
    if sum(bool(curve.cells) for curve in curves) > 1:
        sentences.append("p is that of each metric by itself (`compare` corrects for all that it shows)")
    return "; ".join(sentences)


@dataclass(frozen=True)
class PointCoverage:
    """How many clips a point delivered, and on how many its camera looked away and came back."""

    name: str
    asked: int
    delivered: int
    returned: int | None  # None where no gate asks that
    lacks: int = 0  # clips that other points have and this one has none of
    of: int = 0  # clips that any of the points has


def coverage_of_points(points: Sequence[Contender]) -> list[PointCoverage]:
    """The coverage of each point: scores over common clips do not show that ever more clips come back."""
    pairs = [compare_coverage(points[0], point) for point in points]
    clips = [{clip_key_without_seed(case) for case in point.results.readable.cases} for point in points]
    every = frozenset().union(*clips)
    return [
        PointCoverage(p.second, p.asked[1], p.delivered[1], p.posed and p.posed[1], len(every - mine), len(every))
        for p, mine in zip(pairs, clips, strict=True)
    ]


def lacking_clips_sentence(labels: Sequence[str], coverages: Sequence[PointCoverage]) -> str:
    """Which points lack how many of the clips that others have; nothing where all have the same."""
    some = [f"{name} lacks {one.lacks} of {one.of}" for name, one in zip(labels, coverages, strict=True) if one.lacks]
    return f"of the clips that other points have, {join_names(some)}" if some else ""


def coverage_sentence(coverages: Sequence[PointCoverage]) -> str:
    """On how many clips the camera came back at each point; nothing where no gate asks that."""
    if any(point.returned is None for point in coverages):
        return ""
    return f"looks away and comes back on {' → '.join(f'{one.returned} of {one.delivered}' for one in coverages)} clips"


def has_scores_or_coverage_change(curves: Sequence[Trend], coverages: Sequence[PointCoverage]) -> bool:
    """Whether there is anything to follow: a score of the same clips at every point, or coverage that changes."""
    return any(curve.cells for curve in curves) or len({(point.returned, point.delivered) for point in coverages}) > 1


def score_trends(points: Sequence[Contender], metrics: Sequence[str]) -> list[Trend]:
    """A trend per metric."""
    return [_trend_in_metric(points, id) for id in metrics]


def _trend_in_metric(points: Sequence[Contender], metric: str) -> Trend:
    scores = [mean_scores_by_clip(point.results, metric) for point in points]
    common = [clip for clip in scores[0] if all(clip in other for other in scores)]
    if not common:
        return Trend(metric, (), None)
    scenes = [scores[0][clip].cases[0].scene for clip in common]
    seeds = sum(len(here[clip].cases) - 1 for here in scores for clip in common)
    two_valued = not seeds and all(point.results.two_valued(metric) for point in points)
    higher = METRICS[strip_held_suffix(metric)].higher_is_better
    cells = [
        make_score_cell(
            [(here[clip].mean, scene) for clip, scene in zip(common, scenes, strict=True)],
            len(here), range_limits_of_metric(metric), higher, two_valued,
        )
        for here in scores
    ]  # fmt: skip
    middle = (len(points) - 1) / 2
    weights = [k - middle for k in range(len(points))]
    scale = sum(weight * weight for weight in weights)
    slopes = [sum(w * here[clip].mean for w, here in zip(weights, scores, strict=True)) / scale for clip in common]
    # So large that scores of few levels hide as much of it by their rounding as of a difference of two scores.
    contrasts = [slope * math.sqrt(2 * scale) for slope in slopes]
    p, method = mean_change_test(contrasts, scenes, scores=[here[clip].mean for here in scores for clip in common])
    return Trend(metric, tuple(cells), PairedTest(tuple(slopes), tuple(scenes), p, method), seeds)


@dataclass(frozen=True)
class CheckpointChoice:
    """The best checkpoint by one metric, or by how many clips have a score of it."""

    metric: str
    question: str  # the metric itself, or `coverage`
    labels: tuple[str, ...]
    ranking: Ranking
    shares: tuple[float, ...]  # of the clips asked that have a score, by checkpoint
    looks: Looks
    without_score: tuple[str, ...] = ()  # further checkpoints

    @property
    def leading_checkpoint(self) -> str:
        """The checkpoint with the best mean."""
        return self.ranking.order[0]

    @property
    def leader_has_fewer_scores(self) -> bool:
        """Whether the leader has a score of so many clips fewer than another that its mean says little."""
        return self.question != COVERAGE and max(self.shares) - self._leader_scored_share > COVERAGE_MAY_DIFFER

    @property
    def _leader_scored_share(self) -> float:
        """Of the clips of the leader that have a score."""
        return self.shares[self.labels.index(self.leading_checkpoint)]

    @property
    def decided_best(self) -> str | None:
        """The one that is best beyond doubt."""
        return None if self.leader_has_fewer_scores else self.ranking.best

    @property
    def undecided_pairs_of_leader(self) -> tuple[ModelPair, ...]:
        """Pairs of the leader with those that it does not beat."""
        return tuple(pair for pair in self.ranking.pairs if pair.ahead == self.leading_checkpoint and not pair.decided)

    @property
    def title(self) -> str:
        name = score_title(self.metric)
        return f"clips with a score of {name}" if self.question == COVERAGE else name

    @property
    def sentence(self) -> str:
        """Which to keep, and how sure that is."""
        none = f"; no score: {join_names(self.without_score)}" if self.without_score else ""
        return f"{self._order_text}{none}"

    @property
    def _order_text(self) -> str:
        """The same of those that have scores."""
        if self.leader_has_fewer_scores:
            few = f"{self._leader_scored_share:.0%} of its clips only, where another has {max(self.shares):.0%}"
            return f"{self.leading_checkpoint} has the best mean, but a score of {few}: that is no memory to keep"
        mean = number_text(self.ranking.means[self.leading_checkpoint])
        if len({*self.ranking.counts.values()}) > 1:  # tables have the mean over common clips
            mean += f" on {count_and_noun(self.ranking.counts[self.leading_checkpoint], 'clip')}"
        if self.decided_best is not None:
            fewest = min(pair.test.clips for pair in self.ranking.pairs if pair.ahead == self.decided_best)
            return f"keep {self.decided_best} ({mean}): it beats each of the others on {fewest} or more common clips"
        if not self.undecided_pairs_of_leader:
            return f"{self.leading_checkpoint} ({mean}) leads; the common clips cannot decide it"
        equal = [pair.behind for pair in self.undecided_pairs_of_leader if not pair.wins and not pair.losses]
        others = [pair for pair in self.undecided_pairs_of_leader if pair.behind not in equal]
        if not others:
            return f"no difference between {join_names([self.leading_checkpoint, *equal])} ({mean})"
        lead = "lead alike, but are" if equal else "leads, but is"
        leaders = f"{join_names([self.leading_checkpoint, *equal])} ({mean}) {lead}"
        nearest = f"({signed_number_text(others[0].test.difference)} to {others[0].behind})"
        decide = _what_would_decide_text(others[0].test)
        return f"{leaders} not told from {join_names([pair.behind for pair in others])} {nearest}{decide}"

    @property
    def improving_checkpoints(self) -> list[str]:
        """Checkpoints that were better than all before them beyond doubt."""
        return [self.labels[look.point] for look in self.looks.looks if look.better]

    @property
    def progress_sentence(self) -> str:
        """Whether training still gains, by a rule that does not count on luck."""
        if len(self.labels) < 3:
            return ""
        if self.improving_checkpoints:
            last = f"last gain beyond doubt at {self.improving_checkpoints[-1]}"
        elif self.decided_best is not None:
            last = "a gain of training asks for more proof: of many checkpoints one is easily the best by luck"
        else:
            last = "no gain beyond doubt so far"
        if self._tested_looks_since_gain >= PATIENCE:
            return f"{last}; {self._tested_looks_since_gain} looks since found none ({PATIENCE} are enough to stop)"
        return last

    @property
    def _tested_looks_since_gain(self) -> int:
        """Looks after the last improvement; one with too few scenes for a test saw nothing."""
        return sum(look.p is not None and look.point > self.looks.incumbent for look in self.looks.looks)

    def as_json(self) -> dict[str, object]:
        """As `trend --json` prints it."""
        return {
            "metric": self.metric, "question": self.question, "best": self.decided_best,
            "leads": self.leading_checkpoint,
            "open_with": [pair.behind for pair in self.undecided_pairs_of_leader], "sentence": self.sentence,
            "better_at": self.improving_checkpoints,
            "looks_since": self._tested_looks_since_gain, "stop": self._tested_looks_since_gain >= PATIENCE,
        }  # fmt: skip


def _what_would_decide_text(test: PairedTest) -> str:
    if test.p is None:
        return f"; {test.method}"
    needed = more_clips_needed(test, ALPHA)
    return f"; {needed}" if needed else "" if test.difference else f"; {NO_DIFFERENCE}"


def choose_checkpoints(
    points: Sequence[Contender], metrics: Sequence[str], labels: Sequence[str]
) -> list[CheckpointChoice]:
    """A choice per metric that has a better end, and one by coverage where checkpoints differ in it."""
    choices = []
    names = tuple(f"{label} ({place + 1})" if labels.count(label) > 1 else label for place, label in enumerate(labels))
    for metric in metrics:
        card = find_metric_of_score(metric)
        higher = None if card is None else card.higher_is_better
        clips = {name: mean_scores_by_clip(p.results, metric) for name, p in zip(names, points, strict=True)}
        if higher is None or not any(clips.values()):
            continue
        scores: dict[str, dict[Hashable, float]] = {
            name: {clip: value for clip, (value, _) in own.items()} for name, own in clips.items()
        }
        scenes: dict[Hashable, Hashable] = {
            clip: cases[0].scene for own in clips.values() for clip, (_, cases) in own.items()
        }
        shares = {
            name: len(p.results.scores(metric)) / max(len(p.results.records_for(metric)), 1)
            for name, p in zip(names, points, strict=True)
        }
        scored = {name: mine for name, mine in scores.items() if mine}  # early ones may have no score at all
        ranking = rank_models(scored, scenes, higher)
        if ranking.pairs:
            looks = compare_with_best_so_far(list(scored.values()), scenes, higher)
            own_shares, without = tuple(shares[name] for name in scored), tuple(n for n in names if n not in scored)
            choices.append(CheckpointChoice(metric, metric, tuple(scored), ranking, own_shares, looks, without))
        if len({*shares.values()}) > 1:
            posed: dict[str, dict[Hashable, float]] = {
                name: {clip: float(clip in mine) for clip in scenes} for name, mine in scores.items()
            }
            ranking = rank_models(posed, scenes, True, 1.0)
            looks = compare_with_best_so_far(list(posed.values()), scenes)
            choices.append(CheckpointChoice(metric, COVERAGE, names, ranking, tuple(shares.values()), looks))
    return choices
