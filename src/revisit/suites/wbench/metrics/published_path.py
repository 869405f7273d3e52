"""The navigation score as WBench's public evaluator works it out (`upstream`).

The truth of a turn is built from the prediction: a straight line as long as the prediction's own, or a turn as wide as
the prediction's own. Diagonals (`W+A` and the like) are not known to its table, so that the truth is no motion at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, product

import numpy as np

from revisit.geometry.poses import make_rigid_poses
from revisit.geometry.rotations import angle_between_rotations, rotation_from_axis_angle, slerp
from revisit.suites.wbench.metrics.rules import CameraAction

SAMPLES = 20  # poses of a turn that are compared
LEAST_WAY, LEAST_TURN = 0.5, 10.0  # what errors are divided by, at least: units and degrees
STILL_WAY, STILL_TURN = 0.1, 3.0  # a turn with less has not moved
RADIUS_TURN = 5.0  # degrees without which no radius of an orbit can be told
USUAL_WAY, USUAL_TURN, USUAL_DEPTH = 1.0, 30.0, 1.0  # taken where the prediction tells none
STEP = 2.0  # units that a turn with both a walk and a rotation goes, before it is scaled

# Sums that its table knows once their keys are sorted; of others, diagonals among them, the truth is no motion.
KNOWN = {frozenset(keys) for keys in (("W", "up"), ("W", "down"), *product("WSAD", ("left", "right")))}

Bounds = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class NavigationScore:
    """Accuracy and consistency, with the errors that they are made of; None where there is no pair of turns."""

    accuracy: float
    consistency: float | None
    facts: dict[str, float]

    @property
    def trajectory_score(self) -> float | None:
        return None if self.consistency is None else (self.accuracy + self.consistency) / 2


def published_path_score(
    c2w: np.ndarray, bounds: Bounds, actions: Sequence[CameraAction], first_person: bool
) -> NavigationScore:
    """Accuracy against the path built from the prediction, and likeness of turns that mirror each other."""
    truth = _build_true_turns(c2w, bounds, actions, first_person)
    predicted = np.concatenate([resample_by_distance(c2w[start:end]) for start, end in bounds])
    target = np.concatenate([resample_by_distance(part) for part in truth])
    whole = c2w[bounds[0][0] : bounds[-1][1]]
    way, angle = path_length(whole), total_turn(whole)
    error_way = float(np.linalg.norm(predicted[:, :3, 3] - target[:, :3, 3], axis=1).mean())
    error_angle = float(angle_between_rotations(predicted[:, :3, :3], target[:, :3, :3]).mean())
    share_way = min(error_way / max(way, LEAST_WAY), 1.0)
    share_angle = min(error_angle / max(angle, LEAST_TURN), 1.0)
    pairs = [
        turn_pair_error(c2w[slice(*bounds[j])], c2w[slice(*bounds[k])], actions[j].mirror_signs(actions[k]))
        for j, k in comparable_turn_pairs(actions)
    ]
    facts = {
        "nATE_t": share_way, "nATE_r": share_angle, "ATE_t": error_way, "ATE_r": error_angle,
        "total_path_length": way, "total_rotation_deg": angle, "consistency_pairs": float(len(pairs)),
    }  # fmt: skip
    consistency = None
    if pairs:
        mean_way, mean_angle = np.mean(pairs, axis=0)
        facts |= {"cnATE_t": float(mean_way), "cnATE_r": float(mean_angle)}
        consistency = float(1 - (mean_way + mean_angle) / 2)
    return NavigationScore(1 - (share_way + share_angle) / 2, consistency, facts)


def path_length(c2w: np.ndarray) -> float:
    """Length of the way of the centres."""
    return float(np.linalg.norm(np.diff(c2w[:, :3, 3], axis=0), axis=1).sum())


def total_turn(c2w: np.ndarray) -> float:
    """Sum of the angles from each pose to the next, degrees."""
    return float(_angles_between_poses(c2w[:-1], c2w[1:]).sum())


def _angles_between_poses(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angles between poses, by the arc cosine: of tiny angles it makes 0 or a millionth of a degree, as upstream."""
    trace = np.trace(np.swapaxes(first[:, :3, :3], 1, 2) @ second[:, :3, :3], axis1=1, axis2=2)
    return np.degrees(np.arccos(np.clip((trace - 1) / 2, -1, 1)))


def resample_by_distance(c2w: np.ndarray) -> np.ndarray:
    """Poses at equal steps of the way, or by their number where the way is none."""
    if len(c2w) <= 2:
        return c2w[np.linspace(0, max(len(c2w) - 1, 0), min(len(c2w), SAMPLES)).astype(int)]
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(c2w[:, :3, 3], axis=0), axis=1))])
    if arc[-1] < 1e-8:
        return c2w[np.linspace(0, len(c2w) - 1, SAMPLES).astype(int)]
    marks = np.linspace(0, arc[-1], SAMPLES)
    poses = np.tile(np.eye(4), (SAMPLES, 1, 1))
    for axis in range(3):
        poses[:, axis, 3] = np.interp(marks, arc, c2w[:, axis, 3])
    # A pose that has not moved from the one before counts as a tiny step, so that the last of them is the one met.
    share = np.array(list(accumulate(arc / arc[-1], lambda last, here: max(here, last + 1e-12))))
    for pose, mark in zip(poses, np.clip(marks / arc[-1], share[0], share[-1]), strict=True):
        after = min(max(int(np.searchsorted(share, mark)), 1), len(share) - 1)
        t = (mark - share[after - 1]) / (share[after] - share[after - 1])
        pose[:3, :3] = slerp(c2w[after - 1, :3, :3], c2w[after, :3, :3], float(t))
    return poses


def _build_true_turns(
    c2w: np.ndarray, bounds: Bounds, actions: Sequence[CameraAction], first_person: bool
) -> list[np.ndarray]:
    """The truth of each turn, each beginning where the one before it ended."""
    position, heading = c2w[bounds[0][0], :3, 3], c2w[bounds[0][0], :3, :3]
    parts = []
    for (start, end), action in zip(bounds, actions, strict=True):
        turn = c2w[start:end]
        is_known = len(action.keys) == 1 or frozenset(action.keys) in KNOWN
        if action.turn_axis is None and is_known:
            part = _straight_true_turn(turn, action, heading)
        else:
            part = np.tile(np.eye(4), (len(turn), 1, 1))
            part = _rotating_true_turn(turn, action, first_person) if is_known else part
            heading = part[-1, :3, :3]
        part[:, :3, 3] += position - part[0, :3, 3]
        position = part[-1, :3, 3].copy()
        parts.append(part)
    return parts


def _straight_true_turn(turn: np.ndarray, action: CameraAction, heading: np.ndarray) -> np.ndarray:
    """A straight way, as long as the prediction's ends are apart."""
    assert action.walk_direction is not None
    length = float(np.linalg.norm(turn[-1, :3, 3] - turn[0, :3, 3]))
    length = length if length > STILL_WAY else USUAL_WAY
    way = np.linspace(0, 1, len(turn))[:, None] * length * (heading @ action.walk_direction)
    return make_rigid_poses(np.broadcast_to(heading, (len(turn), 3, 3)), way)


def _rotating_true_turn(turn: np.ndarray, action: CameraAction, first_person: bool) -> np.ndarray:
    """A turn of the prediction's angle from its first orientation: in place, along an arc, or around a subject."""
    assert action.turn_axis is not None
    angle = total_turn(turn)
    chord = float(np.linalg.norm(turn[-1, :3, 3] - turn[0, :3, 3]))
    sine = np.sin(np.radians(angle) / 2)
    has_radius = angle >= RADIUS_TURN and sine >= 1e-6
    degrees = max(angle, USUAL_TURN) if has_radius else USUAL_TURN
    depth = max(chord / (2 * sine), USUAL_DEPTH) if has_radius else USUAL_DEPTH
    part = _rotation_template(len(turn), action, degrees, depth, first_person)
    away = np.linalg.norm(turn[:, :3, 3] - turn[0, :3, 3], axis=1).mean() + 1e-12
    usual = np.linalg.norm(part[:, :3, 3] - part[0, :3, 3], axis=1).mean() + 1e-12
    scale = 1.0 if angle < STILL_TURN or away < STILL_WAY else away / usual
    first = turn[0, :3, :3] @ part[0, :3, :3].T
    return make_rigid_poses(first @ part[:, :3, :3], scale * (part[:, :3, 3] - part[0, :3, 3]) @ first.T)


def _rotation_template(
    count: int, action: CameraAction, degrees: float, depth: float, first_person: bool
) -> np.ndarray:
    """The poses of an action with a rotation, from the origin looking ahead."""
    assert action.turn_axis is not None
    steps = max(count - 1, 1)
    walk = np.zeros(3) if action.walk_direction is None else STEP * action.walk_direction
    part = np.tile(np.eye(4), (count, 1, 1))
    if first_person:
        position = np.zeros(3)
        for k in range(count):
            part[k, :3, :3] = rotation_from_axis_angle(action.turn_axis, degrees * k / steps)
            position = position + part[k, :3, :3] @ walk / steps if k else position
            part[k, :3, 3] = position
        return part
    offset = np.array([0.0, 0.0, -depth])
    for k in range(count):
        out = rotation_from_axis_angle(action.turn_axis, degrees * k / steps) @ offset
        part[k, :3, 3] = k / steps * walk - offset + out
        part[k, :3, :3] = _level_look_at_rotation(-out)
    return part


def _level_look_at_rotation(direction: np.ndarray) -> np.ndarray:
    """The level orientation of a camera that looks along a direction."""
    ahead = direction / (np.linalg.norm(direction) + 1e-8)
    right = np.cross(ahead, (0.0, -1.0, 0.0))
    right = right / (np.linalg.norm(right) + 1e-8)
    return np.stack([right, -np.cross(right, ahead), ahead], axis=1)


def comparable_turn_pairs(actions: Sequence[CameraAction]) -> list[tuple[int, int]]:
    """Every two turns of one group, which the case asks to be alike."""
    pairs = combinations(range(len(actions)), 2)
    return [(j, k) for j, k in pairs if actions[j].motion_group == actions[k].motion_group]


def turn_pair_error(first: np.ndarray, second: np.ndarray, signs: np.ndarray) -> tuple[float, float]:
    """How far two turns differ, each from its own first pose, the second reflected; shares of what they moved."""
    count = min(len(first), len(second))
    one, other = (np.linalg.inv(part[0]) @ part for part in (first, second))
    one, other = (part[np.linspace(0, len(part) - 1, count).astype(int)] for part in (one, other))
    mirror = np.diag([*signs, 1.0])
    other = mirror @ other @ mirror
    way, angle = ((of(one) + of(other)) / 2 for of in (path_length, total_turn))
    error_way = float(np.linalg.norm(one[:, :3, 3] - other[:, :3, 3], axis=1).mean())
    error_angle = float(_angles_between_poses(one, other).mean())
    return min(error_way / max(way, LEAST_WAY), 1.0), min(error_angle / max(angle, LEAST_TURN), 1.0)
