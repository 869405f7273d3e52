"""What the tests of MemoBench's chapters share: a case with phases, and its frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Clip, Reason, Score, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.names import canonical_scene_name
from revisit.suites.memobench.question_bank import Bank

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


def name_of_bank(bank: Bank) -> str:
    """The clip as the bank names it: Zen_Garden-10."""
    return f"{bank.scene}-{bank.number}"


def clip_folder_of_bank(bank: Bank) -> str:
    """The clip as its folder is named: ZenGarden_010, or 007 for a real one."""
    real = bank.scene.lower() in ("", "real")
    return f"{bank.number:03d}" if real else f"{canonical_scene_name(bank.scene)}_{bank.number:03d}"


def scored(answer: Score | Unscored) -> Score:
    assert isinstance(answer, Score), answer
    return answer


def refused(answer: Score | Unscored) -> Reason:
    assert isinstance(answer, Unscored), answer
    return answer.reason
