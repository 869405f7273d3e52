"""The target gate with a network's eyes: hidden, returned or never hidden, from `TargetLooks` (docs/target-gate.md).

What comes back is another question than what goes away. The network says "something like it": another person at the
same place is like the one who left. So a return counts only if it is clear; a faint one is "cannot tell".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from revisit.evidence.target import TargetLooks
from revisit.metrics.answers import keep_last
from revisit.metrics.frame_index import runs

LOOKALIKE = 0.75  # likeness of something beside the target, in the first frame, from which on the two can be mixed up
FEW_FIRST = 6  # looks from which the margin of the first frames is taken
LEAST_MARGIN = 0.08  # in the first frame: a target no more like itself than its background cannot be told from it
SAME_PICTURE, SAME_PLACE = 0.85, 0.2  # likeness to the look before, and overlap with it, of what only goes on changing
STEP_OF_LIKE, STEP_OF_MARGIN, STEP_OF_SECONDS = 0.01, 0.01, 0.1  # of margin, see margins.py


@dataclass(frozen=True)
class LookRule:
    """The thresholds of one reading, and the seconds that hiding and returning take."""

    shows_like: float = 0.50
    shows_margin: float = 0.0
    lacks_like: float = 0.40
    lacks_margin: float = 0.08  # a larger margin, with little likeness, is no answer
    background: float = -0.05  # margin from which down it is background, whatever the likeness
    return_like: float = 0.55
    return_margin: float = 0.15
    most_unanswered: float = 0.25  # share of the frames after the loss
    hidden_for: float = 0.3
    back_for: float = 0.3

    def off(self, steps: int) -> Iterator[LookRule]:
        """The same, so many steps of margin stricter or milder in one respect."""
        for offset in (steps, -steps):
            like, margin = offset * STEP_OF_LIKE, offset * STEP_OF_MARGIN
            yield replace(self, shows_like=self.shows_like + like, lacks_like=self.lacks_like + like)
            yield replace(
                self, shows_margin=self.shows_margin + margin, background=self.background + margin,
                lacks_margin=self.lacks_margin + margin,
            )  # fmt: skip
            yield replace(self, return_like=self.return_like + like, return_margin=self.return_margin + margin)
            yield replace(self, hidden_for=max(self.hidden_for + offset * STEP_OF_SECONDS, 0.0))
            yield replace(self, back_for=max(self.back_for + offset * STEP_OF_SECONDS, 0.0))


@dataclass(frozen=True)
class LookReading:
    """What the looked-at frames say together."""

    away: np.ndarray  # (N,) whether the target is away
    says: np.ndarray  # (N,) +1 shows it, -1 lacks it, 0 does not say
    margin: np.ndarray  # (N,)
    doubt: str  # why nothing can be said, or nothing


def frame_says(looks: TargetLooks, rule: LookRule) -> np.ndarray:
    """(N,) what each looked-at frame says by itself: +1 it shows the target, -1 it lacks it, 0 neither."""
    margin = looks.like - looks.unlike
    least = rule.shows_margin
    if looks.lookalike >= LOOKALIKE:
        least = max(least, float(np.median(margin[1:FEW_FIRST])) / 2 if len(margin) > 1 else 0.0)
    says = np.zeros(len(margin), dtype=np.int8)
    says[(looks.like >= rule.shows_like) & (margin >= least)] = 1
    says[(margin <= rule.background) | ((looks.like < rule.lacks_like) & (margin < rule.lacks_margin))] = -1
    says[:1] = 1  # the target is in the first frame by definition
    goes_on = (looks.before >= SAME_PICTURE) & (_overlaps(looks.box) > SAME_PLACE)
    goes_on &= margin >= max(least, rule.lacks_margin)
    for k in np.flatnonzero(goes_on & (says == 0)):
        says[k] = max(says[k - 1], 0)
    return says


def _overlaps(box: np.ndarray) -> np.ndarray:
    """(N,) overlap of each box with the one before it, over what both cover; 0 for the first."""
    overlaps = np.zeros(len(box))
    sides = np.minimum(box[1:, 2:], box[:-1, 2:]) - np.maximum(box[1:, :2], box[:-1, :2])
    common, area = np.clip(sides, 0, None).prod(axis=1), (box[:, 2:] - box[:, :2]).prod(axis=1)
    overlaps[1:] = common / np.maximum(area[1:] + area[:-1] - common, 1e-9)
    return overlaps


def read_looks(looks: TargetLooks, rule: LookRule) -> LookReading:
    """When the target is away, and why that cannot be told."""
    margin = looks.like - looks.unlike
    says = frame_says(looks, rule)
    away = carried_on(says)
    hidden, returned = (frames_for(looks.seconds, seconds, 2) for seconds in (rule.hidden_for, rule.back_for))
    for start, end in runs(~away):
        if start > 0 and (says[start:end] > 0).sum() < returned:  # frames without an answer do not make a return
            away[start:end] = True
    for start, end in runs(away):
        if end - start < hidden or (says[start:end] < 0).sum() < 2:
            away[start:end] = False
    return LookReading(away, says, margin, _doubt(looks, rule, away, says, margin))


def _doubt(looks: TargetLooks, rule: LookRule, away: np.ndarray, says: np.ndarray, margin: np.ndarray) -> str:
    if len(looks.index) < 4:
        return f"{len(looks.index)} frames are too few to see something leave and return"
    if margin[0] < LEAST_MARGIN:
        return "the target can hardly be told from other things in the first frame"
    after = slice(int(away.argmax()), None) if away.any() else slice(0, None)
    back = ~away & (np.cumsum(away) > 0)
    if back.any():
        like, lead = (float(np.percentile(column[back], 75)) for column in (looks.like, margin))
        if like < rule.return_like or lead < rule.return_margin:
            return (
                "something like the target comes later, but not clearly enough to call it the same one "
                f"(likeness {like:.2f}, margin {lead:.2f})"
            )
        return ""
    silent = float((says[after] >= 0).mean()) if away.any() else float((says == 0).mean())
    if silent > rule.most_unanswered:
        since = "after it was lost" if away.any() else "in the clip"
        return f"in {silent:.0%} of the frames {since} the target is neither clearly seen nor clearly gone"
    return ""


def frames_for(seconds: np.ndarray, lasting: float, least: int) -> int:
    """Number of frames, at these times, that last so long, but at least so many."""
    step = _usual_step(seconds)
    return max(least, int(np.ceil(lasting / step - 1e-6))) if step > 0 else least


@keep_last  # asked for every threshold that is tried
def _usual_step(seconds: np.ndarray) -> float:
    """Median time from frame to frame; 0 for a single frame."""
    return float(np.median(np.diff(seconds))) if len(seconds) > 1 else 0.0


def carried_on(says: np.ndarray) -> np.ndarray:
    """(N,) whether the target is away, frames without an answer taking the state before them."""
    last_word = np.maximum.accumulate(np.where(says != 0, np.arange(len(says)), 0))
    return np.asarray(says[last_word] < 0, dtype=bool)
