"""Record: one answer to one question about one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from revisit.core.cases import Case
from revisit.core.reasons import Reason

Status = Literal["scored", "unscored", "failed", "open", "closed", "unsure"]
GATE_STATES = ("open", "closed", "unsure")


@dataclass(frozen=True)
class Record:
    """What a metric or a gate answered of a case.

    A metric is scored, unscored or failed; a gate open, closed or unsure, unscored or failed.
    """

    case: Case
    question: str  # id of a metric or gate
    is_gate: bool
    status: Status
    value: float | None = None  # the score
    raw: float | None = None  # the signal it was made from
    label: str = ""  # what a gate found
    reason: Reason | None = None  # why there is no score, or why a gate is not open
    facts: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0  # of the metric or gate
    protocol: str = ""  # what must be equal for two numbers to compare
    key: str = ""  # of everything the answer depends on
    units: str = ""  # file with the values per frame, in the folder of the run
    n_units: int = 0
    seconds: float = 0.0

    @property
    def scored(self) -> bool:
        return self.status == "scored"

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    @property
    def sentence(self) -> str:
        """The reason for people, or nothing."""
        return self.reason.sentence if self.reason else ""

    # TRANSITION: access as to the former dict; goes away.
    def _old(self) -> dict[str, Any]:
        made: dict[str, Any] = {"case": self.case.id, "gate" if self.is_gate else "metric": self.question}
        made |= {"status": self.status, "version": self.version, "protocol": self.protocol, "key": self.key}
        if self.status == "scored":
            made |= {"score": self.value, "raw": self.raw}
        if self.label:
            made["label"] = self.label
        if self.reason or self.is_gate:
            made["reason"] = self.sentence
        if self.status != "failed":
            made["facts"] = self.facts
        if self.units:
            made |= {"units": self.units, "n_units": self.n_units}
        return made

    def __getitem__(self, name: str) -> Any:
        return self._old()[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._old().get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._old()
