"""What a metric or a gate returns: a Score, a GateResult, or an Unscored with the reason why there is neither."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revisit.core.errors import InvalidAnswer
from revisit.core.reasons import Details, Reason


@dataclass(frozen=True)
class Series:
    """Named columns of one length: the values per frame, or per pair of frames, behind a score.

    Parameters
    ----------
    **columns
        Arrays of one length. `value` is what the score aggregates; the others say where each value belongs
        (`frame`, `other`, `seconds`, ...).

    Raises
    ------
    ValueError
        If the columns differ in length.

    Examples
    --------
    >>> series = revisit.Series(frame=[0, 8, 16], value=[0.9, 0.2, 0.8])
    >>> series
    Series(frame, value: 3 rows)
    >>> series.worst()
    1
    """

    columns: Mapping[str, np.ndarray]

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {array.shape[0] if array.ndim else -1 for array in arrays.values()}
        if len(lengths) > 1 or -1 in lengths:
            shapes = {name: array.shape for name, array in arrays.items()}
            raise ValueError(f"the columns of a series must have the same length; got {shapes}")
        object.__setattr__(self, "columns", arrays)

    def __repr__(self) -> str:
        return f"Series({', '.join(self.columns)}: {len(self)} rows)"

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def worst(self, higher_is_better: bool = True) -> int | None:
        """Row whose `value` hurts the score most.

        Parameters
        ----------
        higher_is_better
            Whether the lowest value or the highest is the worst.

        Returns
        -------
        int or None
            The row; of several equal ones that in the middle. None for a series without finite values.
        """
        if not len(self) or "value" not in self.columns:
            return None
        value = np.asarray(self.columns["value"], dtype=float)
        if not np.isfinite(value).any():
            return None
        worst = np.nanmin(value) if higher_is_better else np.nanmax(value)
        equal_rows = np.flatnonzero(np.isclose(value, worst, rtol=0, atol=1e-6))
        return int(equal_rows[len(equal_rows) // 2])


@dataclass(frozen=True)
class Score:
    """A finite number, with the signal it was made from and the values per frame behind it.

    Parameters
    ----------
    value
        The score; a finite number.
    raw
        The signal that it was made from, such as an error before it is mapped to 0 to 1.
    units
        Values per frame or per pair of frames, whose column `value` the score aggregates.
    facts
        Further findings by name, which the record repeats: numbers, texts, lists.

    Raises
    ------
    ValueError
        If `value` is nan or infinite: return an `Unscored` with the reason instead.

    Examples
    --------
    >>> revisit.Score(0.8, raw=0.2, facts={"last": 0.75})
    Score(value=0.8, raw=0.2, units=None, facts={'last': 0.75})
    """

    value: float
    raw: float | None = None
    units: Series | None = None
    facts: Details = field(default_factory=dict)

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
    """No score, and why. Counted in the coverage of every table; never a zero, and never dropped.

    Parameters
    ----------
    reason
        A kind of the closed list of reasons, such as "too_short"; or a whole `Reason`.
    sentence
        What was found in this clip, for people.
    facts
        Further findings by name, as those of a `Score`.

    Raises
    ------
    ValueError
        If the kind is not of the list, or the sentence is empty.

    Examples
    --------
    >>> revisit.Unscored("too_short", "one frame cannot change").kind
    'too_short'
    """

    reason: Reason
    facts: Details

    def __init__(self, reason: str | Reason, sentence: str = "", facts: Details | None = None) -> None:
        object.__setattr__(self, "reason", reason if isinstance(reason, Reason) else Reason(reason, sentence))
        object.__setattr__(self, "facts", facts or {})

    @property
    def kind(self) -> str:
        """The kind of the reason."""
        return self.reason.kind

    @property
    def sentence(self) -> str:
        """The reason, for people."""
        return self.reason.sentence


class NoScore(Exception):
    """Raised by what a metric, gate or derivation calls, to make it answer with this `Unscored`."""

    def __init__(self, reason: str | Reason, sentence: str = "", facts: Details | None = None) -> None:
        self.unscored = Unscored(reason, sentence, facts)


@dataclass(frozen=True)
class GateResult:
    """What a gate decides: may its metrics be asked of this clip?

    Parameters
    ----------
    state
        "open", "closed" or "unsure".
    label
        The finding in the field's words, such as "hidden, returned".
    reason
        The sentence that is shown where the gate is not open.
    facts
        Further findings by name, as those of a `Score`.
    units
        Values per frame behind the decision.

    Raises
    ------
    ValueError
        For another state, and for a gate that is not open and has no reason.

    Examples
    --------
    >>> revisit.GateResult("closed", "never hidden", "the target stays in view").refusal.kind
    'gate_closed'
    """

    state: str
    label: str
    reason: str = ""
    facts: Details = field(default_factory=dict)
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


def to_score_or_unscored(id: str, answer: object) -> Score | Unscored:
    """What a metric returned, as a Score or an Unscored; a bare number is a score.

    Raises InvalidAnswer for nan, for infinity and for any other type.
    """
    if isinstance(answer, Unscored):
        return answer
    if isinstance(answer, Score):
        _check_units_and_facts(id, answer)
        return answer
    value = answer.item() if isinstance(answer, np.generic | np.ndarray) and np.ndim(answer) == 0 else answer
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidAnswer(
            f"{id} returned {_type_in_words(answer)}; return a number, a revisit.Score, or a revisit.Unscored with the "
            "reason why there is none"
        )
    try:
        number = float(value)
    except OverflowError:  # an int beyond the range of floats
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise InvalidAnswer(
            f"{id} returned {number} ({type(answer).__name__}); return a finite number, or a revisit.Unscored with the "
            "reason why there is none"
        )
    return Score(number)


def to_gate_result_or_unscored(id: str, answer: object) -> GateResult | Unscored:
    """What a gate returned; InvalidAnswer for what is neither a GateResult nor an Unscored."""
    if isinstance(answer, Unscored):
        return answer
    if not isinstance(answer, GateResult):
        raise InvalidAnswer(
            f"{id} returned {_type_in_words(answer)}; a gate returns a revisit.GateResult or a revisit.Unscored"
        )
    _check_units_and_facts(id, answer)
    return answer


def _check_units_and_facts(id: str, answer: Score | GateResult) -> None:
    """Refuse what could not be written to a record."""
    if answer.units is not None and not isinstance(answer.units, Series):
        raise InvalidAnswer(f"{id} returned units that are {_type_in_words(answer.units)}; they are a revisit.Series")
    if not isinstance(answer.facts, Mapping):
        raise InvalidAnswer(
            f"{id} returned facts that are {_type_in_words(answer.facts)}; they are a mapping from names"
        )


def _type_in_words(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
