"""Actions of an episode as a camera script, where their names say that they move a camera, and in which unit.

`camera_yaw_deg` or `cam.pitch.rad`: camera or cam, what turns or moves, and the unit. An arm has a yaw, too, so a name
without "camera" is no camera action; one without a unit could be anything, and is not guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from revisit.core.text import count_and_noun, join_names

KINDS = {
    "yaw": "yaw", "pan": "yaw", "pitch": "tilt", "tilt": "tilt", "roll": "roll",
    "forward": "dolly", "right": "truck", "up": "crane",
}  # fmt: skip
POSITIVE = {
    "yaw": "right", "tilt": "up", "roll": "left", "dolly": "forward", "truck": "right", "crane": "up",
}  # fmt: skip
UNITS = {"deg": 1.0, "degrees": 1.0, "rad": 180 / math.pi, "radians": 180 / math.pi, "m": 1.0, "metres": 1.0}
TURNS = ("yaw", "tilt", "roll")


def camera_action_columns(names: Sequence[str]) -> tuple[dict[int, tuple[str, float]], str]:
    """Column of the action -> (move, degrees or metres of one unit); and a sentence on what was made of the names."""
    parts = {name: re.split(r"[^a-z]+", name.lower()) for name in names}
    if not (cameras := [name for name, words in parts.items() if {"camera", "cam"} & set(words)]):
        named = join_names(names, 5)
        return {}, f"actions ({named}) are no camera actions by their names: no camera was requested (docs/data.md)"
    columns: dict[int, tuple[str, float]] = {}
    for name in cameras:
        kind = next((KINDS[word] for word in parts[name] if word in KINDS), None)
        unit = next((word for word in reversed(parts[name]) if word in UNITS), None)
        if kind is None or unit is None or (kind in TURNS) == (unit in ("m", "metres")):
            example = "as camera_yaw_deg or camera_forward_m do"
            return {}, f"the camera action {name} says no unit, {example}: no camera was requested (docs/data.md)"
        columns[list(names).index(name)] = kind, UNITS[unit]
    moves = ", ".join(dict.fromkeys(f"{kind} {POSITIVE[kind]}" for kind, _ in columns.values()))
    count = count_and_noun(len(columns), "camera action")
    return columns, f"{count} became the camera request, positive values as {moves}, per frame"


def camera_script_of_actions(actions: np.ndarray, columns: dict[int, tuple[str, float]]) -> str:
    """The camera script of (frames, values): the action of a frame moves the camera to the next one."""
    steps = []
    for row in actions[:-1]:
        moves = [
            f"{kind}:{POSITIVE[kind]}:{float(row[column]) * scale:.6g}"
            for column, (kind, scale) in columns.items()
            if float(row[column])
        ]
        steps.append("+".join(moves))
    runs = [(step, len(list(group))) for step, group in groupby(steps)]
    return ",".join(_repeat_step(step, count) for step, count in runs)


def _repeat_step(step: str, count: int) -> str:
    """The same motion for so many frames: amounts add up."""
    if not step:
        return f"hold@{count}"
    moves = [move.rsplit(":", 1) for move in step.split("+")]
    return "+".join(f"{what}:{float(amount) * count:.6g}" for what, amount in moves) + f"@{count}"
