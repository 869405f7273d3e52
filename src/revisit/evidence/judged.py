"""Judged: the pictures a judge is shown, and what it said of WRBench's and MBench's questions (see also `answers`).

Everything a judge says has four fields in common: `judge` (the model), `frames` (the digest of what it saw),
`canary` (the control questions about a picture that we add: "" not asked, "passed", or a sentence that says which one
the judge got wrong or left open) and `problems` (a sentence for every question without a valid answer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from revisit.core import Array, Unscored, evidence
from revisit.evidence.answers import JudgeAnswers

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


@evidence(id="trigger_answer")
@dataclass(frozen=True)
class TriggerAnswer:
    """Whether a judge found that a clip poses the memory test of its subset at all (MBench)."""

    triggered: int  # 1, 0, or -1 where the judge gave no valid answer
    confidence: float  # 0-1; nan where there is none
    question: str  # which of the subset's questions was asked
    judge: str
    frames: str = ""
    canary: str = ""
    problems: tuple[str, ...] = ()


@evidence(id="progress_ratings")
@dataclass(frozen=True)
class ProgressRatings:
    """How far the asked-for change went, and how right it looks, each from 1 to 5 (MBench)."""

    progress: float  # nan where the judge gave no valid answer
    correctness: float
    judge: str
    frames: str = ""
    canary: str = ""
    problems: tuple[str, ...] = ()


@evidence(id="probe_answers")
@dataclass(frozen=True)
class ProbeAnswers(JudgeAnswers):
    """Yes-or-no probes of one event, with polarity and probability, in four dimensions (WRBench)."""


@evidence(id="judgeability")
@dataclass(frozen=True)
class Judgeability:
    """In which seconds of a clip the main subject can be judged, in one or two looks (WRBench's gate).

    The second look is taken only where the first finds no return; both are kept, apart from the scores.
    """

    seconds: Annotated[Array, "S; 0 or 1"]  # 1 judgeable, 0 not, of each whole second; empty without a valid answer
    subject: str  # as the judge names it
    second_seconds: Annotated[Array, "T; 0 or 1"]  # of the second look; empty where it was not taken or not answered
    second_spatial: int  # whether the second look says that place can be judged on return: 1, 0, or -1 unknown
    second_state: int  # the same of the state
    judge: str
    frames: str = ""
    canary: str = ""
    problems: tuple[str, ...] = ()


def mistrusted(canary: str) -> Unscored | None:
    """The reason not to use a judge's answers about this clip, if there is one."""
    return None if canary in ("", PASSED) else Unscored("untrusted", f"the judge failed a control question: {canary}")


def regime(seconds: np.ndarray) -> str:
    """What the seconds tell: `returned`, `no return`, `never hidden`, `late`, `never judgeable` or, of none, `unknown`.

    Hidden is the first second that cannot be judged after one that can; any later second that can be is the return.
    `late` is a subject that could not be judged at first and never left the view once it could.
    """
    if not len(seconds):
        return "unknown"
    judgeable = np.flatnonzero(seconds == 1)
    if not len(judgeable):
        return "never judgeable"
    hidden = np.flatnonzero((seconds == 0) & (np.arange(len(seconds)) > judgeable[0]))
    if not len(hidden):
        return "late" if judgeable[0] else "never hidden"
    return "returned" if judgeable[-1] > hidden[0] else "no return"
