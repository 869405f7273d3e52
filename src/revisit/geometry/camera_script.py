"""Camera scripts: a line of text that says how the camera moves, compiled to exact poses (docs/camera.md).

    yaw:right:60@40,yaw:left:60@40            out and back, 81 frames
    yaw:left:30+dolly:forward:0.5@20,hold@10  two moves at once, then a rest

Poses are OpenCV camera-to-world matrices (x right, y down, z forward, metres). Yaw turns about the vertical of the
world, tilt about the camera's own right, roll about its line of sight; dolly and truck stay level, along and across the
heading, and crane rises. Yaw and dolly at once follow a true arc, so a path does not depend on how many frames it is
cut into, and a step followed by its opposite ends where it began. `lights` and `screen` move no camera (see
`light_or_screen_levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from revisit.core import UsageError
from revisit.geometry.poses import make_rigid_poses, make_trajectory, resample
from revisit.geometry.rotations import rotation_from_axis_angle, yaw_pitch_of_rotation

Axes = Literal["heading", "first_view"]

# kind -> direction -> (what it changes, sign)
MOVES: dict[str, dict[str, tuple[str, int]]] = {
    "yaw": {"right": ("yaw", 1), "left": ("yaw", -1)},
    "tilt": {"up": ("pitch", 1), "down": ("pitch", -1)},
    "roll": {"left": ("roll", 1), "right": ("roll", -1)},
    "dolly": {"forward": ("forward", 1), "back": ("forward", -1)},
    "truck": {"right": ("right", 1), "left": ("right", -1)},
    "crane": {"up": ("up", 1), "down": ("up", -1)},
    "orbit": {"right": ("orbit", 1), "left": ("orbit", -1)},
    "lights": {"up": ("light", 1), "down": ("light", -1)},
    "screen": {"in": ("screen", 1), "out": ("screen", -1)},
}
UNITS = dict.fromkeys(("yaw", "tilt", "roll", "orbit"), "degrees")
UNITS |= dict.fromkeys(("dolly", "truck", "crane"), "metres")
SIGNED = UNITS.keys() - {"orbit"}  # where an amount below zero goes the other way
PIVOT = 2.0  # metres ahead of the first view, where nothing else is given to orbit around
AWAY_TURN = 15.0  # degrees: a quarter of the view at a field of view of 60
RESTS = ("hold", "static")
ALIASES = {"pitch": "tilt", "pan": "truck"}
DIRECTIONS = {"dolly": {"backward": "back"}, "roll": {"ccw": "left", "cw": "right"}}  # other names
LONGEST = 100_000  # frames of a script
FARTHEST = 1e6  # degrees or metres of a move
EXAMPLE = "yaw:right:60@40,yaw:left:60@40"
LEAST_DEGREES, LEAST_METRES = 0.05, 0.005  # what a script of a path does not mention
STRAYS_DEGREES, STRAYS_METRES = 2.0, 0.1  # how far a step of a script may stray from the path that it is made of


@dataclass(frozen=True)
class Move:
    """One motion, such as `yaw` (degrees), `dolly` (metres) or `lights` (a share), in a direction."""

    kind: str
    direction: str
    amount: float

    def __str__(self) -> str:
        return f"{self.kind}:{self.direction}:{self.amount:g}"


@dataclass(frozen=True)
class Step:
    """Moves made at once over a number of frames; none of them is a rest."""

    moves: tuple[Move, ...]
    frames: int

    def total_change(self, quantity: str) -> float:
        """Signed sum of what the moves change of a quantity such as `yaw`, `pitch`, `forward`, `up` or `light`."""
        changes = [(*MOVES[move.kind][move.direction], move.amount) for move in self.moves]
        return sum(sign * amount for changed, sign, amount in changes if changed == quantity)

    def __str__(self) -> str:
        return f"{'+'.join(map(str, self.moves)) or 'hold'}@{self.frames}"


def parse_script(script: str) -> tuple[Step, ...]:
    """The steps of a script, or a UsageError that says what is wrong with it."""
    if not script.strip():
        raise UsageError(f"the camera script is empty; write steps such as {EXAMPLE}")
    steps = tuple(_parse_step(text.strip()) for text in script.split(",") if text.strip())
    if not steps:
        raise UsageError(f"the camera script {script!r} has no step; write steps such as {EXAMPLE}")
    frames = sum(step.frames for step in steps)
    if frames > LONGEST:
        raise UsageError(f"the camera script has {frames} frames; at most {LONGEST} are allowed")
    return steps


def light_or_screen_levels(steps: Sequence[Step], quantity: str, first: float = 0.0) -> np.ndarray:
    """The level (n,) of `light` or `screen` in every frame, kept within 0 and 1, from its first one."""
    changes = [np.full(step.frames, step.total_change(quantity) / step.frames) for step in steps]
    return np.clip(first + np.cumsum(np.concatenate([[0.0], *changes])), 0, 1).round(9)


def camera_path(
    steps: Sequence[Step], start: np.ndarray | None = None, *, pivot: np.ndarray | Sequence[float] | None = None
) -> np.ndarray:
    """Camera-to-world poses (n, 4, 4) that begin at `start`, by default the origin looking along z.

    Orbits go around the vertical through `pivot` (x, y, z), by default 2 metres ahead of the first view.
    """
    start = np.eye(4) if start is None else np.asarray(start, dtype=float)
    heading = np.degrees(np.arctan2(start[0, 2], start[2, 2]))
    if pivot is None:
        pivot = start[:3, 3] + PIVOT * np.array([np.sin(np.radians(heading)), 0, np.cos(np.radians(heading))])
    yaw = pitch = roll = 0.0
    position = start[:3, 3].copy()
    parts = [start[None]]
    for step in steps:
        share = np.linspace(0, 1, step.frames + 1)
        before, after = share[:-1], share[1:]
        turn, lift, lean = step.total_change("yaw"), step.total_change("pitch"), step.total_change("roll")
        forward, right, rise = step.total_change("forward"), step.total_change("right"), step.total_change("up")
        around = -step.total_change("orbit")  # going to the right turns the view to the left
        turn += around
        # Over a turn by an angle a, an arc of length l spans a chord of l·sin(a/2)/(a/2), seen from halfway.
        middle = np.radians(heading + yaw + turn * (before + after) / 2)
        chord = (after - before) * np.sinc(turn * (after - before) / 360)
        level = np.zeros(step.frames)
        ahead = np.stack([np.sin(middle), level, np.cos(middle)], axis=1)
        aside = np.stack([np.cos(middle), level, -np.sin(middle)], axis=1)
        displacements = [
            (chord * forward)[:, None] * ahead,
            (chord * right)[:, None] * aside,
            -((after - before) * rise)[:, None] * np.array([0.0, 1.0, 0.0]),
        ]
        if around:
            positions = pivot + rotation_from_axis_angle((0, 1, 0), around * after) @ (position - pivot)
        else:
            positions = np.cumsum([position, *np.stack(displacements, axis=1).reshape(-1, 3)], axis=0)[3::3]
        about_vertical = rotation_from_axis_angle((0, 1, 0), yaw + turn * after)
        tilted = start[:3, :3] @ rotation_from_axis_angle((1, 0, 0), pitch + lift * after)
        rolled = rotation_from_axis_angle((0, 0, 1), roll + lean * after)
        parts.append(make_rigid_poses(about_vertical @ tilted @ rolled, positions))
        position = positions[-1]
        yaw, pitch, roll = yaw + turn, pitch + lift, roll + lean
    return np.concatenate(parts)


def frame_count_of_script(steps: Sequence[Step]) -> int:
    """Frames of the clip that a script asks for.

    Clips of video generators have an odd number of frames. A script whose frames add up to an odd number names all of
    them (`static@81`, `@40,@41`); one that adds up to an even number leaves out the first view (`@40,@40` is 81 too).
    """
    total = sum(step.frames for step in steps)
    return total if total % 2 and _has_two_frames_per_step(steps) else total + 1


def camera_path_of_length(steps: Sequence[Step], frames: int | None = None, *, axes: Axes = "heading") -> np.ndarray:
    """Camera-to-world poses (frames, 4, 4) of a script, from the origin; without `frames`, as many as it asks for.

    `@40,@40` has 81 frames: the first view, then 40 and 40. Where the frames of a script add up to those of the clip
    (`@40,@41` for 81), both ends of a step count, and the turning point is seen twice. Any other number of frames is
    reached by interpolation along the path. Ways go along and across the heading that the camera has then, or, as
    WRBench's public code has it, along the axes of the first view.
    """
    frames = frame_count_of_script(steps) if frames is None else frames
    if not 2 <= frames <= LONGEST:
        raise UsageError(f"a camera path has 2 to {LONGEST} frames, not {frames}")
    total = sum(step.frames for step in steps)
    repeated = frames == total and _has_two_frames_per_step(steps)
    c2w = _path_with_repeated_step_ends(steps) if repeated else camera_path(steps)
    if axes == "first_view":
        c2w[:, :3, 3] = _centres_in_axes_of_first_view(steps, frames == len(c2w) == total)
    if len(c2w) == frames:
        return c2w
    return resample(make_trajectory(c2w), np.linspace(0, len(c2w) - 1, frames)).c2w


def _has_two_frames_per_step(steps: Sequence[Step]) -> bool:
    return all(step.frames > 1 for step in steps)


def _path_with_repeated_step_ends(steps: Sequence[Step]) -> np.ndarray:
    """Poses in which every step begins with the pose that the one before ended in."""
    c2w = camera_path([Step(step.moves, step.frames - 1) for step in steps])
    ends = np.cumsum([0, *(step.frames - 1 for step in steps)])
    return np.concatenate([c2w[begin : end + 1] for begin, end in pairwise(ends)])


def _centres_in_axes_of_first_view(steps: Sequence[Step], ends_counted: bool) -> np.ndarray:
    """Centres (n, 3) of a camera whose ways are told in the axes of its first view."""
    at, centres = np.zeros(3), [] if ends_counted else [np.zeros(3)]
    for step in steps:
        motion = np.array([step.total_change("right"), -step.total_change("up"), step.total_change("forward")])
        share = np.linspace(0, 1, step.frames) if ends_counted else np.arange(1, step.frames + 1) / step.frames
        centres.extend(at + motion * part for part in share)
        at = at + motion
    return np.stack(centres)


def script_of_path(c2w: np.ndarray, knots: Sequence[int] = ()) -> str:
    """The script (`yaw:left:30@40,...`) of a path (N, 4, 4); it has a new step wherever the path bends, and at `knots`.

    Roll is left out, and so is what happens inside a step: the path itself says all.
    """
    yaw, pitch = (np.degrees(np.unwrap(np.radians(angle))) for angle in yaw_pitch_of_rotation(c2w[:, :3, :3]))
    where = np.column_stack([yaw / STRAYS_DEGREES, pitch / STRAYS_DEGREES, c2w[:, :3, 3] / STRAYS_METRES])
    ends = sorted({0, len(c2w) - 1, *(k for k in knots if 0 < k < len(c2w) - 1)})
    bends = sorted({k for first, last in pairwise(ends) for k in _bend_rows(where, first, last)})
    steps = [_step_between(c2w, yaw, pitch, first, last) for first, last in pairwise(bends)]
    return ",".join(str(step) for step in steps) or "hold@1"


def _bend_rows(where: np.ndarray, first: int, last: int) -> list[int]:
    """Rows between which straight lines stay close to the path (Douglas and Peucker)."""
    if last - first < 2:
        return [first, last]
    share = np.linspace(0, 1, last - first + 1)[:, None]
    away = np.linalg.norm(where[first : last + 1] - ((1 - share) * where[first] + share * where[last]), axis=1)
    worst = first + int(away.argmax())
    if away.max() <= 1:
        return [first, last]
    return [*_bend_rows(where, first, worst)[:-1], *_bend_rows(where, worst, last)]


def _step_between(c2w: np.ndarray, yaw: np.ndarray, pitch: np.ndarray, first: int, last: int) -> Step:
    """The moves from one row to another; ways along and across the heading halfway, as scripts have it."""
    motion = c2w[last, :3, 3] - c2w[first, :3, 3]
    turn = float(yaw[last] - yaw[first])
    middle = np.radians((yaw[first] + yaw[last]) / 2)
    chord = np.sinc(turn / 360) or 1.0  # an arc is longer than its chord
    forward = motion[0] * np.sin(middle) + motion[2] * np.cos(middle)
    sideways = motion[0] * np.cos(middle) - motion[2] * np.sin(middle)
    changes = [
        ("yaw", "right", "left", turn, LEAST_DEGREES),
        ("tilt", "up", "down", float(pitch[last] - pitch[first]), LEAST_DEGREES),
        ("dolly", "forward", "back", float(forward / chord), LEAST_METRES),
        ("truck", "right", "left", float(sideways / chord), LEAST_METRES),
        ("crane", "up", "down", float(-motion[1]), LEAST_METRES),
    ]
    moves = [
        Move(kind, one if x > 0 else other, round(abs(x), 3))
        for kind, one, other, x, least in changes
        if abs(x) > least
    ]
    return Step(tuple(moves), last - first)


def leaves_and_returns(script: str) -> bool | None:
    """Whether a script takes a quarter of the first view out of the frame and back again; None if it cannot be read.

    A quarter is a turn of 15 degrees at a field of view of 60, or the same step aside at the distance of the pivot.

    Examples
    --------
    >>> leaves_and_returns("yaw:right:60@40,yaw:left:60@41"), leaves_and_returns("yaw:right:60@81")
    (True, False)
    """
    try:
        path = camera_path(parse_script(script))
    except UsageError:
        return None
    turn = np.degrees(np.arccos(np.clip(path[:, :3, 2] @ path[0, :3, 2], -1, 1)))
    aside = np.linalg.norm((path[:, :3, 3] - path[0, :3, 3]) @ path[0, :3, :2], axis=1)
    away = np.maximum(turn / AWAY_TURN, aside / (PIVOT * np.tan(np.radians(AWAY_TURN))))
    return bool(away.max() >= 1 and away[int(away.argmax()) :].min() <= away.max() / 2)


def _parse_step(text: str) -> Step:
    motion, mark, count = (part.strip() for part in text.rpartition("@"))
    if not mark or not (count.isascii() and count.isdecimal()) or not count.strip("0"):
        raise UsageError(f"camera step {text!r} does not say how many frames it takes; add @20, for example")
    count = count.lstrip("0")
    if len(count) > len(str(LONGEST)):
        raise UsageError(f"a camera step may have at most {LONGEST} frames: {text[:60]!r}")
    moves = [_parse_move(part.strip(), text) for part in motion.split("+") if part.strip().lower() not in RESTS]
    step = Step(tuple(move for move in moves if move.amount), int(count))
    kinds = {move.kind for move in step.moves}
    if "orbit" in kinds and kinds & {"dolly", "truck", "crane"}:
        raise UsageError(f"camera step {text!r} orbits and moves along at once; make two steps of it")
    return step


def _parse_move(text: str, step: str) -> Move:
    kind, *fields = (word.strip() for word in text.lower().split(":"))
    kind = ALIASES.get(kind, kind)
    if kind not in MOVES:
        kinds = ", ".join([*MOVES, *ALIASES, *RESTS])
        raise UsageError(f"camera step {step!r} has an unknown move {text!r}; known moves: {kinds}")
    directions = MOVES[kind]
    direction = DIRECTIONS.get(kind, {}).get(fields[0], fields[0]) if fields else ""
    if len(fields) != 2 or direction not in directions:
        forms = " or ".join(f"{kind}:{direction}:amount" for direction in directions)
        raise UsageError(f"camera step {step!r} has {text!r} where {forms} is expected")
    try:
        amount = float(fields[1])
    except ValueError:
        amount = float("nan")
    if kind in SIGNED and abs(amount) <= FARTHEST:
        opposite = next(other for other in directions if other != direction)
        return Move(kind, opposite if amount < 0 else direction, abs(amount))
    if kind in SIGNED or not 0 < amount <= FARTHEST:
        unit = f"a positive number of {UNITS[kind]}" if kind in UNITS else "a positive share of 1"
        if kind in SIGNED:
            unit = f"a number of {UNITS[kind]} up to {FARTHEST:.0f}"
        raise UsageError(f"camera step {step[:60]!r} moves by {fields[1][:60]!r}; give {unit}")
    return Move(kind, direction, amount)
