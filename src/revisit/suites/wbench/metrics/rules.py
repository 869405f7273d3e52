"""What WBench's metrics share: their cards, what a turn asks of the camera, and where turns are among a clip's poses.

Actions are told by the words of a case. Axes are OpenCV's (x right, y down, z ahead), in which WBench's own formulas
hold too, although its files call y up: with its signs `up` lifts a camera whose y points down.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revisit.core import Case, NoScore
from revisit.evidence.camera import PoseTrack

PAPER = "WBench (arXiv 2605.25874)"
CARD: dict[str, Any] = {  # of most metrics
    "unit": "score", "range": (0, 1), "higher_is_better": True, "suites": ("wbench",), "paper": PAPER,
}  # fmt: skip
LEAST = 2  # poses of a turn
DIRECTIONS = {"W": (0.0, 0.0, 1.0), "S": (0.0, 0.0, -1.0), "A": (-1.0, 0.0, 0.0), "D": (1.0, 0.0, 0.0)}
TURNS = {"left": (0.0, -1.0, 0.0), "right": (0.0, 1.0, 0.0), "up": (1.0, 0.0, 0.0), "down": (-1.0, 0.0, 0.0)}
OPPOSITES = {"W": "S", "S": "W", "A": "D", "D": "A", "left": "right", "right": "left", "up": "down", "down": "up"}
GROUPS = dict.fromkeys("WS", "forward") | dict.fromkeys("AD", "lateral")
GROUPS |= dict.fromkeys(("left", "right"), "yaw") | dict.fromkeys(("up", "down"), "pitch")
MIRRORS = {"forward": (1.0, 1.0, -1.0), "lateral": (-1.0, 1.0, 1.0), "yaw": (-1.0, 1.0, 1.0), "pitch": (1.0, -1.0, 1.0)}
ALIASES = {
    "forward": "W", "backward": "S", "w": "W", "a": "A", "s": "S", "d": "D",
    **{f"{verb}_{side}": side for verb in ("cam", "look") for side in TURNS},
    "pitch_up": "up", "pitch_down": "down", "yaw_left": "left", "yaw_right": "right",
}  # fmt: skip
FIRST_PERSON = "first_person"


@dataclass(frozen=True)
class CameraAction:
    """What a turn asks: keys to walk, and sides to turn to."""

    keys: tuple[str, ...]

    @cached_property
    def walk_direction(self) -> np.ndarray | None:
        """The unit direction of travel as the camera sees it; None where it is asked to stay."""
        return _unit_vector_of_sum([DIRECTIONS[key] for key in self.keys if key in DIRECTIONS])

    @cached_property
    def turn_axis(self) -> np.ndarray | None:
        """The unit axis about which the camera is asked to turn; None where it is not."""
        return _unit_vector_of_sum([TURNS[key] for key in self.keys if key in TURNS])

    @property
    def opposite(self) -> CameraAction:
        """What undoes it."""
        return CameraAction(tuple(OPPOSITES[key] for key in self.keys))

    @property
    def motion_group(self) -> str:
        """The kinds of motion it is made of, the same for an action and its opposite."""
        return "+".join(sorted({GROUPS[key] for key in self.keys}))

    def mirror_signs(self, other: CameraAction) -> np.ndarray:
        """The signs of the axes that carry this action's path into that of another one of its group."""
        signs = np.ones(3)
        mine, others = ({GROUPS[key]: key for key in action.keys} for action in (self, other))
        for group, key in mine.items():
            if others[group] != key:
                signs = np.minimum(signs, MIRRORS[group])  # to the side and turned: one reflection does both
        return signs


def _unit_vector_of_sum(vectors: list[tuple[float, float, float]]) -> np.ndarray | None:
    """The direction of a sum; None where it has none."""
    total = np.sum(np.array(vectors).reshape(-1, 3), axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length > 0 else None


def parse_action(text: str) -> CameraAction | None:
    """The action of a text such as `W` or `W+left`; None where it is no action of the camera."""
    words = [ALIASES.get(word.strip(), word.strip()) for word in str(text).replace(",", "+").split("+") if word.strip()]
    is_action = bool(words) and all(word in GROUPS for word in words)
    return CameraAction(tuple(words)) if is_action and len(set(words)) == len(words) else None


def actions_form_loop(texts: list[str]) -> bool:
    """Whether the second half of the actions undoes the first, the last of them the first."""
    actions = [parse_action(text) for text in texts]
    pairs = list(zip(actions[: len(actions) // 2], reversed(actions), strict=False))
    return bool(pairs) and all(first and last and set(last.keys) == set(first.opposite.keys) for first, last in pairs)


@dataclass(frozen=True)
class RequestedTurns:
    """The turns of a case that ask something of the camera, and where each begins and ends among the poses."""

    actions: list[CameraAction]
    bounds: list[tuple[int, int]]
    last: tuple[int, int]  # of the clip's last turn
    from_file: bool  # whether turns.json says where turns end; otherwise they are of equal length


def find_requested_turns(case: Case, track: PoseTrack, upstream: bool) -> RequestedTurns:
    """The turns of a case among the poses of its clip."""
    texts: Sequence[str] = case.annotations.get("actions") or ()
    actions = [parse_action(text) for text in texts]
    if not any(actions):
        raise NoScore("does_not_apply", "the case asks nothing of the camera")
    ends = None if upstream else case.annotations.get("turn_frames")
    count = len(track.frame)
    if ends is not None and len(ends) == len(texts) + 1:
        # Poses may be of every second frame or so: their numbers are brought to those of the clip's frames.
        number = track.frame * (ends[-1] / (float(track.frame.max(initial=0)) + 1))
        edges = np.searchsorted(number, np.asarray(ends, dtype=float) - 1e-6).tolist()
        bounds = list(itertools.pairwise(edges))
    else:
        each = count // len(texts)  # as the public evaluator cuts them; what is left over belongs to no turn
        bounds = [(k * each, (k + 1) * each) for k in range(len(texts))]
    if any(end - start < LEAST for start, end in bounds):
        raise NoScore("too_short", f"{count} poses are too few for {len(texts)} turns of at least {LEAST}")
    chosen = [bound for action, bound in zip(actions, bounds, strict=True) if action is not None]
    return RequestedTurns([action for action in actions if action], chosen, bounds[-1], ends is not None)
