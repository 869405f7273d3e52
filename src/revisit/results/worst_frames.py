"""The worst moments of a run: the clips with the worst scores, and in each the frame that hurts the score most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from revisit.core import METRICS, Case, Record
from revisit.results.ceilings import measured_text
from revisit.results.display import number
from revisit.results.question_ranking import QuestionRanking
from revisit.results.results import Results

WORST = 3


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


def worst_moments(results: Results, answers: Sequence[QuestionRanking], count: int = WORST) -> list[Moment]:
    """The worst scores in what was asked, each of another clip, and of other models and scenes where there are some."""
    found: list[tuple[float, int, Record, QuestionRanking]] = []
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


def _moment(results: Results, record: Record, answer: QuestionRanking) -> Moment:
    metric, case, value = METRICS[answer.metric], record.case, record.value or 0.0
    why = "; ".join(filter(None, [f"{metric.title}: {number(value)}", measured_text(record)]))
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
