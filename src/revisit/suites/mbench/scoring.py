"""Scoring on condition that the test is posed: reliability, coverage and M-Score of the items of a run.

docs/mbench.md tells who says that an item poses the test: a judge (T) or the camera (A). An action that asks the camera
to rest needs no gate, and action interaction is averaged over all clips.

Reliability S is the mean score of the items that pose the memory test; coverage C is their share of all items that
the list of the model has, missing videos included; the M-Score is the harmonic mean 2SC / (S + C), 0 where nothing is
posed. An item of which a judge could not say whether it poses the test is neither posed nor not: coverage, reliability
and M-Score are then intervals over everything the judge might have said.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from revisit.core import KINDS, Case, Reason, Record, Rejected
from revisit.results import Results
from revisit.suites.mbench.metrics.actions import RequestedMotion, parse_requested_motion
from revisit.suites.mbench.names import AXES, BY_ID, DIMENSIONS, JUDGED, MOVED, TRIGGER, MemoryDimension

Interval = tuple[float, float]


@dataclass(frozen=True)
class ItemOutcome:
    """What an item comes to under a metric."""

    score: float | None  # None where the metric gave none
    raw: float | None = None
    posed: bool | None = True  # None: nobody knows


@dataclass(frozen=True)
class Standing:
    """What a model comes to under a metric."""

    n: int  # items that are averaged
    of: int  # items that the list has
    posed: int
    not_posed: int
    unknown: int
    reliability: float | None = None
    raw: float | None = None
    strict: float | None = None  # mean over all items, those without a score as 0
    ungated: float | None = None  # mean over all scored items, whether they pose the test or not
    coverage: Interval | None = None  # None where coverage is not part of the setting
    reliability_interval: Interval | None = None
    m_interval: Interval | None = None

    @property
    def m_score(self) -> float | None:
        """The M-Score, where unknown triggers leave no choice."""
        return self.m_interval[0] if self.m_interval and self.m_interval[0] == self.m_interval[1] else None


def harmonic_mean_or_zero(reliability: float, coverage: float) -> float:
    """2SC / (S + C), and 0 where both are 0."""
    total = reliability + coverage
    return 2 * reliability * coverage / total if total > 0 else 0.0


def model_standing(outcomes: Sequence[ItemOutcome], item_count: int, *, with_coverage: bool) -> Standing:
    """The standing of a model; `item_count` counts missing items; `with_coverage` makes coverage part of the score."""
    triggered = [outcome for outcome in outcomes if outcome.posed]
    unknown = [outcome for outcome in outcomes if outcome.posed is None]
    sure = [outcome.score for outcome in triggered if outcome.score is not None]
    maybe = [outcome.score for outcome in unknown if outcome.score is not None]
    every = [outcome.score for outcome in outcomes if outcome.score is not None]
    raws = [outcome.raw for outcome in triggered if outcome.score is not None and outcome.raw is not None]
    choices = (
        list(_reliability_and_coverage_choices(sure, len(triggered), maybe, len(unknown), item_count))
        if item_count
        else []
    )
    reliable = [s for s, _ in choices if s is not None]
    with_coverage = with_coverage and item_count > 0
    return Standing(
        n=len(sure),
        of=item_count,
        posed=len(triggered),
        not_posed=item_count - len(triggered) - len(unknown),
        unknown=len(unknown),
        reliability=_mean_or_none(sure),
        raw=_mean_or_none(raws),
        strict=math.fsum(sure) / item_count if item_count and sure else None,
        ungated=_mean_or_none(every),
        coverage=(len(triggered) / item_count, (len(triggered) + len(unknown)) / item_count) if with_coverage else None,
        reliability_interval=(min(reliable), max(reliable)) if reliable else None,
        m_interval=_m_score_interval(choices) if with_coverage else None,
    )


def _reliability_and_coverage_choices(
    posed_scores: Sequence[float],
    posed_count: int,
    unknown_scores: Sequence[float],
    unknown_count: int,
    item_count: int,
) -> Iterator[tuple[float | None, float]]:
    """Reliability and coverage for the choices of unknown items among which the extremes of both and of M are.

    For a number of unknown items that pose the test, the best and the worst of them give the extremes of reliability;
    unknown items without a score change coverage alone.
    """
    total = math.fsum(posed_scores)
    for ordered in (sorted(unknown_scores), sorted(unknown_scores, reverse=True)):
        for count_of_maybe in range(len(ordered) + 1):
            count = len(posed_scores) + count_of_maybe
            mean = (total + math.fsum(ordered[:count_of_maybe])) / count if count else None
            for unscored in {0, unknown_count - len(unknown_scores)}:
                yield mean, (posed_count + count_of_maybe + unscored) / item_count


def _m_score_interval(choices: Sequence[tuple[float | None, float]]) -> Interval | None:
    """Least and largest M-Score; where something is posed and nothing of it scored, there is none."""
    values = [harmonic_mean_or_zero(s or 0.0, coverage) for s, coverage in choices if s is not None or coverage == 0]
    scored = any(reliability is not None for reliability, _ in choices)
    hopeless = all(coverage == 0 for _, coverage in choices)
    return (min(values), max(values)) if values and (scored or hopeless) else None


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    """The mean; None where there is no value, or one of them is None."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present and len(present) == len(values) else None


def axis_and_total_means(
    values: Mapping[str, float | None], setting: str, reported: Sequence[str] | None = None
) -> dict[str, float | None]:
    """Axes and total of a model from its dimensions, by metric id: plain means, and None where one is missing.

    `reported` are the dimensions that count, all of the setting by default: those that somebody has a value of.
    In setting A text interaction is no part of its axis, as in the published table.
    """
    scores: dict[str, float | None] = {}
    for axis in AXES:
        mine = [d.id for d in DIMENSIONS if d.axis == axis and setting in d.averaged]
        scores[axis] = _mean_or_none([values.get(id) for id in mine if reported is None or id in reported])
    return {**scores, "total": _mean_or_none(list(scores.values()))}


@dataclass(frozen=True)
class TriggerVerdict:
    """Whether an item poses the test, as far as anybody knows."""

    posed: bool | None
    confidence: float | None = None
    reason: str = ""  # for people


NOT_ASKED = TriggerVerdict(None, reason="no judge was asked whether the clip poses the test")


@dataclass(frozen=True)
class SharedItems:
    """Items on which models can be compared, and how many of the others each of them lacks."""

    items: frozenset[str]
    of: int  # items that any of their lists has
    lacks: Mapping[str, int]  # model -> items that others have; without the models that lack none


@dataclass(frozen=True)
class Answers:
    """The results of a run, and by which rule items count: `trigger`, `camera` or `all`."""

    results: Results
    setting: str
    rule: str
    posed: Mapping[str, TriggerVerdict | None]  # case id -> what its gate says; None where none was asked
    literal: bool = False  # whether the protocol is the paper's, who asks nobody in setting A

    @cached_property
    def results_by_model(self) -> dict[str, Results]:
        """The results of each model."""
        return {model: self.results.where(model=model) for model in self.results.models}

    @cached_property
    def results_that_count(self) -> Results:
        """The results in which an item that does not pose the test, or may not pose it, has no score."""
        return self.results.mapped(self._unscored_unless_posed)

    def _unscored_unless_posed(self, record: Record) -> Record:
        verdict = self.trigger_verdict(record.case, record.question)
        if not record.scored or verdict.posed:
            return record
        kind = "gate_closed" if verdict.posed is False else "undecided"
        reason = Reason(kind, verdict.reason or KINDS[kind].meaning)
        return record.with_changed_fields(status="unscored", value=None, reason=reason)

    def trigger_verdict(self, case: Case, metric_id: str) -> TriggerVerdict:
        """Whether an item counts under a metric, by the rule."""
        if self.rule == "all" or (metric_id in BY_ID and not BY_ID[metric_id].conditioned):
            return TriggerVerdict(True)
        return self.posed[case.id] or NOT_ASKED

    def standing_of_model(self, model: str, dimension: MemoryDimension, shared: SharedItems | None = None) -> Standing:
        """What a model comes to in a dimension: over its own list, or over the items that models share."""
        mine = self.results_by_model[model].where(subset=dimension.subset)
        of = len(mine.entries)
        if shared is not None:
            mine = mine.only(lambda entry: item_id_of_entry(entry) in shared.items)
            of = len(mine.entries) + len(shared.items - {item_id_of_entry(entry) for entry in mine.entries})
        outcomes = []
        for case in mine.cases:
            record, verdict = self.results.answer(case, dimension.id), self.trigger_verdict(case, dimension.id)
            value, raw = (record.value, record.raw) if record is not None and record.scored else (None, None)
            outcomes.append(ItemOutcome(value, raw, verdict.posed))
        return model_standing(outcomes, of, with_coverage=self.rule == "trigger")

    def shared_items(self, dimension: MemoryDimension, models: Collection[str]) -> SharedItems:
        """The items of a dimension on which these models can be compared, and which of them lack how many others.

        An item that some of them have and others lack is left out; one that none of them has is missing to all. A
        model that has none of the items is not compared in this dimension.
        """
        mine = {model: self.results_by_model[model].where(subset=dimension.subset) for model in models}
        listed = {item_id_of_entry(entry) for part in mine.values() for entry in part.entries}
        measured = {}
        for model, part in mine.items():
            if own := {item_id_of_entry(case) for case in part.cases if self._has_answer(case, dimension.id)}:
                measured[model] = own
        some = set().union(*measured.values())
        every = some.intersection(*measured.values())
        lacks = {model: len(some - own) for model, own in measured.items() if some - own}
        return SharedItems(frozenset(listed - (some - every)), len(listed), lacks)

    def _has_answer(self, case: Case, metric_id: str) -> bool:
        """Whether a metric was asked of a clip and answered, be it that the clip gives no score.

        Not where its video cannot be read, a file that the metric needs was not given, or the judge kept silent.
        """
        record = self.results.answer(case, metric_id)
        if record is None or record.failed:
            return False
        return record.reason is None or not (record.reason.lacking or record.reason.kind == "unanswered")

    def asked_dimensions(self) -> list[MemoryDimension]:
        """The dimensions that were asked, in upstream's order."""
        return [dimension for metric_id, dimension in BY_ID.items() if metric_id in self.results.metrics]


def item_id_of_entry(entry: Case | Rejected) -> str:
    """The item that an entry of a model's list stands for: the same for all models."""
    return entry.id.removesuffix(f"@{entry.model}")


def answers_with_counting_rule(results: Results) -> Answers:
    """Results with the rule by which items count."""
    setting = next((str(case.annotations["setting"]) for case in results.cases), "A")
    gate = MOVED if setting == "A" else TRIGGER
    readings = results.asking(*{*results.metrics, *results.gates} - JUDGED)  # what tells whether a video can be read
    posed_by_case = {case.id: _verdict_from_gate_record(results.answer(case, gate), readings) for case in results.cases}
    literal = any(record.protocol.startswith(("paper:", "readme:")) for record in results.records)
    gated = any(verdict is not None for verdict in posed_by_case.values())
    rule = "all" if not gated or (literal and setting == "A") else "camera" if setting == "A" else "trigger"
    return Answers(results, setting, rule, posed_by_case, literal)


def _verdict_from_gate_record(record: Record | None, readings: Results) -> TriggerVerdict | None:
    """What the answer of a gate says; None where nobody was asked."""
    if record is None or (record.reason is not None and record.reason.kind == "no_judge"):
        return None
    notes = record.case.annotations
    motion = parse_requested_motion(str(notes.get("action") or ""), notes.get("motion"))
    if record.question == MOVED and isinstance(motion, RequestedMotion) and motion.rests_throughout:
        return TriggerVerdict(True)
    if readings.unreadable(record.case):
        return TriggerVerdict(False, reason=f"the video cannot be read: {record.sentence}")
    state = {"open": True, "closed": False}.get(record.status)
    confidence = record.facts.get("confidence") if record.question == TRIGGER else None
    return TriggerVerdict(state, confidence, record.sentence)
