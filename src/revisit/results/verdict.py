"""The verdict: which model answers each question of a suite best, how sure that is, and where it fails.

A suite names its questions in its card, each with the metrics that answer it, the best first:

    questions:
      - ask: Does it come back?
        metrics: [target_reappearance, return_consistency]
        memory: true

The first of them that two models have a score in decides. Models are compared on common clips, pair by pair. *X beats
Y* where the difference is significant at 5 % after a correction for all pairs of the question; *X is the best* where it
beats each of the others at 5 % (`stats/pairwise.py`). There is no total: overall a model is ahead only if it is nowhere
worse and somewhere better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from revisit.core import METRICS, SUITES, digest
from revisit.results.ceilings import held_to_truth, low_ceilings
from revisit.results.display import number
from revisit.results.file_types import Details
from revisit.results.question_ranking import QuestionRanking, names_text, questions_of, rank_question
from revisit.results.results import Results
from revisit.results.run import Run
from revisit.results.worst_frames import Moment, worst_moments

STILL = 0.5  # of what the others move: a model below it stands still


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

    @property
    def sentence(self) -> str:
        """Who is ahead overall."""
        if self.overall:
            return f"{self.overall} is nowhere worse than another model, and somewhere better than each"
        if self.ahead:
            others = names_text(self.not_compared)
            return (
                f"{self.ahead} is nowhere worse, and somewhere better than each model but {others}, "
                "scored too rarely to be compared"
            )
        asked = [answer for answer in self.answers if len(answer.places) > 1]
        if not asked:
            return ""
        return (
            "no model is ahead in everything"
            if any(_has_decided_pair(a) for a in asked)
            else "these clips decide nothing"
        )

    def as_json(self) -> dict[str, object]:
        """As summary.json has it, sentences included."""
        return {
            "answers": [
                {
                    **{k: value for k, value in asdict(answer).items() if k not in ("places", "truth", "floors")},
                    "places": [{**asdict(place), "cell": place.cell.as_json()} for place in answer.places],
                    "truth": None if answer.truth is None else answer.truth.as_json(),
                    "floors": {model: cell.as_json() for model, cell in answer.floors.items()},
                    "best": list(answer.best),
                    "sentence": answer.sentence,
                }
                for answer in self.answers
            ],
            "overall": self.overall,
            "ahead": self.ahead,
            "not_compared": list(self.not_compared),
            "sentence": self.sentence,
            "trade_offs": list(self.trade_offs),
            "moments": [asdict(moment) for moment in self.moments],
            "low_ceilings": dict(self.low_ceilings),
        }


def make_verdict(results: Results, card: Details) -> Verdict:
    """What these results say to the questions of a suite's card; worked out once."""
    return results.once(f"verdict {digest(card)}", lambda: _make_verdict(results, card))


def _make_verdict(results: Results, card: Details) -> Verdict:
    everybody = held_to_truth(results)
    held = everybody.ranked
    answers = tuple(_with_floors(rank_question(held, question), everybody) for question in questions_of(card))
    first, not_compared = _overall_best(answers)
    return Verdict(
        answers,
        "" if not_compared else first,
        first if not_compared else "",
        not_compared,
        (*_first_and_last(answers), *_standing_still(results, card.get("standing_still") or {})),
        tuple(worst_moments(held, answers)),
        low_ceilings(results),
    )


def _with_floors(answer: QuestionRanking, results: Results) -> QuestionRanking:
    """The answer, and beside it what baselines without memory score in its metric."""
    if not answer.places:
        return answer
    ranked = {place.model for place in answer.places}
    cells = {model: results.where(model=model).cell(answer.metric) for model in sorted(results.floors - ranked)}
    return replace(answer, floors={model: cell for model, cell in cells.items() if cell.mean is not None})


def load_verdict(run: Run) -> Details:
    """The verdict of a finished run, as its summary has it; made anew for a run from before there were verdicts."""
    summary = run.summary
    if "verdict" in summary:
        return dict(summary["verdict"])
    card = SUITES[summary["suite"]].card if summary["suite"] in SUITES else {}
    return make_verdict(run.results, card).as_json()


def headline_metrics(results: Results, suite: str) -> list[str]:
    """The metrics that answer the questions of a suite: one for each question that has scores."""
    card = SUITES[suite].card if suite in SUITES else {}
    found = [rank_question(results, question).metric for question in questions_of(card)]
    return [id for id in dict.fromkeys(found) if id]


def _has_decided_pair(answer: QuestionRanking) -> bool:
    return any(pair.decided for pair in answer.pairs)


def _overall_best(answers: Sequence[QuestionRanking]) -> tuple[str, tuple[str, ...]]:
    """The model that no other one precedes anywhere, and that beats each of them somewhere.

    A model that was scored too rarely in some question is not beaten there: whoever is not beaten elsewhere stands in
    the second part, as not compared. With nobody beaten there is no first.
    """
    asked = [answer for answer in answers if len(answer.places) > 1]
    if not asked:
        return "", ()
    rank = [{place.model: place.rank for place in answer.places} for answer in asked]
    everybody = {model for ranks in rank for model in ranks} | {model for a in asked for model in a.left_out}
    left_out = {model for answer in asked for model in answer.left_out}
    for model in sorted(everybody):
        if not all(ranks.get(model) == 1 for ranks in rank):
            continue
        beaten = {other for other in everybody if any(a.before(model, other) for a in asked)}
        rest = everybody - {model} - beaten
        if beaten and rest <= left_out:
            return model, tuple(sorted(rest))
    return "", ()


def _first_and_last(answers: Sequence[QuestionRanking]) -> list[str]:
    """Models that are first in one question and last in another, where both are beyond doubt."""
    told = []
    asked = [answer for answer in answers if len(answer.places) > 1 and _has_decided_pair(answer)]
    for one in asked:
        model = one.places[0].model
        if not any(pair.decided and pair.ahead == model for pair in one.pairs):
            continue
        for other in asked:
            if other.places[-1].model == model and any(pair.decided and pair.behind == model for pair in other.pairs):
                told.append(f"{model} is first in “{one.question.ask}” and last in “{other.question.ask}”")
    return told


def _standing_still(results: Results, rule: Details) -> list[str]:
    """Models that hardly move, and look consistent for it: how they do in what a standing picture keeps for nothing."""
    movement = str(rule.get("movement", ""))
    if movement not in METRICS or len(results.models) < 2:
        return []
    moved = {model: cell.mean for model, cell in results.mean(movement).items() if cell.mean is not None}
    told = []
    for model, amount in moved.items():
        rest = sorted(value for other, value in moved.items() if other != model)
        if not rest:
            continue
        usual = (rest[(len(rest) - 1) // 2] + rest[len(rest) // 2]) / 2
        if not usual or amount >= STILL * usual:
            continue
        kept = []
        for id in rule.get("against") or ():
            cells = {name: cell.mean for name, cell in results.mean(id).items() if cell.mean is not None}
            if id in METRICS and model in cells and len(cells) > 1:
                higher = METRICS[id].higher_is_better is not False
                if cells[model] == (max if higher else min)(cells.values()):
                    kept.append(f"{METRICS[id].title} ({number(cells[model])})")
        share = f"{100 * amount / usual:.0f} % as much as the others"
        bought = f"; that buys it the first place in {names_text(kept)}" if kept else ""
        told.append((not kept, f"{model} moves {share if amount > 0.005 * usual else 'hardly at all'}{bought}"))
    return [sentence for _, sentence in sorted(told)]
