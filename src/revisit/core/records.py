"""Record: one answer to one question about one case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from revisit.core.cases import Case
from revisit.core.reasons import Reason

Status = Literal["scored", "unscored", "failed", "open", "closed", "unsure"]
GATE_STATES = ("open", "closed", "unsure")


class Record(msgspec.Struct, frozen=True, gc=False):
    """What a metric or a gate answered of a case.

    A metric is scored, unscored or failed; a gate open, closed or unsure, unscored or failed. A run has many thousands,
    and a struct is made several times as fast as a frozen dataclass.
    """

    case: Case
    question: str  # id of a metric or gate
    is_gate: bool
    status: Status
    value: float | None = None  # the score
    raw: float | None = None  # the signal it was made from
    label: str = ""  # what a gate found
    reason: Reason | None = None  # why there is no score, or why a gate is not open
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    version: int = 0  # of the metric or gate
    protocol: str = ""  # what must be equal for two numbers to compare
    key: str = ""  # of everything the answer depends on
    units: str = ""  # file with the values per frame, in the folder of the run
    n_units: int = 0
    seconds: float = 0.0

    def changed(self, **fields: Any) -> Record:
        """The same answer with other values of these fields."""
        return msgspec.structs.replace(self, **fields)

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
