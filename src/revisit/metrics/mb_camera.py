"""Camera interaction of MBench: does the camera move as it was told?

Evidence: `GeometryTrack`, and the action in the case (`left_then_right`, `left_360`, `static`, ...). From each pose to
the next the camera's motion as it sees it itself (OpenCV: x right, y down, z ahead) is

    v = R_i^T (C_{i+1} - C_i) / depth of the scene,    w = axis-angle of R_i^T R_{i+1}, in radians

and its cosine with the ideal motion is taken (eq. 16, 17): left is w_y = -1, right +1, forward v_z = +1, backward -1.
The paper writes left as +1, which is the same motion told of world-to-camera matrices (their w is -R w); `paper`
computes with these: v = t_{i+1} - t_i, w of R_{i+1} R_i^T, all steps counted.

Steps shorter than a tenth of the clip's median are left out and counted: a pause is no wrong direction. The second
half of a way there and back begins at the middle of the clip. The score is the mean cosine, 0 where it is negative; a
camera that should move and rests altogether scores 0. Size and speed of the motion do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.evidence.mbench import GeometryTrack
from revisit.geometry.fold_pairs import frame_numbers, pose_distance
from revisit.geometry.poses import invert
from revisit.geometry.rotations import to_axis_angle
from revisit.metrics.mb_rules import PAPER, check_rule, scene_depth, validate_track

# Components of the motion: v then w, as the camera moves in its own axes.
IDEAL = {
    "left": (4, -1.0), "right": (4, 1.0), "up": (3, 1.0), "down": (3, -1.0), "forward": (2, 1.0), "backward": (2, -1.0),
}  # fmt: skip
STATIC = "static"
SHORT = 0.1  # of the median step: a pause
AT_REST = 1e-5  # radians or depths a step: what rounding leaves of no motion
RESTS = 0.1  # radians or depths from the first pose, over which a camera that should rest loses 1/e: about 5 degrees


def phases(action: str) -> list[str] | None:
    """Directions of an action one after another, such as left then right; None where the action is not known."""
    head = action.split("_then_") if "_then_" in action else [action.rpartition("_")[0] or action]
    if action.partition("_")[0] == STATIC:
        return [STATIC]
    return head if all(word in IDEAL for word in head) else None


def twists(c2w: np.ndarray, depth: float, literal: bool = False) -> np.ndarray:
    """(N-1, 6) motion from each pose to the next: translation, then rotation in radians."""
    poses = invert(c2w) if literal else c2w
    rotation, at = poses[:, :3, :3], poses[:, :3, 3]
    step = np.diff(at, axis=0)
    if literal:
        between = rotation[1:] @ np.swapaxes(rotation[:-1], 1, 2)
    else:
        step = np.einsum("nji,nj->ni", rotation[:-1], step) / depth
        between = np.swapaxes(rotation[:-1], 1, 2) @ rotation[1:]
    turns = [axis * np.radians(degrees) for axis, degrees in map(to_axis_angle, between)]
    return np.hstack([step, np.array(turns).reshape(-1, 3)])


def ideal(direction: str, literal: bool = False) -> np.ndarray:
    """The unit motion of a direction; world-to-camera matrices tell it the other way round."""
    component, sign = IDEAL[direction]
    motion = np.zeros(6)
    motion[component] = -sign if literal else sign
    return motion


def best_switch(cosines: np.ndarray, middle: float, tolerance: float, at: np.ndarray) -> float:
    """Where the second direction begins: the middle, or the best moment within the tolerance around it."""
    span = at[-1] - at[0]
    candidates = at[np.abs(at - middle) <= tolerance * span] if tolerance > 0 else np.zeros(0)
    if not len(candidates):
        return middle
    gains = [np.where(at < c, cosines[:, 0], cosines[:, 1]).sum() for c in candidates]
    return float(candidates[int(np.argmax(gains))])


@metric(
    id="mb_camera_interaction", version=1, title="Camera follows its action", unit="score", range=(0, 1),
    higher_is_better=True, needs=(Case, FrameFacts, GeometryTrack), suites=("mbench",), paper=f"{PAPER} eq. 16-17",
    upstream="camera_interaction", responds_to=("frozen camera", "wrong direction", "no return"),
    blind_to=("content", "speed and size of the motion", "pauses"),
)  # fmt: skip
def camera_interaction(
    case: Case, frames: FrameFacts, track: GeometryTrack, *, rule: str = "corrected", tolerance: float = 0.0
) -> Score | Unscored:
    """Mean cosine between the camera's motion and the one asked for, at least 0.

    Facts: share of steps that move, cosine of each direction, total turn in degrees (right is positive), and the
    other way of putting a cosine on 0 to 1, (1 + cosine) / 2.
    """
    validate_track(track)
    literal = check_rule(rule) == "paper"
    action = str(case.annotations.get("action") or case.camera)
    asked = phases(action)
    if asked is None:
        return Unscored(f"the action {action!r} is none of {', '.join(IDEAL)} (then another of them) or static")
    if track.refused:
        return Unscored(track.refused)
    if len(track.c2w) < 2:
        return Unscored("too short: a motion takes two poses")
    count = int(frames.index[-1]) + 1 if len(frames.index) else len(track.c2w)
    numbers, note = frame_numbers(len(track.c2w), track.frame, count)
    depth = scene_depth(track)
    facts: dict[str, Any] = {
        "action": action, "convention": track.convention, "convention_said_by": track.found, "poses_by": track.maker,
        "note": note,
    }  # fmt: skip
    if asked == [STATIC]:
        way, turn = pose_distance(track.c2w, depth)
        apart = way[0] + np.radians(turn[0])
        units = Series(frame=numbers, value=np.exp(-apart / RESTS), raw=apart)
        return Score(float(np.exp(-apart.max() / RESTS)), raw=float(apart.max()), units=units, facts=facts)
    motion = twists(track.c2w, depth, literal)
    size = np.linalg.norm(motion, axis=1)
    moves = size > (0 if literal else max(AT_REST, SHORT * float(np.median(size))))
    own = twists(track.c2w, depth)
    facts |= {
        "response_rate": float(moves.mean()),
        "total_turn_degrees": float(np.degrees(own[:, 4].sum())),
        "turned_degrees": float(np.degrees(np.abs(own[:, 4]).sum())),
    }
    if not moves.any():
        return Score(0.0, raw=0.0, facts={**facts, "note": "the camera rests"})
    unit = motion / np.maximum(size, 1e-12)[:, None]
    cosines = np.stack([unit @ ideal(direction, literal) for direction in asked], axis=1)
    at = (numbers[:-1] + numbers[1:]) / 2
    if len(asked) == 2:
        switch = best_switch(np.where(moves[:, None], cosines, 0), (count - 1) / 2, tolerance, at)
        second = (at >= switch).astype(int)
        facts["switch_frame"] = switch
    else:
        second = np.zeros(len(at), int)
    value = cosines[np.arange(len(at)), second]
    mean = float(value[moves].mean())
    by = {f"{k + 1} {word}": _mean(value[moves & (second == k)]) for k, word in enumerate(asked)}
    facts |= {"cosine": by, "half_of_one_plus_cosine": (1 + mean) / 2}
    units = Series(frame=numbers[:-1][moves], other=numbers[1:][moves], value=value[moves], size=size[moves])
    return Score(max(0.0, mean), raw=mean, units=units, facts=facts)


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
