"""Checkpoints: which of several to keep, how sure that is, and whether training still gains.

The best one beats every other on the clips that both have a score of, tested over scenes; where it does not,
the sentence says between which it is open and how many more clips would probably decide. A checkpoint whose clips do
not pose the test, such as one that stands still, cannot win: coverage is a question of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from revisit.core.text import count_and_noun, join_names
from revisit.results.compare import Contender, mean_scores_by_clip
from revisit.results.display import COVERAGE_MAY_DIFFER, number_text, score_title, signed_number_text
from revisit.results.question_ranking import NO_DIFFERENCE, more_clips_needed
from revisit.results.score_names import find_metric_of_score
from revisit.stats.paired import ALPHA, PairedTest
from revisit.stats.pairwise import ModelPair, Ranking, rank_models
from revisit.stats.sequential import PATIENCE, Looks, compare_with_best_so_far

COVERAGE = "coverage"


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
