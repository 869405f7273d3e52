"""What a metric or a gate answers: a Score, an Unscored with its reason, or a Verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revisit.core.errors import InvalidAnswer
from revisit.core.reasons import Reason


@dataclass(frozen=True)
class Series:
    """Named columns of one length: the per-frame or per-pair values behind a score.

    The column `value` is what the score aggregates; the others say where each value belongs
    (`frame`, `other`, `seconds`, ...).
    """

    columns: Mapping[str, np.ndarray]

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {array.shape[0] if array.ndim else -1 for array in arrays.values()}
        if len(lengths) > 1 or -1 in lengths:
            shapes = {name: array.shape for name, array in arrays.items()}
            raise ValueError(f"the columns of a series must have the same length; got {shapes}")
        object.__setattr__(self, "columns", arrays)

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def worst(self, higher_is_better: bool = True) -> int | None:
        """Row whose `value` hurts the score most, of several alike the one in the middle; None for an empty series."""
        if not len(self) or "value" not in self.columns:
            return None
        value = np.asarray(self.columns["value"], dtype=float)
        if not np.isfinite(value).any():
            return None
        worst = np.nanmin(value) if higher_is_better else np.nanmax(value)
        alike = np.flatnonzero(np.isclose(value, worst, rtol=0, atol=1e-6))
        return int(alike[len(alike) // 2])


@dataclass(frozen=True)
class Score:
    """A finite value, the signal it was made from, and the units (frames, pairs) it aggregates."""

    value: float
    raw: float | None = None
    units: Series | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if not math.isfinite(self.value):
            raise ValueError(
                f"a score must be a finite number, not {self.value}; return Unscored with a reason instead"
            )
        if self.raw is not None:
            raw = float(self.raw)
            object.__setattr__(self, "raw", raw if math.isfinite(raw) else None)


@dataclass(frozen=True, init=False)
class Unscored:
    """No score, and why: a kind of `core.reasons`, and a sentence. Counted in coverage; never a zero, never dropped."""

    reason: Reason
    facts: Mapping[str, Any]

    def __init__(self, reason: str | Reason, sentence: str = "", facts: Mapping[str, Any] | None = None) -> None:
        """A kind and a sentence, or a reason of both."""
        object.__setattr__(self, "reason", reason if isinstance(reason, Reason) else Reason(reason, sentence))
        object.__setattr__(self, "facts", facts or {})

    @property
    def kind(self) -> str:
        return self.reason.kind

    @property
    def sentence(self) -> str:
        return self.reason.sentence


def score_of(id: str, answer: Any) -> Score | Unscored:
    """What a metric returned, as a Score or an Unscored; a bare number is a score.

    Parameters
    ----------
    id
        The metric, for the sentence of an error.
    answer
        A Score, an Unscored, or a finite number: a float, an int or a numpy scalar.

    Returns
    -------
    Score or Unscored
        The same, or the Score of the number.

    Raises
    ------
    InvalidAnswer
        For nan, for infinity and for any other type.
    """
    if isinstance(answer, Unscored):
        return answer
    if isinstance(answer, Score):
        _check_parts(id, answer)
        return answer
    value = answer.item() if isinstance(answer, np.generic | np.ndarray) and np.ndim(answer) == 0 else answer
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidAnswer(
            f"{id} returned {_kind_of(answer)}; return a number, a revisit.Score, or a revisit.Unscored with the "
            "reason why there is none"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise InvalidAnswer(
            f"{id} returned {number} ({type(answer).__name__}); return a finite number, or a revisit.Unscored with the "
            "reason why there is none"
        )
    return Score(number)


def verdict_of(id: str, answer: Any) -> Verdict | Unscored:
    """What a gate returned; InvalidAnswer for what is neither a Verdict nor an Unscored."""
    if isinstance(answer, Unscored):
        return answer
    if not isinstance(answer, Verdict):
        raise InvalidAnswer(f"{id} returned {_kind_of(answer)}; a gate returns a revisit.Verdict or a revisit.Unscored")
    _check_parts(id, answer)
    return answer


def _check_parts(id: str, answer: Score | Verdict) -> None:
    """Refuse what could not be written to a record."""
    if answer.units is not None and not isinstance(answer.units, Series):
        raise InvalidAnswer(f"{id} returned units that are {_kind_of(answer.units)}; they are a revisit.Series")
    if not isinstance(answer.facts, Mapping):
        raise InvalidAnswer(f"{id} returned facts that are {_kind_of(answer.facts)}; they are a mapping from names")


def _kind_of(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


@dataclass(frozen=True)
class Verdict:
    """A gate's answer: may the question be asked of this clip?

    `state` is "open", "closed" or "unsure"; `label` is the finding in the field's words
    ("hidden, returned"); `reason` is the sentence shown when the gate is not open.
    """

    state: str
    label: str
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    units: Series | None = None

    def __post_init__(self) -> None:
        if self.state not in ("open", "closed", "unsure"):
            raise ValueError(f"a gate is open, closed or unsure, not {self.state!r}")
        if self.state != "open" and not self.reason:
            raise ValueError("a gate that is not open needs a reason")

    @property
    def refusal(self) -> Reason:
        """Why a gate that is not open lets nothing through."""
        return Reason("gate_closed" if self.state == "closed" else "undecided", self.reason)
