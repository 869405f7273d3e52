"""What a few thresholds say of the target: hidden, returned or never hidden, and by how much room around them.

These rules read single frames: one *shows* the target, *lacks* it, or keeps the state of the frame before. The gate
does not take their word; it counts beside other features (`target_features.py`). They read the layout of edges and
colours, and what a network sees. The thresholds of the first are differences of correlations, chosen by looking at
about forty targets in real clips: while a target was away its lead mostly stayed below 0.1 (now and then 0.14), seen
again it reached 0.13 to 0.6. A network says "something like it": another person at the same place is like the one who
left. So a return counts only if it is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from revisit.evidence.target import TargetLooks, TargetTrack
from revisit.metrics.answers import cache_for_last_record
from revisit.metrics.margins import STEPS, UNSURE
from revisit.metrics.rows import true_runs
from revisit.metrics.target_features import (
    clutter_similarity,
    frame_count_lasting,
    lead_over_clutter,
    place_without_target_mask,
)

NEVER = "never hidden"
CAME_BACK = "hidden, returned"
STAYED_AWAY = "hidden, not returned"

LEAD, NO_LEAD = 0.12, 0.08  # over clutter: of a target that is there; of chance
ALIKE, UNLIKE = 0.45, 0.30  # at the followed box: the target itself; no more than chance
OUT = 0.2  # share inside the frame of a box that has left it
ABOVE_HIDDEN = 0.05  # what comes back is more alike than anything seen while it was away
STEP_OF_LEAD, STEP_OF_LIKENESS, STEP_OF_SECONDS = 0.01, 0.025, 0.1  # of margin, see margins.py
SAME_SHARE = 0.5  # of its similarity before it was lost: what reaches less may be a look-alike
CLEARLY_ITS_COLOUR = 0.5  # overlap of colours of a return
BREAKS = 0.4  # share of the box whose motion survives the way back: what leaves or is covered has 0 to 0.3
LEAST_AROUND = 0.3  # of the window twice the box, the box left out, that is in the first frame
FAINTEST = 1.0  # deviations; a target no more special than the average cell cannot be told from it
LOOKALIKE = 0.75  # likeness of something beside the target, in the first frame, from which on the two can be mixed up
FEW_FIRST = 6  # looks from which the margin of the first frames is taken
LEAST_MARGIN = 0.08  # in the first frame: a target no more like itself than its background cannot be told from it
SAME_PICTURE, SAME_PLACE = 0.85, 0.2  # likeness to the look before, and overlap with it, of what only goes on changing
STEP_OF_LIKE, STEP_OF_MARGIN = 0.01, 0.01  # of margin


@dataclass(frozen=True)
class Rule:
    """The thresholds of one reading: of the cues, and the seconds that hiding and returning take."""

    lead: float = LEAD
    no_lead: float = NO_LEAD
    alike: float = ALIKE
    unlike: float = UNLIKE
    hidden_for: float = 0.3
    back_for: float = 0.3

    def variants(self, steps: int) -> Iterator[Rule]:
        """The same, so many steps of margin stricter or milder in one respect."""
        for offset in (steps, -steps):
            yield replace(
                self, lead=self.lead + offset * STEP_OF_LEAD, no_lead=self.no_lead + offset * STEP_OF_LEAD,
                alike=self.alike + offset * STEP_OF_LIKENESS, unlike=self.unlike + offset * STEP_OF_LIKENESS,
            )  # fmt: skip
            yield replace(self, hidden_for=max(self.hidden_for + offset * STEP_OF_SECONDS, 0.0))
            yield replace(self, back_for=max(self.back_for + offset * STEP_OF_SECONDS, 0.0))


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

    def variants(self, steps: int) -> Iterator[LookRule]:
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


AnyRule = TypeVar("AnyRule", Rule, LookRule)


class RuleVerdict(NamedTuple):
    """What rules say of a clip."""

    label: str  # UNSURE where they are in doubt, or slightly different thresholds say something else
    away: np.ndarray  # (N,) whether the target is away
    room: float  # share of the steps of margin (see margins.py) that leave the label as it is, with the first


def verdict_with_stability(read: Callable[[AnyRule], tuple[str, np.ndarray]], rule: AnyRule) -> RuleVerdict:
    """What a rule says with these thresholds and with others, so many steps off."""
    label, away = read(rule)
    survived = 0
    while (
        label != UNSURE and survived < STEPS and all(read(other)[0] == label for other in rule.variants(survived + 1))
    ):
        survived += 1
    return RuleVerdict(label if survived else UNSURE, away, (1 + survived) / (1 + STEPS))


def rule_features(verdict: RuleVerdict, prefix: str = "") -> dict[str, float]:
    """A verdict as numbers: for each label how much room there is around it, 0 where it is not said."""
    names = {NEVER: "never", CAME_BACK: "returned", STAYED_AWAY: "stays_away"}
    return {f"{prefix}rule_{name}": verdict.room if verdict.label == label else 0.0 for label, name in names.items()}


def label_from_away(away: np.ndarray) -> str:
    """The label that follows from when the target was away."""
    if not away.any():
        return NEVER
    return CAME_BACK if after_return_mask(away).any() else STAYED_AWAY


def after_return_mask(away: np.ndarray) -> np.ndarray:
    """(N,) frames that show the target after it was away."""
    return np.asarray(~away & (np.cumsum(away) > 0))


def away_from_votes(votes: np.ndarray) -> np.ndarray:
    """(N,) whether the target is away, frames without an answer taking the state before them."""
    last_word = np.maximum.accumulate(np.where(votes != 0, np.arange(len(votes)), 0))
    return np.asarray(votes[last_word] < 0, dtype=bool)


def label_and_away_by_layout(track: TargetTrack, rule: Rule) -> tuple[str, np.ndarray]:
    """The label by the layout of edges and colours, and whether the target is away in each frame."""
    says, lead = layout_votes(track, rule), lead_over_clutter(track)
    away, weak = layout_away_and_weak_return(track, says, rule)
    unjudgeable = track.texture < FAINTEST or len(track.index) < 4 or lead[0] < LEAD
    doubtful = unjudgeable or _is_layout_doubtful(track, says, away, weak)
    return UNSURE if doubtful else label_from_away(away), away


def layout_votes(track: TargetTrack, rule: Rule) -> np.ndarray:
    """(N,) what each frame says by itself: +1 it shows the target, -1 it lacks it, 0 neither."""
    lead = lead_over_clutter(track)
    near = np.where(track.inside >= OUT, track.near, -1.0)
    part = np.where(track.inside >= OUT, track.part, -1.0)
    says = np.zeros(len(track.index), dtype=np.int8)
    says[lead >= rule.lead] = 1
    says[(near >= rule.alike) & (track.flow > 0.5) & (lead >= 0)] = 1
    says[(lead < rule.no_lead) & (np.maximum(near, part) < rule.unlike)] = -1
    return says


def layout_away_and_weak_return(track: TargetTrack, votes: np.ndarray, rule: Rule) -> tuple[np.ndarray, bool]:
    """(N,) whether the target is away, and whether a possible return was too weak to count."""
    says = votes.copy()
    similarity = lead_over_clutter(track) + clutter_similarity(track)
    absent = similarity[says < 0]
    weak = False
    if len(absent) >= 3:
        # what the clip reaches without the target is the best measure of its clutter
        level = float(np.percentile(absent, 90)) + ABOVE_HIDDEN
        doubtful = (says > 0) & (similarity < level) & (np.cumsum(away_from_votes(says)) > 0)
        says[doubtful] = 0
        weak = int(doubtful.sum()) >= frame_count_lasting(track.seconds, rule.back_for, 2)
    away = away_from_votes(says)
    for start, end in true_runs(~away):
        # undecided frames carry a return on, but do not make one
        if start > 0 and (says[start:end] > 0).sum() < frame_count_lasting(track.seconds, rule.back_for, 2):
            away[start:end] = True
    away[0] = False  # the target is in the first frame by definition
    for start, end in true_runs(away):
        if end - start < frame_count_lasting(track.seconds, rule.hidden_for, 3):
            away[start:end] = False
    return away, weak


def _is_layout_doubtful(track: TargetTrack, votes: np.ndarray, away: np.ndarray, weak: bool) -> bool:
    """Whether the layout alone cannot decide."""
    if not away.any():  # for long the target may be neither clearly seen nor clearly gone
        longest = max((end - start for start, end in true_runs(votes != 1)), default=0)
        return longest >= max(frame_count_lasting(track.seconds, 1.0, 4), 0.2 * len(track.index))
    lasting, back = frame_count_lasting(track.seconds, 0.3, 3), after_return_mask(away)
    out = track.inside < OUT
    empty = place_without_target_mask(track) & away if are_surroundings_seen(track) else np.zeros_like(away)
    was_out_or_empty = empty.sum() >= lasting or (out & away).sum() >= lasting
    if not back.any():
        came_in = away & ~out & (np.cumsum(out & away) > 0)  # where it should be is in the frame again
        seen_badly = came_in.sum() >= lasting and empty[came_in].mean() < 0.5
        return bool(weak or seen_badly or not was_out_or_empty)
    first = int(away.argmax())
    # what leaves or is covered takes its motion with it; what turns or crumples in place does not
    broke = float(track.flow[max(first - 4, 0) : first + 2].min()) < BREAKS
    before = float(np.median(track.peak[1:first])) if first > 1 else float(track.peak[0])
    later, colour = (float(np.percentile(column[back], 75)) for column in (track.peak, track.colour))
    changed_in_place = not broke and not was_out_or_empty
    return changed_in_place or colour < CLEARLY_ITS_COLOUR or later < SAME_SHARE * before


@cache_for_last_record
def are_surroundings_seen(track: TargetTrack) -> bool:
    """Whether enough of what is around the target was in the first frame to know its place by it."""
    box = track.box[0]
    half = (box[2:] - box[:2]) / 2
    wide = np.concatenate([box[:2] - half, box[2:] + half])  # a window twice the box
    inside, own = (float(np.prod(inner[2:] - inner[:2])) for inner in (np.clip(wide, 0, 1), np.clip(box, 0, 1)))
    area = float(np.prod(box[2:] - box[:2]))
    return (inside - own) / max(4 * area - own, 1e-9) >= LEAST_AROUND


def label_and_away_by_looks(looks: TargetLooks, rule: LookRule) -> tuple[str, np.ndarray]:
    """The label by what a network sees, and whether the target is away in each frame."""
    says = look_votes(looks, rule)
    away = away_from_votes(says)
    hidden, returned = (frame_count_lasting(looks.seconds, seconds, 2) for seconds in (rule.hidden_for, rule.back_for))
    for start, end in true_runs(~away):
        if start > 0 and (says[start:end] > 0).sum() < returned:  # frames without an answer do not make a return
            away[start:end] = True
    for start, end in true_runs(away):
        if end - start < hidden or (says[start:end] < 0).sum() < 2:
            away[start:end] = False
    return UNSURE if _are_looks_doubtful(looks, rule, away, says) else label_from_away(away), away


def _are_looks_doubtful(looks: TargetLooks, rule: LookRule, away: np.ndarray, votes: np.ndarray) -> bool:
    """Whether a network's looks alone cannot decide."""
    margin, back = looks.like - looks.unlike, after_return_mask(away)
    if len(looks.index) < 4 or margin[0] < LEAST_MARGIN:
        return True
    if back.any():  # something like the target comes later, but perhaps not clearly
        like, lead = (float(np.percentile(column[back], 75)) for column in (looks.like, margin))
        return like < rule.return_like or lead < rule.return_margin
    silent = (votes[int(away.argmax()) :] >= 0) if away.any() else votes == 0
    return float(silent.mean()) > rule.most_unanswered


def look_votes(looks: TargetLooks, rule: LookRule) -> np.ndarray:
    """(N,) what each looked-at frame says by itself: +1 it shows the target, -1 it lacks it, 0 neither."""
    margin = looks.like - looks.unlike
    least = rule.shows_margin
    if looks.lookalike >= LOOKALIKE:
        least = max(least, float(np.median(margin[1:FEW_FIRST])) / 2 if len(margin) > 1 else 0.0)
    says = np.zeros(len(margin), dtype=np.int8)
    says[(looks.like >= rule.shows_like) & (margin >= least)] = 1
    says[(margin <= rule.background) | ((looks.like < rule.lacks_like) & (margin < rule.lacks_margin))] = -1
    says[:1] = 1  # the target is in the first frame by definition
    goes_on = (looks.before >= SAME_PICTURE) & (_overlap_with_box_before(looks.box) > SAME_PLACE)
    goes_on &= margin >= max(least, rule.lacks_margin)
    for k in np.flatnonzero(goes_on & (says == 0)):
        says[k] = max(says[k - 1], 0)
    return says


def _overlap_with_box_before(box: np.ndarray) -> np.ndarray:
    """(N,) overlap of each box with the one before it, over what both cover; 0 for the first."""
    overlaps = np.zeros(len(box))
    sides = np.minimum(box[1:, 2:], box[:-1, 2:]) - np.maximum(box[1:, :2], box[:-1, :2])
    common, area = np.clip(sides, 0, None).prod(axis=1), (box[:, 2:] - box[:, :2]).prod(axis=1)
    overlaps[1:] = common / np.maximum(area[1:] + area[:-1] - common, 1e-9)
    return overlaps
