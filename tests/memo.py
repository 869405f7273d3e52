"""What the tests of MemoBench's chapters share: a case with phases, and its frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Clip, Reason, Score, Unscored
from revisit.evidence.frames import FrameFacts

RULES = ("corrected", "upstream", "paper")


def case(phases: tuple[int, int] | None = (12, 25), **annotations: Any) -> Case:
    """A clip whose target is hidden from the first and back from the second of these frames."""
    return Case("c@m", "memobench", "m", "c", Clip(Path("a.mp4")), phases=phases, annotations=annotations)


def frames(count: int = 40, fps: float = 16.0) -> FrameFacts:
    """The frames of such a clip."""
    none = np.zeros(count)
    return FrameFacts(
        np.arange(count), np.arange(count) / fps, np.zeros((count, 16), np.uint8), none, none, 64, 48, fps
    )


def scored(answer: Score | Unscored) -> Score:
    assert isinstance(answer, Score), answer
    return answer


def refused(answer: Score | Unscored) -> Reason:
    assert isinstance(answer, Unscored), answer
    return answer.reason
