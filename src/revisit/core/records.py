"""Record: one answer to one question about one case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from revisit.core.cases import Case
from revisit.core.reasons import Details, Reason

Status = Literal["scored", "unscored", "failed", "open", "closed", "unsure"]
GATE_STATES = ("open", "closed", "unsure")


class Record(msgspec.Struct, frozen=True, gc=False):
    """What a metric or a gate answered about a case.

    Attributes
    ----------
    case, question
        The case, and the id of the metric or gate.
    is_gate
        Whether a gate answered.
    status
        Of a metric "scored", "unscored" or "failed"; of a gate "open", "closed" or "unsure", "unscored" or "failed".
    value, raw
        The score, and the signal that it was made from.
    label
        What a gate found.
    reason
        Why there is no score, or why a gate is not open.
    facts
        Further findings by name.
    version, protocol, key
        Of the metric or gate; what must be equal for two numbers to compare; all that the answer depends on.
    units, n_units
        File with the values per frame, in the folder of the run, and how many they are.
    seconds
        Time that the answer took.

    Examples
    --------
    >>> frames = np.full((4, 32, 48, 3), 128, np.uint8)
    >>> revisit.score(frames, metrics=["flicker"]).records[0]
    Record(flicker of clip@model: 0)
    """

    # A run has many thousands, and a struct is made several times as fast as a frozen dataclass.

    case: Case
    question: str  # id of a metric or gate
    is_gate: bool
    status: Status
    value: float | None = None  # the score
    raw: float | None = None  # the signal it was made from
    label: str = ""  # what a gate found
    reason: Reason | None = None  # why there is no score, or why a gate is not open
    facts: Details = msgspec.field(default_factory=dict)
    version: int = 0  # of the metric or gate
    protocol: str = ""  # what must be equal for two numbers to compare
    key: str = ""  # of everything the answer depends on
    units: str = ""  # file with the values per frame, in the folder of the run
    n_units: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        result = (
            f"{self.value:.4g}" if self.value is not None else f"{self.status} {self.label or self.sentence}".strip()
        )
        return f"Record({self.question} of {self.case.id}: {result})"

    def with_changed_fields(self, **fields: Any) -> Record:
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
