"""Results of a run → what every item comes to: its score, and whether it poses the test.

docs/mbench.md tells who says that it does: a judge (T) or the camera (A). An action that asks the camera to rest needs
no gate, and action interaction is averaged over all clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from revisit.core import KINDS, Case, Reason, Record
from revisit.results import Results
from revisit.suites.mbench.metrics.actions import RequestedMotion, requested_motion
from revisit.suites.mbench.names import BY_ID, JUDGED, MOVED, TRIGGER, MemoryDimension
from revisit.suites.mbench.scoring import ItemOutcome, Standing, model_standing


@dataclass(frozen=True)
class TriggerVerdict:
    """Whether an item poses the test, as far as anybody knows."""

    posed: bool | None
    confidence: float | None = None
    reason: str = ""  # for people


NOT_ASKED = TriggerVerdict(None, reason="no judge was asked whether the clip poses the test")


@dataclass(frozen=True)
class Answers:
    """The results of a run, and by which rule items count: `trigger`, `camera` or `all`."""

    results: Results
    setting: str
    rule: str
    posed: Mapping[str, TriggerVerdict | None]  # case id -> what its gate says; None where none was asked
    literal: bool = False  # whether the protocol is the paper's, who asks nobody in setting A

    @cached_property
    def models(self) -> dict[str, Results]:
        """The results of each model."""
        return {model: self.results.where(model=model) for model in self.results.models}

    @cached_property
    def counted_results(self) -> Results:
        """The results in which an item that does not pose the test, or may not pose it, has no score."""
        return self.results.mapped(self._without_untested)

    def _without_untested(self, record: Record) -> Record:
        verdict = self.verdict(record.case, record.question)
        if not record.scored or verdict.posed:
            return record
        kind = "gate_closed" if verdict.posed is False else "undecided"
        reason = Reason(kind, verdict.reason or KINDS[kind].meaning)
        return record.changed(status="unscored", value=None, reason=reason)

    def verdict(self, case: Case, metric_id: str) -> TriggerVerdict:
        """Whether an item counts under a metric, by the rule."""
        if self.rule == "all" or not (metric_id not in BY_ID or BY_ID[metric_id].conditioned):
            return TriggerVerdict(True)
        return self.posed[case.id] or NOT_ASKED

    def outcome(self, case: Case, metric_id: str) -> ItemOutcome:
        """What an item comes to under a metric, by the rule."""
        record, verdict = self.results.answer(case, metric_id), self.verdict(case, metric_id)
        value, raw = (record.value, record.raw) if record is not None and record.scored else (None, None)
        return ItemOutcome(value, raw, verdict.posed)

    def standing(self, model: str, dimension: MemoryDimension) -> Standing:
        """What a model comes to in a dimension."""
        mine = self.models[model].where(subset=dimension.subset)
        outcomes = [self.outcome(case, dimension.id) for case in mine.cases]
        return model_standing(outcomes, len(mine.entries), covers=self.rule == "trigger")

    def dimensions(self) -> list[MemoryDimension]:
        """The dimensions that were asked, in upstream's order."""
        return [dimension for metric_id, dimension in BY_ID.items() if metric_id in self.results.metrics]


def answers_of(results: Results) -> Answers:
    """Results with the rule by which items count."""
    setting = next((str(case.annotations["setting"]) for case in results.cases), "A")
    gate = MOVED if setting == "A" else TRIGGER
    readings = results.asking(*{*results.metrics, *results.gates} - JUDGED)  # what tells whether a video can be read
    posed_by_case = {case.id: _trigger_verdict(results.answer(case, gate), readings) for case in results.cases}
    literal = any(record.protocol.startswith(("paper:", "readme:")) for record in results.records)
    gated = any(verdict is not None for verdict in posed_by_case.values())
    rule = "all" if not gated or (literal and setting == "A") else "camera" if setting == "A" else "trigger"
    return Answers(results, setting, rule, posed_by_case, literal)


def _trigger_verdict(record: Record | None, readings: Results) -> TriggerVerdict | None:
    """What the answer of a gate says; None where nobody was asked."""
    if record is None or (record.reason is not None and record.reason.kind == "no_judge"):
        return None
    notes = record.case.annotations
    motion = requested_motion(str(notes.get("action") or ""), notes.get("motion"))
    if record.question == MOVED and isinstance(motion, RequestedMotion) and motion.rests:
        return TriggerVerdict(True)
    if readings.unreadable(record.case):
        return TriggerVerdict(False, reason=f"the video cannot be read: {record.sentence}")
    state = {"open": True, "closed": False}.get(record.status)
    return TriggerVerdict(
        state, record.facts.get("confidence") if record.question == TRIGGER else None, record.sentence
    )
