"""One question of a suite: the ranking of the models by the metric that answers it, and the tests of all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from revisit.core import METRICS, Case
from revisit.results.cells import Cell, Interval, differences_of, within
from revisit.results.display import cell_text, ends, signed
from revisit.results.file_types import Details
from revisit.results.pairing import ranks_of
from revisit.results.results import Results
from revisit.stats.paired import ALPHA, MIN_SCENES, MIN_SCENES_OF_LEVELS, PairedTest
from revisit.stats.pairwise import ModelPair, Ranking
from revisit.stats.power import MANY, clusters_needed


@dataclass(frozen=True)
class SuiteQuestion:
    """What a suite asks, and the metrics that answer it, the first one that can be asked deciding."""

    ask: str
    metrics: tuple[str, ...]
    memory: bool = False  # whether a good score can be read as memory
    gate: str = ""  # only clips where this gate is open, if it was asked


@dataclass(frozen=True)
class ClipsNeeded:
    """How many more clips, of new scenes, would probably decide; None where there is no end to it."""

    about: int | None
    low: int | None
    high: int | None

    def __str__(self) -> str:
        if self.about is None or self.about > MANY:
            return f"more than {min(self.low, MANY)} more would be needed" if self.low else "no difference is in sight"
        if self.high is None or self.high > MANY:
            return f"about {self.about} more would ({self.low} or more)"
        return f"about {self.about} more would ({self.low} to {self.high})"


@dataclass(frozen=True)
class PairOutcome:
    """Two models of one question on common clips; `difference` is that of `ahead` minus that of `behind`."""

    ahead: str
    behind: str
    wins: int  # clips on which `ahead` is better
    losses: int
    clips: int
    scenes: int
    difference: float
    interval: Interval | None  # None for too few scenes
    p: float | None  # corrected for all pairs of the question; None for too few scenes
    decided: bool
    more: ClipsNeeded | None  # for a pair that is not decided
    uncorrected: float | None = None  # p of this pair by itself; the best model needs 5 % in each of its pairs
    method: str = ""  # the test, or why there is none

    @property
    def evidence(self) -> str:
        """`12 of 14 clips, +0.21, 0.05 to 0.37`."""
        told = [f"{self.wins} of {self.clips} clips", signed(self.difference)]
        return ", ".join(told + ([ends(self.interval)] if self.interval else []))


@dataclass(frozen=True)
class Place:
    """A model in the ranking of a question, on common clips; `low` to `high` are the places that it may have."""

    model: str
    rank: int
    low: int
    high: int
    cell: Cell


@dataclass(frozen=True)
class QuestionRanking:
    """What the clips say to a question."""

    question: SuiteQuestion
    metric: str = ""  # the one that decided; nothing where none could
    places: tuple[Place, ...] = ()  # the best first
    pairs: tuple[PairOutcome, ...] = ()
    clips: int = 0  # common ones
    left_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # model -> clips scored, and of how many
    truth: Cell | None = None
    near_truth: bool = False  # the scores tell how near the clips are to the truth's own
    reason: str = ""  # why there is no answer
    floors: Mapping[str, Cell] = field(default_factory=dict)  # of baselines without memory, which have no place

    def pair(self, one: str, other: str) -> PairOutcome | None:
        return next((pair for pair in self.pairs if {pair.ahead, pair.behind} == {one, other}), None)

    def before(self, one: str, other: str) -> bool:
        """Whether `one` is better than `other` beyond doubt."""
        pair = self.pair(one, other)
        return pair is not None and pair.decided and pair.ahead == one

    @property
    def best(self) -> tuple[str, ...]:
        """The models that may be the best: the first, and all that are not told apart from it."""
        if not self.places:
            return ()
        first = self.places[0].model
        return (first, *(place.model for place in self.places[1:] if not self.before(first, place.model)))

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.places:
            return self.reason
        first, *others = [place.model for place in self.places]
        if not others:
            told = f"{first} alone was scored: {cell_text(self.places[0].cell)}"
        elif len(self.best) == 1:
            pair = self.pair(first, others[0])
            assert pair is not None
            rest = f", and before {names_text(others[1:])}" if others[1:] else ""
            told = f"{first} before {others[0]} ({pair.evidence}){rest}"
        else:
            told = self._undecided(first, list(self.best[1:]), [name for name in others if name not in self.best])
        never = [model for model, (n, _) in self.left_out.items() if not n]
        rarely = [f"{model} {n} of {of}" for model, (n, of) in self.left_out.items() if n]
        told += f"; scored too rarely: {names_text(rarely)}" if rarely else ""
        return told + (f"; never scored: {names_text(never)}" if never else "")

    def _undecided(self, first: str, level: list[str], behind: list[str]) -> str:
        pairs = {name: pair for name in level if (pair := self.pair(first, name)) is not None}
        alike = [name for name, pair in pairs.items() if not pair.wins and not pair.losses]
        open_ = {name: pair for name, pair in pairs.items() if name not in alike}
        told = []
        if alike:
            clips = "the one clip" if self.clips == 1 else f"all {self.clips} clips"
            told.append(f"{names_text([first, *alike])} are alike on {clips}")
        if open_:
            near = next(iter(open_.values()))
            if near.p is None:
                needed_scenes = MIN_SCENES if near.scenes < MIN_SCENES else MIN_SCENES_OF_LEVELS
                scenes = "one scene" if near.scenes == 1 else f"{near.scenes} scenes"
                more = f"{scenes} cannot tell, {needed_scenes} or more could"
            else:
                more = str(near.more) if near.more else "no difference is in sight"
            told.append(f"these clips cannot decide between {names_text([first, *open_])}; {more}")
        if behind:
            everybody = all(self.before(name, other) for name in level for other in behind)
            told.append(f"{'all' if everybody else first} before {names_text(behind)}")
        return "; ".join(told)


def questions_of(card: Details) -> list[SuiteQuestion]:
    """The questions that a suite's card asks; of a suite that asks none, one question per group of metrics."""
    asked = card.get("questions") or [{"ask": name, "metrics": ids} for name, ids in (card.get("groups") or {}).items()]
    return [
        SuiteQuestion(one["ask"], tuple(one["metrics"]), bool(one.get("memory")), str(one.get("gate", "")))
        for one in asked
    ]


def rank_question(results: Results, question: SuiteQuestion) -> QuestionRanking:
    """The answer to one question, by its first metric that two models have a score in; else by the first with any."""
    part = results
    if question.gate and results.was_asked(question.gate):
        part = results.only(lambda entry: isinstance(entry, Case) and _is_open(results, entry, question.gate))
    known = [id for id in question.metrics if id in METRICS and METRICS[id].higher_is_better is not None]
    scored = {id: {record.case.model for record in part.scores(id)} for id in known}
    metric = next((id for id in known if len(scored[id]) > 1), None) or next((id for id in known if scored[id]), None)
    if metric is None:
        return QuestionRanking(question, reason=_unavailable_reason(results, question))
    return _rank_models(part, question, metric)


def _is_open(results: Results, case: Case, gate: str) -> bool:
    record = results.answer(case, gate)
    return record is None or record.status == "open"


def _rank_models(results: Results, question: SuiteQuestion, metric: str) -> QuestionRanking:
    cells = {model: part.cell(metric) for model, part in results.groups("model").items()}
    most = max(cell.n for cell in cells.values())
    rare = {model: (cell.n, cell.of) for model, cell in cells.items() if cell.n < most / 2}
    part = results.only(lambda entry: entry.model not in rare)
    common = part.common(metric)
    if not common.cases:
        unpaired = sum(part.ambiguous(metric).values())
        reason = (
            f"{unpaired} clips share a name with another clip of their scene, so they cannot be paired; give each an id"
            if unpaired
            else f"no clip has a score of {len(cells) - len(rare)} models"
        )
        return QuestionRanking(question, metric, left_out=rare, reason=reason)
    means = {model: cell for model, cell in common.mean(metric).items() if cell.mean is not None}
    ranking = common.ranking(metric)
    places = [Place(rank.model, rank.rank, rank.low, rank.high, means[rank.model]) for rank in ranks_of(ranking)]
    near = bool(results.truths) and METRICS[metric].rewards_unchanged
    pairs = _pairings(ranking, metric)
    return QuestionRanking(question, metric, tuple(places), pairs, ranking.clips, rare, _truth(results, metric), near)


def _pairings(ranking: Ranking, metric: str) -> tuple[PairOutcome, ...]:
    """All pairs, the one with the better mean ahead."""
    decided = sum(pair.decided for pair in ranking.pairs)
    alpha = ALPHA * min(1.0, (decided + 1) / max(len(ranking.pairs), 1))  # what the next pair would have to reach
    return tuple(_pairing(pair, metric, alpha) for pair in ranking.pairs)


def _pairing(pair: ModelPair, metric: str, alpha: float) -> PairOutcome:
    test = pair.test
    return PairOutcome(
        pair.ahead, pair.behind, pair.wins, pair.losses, test.clips, test.scenes, test.difference,
        None if test.interval is None else within(test.interval, differences_of(metric)), pair.p, pair.decided,
        None if pair.decided else _clips_needed(test, alpha), test.p, test.method,
    )  # fmt: skip


def _clips_needed(test: PairedTest, alpha: float) -> ClipsNeeded | None:
    """Further clips, in the present number of clips per scene, rounded to what such a guess is worth."""
    scenes = test.scenes
    if test.estimate is None:
        return None
    # The test of yes and no adds to what was seen; how much there is to find does not come from what was added.
    found = clusters_needed(replace(test.estimate, mean=test.difference, clusters=scenes), alpha)
    if found is None:
        return None
    per_scene = test.clips / scenes

    def clips(clusters: float | None) -> int | None:
        return None if clusters is None else _rounded(max(1.0, (clusters - scenes) * per_scene))

    return ClipsNeeded(clips(found.about), clips(found.low), clips(found.high))


def _rounded(count: float) -> int:
    if count < 20:
        return math.ceil(count)
    step = 5 if count < 100 else 10 ** (math.floor(math.log10(count)) - 1)
    return int(round(count / step) * step)


def _unavailable_reason(results: Results, question: SuiteQuestion) -> str:
    for id in question.metrics:
        reason = results.lacking(id)
        if reason is not None:
            return f"not asked: {reason.sentence}"
    return "not asked" if not any(results.about(id) for id in question.metrics) else "no clip could be scored"


def _truth(results: Results, metric: str) -> Cell | None:
    """The truth's own scores; of a metric that is held to the truth, the best there is."""
    if not results.truths:
        return None
    cell = results.truth.cell(metric)
    if METRICS[metric].rewards_unchanged and cell.mean is not None:
        return replace(cell, mean=METRICS[metric].range[1], interval=None)
    return cell if cell.mean is not None else None


def names_text(names: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; of many the first few, and how many more."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
