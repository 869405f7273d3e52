"""What a few thresholds say of the target: hidden, returned or never hidden, and by how much room around them.

These rules read single frames: one *shows* the target, *lacks* it, or keeps the state of the frame before. The gate
does not take their word; it counts beside other features (`target_features.py`). The thresholds are differences of
correlations, chosen by looking at about forty targets in real clips: while a target was away its lead mostly stayed
below 0.1 (now and then 0.14), seen again it reached 0.13 to 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from revisit.core import GateResult, Series
from revisit.evidence.target import TargetLooks, TargetTrack
from revisit.metrics.answers import keep_last
from revisit.metrics.frame_index import runs
from revisit.metrics.margins import STEPS, UNSURE, with_margin
from revisit.metrics.target_features import lead_over_clutter, place_is_empty
from revisit.metrics.target_looks import LookRule, carried_on, frames_for, read_looks

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


@dataclass(frozen=True)
class Rule:
    """The thresholds of one reading: of the cues, and the seconds that hiding and returning take."""

    lead: float = LEAD
    no_lead: float = NO_LEAD
    alike: float = ALIKE
    unlike: float = UNLIKE
    hidden_for: float = 0.3
    back_for: float = 0.3

    def off(self, steps: int) -> Iterator[Rule]:
        """The same, so many steps of margin stricter or milder in one respect."""
        for offset in (steps, -steps):
            yield replace(
                self, lead=self.lead + offset * STEP_OF_LEAD, no_lead=self.no_lead + offset * STEP_OF_LEAD,
                alike=self.alike + offset * STEP_OF_LIKENESS, unlike=self.unlike + offset * STEP_OF_LIKENESS,
            )  # fmt: skip
            yield replace(self, hidden_for=max(self.hidden_for + offset * STEP_OF_SECONDS, 0.0))
            yield replace(self, back_for=max(self.back_for + offset * STEP_OF_SECONDS, 0.0))


@dataclass(frozen=True)
class Cues:
    """Per frame: +1 shows the target, -1 lacks it, 0 does not say."""

    says: np.ndarray
    lead: np.ndarray
    clutter: np.ndarray


def read_cues(track: TargetTrack, rule: Rule = Rule()) -> Cues:
    """What each frame says by itself."""
    clutter, lead = np.maximum(track.second, np.median(track.second)), lead_over_clutter(track)
    near = np.where(track.inside >= OUT, track.near, -1.0)
    part = np.where(track.inside >= OUT, track.part, -1.0)
    says = np.zeros(len(track.index), dtype=np.int8)
    says[lead >= rule.lead] = 1
    says[(near >= rule.alike) & (track.flow > 0.5) & (lead >= 0)] = 1
    says[(lead < rule.no_lead) & (np.maximum(near, part) < rule.unlike)] = -1
    return Cues(says, lead, clutter)


def away_frames(track: TargetTrack, cues: Cues, rule: Rule) -> tuple[np.ndarray, bool]:
    """(N,) whether the target is away, and whether a possible return was too weak to count."""
    says = cues.says.copy()
    similarity = cues.lead + cues.clutter
    absent = similarity[says < 0]
    weak = False
    if len(absent) >= 3:
        # what the clip reaches without the target is the best measure of its clutter
        level = float(np.percentile(absent, 90)) + ABOVE_HIDDEN
        first_gone = int(np.flatnonzero(carried_on(says))[0]) if carried_on(says).any() else len(says)
        doubtful = (says > 0) & (similarity < level) & (np.arange(len(says)) >= first_gone)
        says[doubtful] = 0
        weak = int(doubtful.sum()) >= frames_for(track.seconds, rule.back_for, 2)
    away = carried_on(says)
    for start, end in runs(~away):
        # undecided frames carry a return on, but do not make one
        if start > 0 and (says[start:end] > 0).sum() < frames_for(track.seconds, rule.back_for, 2):
            away[start:end] = True
    away[0] = False  # the target is in the first frame by definition
    for start, end in runs(away):
        if end - start < frames_for(track.seconds, rule.hidden_for, 3):
            away[start:end] = False
    return away, weak


def unjudgeable(track: TargetTrack, cues: Cues) -> str:
    """Why this target cannot be judged in this clip by its layout, or nothing."""
    if track.texture < FAINTEST:
        return "the target has too little texture and colour of its own to be told from the rest of the first frame"
    if len(track.index) < 4:
        return f"{len(track.index)} frames are too few for a target to leave and return"
    if cues.lead[0] < LEAD:
        return "other things in the first frame look like the target"
    return ""


def layout_verdict(track: TargetTrack, *, hidden_for: float, back_for: float) -> GateResult:
    """The verdict by the layout of edges and colours, with its confidence."""
    rule = Rule(hidden_for=hidden_for, back_for=back_for)
    return with_margin(by_layout(track, rule), lambda steps: (by_layout(track, other) for other in rule.off(steps)))


def look_verdict(looks: TargetLooks, *, hidden_for: float, back_for: float) -> GateResult:
    """The verdict by what a network sees, with its confidence."""
    rule = LookRule(hidden_for=hidden_for, back_for=back_for)
    return with_margin(by_looks(looks, rule), lambda steps: (by_looks(looks, other) for other in rule.off(steps)))


def rule_features(verdict: GateResult, prefix: str = "") -> dict[str, float]:
    """A verdict as numbers: for each label how much room there is around it, 0 where it is not said."""
    room = (1 + STEPS * float(verdict.facts.get("confidence", 0.0))) / (1 + STEPS) if verdict.label != UNSURE else 0.0
    said = {NEVER: "never", CAME_BACK: "returned", STAYED_AWAY: "stays_away"}
    return {f"{prefix}rule_{name}": room if verdict.label == label else 0.0 for label, name in said.items()}


def _answer(away: np.ndarray, doubt: str) -> GateResult:
    """The verdict that follows from when the target was away."""
    units = Series(hidden=away)
    if doubt:
        return GateResult("unsure", UNSURE, doubt, units=units)
    if not away.any():
        return GateResult("closed", NEVER, "it stays in view", units=units)
    back = bool((~away & (np.cumsum(away) > 0)).any())
    if back:
        return GateResult("open", CAME_BACK, units=units)
    return GateResult("closed", STAYED_AWAY, "it is not seen again", units=units)


def by_looks(looks: TargetLooks, rule: LookRule) -> GateResult:
    """The verdict by what a network sees."""
    readings = read_looks(looks, rule)
    return _answer(readings.away, readings.doubt)


def by_layout(track: TargetTrack, rule: Rule) -> GateResult:
    """The verdict by the layout of edges and colours."""
    cues = read_cues(track, rule)
    away, weak = away_frames(track, cues, rule)
    back = ~away & (np.cumsum(away) > 0)
    return _answer(away, unjudgeable(track, cues) or _doubt_of_layout(track, cues, away, back, weak))


def _doubt_of_layout(track: TargetTrack, cues: Cues, away: np.ndarray, back: np.ndarray, weak: bool) -> str:
    """Why the layout alone cannot decide, or nothing."""
    if not away.any():
        longest = max((end - start for start, end in runs(cues.says != 1)), default=0)
        if longest >= max(frames_for(track.seconds, 1.0, 4), 0.2 * len(track.index)):
            return f"cues disagree: for {longest} frames the target is neither clearly seen nor clearly gone"
        return ""
    lasting = frames_for(track.seconds, 0.3, 3)
    out = track.inside < OUT
    empty = place_is_empty(track) & away if surroundings_seen(track) else np.zeros_like(away)
    if not back.any():
        if weak:
            return "what appears later is not alike enough to call it returned"
        came_in = away & ~out & (np.cumsum(out & away) > 0)  # where it should be is in the frame again
        seen_badly = came_in.sum() >= lasting and empty[came_in].mean() < 0.5
        if seen_badly or (empty.sum() < lasting and (out & away).sum() < lasting):
            return "its place was not seen well afterwards, and it may be back in another pose or place"
        return ""
    first = int(away.argmax())
    # what leaves or is covered takes its motion with it; what turns or crumples in place does not
    broke = float(track.flow[max(first - 4, 0) : first + 2].min()) < BREAKS
    if not broke and empty.sum() < lasting and (out & away).sum() < lasting:
        return "it was neither seen to leave nor its place seen without it: it may only have changed"
    before = float(np.median(track.peak[1:first])) if first > 1 else float(track.peak[0])
    later = float(np.percentile(track.peak[back], 75))
    colour = float(np.percentile(track.colour[back], 75))
    if colour < CLEARLY_ITS_COLOUR:
        return f"what appears later shares only {colour:.0%} of the target's colours"
    if later < SAME_SHARE * before:
        return f"what appears later is much less alike ({later:.2f}) than the target was before ({before:.2f})"
    return ""


@keep_last
def surroundings_seen(track: TargetTrack) -> bool:
    """Whether enough of what is around the target was in the first frame to know its place by it."""
    box = track.box[0]
    half = (box[2:] - box[:2]) / 2
    wide = np.concatenate([box[:2] - half, box[2:] + half])  # a window twice the box
    inside, own = (float(np.prod(inner[2:] - inner[:2])) for inner in (np.clip(wide, 0, 1), np.clip(box, 0, 1)))
    area = float(np.prod(box[2:] - box[:2]))
    return (inside - own) / max(4 * area - own, 1e-9) >= LEAST_AROUND
