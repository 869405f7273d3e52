"""The verdict: which model answers each question of a suite best, how sure that is, and where it fails.

A suite names its questions in its card, each with the metrics that answer it, the best first:

    questions:
      - ask: Is it still there?
        metrics: [target_reappearance, return_consistency]
        memory: true

The first of them that two models have a score in decides. Before all of them stands one that needs no test: does it
look away and come back (`look_away_counts.py`)? Models are compared pair by pair on the clips that both have. *X beats
Y* where the difference is significant at 5 % after a correction for all pairs of the question; *X is the best* where it
beats each of the others at 5 % (`stats/pairwise.py`). There is no total: overall a model is ahead only if it loses to
none in any question and beats each of the others in some. Otherwise the headline is the strongest statement that holds.
A judge that fails its control questions on most clips is not to be trusted (docs/judges.md), which is said first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median

from revisit.core import METRICS, SUITES, Case, digest
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names
from revisit.results import collapses
from revisit.results.ceilings import count_low_truth_scores, held_to_truth
from revisit.results.display import number_text
from revisit.results.file_types import Details
from revisit.results.funnel import looks_away_and_returns
from revisit.results.look_away_counts import REAPPEARANCE, LookAwayCounts, count_look_aways, unreadable_clips_text
from revisit.results.question_ranking import Place, QuestionRanking, rank_questions
from revisit.results.results import Results
from revisit.results.run import Run
from revisit.results.worst_frames import Moment, worst_moments

CELLS = ("places", "truth", "floors", "unranked")  # of an answer: what is written as cells
STILL = 0.5  # of what the others move: a model below it stands still
UNTRUSTED = "untrusted"  # the kind of reason of an answer that failed control questions left out


@dataclass(frozen=True)
class JudgeTrust:
    """On how many clips a judge failed its control questions."""

    failed: int  # clips on which it failed
    asked: int  # clips about which it was asked
    not_asked: int = 0  # further clips about which it could not be asked, or was asked no more

    @property
    def is_untrusted(self) -> bool:
        """Whether it failed on most clips, so that none of its answers is to be trusted."""
        return 2 * self.failed > self.asked

    @property
    def sentence(self) -> str:
        """What that means, for people."""
        count = f"the judge failed its control questions on {self.failed} of {count_and_noun(self.asked, 'clip')}"
        if not self.is_untrusted:
            return f"{count}; its answers about them are not used"
        has = "has" if self.not_asked == 1 else "have"
        rest = f"; {count_and_noun(self.not_asked, 'further clip')} {has} no answer" if self.not_asked else ""
        return f"{count}: its answers are not to be trusted{rest}"

    def as_json(self) -> dict[str, object]:
        """As summary.json has it."""
        return {**vars(self), "untrusted": self.is_untrusted, "sentence": self.sentence}


@dataclass(frozen=True)
class Verdict:
    """All of it, as console and page show it."""

    answers: tuple[QuestionRanking, ...]
    overall: str = ""  # the model that is nowhere worse and somewhere better than every other one
    ahead: str = ""  # the same among those that could be compared, where some could not
    not_compared: tuple[str, ...] = ()  # scored too rarely somewhere, and beaten nowhere
    trade_offs: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    low_ceilings: Mapping[str, int] = field(default_factory=dict)  # metric -> clips on which the truth scores low
    look_away: LookAwayCounts | None = None  # who looks away and comes back; None where no gate was asked
    picture_faults: collapses.FaultCounts = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)  # model, or the truth -> clips that could not be read
    judge: JudgeTrust | None = None  # how often the judge failed its control questions; None where it never did

    @property
    def headline(self) -> str:
        """The strongest statement that these clips allow; that the judge cannot be trusted goes before it.

        Empty where nothing could be compared or counted.
        """
        return self.judge.sentence if self.judge is not None and self.judge.is_untrusted else self.comparison

    @property
    def comparison(self) -> str:
        """The strongest statement about the models; that all clips of one are blank goes before it."""
        return "; ".join(self._comparison_sentences())

    def _comparison_sentences(self) -> list[str]:
        faults = {fault: self.picture_faults[fault] for fault in collapses.BLANK if fault in self.picture_faults}
        whole = {fault: counts for fault, counts in faults.items() if any(n == of for n, of in counts.values())}
        return [*collapses.picture_fault_sentences(whole), *self._strongest_sentences()]

    def _strongest_sentences(self) -> list[str]:
        if self.overall:
            return [f"{self.overall} is ahead: it loses to no model in any question and beats each in at least one"]
        if self.ahead:
            others = join_names(self.not_compared)
            return [f"{self.ahead} is ahead of all models that can be compared; too few clips of {others}"]
        counts = self.look_away
        returns = [] if counts is None else list(filter(None, [*counts.outcome_sentences, counts.headline]))
        if counts is not None and counts.some_return_and_others_never:
            return returns
        decided = list(filter(None, [self._decided_wins_text()]))
        return decided or returns or list(filter(None, [self._no_difference_text() or self._unreadable_text()]))

    @property
    def details(self) -> tuple[str, ...]:
        """What further is known, the strongest first."""
        stated = {self.headline, *(self._comparison_sentences() if self.headline == self.comparison else ())}
        return tuple(text for text in self._all_details() if text not in stated)

    def _all_details(self) -> list[str]:
        counts = self.look_away
        sentences = [] if self.judge is None else [self.judge.sentence]
        sentences += self._comparison_sentences()
        if counts is not None:
            sentences += [
                *counts.outcome_sentences,
                *(
                    [counts.headline]
                    if counts.some_return_and_others_never or not any(map(_has_decided_pair, self.answers))
                    else []
                ),
                counts.short_clips_text,
            ]
        sentences += [self._decided_wins_text()] if not self.overall else []
        sentences += [*collapses.picture_fault_sentences(self.picture_faults), self._unreadable_text()]
        return list(dict.fromkeys(filter(None, sentences)))

    @property
    def sentence(self) -> str:
        """The headline, and what further is known of the models."""
        texts = dict.fromkeys(self._all_details())
        if self.judge is not None:
            texts.pop(self.judge.sentence, None)
        return "; ".join(texts)

    def _unreadable_text(self) -> str:
        """That clips could not be read, and whose; nothing where all could."""
        return unreadable_clips_text(self.unread) if self.unread else ""

    def _decided_wins_text(self) -> str:
        """Who beats whom in the question that decides most, those of memory first."""
        decided = [answer for answer in self.answers if _has_decided_pair(answer)]
        if not decided:
            return ""
        most = max(decided, key=lambda answer: (answer.question.memory, sum(pair.decided for pair in answer.pairs)))
        by_winner = group_items((pair for pair in most.pairs if pair.decided), lambda pair: pair.ahead)
        beaten = max(by_winner.values(), key=len)
        return f"{beaten[0].ahead} beats {join_names([pair.behind for pair in beaten])} in “{most.question.ask}”"

    def _no_difference_text(self) -> str:
        """Nothing is decided and nothing was counted: that the models cannot be told apart."""
        models = {place.model for answer in self.answers for place in answer.places}
        return f"no difference between {len(models)} models is beyond chance" if len(models) > 1 else ""

    def as_json(self) -> dict[str, object]:
        """As summary.json has it, sentences included."""
        return {
            "answers": [
                {
                    **{name: value for name, value in asdict(answer).items() if name not in CELLS},
                    "places": [_place_as_json(place) for place in answer.places],
                    "truth": answer.truth and answer.truth.as_json(),
                    "floors": {model: cell.as_json() for model, cell in answer.floors.items()},
                    "unranked": {model: cell.as_json() for model, cell in answer.unranked.items()},
                    "best": list(answer.best),
                    "sentence": answer.sentence,
                }
                for answer in self.answers
            ],
            "look_away": self.look_away and self.look_away.as_json(),
            **({} if self.judge is None else {"judge": self.judge.as_json()}),
            "overall": self.overall,
            "ahead": self.ahead,
            "not_compared": list(self.not_compared),
            "headline": self.headline,
            "sentence": self.sentence,
            "trade_offs": list(self.trade_offs),
            "moments": [asdict(moment) for moment in self.moments],
            "low_ceilings": dict(self.low_ceilings),
            "collapses": {model: [*n] for model, n in collapses.collapse_counts(self.picture_faults).items()},
            "unread": dict(self.unread),
        }


def _place_as_json(place: Place) -> dict[str, object]:
    return {**asdict(place), "cell": place.cell.as_json(), "common": place.common and place.common.as_json()}


def make_verdict(results: Results, suite_card: Details) -> Verdict:
    """What these results say to the questions of a suite's card; worked out once."""
    return results.once(f"verdict {digest(suite_card)}", lambda: _compute_verdict(results, suite_card))


def _compute_verdict(results: Results, suite_card: Details) -> Verdict:
    everybody = held_to_truth(results)
    held = everybody.ranked
    answers = tuple(_add_floor_cells(answer, everybody) for answer in rank_questions(held, suite_card))
    first, not_compared = _overall_best_and_uncompared(answers)
    return Verdict(
        answers,
        "" if not_compared else first,
        first if not_compared else "",
        not_compared,
        (
            *_first_and_last_sentences(answers),
            *_gone_without_return_sentences(results.ranked, answers),
            *_standing_still_sentences(results.ranked, suite_card.get("standing_still") or {}),
        ),
        tuple(worst_moments(held, answers)),
        count_low_truth_scores(results),
        count_look_aways(results.ranked),
        collapses.count_picture_faults(results.ranked),
        _unreadable_clips_by_model(results),
        measure_judge_trust(results),
    )


def _unreadable_clips_by_model(results: Results) -> dict[str, int]:
    """How many clips of each model, and of the truth, could not be read."""
    models = Counter(case.model for case in results.ranked.cases if results.unreadable(case))
    truths = sum(results.unreadable(case) for case in results.truths)
    return {**models, **({results.truth_name: truths} if truths else {})}


def _add_floor_cells(answer: QuestionRanking, results: Results) -> QuestionRanking:
    """The answer, and beside it what baselines without memory score in its metric."""
    if not answer.places:
        return answer
    ranked = {place.model for place in answer.places}
    cells = {model: results.where(model=model).cell(answer.metric) for model in sorted(results.floors - ranked)}
    return replace(answer, floors={model: cell for model, cell in cells.items() if cell.mean is not None})


def load_verdict(run: Run) -> Details:
    """The verdict of a finished run, as its summary has it; made anew for a run of an earlier version."""
    summary = run.summary
    if "look_away" in summary.get("verdict", {}):
        return dict(summary["verdict"])
    card = SUITES[summary["suite"]].card if summary["suite"] in SUITES else {}
    return make_verdict(run.results, card).as_json()


def metrics_deciding_questions(results: Results, suite: str) -> list[str]:
    """The metrics that answer the questions of a suite: one for each question that has scores."""
    card = SUITES[suite].card if suite in SUITES else {}
    metrics = [answer.metric for answer in rank_questions(results.ranked, card)]
    return [id for id in dict.fromkeys(metrics) if id]


def _has_decided_pair(answer: QuestionRanking) -> bool:
    return any(pair.decided for pair in answer.pairs)


def _overall_best_and_uncompared(answers: Sequence[QuestionRanking]) -> tuple[str, tuple[str, ...]]:
    """The model that no other one precedes anywhere, and that beats each of them somewhere.

    A model that was scored too rarely in some question is not beaten there: whoever is not beaten elsewhere stands in
    the second part, as not compared. With nobody beaten there is no first.
    """
    ranked = [answer for answer in answers if len(answer.places) > 1]
    if not ranked:
        return "", ()
    rank = [{place.model: place.rank for place in answer.places} for answer in ranked]
    left_out = {model for answer in ranked for model in answer.left_out}
    everybody = left_out.union(*rank)
    for model in sorted(everybody):
        if not all(ranks.get(model) == 1 for ranks in rank):
            continue
        beaten = {other for other in everybody if any(a.is_decided_better(model, other) for a in ranked)}
        rest = everybody - {model} - beaten
        if beaten and rest <= left_out:
            return model, tuple(sorted(rest))
    return "", ()


def _first_and_last_sentences(answers: Sequence[QuestionRanking]) -> list[str]:
    """Models that are first in one question and last in another, where both are beyond doubt."""
    sentences = []
    decided = [answer for answer in answers if len(answer.places) > 1 and _has_decided_pair(answer)]
    for one in decided:
        model = one.places[0].model
        if not any(pair.decided and pair.ahead == model for pair in one.pairs):
            continue
        for other in decided:
            if other.places[-1].model == model and any(pair.decided and pair.behind == model for pair in other.pairs):
                sentences.append(f"{model} is first in “{one.question.ask}” and last in “{other.question.ask}”")
    return sentences


def _gone_without_return_sentences(results: Results, answers: Sequence[QuestionRanking]) -> list[str]:
    """Models whose target was seen to be gone, on clips whose camera surely never came back: what their 0 means."""
    if not any(answer.metric == REAPPEARANCE for answer in answers):
        return []
    gone = Counter(
        record.case.model
        for record in results.scores(REAPPEARANCE)
        if record.value == 0 and looks_away_and_returns(results, record.case) is False
    )
    title = METRICS[REAPPEARANCE].title
    return [
        f"{model} has 0 in {title} on {count_and_noun(n, 'clip')} without a return of the camera: the target's place "
        "was in view without it, but not after a return"
        for model, n in sorted(gone.items())
    ]


def _standing_still_sentences(results: Results, rule: Details) -> list[str]:
    """Models that hardly move, and are alone the best in what a standing picture keeps for nothing."""
    movement = str(rule.get("movement", ""))
    if movement not in METRICS or len(results.models) < 2:
        return []
    shown = results.only(lambda entry: not isinstance(entry, Case) or not collapses.is_blank_clip(results, entry))
    moved = {model: cell.mean for model, cell in shown.mean(movement).items() if cell.mean is not None}
    sentences = []
    for model, amount in moved.items():
        rest = [value for other, value in moved.items() if other != model]
        usual = median(rest) if rest else 0
        if not usual or amount >= STILL * usual:
            continue
        best_in = []
        for id in rule.get("against") or ():
            cells = {name: cell.mean for name, cell in shown.mean(id).items() if cell.mean is not None}
            if id in METRICS and model in cells and len(cells) > 1:
                higher = METRICS[id].higher_is_better is not False
                rest = [mean for name, mean in cells.items() if name != model]
                ahead = all((cells[model] > mean) if higher else (cells[model] < mean) for mean in rest)
                if ahead and number_text(cells[model]) not in map(number_text, rest):  # a tie as shown proves nothing
                    best_in.append(f"{METRICS[id].title} ({number_text(cells[model])})")
        percent = f"only {100 * amount / usual:.0f} % as much as the others"
        share = percent if amount > 0.005 * usual else "hardly at all"
        if best_in:
            sentences.append(f"{model} moves {share}, probably why it is best in {join_names(best_in)}")
    return sorted(sentences)


def measure_judge_trust(results: Results) -> JudgeTrust | None:
    """How often the judge of a run failed its control questions; None where it never did."""
    untrusted = [one for one in results.records if one.reason is not None and one.reason.kind == UNTRUSTED]
    if not untrusted:
        return None
    judged, failed = {record.question for record in untrusted}, {record.case.id for record in untrusted}
    answers = [record for record in results.records if record.question in judged]
    answered = {
        record.case.id
        for record in answers
        if not record.failed and not (record.reason is not None and record.reason.lacking)
    }
    unjudged = {record.case.id for record in answers if record.failed} - answered
    return JudgeTrust(len(failed), len(answered | failed), len(unjudged))
