"""Actions of MBench: what the camera is asked to do, phase after phase, from its name or from the dataset.

A name is read as far as it goes, and never further: `left_360`, `static`, `left_then_right` (half of the clip each) and
`left_then_wait_then_right`, whose wait has no length that counts. Of other sequences the dataset declares phases with
lengths relative to each other: `[{left: 4}, {wait: 2}, {right: 4}]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from revisit.core import Reason, UsageError

# Components of the camera's motion in its own axes (x right, y down, z ahead): way, then turn.
IDEAL = {
    "left": (4, -1.0), "right": (4, 1.0), "up": (3, 1.0), "down": (3, -1.0), "forward": (2, 1.0), "backward": (2, -1.0),
    "strafe_left": (0, -1.0), "strafe_right": (0, 1.0),
}  # fmt: skip
WAIT = "wait"
WAITS = (WAIT, "static", "pause", "hold", "stay", "rest")
PART = re.compile(r"(?P<word>[a-z_]+?)(?:_\d+)?")


@dataclass(frozen=True)
class RequestedMotion:
    """What the camera is asked to do: phases with their shares of the clip, in order."""

    phases: tuple[tuple[str, float], ...]
    waits: bool = False  # whether it is to rest in between, for a time that nobody tells

    @property
    def rests_throughout(self) -> bool:
        """Whether it is to rest all the time."""
        return all(word == WAIT for word, _ in self.phases)


def parse_requested_motion(
    action: str, declared: Sequence[tuple[str, float]] | None = None
) -> RequestedMotion | Reason:
    """The phases of an action, or the reason why they are not known."""
    if declared:
        total = sum(length for _, length in declared)
        return RequestedMotion(tuple((word, length / total) for word, length in declared))
    if not action:
        return Reason("no_camera", "neither the condition nor the dataset gives the camera's action")
    hint = (
        f"declare its phases in dataset.yaml, such as actions: {{{action}: [{{left: 4}}, {{wait: 2}}, {{right: 4}}]}}"
    )
    words = [_direction_or_wait(part) for part in action.split("_then_")]
    directions = [word for word in words if word is not None]
    if len(directions) < len(words):
        words_there = f"{', '.join(IDEAL)} and {WAIT}"
        return Reason(
            "unreadable", f"the action {action!r} is not a sequence of {words_there} joined by _then_; {hint}"
        )
    moving = [word for word in directions if word != WAIT]
    if len(directions) == 1:
        return RequestedMotion(((directions[0], 1.0),))
    if len(moving) == 2 and directions in (moving, [moving[0], WAIT, moving[1]]):
        return RequestedMotion(tuple((word, 0.5) for word in moving), waits=WAIT in directions)
    return Reason("unreadable", f"the action {action!r} does not say how long its phases are; {hint}")


def parse_declared_phases(value: object, where: str) -> list[tuple[str, float]]:
    """Phases as dataset.yaml declares them: words, or words with a relative length; UsageError names the place."""
    expected = f"expected a list such as [{{left: 4}}, {{wait: 2}}, {{right: 4}}], of {', '.join(IDEAL)} and {WAIT}"
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where}: {expected}")
    phases = []
    for part in value:
        word, length = next(iter(part.items())) if isinstance(part, dict) and len(part) == 1 else (part, 1)
        direction = WAIT if word in WAITS else word if isinstance(word, str) and word in IDEAL else None
        number = isinstance(length, int | float) and not isinstance(length, bool) and 0 < length < float("inf")
        if direction is None or not number:
            raise UsageError(f"{where}: {part!r} is not a phase; {expected}")
        phases.append((direction, float(length)))
    bare = [part for part in value if not isinstance(part, dict)]
    if bare and len(bare) < len(value):
        raise UsageError(f"{where}: some phases have a length and {bare[0]!r} has none; {expected}")
    return phases


def _direction_or_wait(part: str) -> str | None:
    """The direction in a part of a name, whose degrees do not matter; None where it is none."""
    match = PART.fullmatch(part)
    word = match["word"] if match else ""
    return WAIT if word in WAITS else word if word in IDEAL else None
