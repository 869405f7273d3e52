"""Reasons: why there is no score, as one of a closed list of kinds and a sentence.

Code decides by the kind and never reads the sentence, which is for people. A kind that is `lacking` means that the
question could not even be asked: something was not given, or is not in the observer set or on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from revisit.core.text import read_package_yaml

Details = Mapping[str, Any]  # facts by name, as JSON has them: numbers, texts, lists and mappings


@dataclass(frozen=True)
class ReasonKind:
    """A kind of reason: its name in tables, and what it means."""

    title: str
    meaning: str
    lacking: bool = False


KINDS: Mapping[str, ReasonKind] = {
    kind: ReasonKind(**facts) for kind, facts in read_package_yaml(__package__, "reasons.yaml").items()
}


@dataclass(frozen=True)
class Reason:
    """Why there is no score: a kind of a closed list, by which clips are counted, and a sentence about this one.

    Parameters
    ----------
    kind
        Such as "too_short" or "no_reference"; docs/reasons.md has the list.
    sentence
        What was found, for people. No code reads it.

    Raises
    ------
    ValueError
        If the kind is not of the list, or the sentence is empty.

    Examples
    --------
    >>> reason = revisit.Reason("no_reference", "no reference video was given for this case")
    >>> reason.lacking
    True
    """

    kind: str
    sentence: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of reason; the kinds are {', '.join(KINDS)}")
        if not self.sentence:
            raise ValueError(
                f"a reason needs a sentence that says what was found; the one of kind {self.kind} is empty"
            )

    @property
    def lacking(self) -> bool:
        """Whether the question could not even be asked."""
        return KINDS[self.kind].lacking

    def __str__(self) -> str:
        return self.sentence
