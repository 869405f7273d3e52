"""Which frames and steps count: everything, or what the public evaluator happens to score.

`corrected` scores every frame and step. `upstream` repeats the selection of the public evaluator, faults and all, so
that numbers can be laid beside published rows; docs/mind.md lists every difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.core import NoScore
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.mind.evidence import ActionTrack

CHUNK = 100  # frames that the public evaluator reads at a time; the chunk with the last frame is never scored
BATCH = 10  # pairs it compares at a time; a last batch of one makes it fail
ACTION_FRAMES = 97  # of every clip it looks at for actions
LEAST_STEPS = 8  # below which it leaves the action metric out
SHARED, VARIED, MIRROR = "mem_test", "action_space_test", "mirror_test"  # the first two by their action spaces
MAIN = (SHARED, VARIED)

MOVES = ({1: "forward", 2: "backward"}, {1: "left", 2: "right"})
LOOKS = ({1: "look_up", 2: "look_down"}, {1: "look_left", 2: "look_right"})
NO_OP = "no_op"
MOVE_NAMES = {name for axis in MOVES for name in axis.values()}


def count_scored_frames(count: int, rule: str) -> int:
    """How many of `count` compared frames count, from the first."""
    return max(count - 1, 0) // CHUNK * CHUNK if is_upstream_rule(rule) else count


def refuse_other_network(made_by: str, required: str, rule: str) -> None:
    """NoScore for another network's evidence: upstream has one, and another's numbers are no substitute."""
    if is_upstream_rule(rule) and not made_by.startswith(required):
        raise NoScore("other_settings", f"upstream needs {required}, but {made_by} was used", {"described_by": made_by})


def action_labels(actions: ActionTrack, frames: Sequence[int]) -> list[str]:
    """The name of what was asked in each of these frames of the recording, such as `forward+look_left`."""
    row = {int(frame): k for k, frame in enumerate(actions.frame)}
    axes = ((MOVES[0], actions.forward), (MOVES[1], actions.side), (LOOKS[0], actions.tilt), (LOOKS[1], actions.turn))
    names_by_frame = []
    for frame in frames:
        codes = [(names, int(column[row[frame]])) for names, column in axes]
        names_by_frame.append("+".join(names[code] for names, code in codes if code) or NO_OP)
    return names_by_frame


def action_group_of_label(label: str, rule: str) -> str:
    """The group of a label: translation, rotation, mixed or no_op; upstream knows translation and other only."""
    parts = label.split("+")
    if is_upstream_rule(rule):
        return "translation" if len(parts) == 1 and parts[0] in MOVE_NAMES else "other"
    if label == NO_OP:
        return NO_OP
    moves = sum(part in MOVE_NAMES for part in parts)
    return "translation" if moves == len(parts) else "mixed" if moves else "rotation"


def error_statistics_by_group(errors: np.ndarray, names: Sequence[str], rule: str) -> dict[str, dict[str, float]]:
    """Count, mean and median over all steps, over each group, and over each action."""
    labels = np.array(names, dtype=str)
    group_of_step = np.array([action_group_of_label(label, rule) for label in names], dtype=str)
    parts = {name: group_of_step == name for name in ("translation", "rotation", "mixed", NO_OP, "other")}
    parts |= {f"act:{label}": labels == label for label in sorted(set(names))}
    groups = {"__overall__": errors, **{name: errors[rows] for name, rows in parts.items() if rows.any()}}
    return {
        name: {"count": len(members), "mean": float(np.mean(members)), "median": float(np.median(members))}
        for name, members in groups.items()
    }
