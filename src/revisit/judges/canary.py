"""Canaries: control questions with known answers, about a picture that is added to the frames.

Writing inside a video may tell a judge what to say. So a plain card is added behind the frames, in a colour that
depends on the frames, and two questions of the usual form are asked about it before all others: one whose answer is
yes, one whose answer is no. A judge that follows the video ("always answer yes"), or that cannot see, gets one of them
wrong. Then the clip is marked, and nothing else is asked about it. A judge that fails on most clips is asked no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from revisit.core import digest
from revisit.evidence.judged import PASSED
from revisit.judges.protocol import Frames, JudgeAnswer
from revisit.judges.questions import Question

CANARY = "canary."  # how the ids of control questions begin
COLOURS = {  # as RGB, far apart
    "red": (200, 30, 30), "green": (30, 160, 50), "blue": (30, 60, 200), "yellow": (235, 210, 40),
    "black": (15, 15, 15), "white": (245, 245, 245),
}  # fmt: skip


def append_colour_card(frames: Frames) -> Frames:
    """The frames with a plain card behind them, in the colour that belongs to them."""
    import cv2
    import numpy as np

    colour, _ = card_colour_and_decoy(frames)
    width, height = max(frames.size[0], 64), max(frames.size[1], 64)
    card = np.full((height, width, 3), COLOURS[colour][::-1], np.uint8)
    _, jpeg = cv2.imencode(".jpg", card, [cv2.IMWRITE_JPEG_QUALITY, 90])
    step = frames.times[-1] - frames.times[-2] if len(frames.times) > 1 else 1.0
    return Frames(
        (*frames.jpegs, jpeg.tobytes()),
        (*frames.times, frames.times[-1] + step if frames.times else 0.0),
        digest([frames.digest, "card", colour, width, height], 40),
        frames.size,
        frames.seconds,
    )


def card_colour_and_decoy(frames: Frames) -> tuple[str, str]:
    """The colour of the card that belongs to these frames, and another one."""
    names, number = list(COLOURS), int(digest(frames.digest), 16)
    first = number % len(names)
    return names[first], names[(first + 1 + number // 7 % (len(names) - 1)) % len(names)]


def canary_questions(frames: Frames) -> list[Question]:
    """Two questions about the frames with their card: the first is answered by yes, the second by no."""
    text = "Look at the last frame only. Is it one plain surface, filled with the colour {} from edge to edge?"
    own, other = card_colour_and_decoy(frames)
    return [Question(f"{CANARY}yes", text.format(own)), Question(f"{CANARY}no", text.format(other))]


def passed_or_canary_fault(answers: Sequence[JudgeAnswer]) -> str:
    """`passed`, or the sentence that marks the clip."""
    for answer, right in zip(answers, (True, False), strict=True):
        if answer.status != "answered":
            return "a control question about an added picture has no valid answer"
        if answer.value is not right:
            answer_text = "yes" if answer.value else "no"
            return f"a control question about an added picture was answered {answer_text}, which is wrong"
    return PASSED


@dataclass
class ControlRecord:
    """How a judge did in its control questions, clip by clip, and whether it is to be asked on."""

    first: int  # clips that decide before anything else is asked; 0: it is asked whatever it says
    results: dict[str, bool] = field(default_factory=dict)  # key of the pictures -> whether it passed

    @property
    def failed_clips(self) -> int:
        return sum(not passed for passed in self.results.values())

    @property
    def has_enough_clips(self) -> bool:
        """Whether enough clips are known to go on, or to stop."""
        return len(self.results) >= self.first

    @property
    def is_judge_refused(self) -> bool:
        """Whether nothing more is to be asked: it failed on most clips."""
        return bool(self.first) and self.has_enough_clips and 2 * self.failed_clips > len(self.results)

    @property
    def refusal_sentence(self) -> str:
        """The sentence for what was not asked."""
        return (
            f"the judge failed its control questions on {self.failed_clips} of the first {len(self.results)} clips, so "
            "nothing more was asked; use another judge, or set `controls_first: 0` in the judge file to go on"
        )
