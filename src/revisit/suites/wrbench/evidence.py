"""Evidence of WRBench: a judge's answers to probes of an event, and in which seconds the subject can be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from revisit.core import Array, evidence
from revisit.evidence.judged import JudgeAnswers, JudgedEvidence


@evidence(id="probe_answers")
@dataclass(frozen=True)
class ProbeAnswers(JudgeAnswers):
    """Yes-or-no probes of one event, with polarity and probability, in four dimensions (WRBench)."""


@evidence(id="judgeability")
@dataclass(frozen=True)
class Judgeability(JudgedEvidence):
    """In which seconds of a clip the main subject can be judged, in one or two looks (WRBench's gate).

    The second look is taken only where the first finds no return; both are kept, apart from the scores.
    """

    seconds: Annotated[Array, "S; 0 or 1"]  # 1 judgeable, 0 not, of each whole second; empty without a valid answer
    subject: str  # as the judge names it
    second_seconds: Annotated[Array, "T; 0 or 1"]  # of the second look; empty where it was not taken or not answered
    second_spatial: int  # whether the second look says that place can be judged on return: 1, 0, or -1 unknown
    second_state: int  # the same of the state


def classify_judgeable_seconds(seconds: np.ndarray) -> str:
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
