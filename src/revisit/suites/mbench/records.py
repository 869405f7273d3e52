"""Results of a run → what every item comes to: its score, and whether it poses the test.

docs/mbench.md tells who says that it does: a judge (T) or the camera (A). An action that asks the camera to rest needs
no gate, and action interaction is averaged over all clips.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from revisit.core import KINDS, Case, Reason, Record, Rejected
from revisit.results import Results
from revisit.suites.mbench.metrics.actions import RequestedMotion, parse_requested_motion
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
        return model_standing(outcomes, of, covers=self.rule == "trigger")

    def shared_items(self, dimension: MemoryDimension, models: Collection[str]) -> SharedItems:
        """The items of a dimension on which these models can be compared, and which of them lack how many others.

        An item that some of them have and others lack is left out; one that none of them has is missing to all. A
        model that has none of the items is not compared in this dimension.
        """
        mine = {model: self.results_by_model[model].where(subset=dimension.subset) for model in models}
        listed = {item_id_of_entry(entry) for part in mine.values() for entry in part.entries}
        measured = {}
        for model, part in mine.items():
            if own := {item_id_of_entry(case) for case in part.cases if self._is_measured(case, dimension.id)}:
                measured[model] = own
        some = set().union(*measured.values())
        every = some.intersection(*measured.values())
        lacks = {model: len(some - own) for model, own in measured.items() if some - own}
        return SharedItems(frozenset(listed - (some - every)), len(listed), lacks)

    def _is_measured(self, case: Case, metric_id: str) -> bool:
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


def answers_with_rule(results: Results) -> Answers:
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
