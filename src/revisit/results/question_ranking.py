"""One question of a suite: the ranking of the models by the metric that answers it, and the tests of all pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from revisit.core import METRICS, Case, UsageError
from revisit.core.grouping import group_items
from revisit.core.reasons import KINDS
from revisit.core.text import count_and_noun, join_names
from revisit.results import display
from revisit.results.ceilings import OUTCOME, ranking_score_id
from revisit.results.cells import Cell, Interval, difference_interval
from revisit.results.file_types import Details
from revisit.results.funnel import looks_away_and_returns
from revisit.results.pairing import ranks_from_ranking
from revisit.results.results import Results
from revisit.stats.paired import ALPHA, MIN_SCENES, MIN_SCENES_OF_LEVELS, PairedTest
from revisit.stats.pairwise import MANY, Ranking, clusters_needed, models_with_few_clips

QUESTION_KEYS = {"ask", "metrics", "memory", "gate"}  # of an entry of `questions` in a suite's card
NO_DIFFERENCE = "no difference is in sight"
# By the kind of reason why there is no answer: what no clip has, and what helps.
NOT_GIVEN = {"no_target": "no target was given", "no_reference": "no reference video was given"}
REMEDIES = {"no_target": "`revisit annotate RUN --task marks` draws its box"}
MOST_FURTHER = 3  # models whose wins are told beside those of the first


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
            few = self.low and count_and_noun(min(self.low, MANY), "more clip")
            return f"more than {few} would be needed" if few else NO_DIFFERENCE
        if self.low == self.high:
            return f"about {count_and_noun(self.about, 'more clip')} would decide"
        most = "or more" if self.high is None or self.high > MANY else f"to {self.high}"
        return f"about {count_and_noun(self.about, 'more clip')} would decide ({self.low} {most})"


@dataclass(frozen=True)
class PairOutcome:
    """Two models of one question on their common clips; `difference` is that of `ahead` minus that of `behind`."""

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
    lower_is_better: bool = False

    @property
    def evidence_text(self) -> str:
        """`on 12 of 14 clips: +0.21 (95 % CI 0.05 to 0.37)`."""
        return f"on {self.wins} of {count_and_noun(self.clips, 'clip')}: {self._difference_text}"

    @property
    def _difference_text(self) -> str:
        """`+0.21 (95 % CI 0.05 to 0.37)`."""
        remarks = [f"95 % CI {display.interval_ends_text(self.interval, of_difference=True)}"] if self.interval else []
        remarks += ["lower is better"] if self.lower_is_better and self.difference else []
        return display.signed_number_text(self.difference) + (f" ({'; '.join(remarks)})" if remarks else "")

    @property
    def _standing_text(self) -> str:
        """Who is ahead, and by how much; not *ahead* of one that is better on as many clips."""
        if self.wins > self.losses or not self.losses:
            return f"{self.ahead} is ahead of {self.behind} {self.evidence_text}"
        clips = count_and_noun(self.clips, "clip")
        return (
            f"{self.ahead} has a better mean than {self.behind}, {self._difference_text}, but is better on only "
            f"{self.wins} of {clips}"
        )

    @property
    def undecided_text(self) -> str:
        """How it stands where nothing is decided, and what would decide: the one ahead, by how much, clips needed."""
        stands = self._standing_text
        if self.p is None:
            needed = MIN_SCENES if self.scenes < MIN_SCENES else MIN_SCENES_OF_LEVELS
            return f"{stands}, {count_and_noun(self.scenes, 'scene')}; a test needs {needed}"
        if self.uncorrected is not None and self.uncorrected <= ALPHA:
            if self.wins == self.losses:
                return f"{stands} (p of the mean {display.p_value_text(self.uncorrected)})"
            return (
                f"{stands}: significant alone (p {display.p_value_text(self.uncorrected)}), not among all pairs of "
                f"models{self._clips_needed_text}"
            )
        return f"{stands}, not significant{self._clips_needed_text}"

    @property
    def _clips_needed_text(self) -> str:
        """What would decide; nothing where that cannot be told, as of clips that all differ by the same."""
        if self.more is not None:
            return f"; {self.more}"
        return "" if self.difference else f"; {NO_DIFFERENCE}"


@dataclass(frozen=True)
class Place:
    """A model in the ranking of a question; `low` to `high` are the places that it may have."""

    model: str
    rank: int
    low: int
    high: int
    cell: Cell  # of all clips that it has a score of
    common: Cell | None = None  # of the clips that all ranked models have a score of; None where there are none


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
    near_truth: bool = False  # the scores are held to the truth, and have a name of their own
    reason: str = ""  # why there is no answer
    floors: Mapping[str, Cell] = field(default_factory=dict)  # of baselines without memory, which have no place
    reasons: Mapping[str, str] = field(default_factory=dict)  # model without a score -> why, in a few words
    unranked: Mapping[str, Cell] = field(default_factory=dict)  # of the models that are left out
    same_as: str = ""  # the question whose numbers these would repeat
    score: str = ""  # the name of the scores: that of the metric, or of what is held to the truth
    asked: bool = True  # whether any of its metrics was

    def pair_of_models(self, first_model: str, second_model: str) -> PairOutcome | None:
        return next((pair for pair in self.pairs if {pair.ahead, pair.behind} == {first_model, second_model}), None)

    def is_decided_better(self, better_model: str, other_model: str) -> bool:
        """Whether `better_model` is better than `other_model` beyond doubt."""
        pair = self.pair_of_models(better_model, other_model)
        return pair is not None and pair.decided and pair.ahead == better_model

    @property
    def best(self) -> tuple[str, ...]:
        """The models that may be the best: the first, and all that are not told apart from it."""
        if not self.places:
            return ()
        first = self.places[0].model
        return (first, *(place.model for place in self.places[1:] if not self.is_decided_better(first, place.model)))

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return "; ".join([self.order_text, *self.left_out_sentences]) if self.places else self.reason

    @property
    def order_text(self) -> str:
        """Who beats whom, as far as that is known."""
        first, *others = [place.model for place in self.places]
        if not others:
            return f"only {first} has a score: {display.cell_text(self.places[0].cell)}"
        if self.pairs and all(pair.p is None and (pair.wins or pair.losses) for pair in self.pairs):
            return self._means_text()
        best = self.best
        parts, stated = [], {(first, other) for other in others if other not in best}
        behind = [name for name in others if name not in best]
        if len(best) == 1:
            pair = self.pair_of_models(first, others[0])
            assert pair is not None
            rest = f"; it also beats {join_names(others[1:])}" if others[1:] else ""
            parts.append(f"{first} beats {others[0]} {pair.evidence_text}{rest}")
        else:
            parts += self._undecided_sentences(first, best[1:])
            if behind:
                everybody = all(self.is_decided_better(name, other) for name in best for other in behind)
                stated |= {(name, other) for name in best for other in behind} if everybody else set()
                who = (f"all {len(best)} beat" if len(best) > 2 else "both beat") if everybody else f"{first} beats"
                parts.append(f"{who} {join_names(behind)}")
        return "; ".join([*parts, *self._further_win_sentences(stated)])

    def _means_text(self) -> str:
        """The means, where no pair has enough scenes for a test."""
        means = [f"{place.model} {display.number_text(place.cell.mean)} on {place.cell.n}" for place in self.places]
        means[0] += " clip" if self.places[0].cell.n == 1 else " clips"
        scenes = max(pair.scenes for pair in self.pairs)
        needed = MIN_SCENES if scenes < MIN_SCENES else MIN_SCENES_OF_LEVELS
        return f"{join_names(means, 8)}; {count_and_noun(scenes, 'scene')} in common, a test needs {needed}"

    def _undecided_sentences(self, first: str, level: Sequence[str]) -> list[str]:
        """What is known of those that may be the best: who scores the same, and how the nearest other one stands."""
        pairs = {name: pair for name in level if (pair := self.pair_of_models(first, name)) is not None}
        alike = [name for name, pair in pairs.items() if not pair.wins and not pair.losses]
        open_ = [name for name in level if name not in alike]
        parts = []
        if alike:
            clips = max(pairs[name].clips for name in alike)
            where = "the one clip" if clips == 1 else f"all {clips} clips"
            parts.append(f"{join_names([first, *alike])} score the same on {where}")
        near = next((pairs[name] for name in open_ if name in pairs), None)
        if near is not None:
            parts.append(near.undecided_text)
        further = [name for name in open_ if near is None or name not in (near.ahead, near.behind)]
        untested = [name for name in further if near and name in pairs and pairs[name].p is None]
        if untested:
            have = "has" if len(untested) == 1 else "have"
            parts.append(f"{join_names(untested)} {have} too few scenes in common with {first} for a test")
        further = [name for name in further if name not in untested]
        worse = [name for name in further if name in pairs and pairs[name].wins == pairs[name].clips]
        if worse:
            verb = "is" if len(worse) == 1 else "are"
            parts.append(f"{join_names(worse)} {verb} behind {first} on every clip, too few to prove it")
        if further := [name for name in further if name not in worse]:
            how = f"cannot be told from {first} either" if near else f"have no clip in common with {first}"
            parts.append(f"{join_names(further)} {how}")
        return parts

    def _further_win_sentences(self, stated: Collection[tuple[str, str]]) -> list[str]:
        """Decided pairs that were not told: the rest of the partial order."""
        first, rank = self.places[0].model, {place.model: place.rank for place in self.places}
        decided = [(pair.ahead, pair.behind) for pair in self.pairs if pair.decided and pair.ahead != first]
        beaten = group_items((pair for pair in decided if pair not in stated), lambda pair: pair[0])
        winners = sorted(beaten, key=lambda model: rank[model])[:MOST_FURTHER] if len(self.best) > 1 else []
        return [f"{model} beats {join_names([behind for _, behind in beaten[model]])}" for model in winners]

    @property
    def left_out_sentences(self) -> list[str]:
        """Who is not ranked: too few clips, or none at all, and why."""
        rarely = [f"{model} {n} of {of}" for model, (n, of) in self.left_out.items() if n]
        parts = [f"too few clips to compare: {join_names(rarely)}"] if rarely else []
        never = [model for model, (n, _) in self.left_out.items() if not n]
        for why, names in group_items(never, lambda model: self.reasons.get(model, "")).items():
            parts.append(f"no score{f' ({why})' if why else ''}: {join_names(names, 8)}")
        return parts


def read_suite_questions(suite_card: Details) -> list[SuiteQuestion]:
    """The questions that a suite's card asks; of a suite that asks none, one question per group of metrics."""
    entries = suite_card.get("questions") or [
        {"ask": name, "metrics": ids} for name, ids in (suite_card.get("groups") or {}).items()
    ]
    for one in entries:
        if not isinstance(one, Mapping) or not {"ask", "metrics"} <= one.keys() <= QUESTION_KEYS:
            keys = ", ".join(sorted(map(str, one))) if isinstance(one, Mapping) else repr(one)
            raise UsageError(
                f"card.yaml: an entry of `questions` has {keys}; it needs `ask` (a sentence) and `metrics` (a list of "
                "ids), and may have `memory` (true or false) and `gate` (an id)"
            )
    return [
        SuiteQuestion(one["ask"], tuple(one["metrics"]), bool(one.get("memory")), str(one.get("gate", "")))
        for one in entries
    ]


def rank_questions(results: Results, suite_card: Details) -> list[QuestionRanking]:
    """The answers to the questions of a suite's card; one that another caps, and that repeats its numbers, says so."""
    answers = [rank_question(results, question) for question in read_suite_questions(suite_card)]
    outcome = next((answer for answer in answers if answer.metric == OUTCOME and answer.places), None)
    return answers if outcome is None else [_refer_to_outcome_if_capped(results, answer, outcome) for answer in answers]


def _refer_to_outcome_if_capped(results: Results, answer: QuestionRanking, outcome: QuestionRanking) -> QuestionRanking:
    """The answer; where most of its scores are the outcome's, which caps them, the question is the outcome's."""
    if not answer.metric or not METRICS[answer.metric].rewards_unchanged:
        return answer
    scores = results.scores(answer.metric)
    capped = sum("outcome" in record.facts for record in scores)
    new = {place.model for place in answer.places} - {place.model for place in outcome.places}
    if new or capped <= len(scores) / 2:
        return answer
    clips = f"{capped} of {count_and_noun(len(scores), 'clip')}"
    why = f"looks are not judged separately: an unseen event was due on {clips}"
    reason = f"see “{outcome.question.ask}”; {why}"
    return QuestionRanking(answer.question, reason=reason, same_as=outcome.question.ask)


def rank_question(results: Results, question: SuiteQuestion) -> QuestionRanking:
    """The answer to one question, by its first metric that two models have a score in; else by the first with any."""
    part = results
    if question.gate and results.was_asked(question.gate):
        # Clips that are missing stay: nobody knows what the gate would say, and counts of all clips have them.
        closed = {record.case.id for record in results.records_for(question.gate) if record.status != "open"}
        part = results.only(lambda entry: not isinstance(entry, Case) or entry.id not in closed)
    directed = [id for id in question.metrics if id in METRICS and METRICS[id].higher_is_better is not None]
    scored = {id: {record.case.model for record in part.scores(id)} for id in directed}
    metric = max(directed, key=lambda id: min(len(scored[id]), 2), default=None)
    if metric is None or not scored[metric]:
        asked = any(results.lacking(id) is not None or results.records_for(id) for id in question.metrics)
        return QuestionRanking(question, reason=_unanswered_reason_text(results, question), asked=asked)
    return _rank_models_in_metric(part, question, metric)


def _rank_models_in_metric(results: Results, question: SuiteQuestion, metric: str) -> QuestionRanking:
    groups = results.groups("model")
    cells = {model: part.cell(metric) for model, part in groups.items()}
    too_few = sorted(models_with_few_clips({model: cell.n for model, cell in cells.items()}))
    rare = {model: (cells[model].n, cells[model].of) for model in too_few}
    part = results.only(lambda entry: entry.model not in rare)
    ranking = part.ranking(metric)
    ambiguous = part.ambiguous(metric)
    lost = {model for model, _ in ambiguous} - {*ranking.order}  # of whose clips none has a name of its own
    if lost or not ranking.order or (len(ranking.order) > 1 and not ranking.pairs):
        reason = f"no two of {len(cells) - len(rare)} models have a clip in common"
        if unpaired := sum(ambiguous.values()):
            same = f"{unpaired} clips share a name with another clip of their scene"
            reason = f"{same}, so they cannot be paired; give each an id"
        return QuestionRanking(question, metric, left_out=rare, reason=reason)
    common = part.common(metric)
    shared = common.mean(metric) if common.cases else {}
    places = [
        Place(rank.model, rank.rank, rank.low, rank.high, cells[rank.model], shared.get(rank.model))
        for rank in ranks_from_ranking(ranking)
    ]
    score = ranking_score_id(results, metric)
    truth = results.truth.cell(score) if results.truths else Cell(0, 0)
    clips = len({case.pairing_key for case in common.cases})
    reasons = {model: _no_score_reason_text(groups[model], metric, question) for model, (n, _) in rare.items() if not n}
    return QuestionRanking(
        question, metric, tuple(places), _pair_outcomes(ranking, metric), clips, rare,
        None if truth.mean is None else truth, score != metric, reasons=reasons,
        unranked={model: cells[model] for model in rare}, score=score,
    )  # fmt: skip


def _no_score_reason_text(part: Results, metric: str, question: SuiteQuestion) -> str:
    """Why a model has no score, in a few words."""
    if part.cases and not part.readable.cases:
        return "could not be read"
    if question.memory and part.was_asked("view_return"):
        returns = any(looks_away_and_returns(part, case) for case in part.cases)
        return "not testable" if returns else "never came back"
    unscored = part.cell(metric).unscored
    return display.reason_title(max(unscored, key=lambda kind: unscored[kind])) if unscored else ""


def _pair_outcomes(ranking: Ranking, metric: str) -> tuple[PairOutcome, ...]:
    """All pairs, the one with the better mean ahead."""
    decided = sum(pair.decided for pair in ranking.pairs)
    alpha = ALPHA * min(1.0, (decided + 1) / max(len(ranking.pairs), 1))  # what the next pair would have to reach
    outcomes = []
    for pair in ranking.pairs:
        test = pair.test
        more = None if pair.decided else more_clips_needed(test, alpha)
        outcomes.append(PairOutcome(
            pair.ahead, pair.behind, pair.wins, pair.losses, test.clips, test.scenes, test.difference,
            difference_interval(test, metric), pair.p, pair.decided, more, test.p, test.method,
            METRICS[metric].higher_is_better is False,
        ))  # fmt: skip
    return tuple(outcomes)


def more_clips_needed(test: PairedTest, alpha: float) -> ClipsNeeded | None:
    """Further clips by which a test at `alpha` would probably decide, rounded to what such a guess is worth.

    Of new scenes, with as many clips a scene as now; None where that cannot be told.
    """
    scenes = test.scenes
    if test.estimate is None:
        return None
    # The test of yes and no adds to what was seen; how much there is to find does not come from what was added.
    needed = clusters_needed(replace(test.estimate, mean=test.difference, clusters=scenes), alpha)
    if needed is None:
        return None
    per_scene = test.clips / scenes

    def more_clips(clusters: float | None) -> int | None:
        return None if clusters is None else _round_count(max(1.0, (clusters - scenes) * per_scene))

    return ClipsNeeded(*map(more_clips, needed))


def _round_count(count: float) -> int:
    if count < 20:
        return math.ceil(count)
    step = 5 if count < 100 else 10 ** (math.floor(math.log10(count)) - 1)
    return int(round(count / step) * step)


def _unanswered_reason_text(results: Results, question: SuiteQuestion) -> str:
    """Why nobody has a score, and what would help."""
    for id in question.metrics:
        reason = results.lacking(id)
        if reason is not None:
            return _not_asked_text(reason.kind, NOT_GIVEN.get(reason.kind, reason.sentence))
    records = next((records for id in question.metrics if (records := results.records_for(id))), None)
    if records is None:
        return "not asked"
    # What was not given comes first: a gate that closed on some clips must not hide it.
    reasons = Counter(record.reason.kind for record in records if record.reason is not None)
    if "no_target" in reasons and not any(case.target or case.target_name for case in results.cases):
        return _not_asked_text("no_target", NOT_GIVEN["no_target"])
    if "no_reference" in reasons and not any(case.reference for case in results.cases):
        return _not_asked_text("no_reference", NOT_GIVEN["no_reference"])
    kinds = sorted(reasons, key=lambda kind: (not (kind in KINDS and KINDS[kind].lacking), -reasons[kind], kind))
    counts = [f"{display.reason_title(kind)} on {reasons[kind]}" for kind in kinds]
    counts[:1] = [f"{text} of {count_and_noun(len(records), 'clip')}" for text in counts[:1]]
    why = f"no clip could be scored: {', '.join(counts)}" if counts else "no clip could be scored"
    return "; ".join([why, *(REMEDIES[kind] for kind in kinds if kind in REMEDIES)])


def _not_asked_text(kind: str, why: str) -> str:
    return "; ".join(filter(None, [f"not asked: {why}", REMEDIES.get(kind, "")]))
