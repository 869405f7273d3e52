"""The worst moments of a run: first what strikes the eye, then the worst scores, each with the frame to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from revisit.core import METRICS, Case, Record
from revisit.results.ceilings import OUTCOME, WENT_ON, explain_held_score, ranking_score_id
from revisit.results.cells import GOOD
from revisit.results.collapses import COLLAPSE, FAULTS, picture_fault_unlike_truth
from revisit.results.display import number_text, score_title
from revisit.results.metric_columns import NO_ANSWER
from revisit.results.question_ranking import QuestionRanking
from revisit.results.results import Results

WORST = 3
# What strikes the eye, whatever was asked: metric -> by how much of its range a clip must stay behind the truth, or
# behind the best score where there is no truth. Black frames and noise score lowest in them.
STRIKING = {"time_to_collapse": (0.1, 0.1), "visual_integrity_lite": (0.15, 0.4), "wr_integrity": (0.15, 0.4)}
VANISHES = "the target vanishes in view"
AT_SIGHT, MEMORY, OTHER = range(3)  # order of moments


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
    seed: int = 0


# A bad score, or a bad finding of a gate; before it, its order, how bad it is, the place of its question, and its case.
Candidate = tuple[tuple[int, float, int, str], Record]


def worst_moments(results: Results, answers: Sequence[QuestionRanking], count: int = WORST) -> list[Moment]:
    """What strikes the eye, then the worst scores in what was asked; of other models and scenes if there are some."""
    candidates = sorted(
        [
            *_blank_candidates(results),
            *_collapsed_picture_candidates(results),
            *_vanished_target_candidates(results),
            *_low_score_candidates(results, answers),
        ],
        key=lambda one: one[0],
    )
    chosen: list[Moment] = []
    for fresh in (lambda c: {c.model, c.sample}.isdisjoint(x for m in chosen for x in (m.model, m.sample)),
                  lambda c: c.model not in {m.model for m in chosen},
                  lambda c: (c.model, c.sample) not in {(m.model, m.sample) for m in chosen},
                  lambda c: c.id not in {m.case for m in chosen}):  # fmt: skip
        for _, record in candidates:
            if len(chosen) == count:
                break
            if fresh(record.case):
                chosen.append(_make_moment(results, record))
    return chosen


def _blank_candidates(results: Results) -> Iterator[Candidate]:
    for record in results.scores(COLLAPSE):
        if "blank" in record.facts and picture_fault_unlike_truth(results, record.case):
            yield (AT_SIGHT, -1.0 - record.facts["blank_share"], 0, record.case.id), record


def _collapsed_picture_candidates(results: Results) -> Iterator[Candidate]:
    for id, (behind_truth, behind_best) in STRIKING.items():
        for record in results.scores(id) if id in METRICS else ():
            truth = results.truth_of(record.case)
            ceiling = None if truth is None else results.score(truth, id)
            best = 0.0 if ceiling is None else _share_of_range_from_best(id, ceiling)
            loss = _share_of_range_from_best(id, record.value or 0.0) - best
            if loss > (behind_best if ceiling is None else behind_truth):
                yield (AT_SIGHT, -loss, 0, record.case.id), record


def _vanished_target_candidates(results: Results) -> Iterator[Candidate]:
    """Targets that disappear while the camera looks at them, and not in the truth."""
    for record in results.records_for("target_return"):
        away = results.answer(record.case, "look_away") or NO_ANSWER
        truth = results.truth_of(record.case)
        in_truth = NO_ANSWER if truth is None else results.answer(truth, "target_return") or NO_ANSWER
        vanished = record.label == "hidden, not returned" and away.label == "never looks away"
        if vanished and in_truth.label in ("never hidden", "hidden, returned"):
            yield (AT_SIGHT, -1.0, 0, record.case.id), record


def _low_score_candidates(results: Results, answers: Sequence[QuestionRanking]) -> Iterator[Candidate]:
    for place, answer in enumerate(answers):
        if not answer.metric or None in METRICS[answer.metric].range:
            continue
        for record in results.scores(answer.metric):
            loss = _share_of_range_from_best(answer.metric, record.value or 0.0)
            if loss > GOOD and not _went_on(record):
                yield (MEMORY if answer.question.memory else OTHER, -loss, place, record.case.id), record


def _went_on(record: Record) -> bool:
    """Whether a score is that of an outcome, or capped by it, which says that the world went on."""
    by_outcome = record.question == OUTCOME or {"own", "outcome"} <= record.facts.keys()
    return by_outcome and (record.value or 0.0) >= WENT_ON


def _share_of_range_from_best(metric: str, value: float) -> float:
    """How far a score is from the best one, as a share of the metric's range."""
    low, high = (float(end or 0.0) for end in METRICS[metric].range)
    share = (value - low) / (high - low)
    return share if METRICS[metric].higher_is_better is False else 1 - share


def _make_moment(results: Results, record: Record) -> Moment:
    case, value, metric = record.case, record.value or 0.0, record.question
    if metric not in METRICS:  # a gate's finding
        frame, why = _frame_in_facts(record, "first_hidden_frame"), VANISHES
    elif metric == COLLAPSE and "blank" in record.facts:
        fault = picture_fault_unlike_truth(results, case)
        frame, why = _frame_in_facts(record, "blank_from_frame"), f"the clip {FAULTS[fault or 'collapse'][1]}"
    else:
        score = f"{score_title(ranking_score_id(results, metric))}: {number_text(value)}"
        why = "; ".join(filter(None, [score, explain_held_score(record)]))
        is_capped = OUTCOME in METRICS and {"own", "outcome"} <= record.facts.keys()
        frame = worst_or_first_return_frame(results, case, OUTCOME if is_capped else metric)
        if frame is None and case.phases:
            frame = case.phases[1]
    return Moment(case.id, case.model, case.sample, metric, value, frame, why, case.seed)


def _frame_in_facts(record: Record | None, fact: str) -> int | None:
    """A frame that an answer names among its facts."""
    frame = None if record is None else record.facts.get(fact)
    return None if frame is None else int(frame)


def worst_or_first_return_frame(results: Results, case: Case, metric: str) -> int | None:
    """The frame that hurts a score most; else the first one after the return, where the metric names it."""
    series = results.series(case, metric)
    row = None if series is None else series.worst(METRICS[metric].higher_is_better is not False)
    if series is not None and row is not None and "frame" in series.columns:
        return int(series["frame"][row])
    return _frame_in_facts(results.answer(case, metric), "first_return_frame")
