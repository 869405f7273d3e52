"""Was the target hidden, and did it come back (docs/target-gate.md)?

Where the set has a network that looks for the target, it decides (target_looks.py). Else the layout of edges and
colours does: a frame *shows* the target, *lacks* it, or keeps the state of the frame before. The thresholds are
differences of correlations, chosen by looking at about forty targets in real clips and not by a fit: while a target was
away its lead mostly stayed below 0.1 (now and then 0.14), seen again it reached 0.13 to 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from revisit.core import GateResult, Series, Unscored, derived, gate
from revisit.evidence.target import (
    HIDDEN,
    RETURNED,
    VISIBLE,
    TargetLooks,
    TargetObservations,
    TargetPhases,
    TargetTrack,
)
from revisit.metrics.frame_index import runs
from revisit.metrics.margins import UNSURE, with_margin
from revisit.metrics.target_looks import LookRule, carried_on, frames_for, read_looks

NEVER = "never hidden"
CAME_BACK = "hidden, returned"
STAYED_AWAY = "hidden, not returned"

LEAD, NO_LEAD = 0.12, 0.08  # over clutter: of a target that is there; of chance
ALIKE, UNLIKE = 0.45, 0.30  # at the followed box: the target itself; no more than chance
SAME_COLOUR = 0.4  # overlap of colours below which a match in layout is something else
OUT = 0.2  # share inside the frame of a box that has left it
ABOVE_HIDDEN = 0.05  # what comes back is more alike than anything seen while it was away
SMALLEST_CELLS, SMALLEST_PX = 16, 12
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
    clutter = np.maximum(track.second, np.median(track.second))
    lead = np.where(track.colour >= SAME_COLOUR, track.peak, np.minimum(track.peak, clutter)) - clutter
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


@derived(makes=TargetObservations, needs=(TargetTrack,), optional=(TargetLooks,), version=1)
def target_sight(track: TargetTrack, looks: TargetLooks | None) -> TargetObservations:
    """Everything that the set observes of the target, together."""
    return TargetObservations(track, looks)


@derived(makes=TargetPhases, needs=(TargetObservations,), version=3)
def target_phases(
    sight: TargetObservations, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> TargetPhases | Unscored:
    """Visible, hidden or returned for each frame, with the target's box."""
    track = sight.track
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    if sight.looks is not None and len(sight.looks.index):
        return _phases_by_looks(track, sight.looks, LookRule(hidden_for=hidden_for, back_for=back_for))
    rule = Rule(hidden_for=hidden_for, back_for=back_for)
    cues = read_cues(track, rule)
    away, _ = away_frames(track, cues, rule)
    apart = (np.abs(track.peak_box - track.box).max(1) > 0.1) & (cues.lead >= LEAD)
    box = np.where((apart & ~away)[:, None], track.peak_box, track.box)
    return TargetPhases(track.index, track.seconds, _states(away), cues.says != 0, box, cues.lead)


def _states(away: np.ndarray) -> np.ndarray:
    return np.where(away, HIDDEN, np.where(np.cumsum(away) > 0, RETURNED, VISIBLE)).astype(np.int8)


def _phases_by_looks(track: TargetTrack, looks: TargetLooks, rule: LookRule) -> TargetPhases:
    """Each frame takes the state of the look nearest in time; the box of that look once the target was lost."""
    readings = read_looks(looks, rule)
    near = np.abs(track.seconds[:, None] - looks.seconds[None]).argmin(axis=1)
    state = _states(readings.away)[near]
    box = np.where((state == RETURNED)[:, None], looks.box[near], track.box)
    return TargetPhases(track.index, track.seconds, state, (readings.says != 0)[near], box, readings.margin[near])


def unjudgeable(track: TargetTrack, cues: Cues) -> str:
    """Why this target cannot be judged in this clip by its layout, or nothing."""
    if track.texture < FAINTEST:
        return "the target has too little texture and colour of its own to be told from the rest of the first frame"
    if len(track.index) < 4:
        return f"{len(track.index)} frames are too few for a target to leave and return"
    if cues.lead[0] < LEAD:
        return "other things in the first frame look like the target"
    return ""


@gate(id="target_return", version=4, title="Target hidden and returned", needs=(TargetObservations,))
def target_return(
    sight: TargetObservations, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> GateResult | Unscored:
    """Open when the target was out of sight for a while and came back.

    Hidden means away for at least `hidden_for` seconds: blur and quick passers-by make it drop out for a frame or two,
    and what a model forgets in less cannot be called memory. Returned means shown for at least `back_for` seconds.
    A network decides where the set has one that looks (`target_looks`), else the layout of edges and colours.
    `confidence` is that of `margins.py`.
    """
    track, looks = sight.track, sight.looks
    if not len(track.index):
        return Unscored("too_short", "the clip has no frames to look for the target in")
    if min(track.width_px, track.height_px) < SMALLEST_PX or track.cells < SMALLEST_CELLS:
        size = f"{track.width_px:.0f}x{track.height_px:.0f}"
        return _with_sentence(
            GateResult("unsure", UNSURE, f"the target's box is only {size} pixels: too small to recognise")
        )
    if looks is not None and len(looks.index):
        views, rule = looks, LookRule(hidden_for=hidden_for, back_for=back_for)
        verdict = by_looks(views, rule)
        return _with_sentence(with_margin(verdict, lambda steps: (by_looks(views, other) for other in rule.off(steps))))
    layout = Rule(hidden_for=hidden_for, back_for=back_for)
    verdict = by_layout(sight, layout)
    return _with_sentence(with_margin(verdict, lambda steps: (by_layout(sight, other) for other in layout.off(steps))))


def _with_sentence(verdict: GateResult) -> GateResult:
    sentence = verdict.facts["sentence"] if verdict.state != "unsure" else verdict.reason
    return replace(verdict, facts={**verdict.facts, "judgeable": verdict.state != "unsure", "sentence": sentence})


def _answer(facts: dict[str, object], units: Series, back: bool, hidden: bool, doubt: str) -> GateResult:
    """The verdict that follows from when the target was away."""
    gone = f"hidden from frame {facts['first_hidden_frame']} for {facts['hidden_seconds']:.1f} s"
    if doubt:
        state, label, sentence = "unsure", UNSURE, f"{gone}; {doubt}" if hidden else doubt
    elif not hidden:
        state, label, sentence = "closed", NEVER, "the target was never hidden: it stays in view throughout"
    elif back:
        state, label, sentence = "open", CAME_BACK, f"{gone}, back in frame {facts['first_return_frame']}"
    else:
        state, label, sentence = "closed", STAYED_AWAY, f"{gone}, and not seen again"
    facts["sentence"] = sentence
    return GateResult(state, label, "" if state == "open" else sentence, facts, units)


def _facts(
    index: np.ndarray, seconds: np.ndarray, away: np.ndarray, like: np.ndarray, says: np.ndarray
) -> dict[str, object]:
    back = ~away & (np.cumsum(away) > 0)
    step = float(np.median(np.diff(seconds))) if len(index) > 1 else 0.0
    return {
        "hidden_seconds": round(float(away.sum() * step), 3),
        "first_hidden_frame": int(index[away.argmax()]) if away.any() else None,
        "first_return_frame": int(index[back.argmax()]) if back.any() else None,
        "return_similarity": round(float(np.median(like[back])), 3) if back.any() else None,
        "undecided_share": round(float((says == 0).mean()), 3),
    }


def by_looks(looks: TargetLooks, rule: LookRule) -> GateResult:
    """The verdict by what a network sees."""
    readings = read_looks(looks, rule)
    facts = _facts(looks.index, looks.seconds, readings.away, looks.like, readings.says)
    facts |= {"by": looks.maker, "looked_at": len(looks.index), "views": looks.views}
    units = Series(
        frame=looks.index, value=readings.margin, similarity=looks.like, hidden=readings.away, says=readings.says,
        x0=looks.box[:, 0], y0=looks.box[:, 1], x1=looks.box[:, 2], y1=looks.box[:, 3],
    )  # fmt: skip
    back = bool((~readings.away & (np.cumsum(readings.away) > 0)).any())
    return _answer(facts, units, back, bool(readings.away.any()), readings.doubt)


def by_layout(sight: TargetObservations, rule: Rule) -> GateResult:
    """The verdict by the layout of edges and colours."""
    track = sight.track
    cues = read_cues(track, rule)
    away, weak = away_frames(track, cues, rule)
    facts = _facts(track.index, track.seconds, away, track.peak, cues.says)
    facts["by"] = "layout"
    units = Series(frame=track.index, value=cues.lead, similarity=track.peak, inside=track.inside, hidden=away)
    back = ~away & (np.cumsum(away) > 0)
    doubt = unjudgeable(track, cues) or _doubt_of_layout(sight, cues, away, back, weak)
    return _answer(facts, units, bool(back.any()), bool(away.any()), doubt)


def _doubt_of_layout(sight: TargetObservations, cues: Cues, away: np.ndarray, back: np.ndarray, weak: bool) -> str:
    """Why the layout alone cannot decide, or nothing."""
    track = sight.track
    if not away.any():
        longest = max((end - start for start, end in runs(cues.says != 1)), default=0)
        if longest >= max(frames_for(track.seconds, 1.0, 4), 0.2 * len(track.index)):
            return f"cues disagree: for {longest} frames the target is neither clearly seen nor clearly gone"
        return ""
    lasting = frames_for(track.seconds, 0.3, 3)
    out = track.inside < OUT
    empty = place_seen_without_target(track) & away if surroundings_seen(track) else np.zeros_like(away)
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


def surroundings_seen(track: TargetTrack) -> bool:
    """Whether enough of what is around the target was in the first frame to know its place by it."""
    box = track.box[0]
    half = (box[2:] - box[:2]) / 2
    wide = np.concatenate([box[:2] - half, box[2:] + half])  # a window twice the box
    inside, own = (float(np.prod(inner[2:] - inner[:2])) for inner in (np.clip(wide, 0, 1), np.clip(box, 0, 1)))
    area = float(np.prod(box[2:] - box[:2]))
    return (inside - own) / max(4 * area - own, 1e-9) >= LEAST_AROUND


def place_seen_without_target(track: TargetTrack) -> np.ndarray:
    """(N,) frames in which the surroundings stand out, the target's window is inside, and holds something else."""
    lead = track.place - np.maximum(track.place_second, np.median(track.place_second))
    centre = (track.place_box[:, :2] + track.place_box[:, 2:]) / 2
    inside = ((centre > 0.05) & (centre < 0.95)).all(1)
    return np.asarray((lead >= LEAD) & inside & (track.at_place < 0.3))
