"""Was the target hidden, and did it come back?

Evidence: `TargetTrack`. A frame *shows* the target when something in it is more alike to the target
than anything else in the clip's frames is (its lead over clutter), or when the box followed from the
frames before still looks like it, as a whole or in one half. A frame *lacks* it when nothing stands
out and the followed box has left the frame or no longer holds anything alike. Frames that do
neither keep the state of the frame before: seen until shown to be gone, gone until shown to be back.

The thresholds are differences of correlations, chosen by looking at about forty targets in real clips
and not by a fit: while a target was away its lead mostly stayed below 0.1 (now and then 0.14), seen
again it reached 0.13 to 0.6. No separate measurement of chance stands behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revisit.core import Series, Unscored, Verdict, derived, gate
from revisit.evidence.target import HIDDEN, RETURNED, VISIBLE, TargetPhases, TargetTrack
from revisit.metrics.room import UNSURE, with_room

NEVER = "never hidden"
CAME_BACK = "hidden, returned"
STAYED_AWAY = "hidden, not returned"

LEAD, NO_LEAD = 0.12, 0.08  # over clutter: of a target that is there; of chance
ALIKE, UNLIKE = 0.45, 0.30  # at the followed box: the target itself; no more than chance
SAME_COLOUR = 0.4  # overlap of colours below which a match in layout is something else
OUT = 0.2  # share inside the frame of a box that has left it
ABOVE_HIDDEN = 0.05  # what comes back is more alike than anything seen while it was away
SMALLEST_CELLS, SMALLEST_PX = 16, 12
STEP_OF_LEAD, STEP_OF_LIKENESS, STEP_OF_SECONDS = 0.01, 0.025, 0.1  # of room, see room.py
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
        """The same, so many steps of room stricter or milder in one respect."""
        for way in (steps, -steps):
            yield replace(
                self, lead=self.lead + way * STEP_OF_LEAD, no_lead=self.no_lead + way * STEP_OF_LEAD,
                alike=self.alike + way * STEP_OF_LIKENESS, unlike=self.unlike + way * STEP_OF_LIKENESS,
            )  # fmt: skip
            yield replace(self, hidden_for=max(self.hidden_for + way * STEP_OF_SECONDS, 0.0))
            yield replace(self, back_for=max(self.back_for + way * STEP_OF_SECONDS, 0.0))


@dataclass(frozen=True)
class Cues:
    """Per frame: +1 shows the target, -1 lacks it, 0 does not say."""

    says: np.ndarray
    lead: np.ndarray
    clutter: np.ndarray


def read_cues(track: TargetTrack, rule: Rule = Rule()) -> Cues:
    """What each frame says by itself."""
    clutter = np.maximum(track.second, np.median(track.second))
    lead = np.where(track.colour >= SAME_COLOUR, track.peak, np.minimum(track.peak, clutter)) - clutter
    near = np.where(track.inside >= OUT, track.near, -1.0)
    part = np.where(track.inside >= OUT, track.part, -1.0)
    says = np.zeros(len(track.index), dtype=np.int8)
    says[lead >= rule.lead] = 1
    says[(near >= rule.alike) & (track.flow > 0.5) & (lead >= 0)] = 1
    says[(lead < rule.no_lead) & (np.maximum(near, part) < rule.unlike)] = -1
    return Cues(says, lead, clutter)


def frames_for(track: TargetTrack, seconds: float, least: int) -> int:
    """Number of sampled frames that last so long, but at least so many."""
    step = float(np.median(np.diff(track.seconds))) if len(track.index) > 1 else 0.0
    return max(least, int(np.ceil(seconds / step - 1e-6))) if step > 0 else least


def carried_on(says: np.ndarray) -> np.ndarray:
    """(N,) whether the target is away, undecided frames taking the state before them."""
    last_word = np.maximum.accumulate(np.where(says != 0, np.arange(len(says)), 0))
    return np.asarray(says[last_word] < 0, dtype=bool)


def runs(away: np.ndarray, value: bool) -> list[tuple[int, int]]:
    """Start and end of each run of `value`."""
    edges = np.flatnonzero(np.diff(np.r_[0, (away == value).astype(np.int8), 0]))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def away_frames(track: TargetTrack, cues: Cues, rule: Rule) -> tuple[np.ndarray, bool]:
    """(N,) whether the target is away, and whether a possible return was too weak to count."""
    says = cues.says.copy()
    alike = cues.lead + cues.clutter
    lacking = alike[says < 0]
    weak = False
    if len(lacking) >= 3:
        # what the clip reaches without the target is the best measure of its clutter
        level = float(np.percentile(lacking, 90)) + ABOVE_HIDDEN
        first_gone = int(np.flatnonzero(carried_on(says))[0]) if carried_on(says).any() else len(says)
        doubtful = (says > 0) & (alike < level) & (np.arange(len(says)) >= first_gone)
        says[doubtful] = 0
        weak = int(doubtful.sum()) >= frames_for(track, rule.back_for, 2)
    away = carried_on(says)
    for start, end in runs(away, False):
        # undecided frames carry a return on, but do not make one
        if start > 0 and (says[start:end] > 0).sum() < frames_for(track, rule.back_for, 2):
            away[start:end] = True
    away[0] = False  # the target is in the first frame by definition
    for start, end in runs(away, True):
        if end - start < frames_for(track, rule.hidden_for, 3):
            away[start:end] = False
    return away, weak


@derived(makes=TargetPhases, needs=(TargetTrack,), version=1)
def target_phases(track: TargetTrack, *, hidden_for: float = 0.3, back_for: float = 0.3) -> TargetPhases | Unscored:
    """Visible, hidden or returned for each frame, with the target's box."""
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    rule = Rule(hidden_for=hidden_for, back_for=back_for)
    cues = read_cues(track, rule)
    away, _ = away_frames(track, cues, rule)
    state = np.where(away, HIDDEN, np.where(np.cumsum(away) > 0, RETURNED, VISIBLE)).astype(np.int8)
    apart = (np.abs(track.peak_box - track.box).max(1) > 0.1) & (cues.lead >= LEAD)
    box = np.where((apart & ~away)[:, None], track.peak_box, track.box)
    return TargetPhases(track.index, track.seconds, state, cues.says != 0, box, cues.lead)


def unjudgeable(track: TargetTrack, cues: Cues) -> str:
    """Why this target cannot be judged in this clip, or nothing."""
    if min(track.width_px, track.height_px) < SMALLEST_PX or track.cells < SMALLEST_CELLS:
        return f"the target's box is only {track.width_px:.0f}x{track.height_px:.0f} pixels: too small to recognise"
    if track.texture < FAINTEST:
        return "the target has too little texture and colour of its own to be told from the rest of the first frame"
    if len(track.index) < 4:
        return f"{len(track.index)} frames are too few to see something leave and return"
    if cues.lead[0] < LEAD:
        return "other things in the first frame look the same as the target"
    return ""


@gate(id="target_return", version=2, title="Target hidden and returned", needs=(TargetTrack,))
def target_return(track: TargetTrack, *, hidden_for: float = 0.3, back_for: float = 0.3) -> Verdict | Unscored:
    """Open when the target was out of sight for a while and came back.

    Hidden means away for at least `hidden_for` seconds and three frames: blur and quick passers-by
    make tracking drop out for a frame or two, and what a model forgets in less cannot be called
    memory. Returned means shown for at least `back_for` seconds and two frames. `confidence` is that of `room.py`.
    """
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    rule = Rule(hidden_for=hidden_for, back_for=back_for)
    found = with_room(_verdict(track, rule), lambda steps: (_verdict(track, other) for other in rule.off(steps)))
    said = found.facts["sentence"] if found.state != "unsure" else found.reason
    return replace(found, facts={**found.facts, "judgeable": found.state != "unsure", "sentence": said})


def _verdict(track: TargetTrack, rule: Rule) -> Verdict:
    cues = read_cues(track, rule)
    away, weak = away_frames(track, cues, rule)
    hidden = runs(away, True)
    back = [(start, end) for start, end in runs(away, False) if start > 0]
    step = float(np.median(np.diff(track.seconds))) if len(track.index) > 1 else 0.0
    facts: dict[str, Any] = {
        "hidden_seconds": round(float(away.sum() * step), 3),
        "first_hidden_frame": int(track.index[hidden[0][0]]) if hidden else None,
        "first_return_frame": int(track.index[back[0][0]]) if back else None,
        "return_similarity": round(float(np.median(track.peak[~away & (np.cumsum(away) > 0)])), 3) if back else None,
        "undecided_share": round(float((cues.says == 0).mean()), 3),
    }
    units = Series(frame=track.index, value=cues.lead, similarity=track.peak, inside=track.inside, hidden=away)

    def answer(state: str, label: str, sentence: str) -> Verdict:
        facts["sentence"] = sentence
        return Verdict(state, label, "" if state == "open" else sentence, facts, units)

    problem = unjudgeable(track, cues)
    if problem:
        return answer("unsure", UNSURE, problem)
    if not hidden:
        longest = max((end - start for start, end in runs(cues.says == 1, False)), default=0)
        if longest >= max(frames_for(track, 1.0, 4), 0.2 * len(track.index)):
            return answer(
                "unsure",
                UNSURE,
                f"cues disagree: for {longest} frames the target is neither clearly seen nor clearly gone",
            )
        return answer("closed", NEVER, "the target was never hidden: it stays in view throughout")
    gone = f"hidden from frame {facts['first_hidden_frame']} for {facts['hidden_seconds']:.1f} s"
    if back:
        return answer("open", CAME_BACK, f"{gone}, back in frame {facts['first_return_frame']}")
    if weak:
        return answer("unsure", UNSURE, f"{gone}; what appears later is not alike enough to call it returned")
    return answer("closed", STAYED_AWAY, f"{gone}, and not seen again")
