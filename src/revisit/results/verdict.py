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

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from revisit.core import METRICS, SUITES, Case, Record, digest
from revisit.results.ceilings import held_to_truth, low_ceilings, measured
from revisit.results.display import ends, number, shown, signed
from revisit.results.results import Cell, Interval, Results, differences_of, within
from revisit.results.run import Run
from revisit.stats.paired import ALPHA, MIN_SCENES, MIN_SCENES_OF_LEVELS, PairedTest
from revisit.stats.pairwise import ModelPair, Ranking
from revisit.stats.power import MANY, needed

WORST = 3
STILL = 0.5  # of what the others move: a model below it stands still


@dataclass(frozen=True)
class Question:
    """What a suite asks, and the metrics that answer it, the first one that can be asked deciding."""

    ask: str
    metrics: tuple[str, ...]
    memory: bool = False  # whether a good score can be read as memory
    gate: str = ""  # only clips where this gate is open, if it was asked


@dataclass(frozen=True)
class More:
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
class Pairing:
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
    more: More | None  # for a pair that is not decided
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
class Answer:
    """What the clips say to a question."""

    question: Question
    metric: str = ""  # the one that decided; nothing where none could
    places: tuple[Place, ...] = ()  # the best first
    pairs: tuple[Pairing, ...] = ()
    clips: int = 0  # common ones
    left_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # model -> clips scored, and of how many
    truth: Cell | None = None
    near_truth: bool = False  # the scores tell how near the clips are to the truth's own
    reason: str = ""  # why there is no answer
    floors: Mapping[str, Cell] = field(default_factory=dict)  # of baselines without memory, which have no place

    def pair(self, one: str, other: str) -> Pairing | None:
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
            told = f"{first} alone was scored: {shown(self.places[0].cell)}"
        elif len(self.best) == 1:
            pair = self.pair(first, others[0])
            assert pair is not None
            rest = f", and before {_named(others[1:])}" if others[1:] else ""
            told = f"{first} before {others[0]} ({pair.evidence}){rest}"
        else:
            told = self._undecided(first, list(self.best[1:]), [name for name in others if name not in self.best])
        never = [model for model, (n, _) in self.left_out.items() if not n]
        rarely = [f"{model} {n} of {of}" for model, (n, of) in self.left_out.items() if n]
        told += f"; scored too rarely: {_named(rarely)}" if rarely else ""
        return told + (f"; never scored: {_named(never)}" if never else "")

    def _undecided(self, first: str, level: list[str], behind: list[str]) -> str:
        pairs = {name: pair for name in level if (pair := self.pair(first, name)) is not None}
        alike = [name for name, pair in pairs.items() if not pair.wins and not pair.losses]
        open_ = {name: pair for name, pair in pairs.items() if name not in alike}
        told = []
        if alike:
            clips = "the one clip" if self.clips == 1 else f"all {self.clips} clips"
            told.append(f"{_named([first, *alike])} are alike on {clips}")
        if open_:
            near = next(iter(open_.values()))
            if near.p is None:
                needed_scenes = MIN_SCENES if near.scenes < MIN_SCENES else MIN_SCENES_OF_LEVELS
                scenes = "one scene" if near.scenes == 1 else f"{near.scenes} scenes"
                more = f"{scenes} cannot tell, {needed_scenes} or more could"
            else:
                more = str(near.more) if near.more else "no difference is in sight"
            told.append(f"these clips cannot decide between {_named([first, *open_])}; {more}")
        if behind:
            everybody = all(self.before(name, other) for name in level for other in behind)
            told.append(f"{'all' if everybody else first} before {_named(behind)}")
        return "; ".join(told)


@dataclass(frozen=True)
class Moment:
    """A place to look at: a clip, a frame, and what is wrong there."""

    case: str
    model: str
    sample: str
    metric: str
    value: float
    frame: int | None
    why: str


@dataclass(frozen=True)
class Verdict:
    """All of it, as console and page show it."""

    answers: tuple[Answer, ...]
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
            return (
                f"{self.ahead} is nowhere worse, and somewhere better than each model but {_named(self.not_compared)}, "
                "scored too rarely to be compared"
            )
        asked = [answer for answer in self.answers if len(answer.places) > 1]
        if not asked:
            return ""
        return "no model is ahead in everything" if any(_decided(a) for a in asked) else "these clips decide nothing"

    def as_json(self) -> dict[str, Any]:
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


def questions_of(card: Mapping[str, Any]) -> list[Question]:
    """The questions that a suite's card asks; of a suite that asks none, one question per group of metrics."""
    asked = card.get("questions") or [{"ask": name, "metrics": ids} for name, ids in (card.get("groups") or {}).items()]
    return [
        Question(one["ask"], tuple(one["metrics"]), bool(one.get("memory")), str(one.get("gate", ""))) for one in asked
    ]


def verdict(results: Results, card: Mapping[str, Any]) -> Verdict:
    """What these results say to the questions of a suite's card; worked out once."""
    asked = f"verdict {digest(card)}"
    if asked not in results.said:
        results.said[asked] = _verdict(results, card)
    made: Verdict = results.said[asked]
    return made


def _verdict(results: Results, card: Mapping[str, Any]) -> Verdict:
    everybody = held_to_truth(results)
    held = everybody.contest
    answers = tuple(_with_floors(answered(held, question), everybody) for question in questions_of(card))
    first, not_compared = _overall(answers)
    return Verdict(
        answers,
        "" if not_compared else first,
        first if not_compared else "",
        not_compared,
        (*_first_and_last(answers), *_standing_still(results, card.get("standing_still") or {})),
        tuple(worst_moments(held, answers)),
        low_ceilings(results),
    )


def _with_floors(answer: Answer, results: Results) -> Answer:
    """The answer, and beside it what baselines without memory score in its metric."""
    if not answer.places:
        return answer
    ranked = {place.model for place in answer.places}
    cells = {model: results.where(model=model).cell(answer.metric) for model in sorted(results.floors - ranked)}
    return replace(answer, floors={model: cell for model, cell in cells.items() if cell.mean is not None})


def verdict_of(run: Run) -> dict[str, Any]:
    """The verdict of a finished run, as its summary has it; made anew for a run from before there were verdicts."""
    summary = run.summary
    if "verdict" in summary:
        return dict(summary["verdict"])
    card = SUITES[summary["suite"]].card if summary["suite"] in SUITES else {}
    return verdict(run.results, card).as_json()


def headline(results: Results, suite: str) -> list[str]:
    """The metrics that answer the questions of a suite: one for each question that has scores."""
    card = SUITES[suite].card if suite in SUITES else {}
    found = [answered(results, question).metric for question in questions_of(card)]
    return [id for id in dict.fromkeys(found) if id]


def answered(results: Results, question: Question) -> Answer:
    """The answer to one question, by its first metric that two models have a score in; else by the first with any."""
    part = results
    if question.gate and results.was_asked(question.gate):
        part = results.only(lambda entry: isinstance(entry, Case) and _open(results, entry, question.gate))
    known = [id for id in question.metrics if id in METRICS and METRICS[id].higher_is_better is not None]
    scored = {id: {record.case.model for record in part.scores(id)} for id in known}
    metric = next((id for id in known if len(scored[id]) > 1), None) or next((id for id in known if scored[id]), None)
    if metric is None:
        return Answer(question, reason=_why_not(results, question))
    return _ranked(part, question, metric)


def _open(results: Results, case: Case, gate: str) -> bool:
    record = results.answer(case, gate)
    return record is None or record.status == "open"


def _ranked(results: Results, question: Question, metric: str) -> Answer:
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
        return Answer(question, metric, left_out=rare, reason=reason)
    means = {model: cell for model, cell in common.mean(metric).items() if cell.mean is not None}
    ranking = common.ranking(metric)
    places = [
        Place(model, 1 + sum(ranking.is_better(other, model) for other in ranking.order), *ranking.places(model),
              means[model])
        for model in ranking.order
    ]  # fmt: skip
    near = bool(results.truths) and METRICS[metric].rewards_unchanged
    pairs = _pairings(ranking, metric)
    return Answer(question, metric, tuple(places), pairs, ranking.clips, rare, _truth(results, metric), near)


def _pairings(ranking: Ranking, metric: str) -> tuple[Pairing, ...]:
    """All pairs, the one with the better mean ahead."""
    decided = sum(pair.decided for pair in ranking.pairs)
    alpha = ALPHA * min(1.0, (decided + 1) / max(len(ranking.pairs), 1))  # what the next pair would have to reach
    return tuple(_pairing(pair, metric, alpha) for pair in ranking.pairs)


def _pairing(pair: ModelPair, metric: str, alpha: float) -> Pairing:
    test = pair.test
    return Pairing(
        pair.ahead, pair.behind, pair.wins, pair.losses, test.clips, test.scenes, test.difference,
        None if test.interval is None else within(test.interval, differences_of(metric)), pair.p, pair.decided,
        None if pair.decided else _more(test, alpha), test.p, test.method,
    )  # fmt: skip


def _more(test: PairedTest, alpha: float) -> More | None:
    """Further clips, in the present number of clips per scene, rounded to what such a guess is worth."""
    scenes = test.scenes
    if test.estimate is None:
        return None
    # The test of yes and no adds to what was seen; how much there is to find does not come from what was added.
    found = needed(replace(test.estimate, mean=test.difference, clusters=scenes), alpha)
    if found is None:
        return None
    per_scene = test.clips / scenes

    def clips(clusters: float | None) -> int | None:
        return None if clusters is None else _rounded(max(1.0, (clusters - scenes) * per_scene))

    return More(clips(found.about), clips(found.low), clips(found.high))


def _rounded(count: float) -> int:
    if count < 20:
        return math.ceil(count)
    step = 5 if count < 100 else 10 ** (math.floor(math.log10(count)) - 1)
    return int(round(count / step) * step)


def _decided(answer: Answer) -> bool:
    return any(pair.decided for pair in answer.pairs)


def _overall(answers: Sequence[Answer]) -> tuple[str, tuple[str, ...]]:
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


def _first_and_last(answers: Sequence[Answer]) -> list[str]:
    """Models that are first in one question and last in another, where both are beyond doubt."""
    told = []
    asked = [answer for answer in answers if len(answer.places) > 1 and _decided(answer)]
    for one in asked:
        model = one.places[0].model
        if not any(pair.decided and pair.ahead == model for pair in one.pairs):
            continue
        for other in asked:
            if other.places[-1].model == model and any(pair.decided and pair.behind == model for pair in other.pairs):
                told.append(f"{model} is first in “{one.question.ask}” and last in “{other.question.ask}”")
    return told


def _standing_still(results: Results, rule: Mapping[str, Any]) -> list[str]:
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
        bought = f"; that buys it the first place in {_named(kept)}" if kept else ""
        told.append((not kept, f"{model} moves {share if amount > 0.005 * usual else 'hardly at all'}{bought}"))
    return [sentence for _, sentence in sorted(told)]


def worst_moments(results: Results, answers: Sequence[Answer], count: int = WORST) -> list[Moment]:
    """The worst scores in what was asked, each of another clip, and of other models and scenes where there are some."""
    found: list[tuple[float, int, Record, Answer]] = []
    for place, answer in enumerate(answers):
        if not answer.metric or None in METRICS[answer.metric].range:
            continue
        low, high = (float(end or 0.0) for end in METRICS[answer.metric].range)
        higher = METRICS[answer.metric].higher_is_better is not False
        for record in results.scores(answer.metric):
            assert record.value is not None
            share = (record.value - low) / (high - low)
            loss = 1 - share if higher else share
            if loss > 0.1:
                found.append((loss, place, record, answer))
    found.sort(key=lambda one: (-one[0], one[1], one[2].case.id))
    chosen: list[Moment] = []
    for fresh in (lambda c: {c.model, c.sample}.isdisjoint(x for m in chosen for x in (m.model, m.sample)),
                  lambda c: c.model not in {m.model for m in chosen},
                  lambda c: c.id not in {m.case for m in chosen}):  # fmt: skip
        for _, _, record, answer in found:
            if len(chosen) == count:
                break
            if fresh(record.case):
                chosen.append(_moment(results, record, answer))
    return chosen


def _moment(results: Results, record: Record, answer: Answer) -> Moment:
    metric, case, value = METRICS[answer.metric], record.case, record.value or 0.0
    why = "; ".join(filter(None, [f"{metric.title}: {number(value)}", measured(record)]))
    return Moment(case.id, case.model, case.sample, metric.id, value, _frame(results, case, metric.id), why)


def _frame(results: Results, case: Case, metric: str) -> int | None:
    """The frame that hurts a score most; else the first one after the return."""
    series = results.series(case, metric)
    row = None if series is None else series.worst(METRICS[metric].higher_is_better is not False)
    if series is not None and row is not None and "frame" in series.columns:
        return int(series["frame"][row])
    record = results.answer(case, metric)
    first = None if record is None else record.facts.get("first_return_frame")
    if first is not None:
        return int(first)
    return case.phases[1] if case.phases else None


def _why_not(results: Results, question: Question) -> str:
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


def _named(names: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; of many the first few, and how many more."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
