"""Evidence of plain folders: what a judge says to questions of memory that fit any clip, and to the user's own."""

from __future__ import annotations

from dataclasses import dataclass

from revisit.core import evidence
from revisit.evidence.judged import JudgeAnswers

RETURNS, OWN = "returns", "own"  # dimensions: whether the view comes back, and questions of the user's


@evidence(id="memory_answers")
@dataclass(frozen=True)
class MemoryAnswers(JudgeAnswers):
    """Yes-or-no questions of memory about any clip; those about the return only where the judge sees one."""
