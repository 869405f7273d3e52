"""Target return: does the target come back, and does it look the same?

Evidence: `TargetObservations`, read through the gate `target_return` (hidden and returned) and
`TargetPhases`, of clips whose camera looks away (the gate `look_away`): what is covered for a
while before a camera that rests is no question of memory. Similarity is that of the layout of edges
and colours with the target as it looked before it was hidden, so that a change that happened in view
is not held against the clip.
Not measured: whether a change while hidden was the right one (a cup that should have filled).
"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.target import HIDDEN, RETURNED, TargetObservations, TargetPhases, TargetTrack
from revisit.metrics.target_features import empty_place_frames, frame_count_lasting
from revisit.metrics.target_gate import target_return
from revisit.metrics.target_rules import CAME_BACK, LEAD, NEVER


@metric(
    id="target_reappearance", version=8, title="Target reappears", unit="score", range=(0, 1), higher_is_better=True,
    needs=(TargetObservations, TargetPhases), gates=("look_away",), suites=("folder",),
    responds_to=("object forgotten while out of view",),
    blind_to=("object dissolves in plain sight", "identity drift", "state reset", "object returns in the wrong place",
              "frozen camera"),
)  # fmt: skip
def target_reappearance(sight: TargetObservations, phases: TargetPhases, *, seen_for: float = 0.3) -> Score | Unscored:
    """1 if the target came back after it was hidden, 0 if its place came back into view without it.

    The place counts as seen again when, for at least `seen_for` seconds after the target was lost,
    what surrounded it in the first frame stands out in the frame with the target's window inside it.
    """
    verdict, track = target_return(sight), sight.track
    if isinstance(verdict, Unscored):
        return verdict
    if verdict.state == "unsure" or verdict.label == NEVER:
        return Unscored(verdict.refusal)
    facts = {"label": verdict.label, "hidden_seconds": verdict.facts["hidden_seconds"]}
    if verdict.label == CAME_BACK:
        return Score(1.0, facts={**facts, "first_return_frame": verdict.facts["first_return_frame"]})
    place_visible = empty_place_frames(track) & (phases.state == HIDDEN)
    count = facts["place_seen_frames"] = int(place_visible.sum())
    if count < frame_count_lasting(track.seconds, seen_for, 3):
        return Unscored(
            "no_return", "the place of the target was not seen again, so its return cannot be checked", facts
        )
    units = Series(frame=track.index[place_visible], value=np.zeros(count), place=track.place[place_visible])
    return Score(0.0, units=units, facts=facts)


@metric(
    id="target_identity", version=8, title="Returned target looks the same", unit="similarity", range=(0, 1),
    higher_is_better=True, needs=(TargetTrack, TargetPhases), gates=("look_away", "target_return"), suites=("folder",),
    responds_to=("identity drift", "object replaced", "colour drift"),
    blind_to=("state reset", "object returns in the wrong place", "small changes of detail", "frozen camera"),
    rewards_unchanged=True,
)  # fmt: skip
def target_identity(track: TargetTrack, phases: TargetPhases) -> Score | Unscored:
    """Similarity of the returned target to its views before it was hidden, upper quartile of the returned frames.

    The upper quartile, because a target that comes back is first cut off by the border and blurred
    by the turn of the camera; its better views are the fair ones. Position and size do not matter.
    """
    back = (phases.state == RETURNED) & (phases.lead >= LEAD)
    if not back.any():
        return Unscored("not_seen", "the target was not seen again after it was hidden")
    value = np.clip(track.peak[back], 0, 1)
    score = float(np.percentile(value, 75))
    units = Series(frame=track.index[back], value=value, first_view=track.first[back], colour=track.colour[back])
    return Score(score, raw=float(np.percentile(track.first[back], 75)), units=units)
