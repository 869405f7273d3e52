"""Records of a run → what every item comes to: its score, and whether it poses the test.

Who says that an item poses the test:
- T: a judge (`judged_trigger`). Without one, every scored item counts, as upstream does, and there is no M-Score.
- A: the camera (`camera_moved`). The paper holds that an action always poses the test; a model that ignores its action
  then wins with a still picture. The protocols `paper` and `readme` average and rank all items, as the paper does; what
  the gate says is told beside it. An action that asks the camera to rest needs no gate, and action interaction is
  averaged over all clips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from revisit.core import Case, Rejected
from revisit.metrics.mb_actions import Asked, asked_of
from revisit.suites.mbench.names import BY_ID, JUDGED, MOVED, TRIGGER, Dimension
from revisit.suites.mbench.scoring import Outcome, Standing, standing
from revisit.suites.tables import ByCase, Record, by_case, unreadable

NO_JUDGE = "no judge was given"  # how the reason of a gate begins that nobody was asked about


@dataclass(frozen=True)
class Posed:
    """Whether an item poses the test, as far as anybody knows."""

    posed: bool | None
    confidence: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answers:
    """The records of a run, and by which rule items count: `trigger`, `camera` or `all`."""

    setting: str
    rule: str
    cases: Sequence[Case]
    rejected: Sequence[Rejected]
    records: ByCase
    posed: Mapping[str, Posed | None]  # case id -> what its gate says; None where none was asked
    literal: bool = False  # whether the protocol is the paper's, who asks nobody in setting A

    @property
    def models(self) -> list[str]:
        return sorted({case.model for case in self.cases} | {entry.model for entry in self.rejected if entry.model})

    def of(self, model: str, subset: str | None = None) -> tuple[list[Case], list[Rejected]]:
        """The cases of a model, in one subset or in all, and what its list has besides."""
        return (
            [case for case in self.cases if case.model == model and subset in (None, case.subset)],
            [entry for entry in self.rejected if entry.model == model and subset in (None, entry.subset)],
        )

    def outcome(self, case: Case, id: str) -> Outcome:
        """What an item comes to under a metric, by the rule."""
        record = self.records.get(case.id, {}).get(id, {})
        scored = record.get("status") == "scored"
        verdict = self.verdict(case, id)
        return Outcome(
            float(record["score"]) if scored else None,
            record.get("raw") if scored else None,
            verdict.posed,
            verdict.confidence,
        )

    def verdict(self, case: Case, id: str) -> Posed:
        """Whether an item counts under a metric, by the rule."""
        if self.rule == "all" or not (id not in BY_ID or BY_ID[id].conditioned):
            return Posed(True)
        return self.posed[case.id] or Posed(None, reason="nobody was asked whether it poses the test")

    def standing(self, model: str, dimension: Dimension) -> Standing:
        """What a model comes to in a dimension."""
        cases, rejected = self.of(model, dimension.subset)
        outcomes = [self.outcome(case, dimension.id) for case in cases]
        return standing(outcomes, len(cases) + len(rejected), covers=self.rule == "trigger")

    def asked(self) -> list[Dimension]:
        """The dimensions that were asked, in upstream's order."""
        found = {id for asked in self.records.values() for id in asked}
        return [dimension for id, dimension in BY_ID.items() if id in found]


def answers_of(cases: Sequence[Case], rejected: Sequence[Rejected], records: Sequence[Record]) -> Answers:
    """Records with the rule by which items count."""
    found = by_case(records)
    setting = next((str(case.annotations["setting"]) for case in cases), "A")
    gate = MOVED if setting == "A" else TRIGGER
    posed = {case.id: _posed(case, found.get(case.id, {}), gate) for case in cases}
    literal = any(str(record.get("protocol", "")).startswith(("paper:", "readme:")) for record in records)
    asked = any(verdict is not None for verdict in posed.values())
    rule = "all" if not asked or (literal and setting == "A") else "camera" if setting == "A" else "trigger"
    return Answers(setting, rule, cases, rejected, found, posed, literal)


def _posed(case: Case, records: Mapping[str, Record], gate: str) -> Posed | None:
    record = records.get(gate)
    if record is None or (record["status"] == "unscored" and record["reason"].startswith(NO_JUDGE)):
        return None
    asked = asked_of(str(case.annotations.get("action") or ""), case.annotations.get("motion"))
    if gate == MOVED and isinstance(asked, Asked) and asked.rests:
        return Posed(True)
    if unreadable({id: record for id, record in records.items() if id not in JUDGED}):
        return Posed(False, reason=f"the video cannot be read: {record['reason']}")
    state = {"open": True, "closed": False}.get(record["status"])
    confidence = (record.get("facts") or {}).get("confidence")
    return Posed(state, confidence if gate == TRIGGER else None, record.get("reason", ""))
