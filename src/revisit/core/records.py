"""Record: one answer to one question about one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from revisit.core.cases import Case
from revisit.core.reasons import Reason
from revisit.core.texts import parse_json

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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The facts of a record that was read from a file: they are taken apart when somebody asks for them."""
            if name != "facts" or "facts_as_read" not in vars(self):
                raise AttributeError(name)
            found = parse_json(bytes(vars(self)["facts_as_read"]))
            object.__setattr__(self, "facts", found if isinstance(found, dict) else {})
            return self.facts

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
