"""Judged: the pictures a judge is shown, and what it said of WRBench's and MBench's questions (see also `answers`).

Everything a judge says has four fields in common: `judge` (the model), `frames` (the digest of what it saw),
`canary` (the control questions about a picture that we add: "" not asked, "passed", or a sentence that says which one
the judge got wrong or left open) and `problems` (a sentence for every question without a valid answer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, NoScore, evidence

PASSED = "passed"  # the canary of a clip whose control questions were answered right


@evidence(id="judge_frames")
@dataclass(frozen=True)
class JudgeFrames:
    """The pictures a judge is shown, as JPEG files one after the other in `jpeg`."""

    index: Annotated[Array, "N"]  # frame numbers
    time: Annotated[Array, "N"]  # seconds
    jpeg: Annotated[Array, "bytes"]  # uint8
    offsets: Annotated[Array, "N + 1"]  # picture k is jpeg[offsets[k]:offsets[k + 1]]
    width: int
    height: int
    digest: str  # of the decoded frames, their times, and the size and quality of the pictures
    seconds: float  # length of the clip

    def picture(self, k: int) -> bytes:
        """The k-th picture as a JPEG file."""
        return self.jpeg[self.offsets[k] : self.offsets[k + 1]].tobytes()


def require_passed_canary(canary: str, facts: dict[str, object] | None = None) -> None:
    """NoScore where there is a reason not to use a judge's answers about this clip."""
    if canary not in ("", PASSED):
        raise NoScore("untrusted", f"the judge failed a control question: {canary}", facts)
