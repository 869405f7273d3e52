"""Navigation: did the camera go where each turn asked it to, and are turns that mirror each other alike?

`upstream` scores as WBench's public evaluator works it out. The truth of a turn is built from the prediction: a
straight line as long as the prediction's own, or a turn as wide as the prediction's own. Diagonals (`W+A` and the like)
are not known to its table, so that the truth is no motion at all.

`corrected` scores against what was asked: the truth of a turn is the asked path from the pose at which it begins. The
benchmark asks for directions and not for amounts, and estimated poses have neither a unit nor a horizon. So four
numbers are fitted: how far a turn walks, by how much it turns, how far ahead the subject is that a third-person camera
goes around, and by how much the camera looks up or down while it walks and turns on level ground. Each is one number
for all turns of the clip; amounts are never below 0: who goes the other way, or not at all, is explained by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise, product

import numpy as np

from revisit.core import Case, NoScore, PublishedMaker, Score, Unscored, metric
from revisit.evidence.camera import PoseTrack
from revisit.geometry.poses import make_rigid_poses
from revisit.geometry.rotations import angle_between_rotations, axis_angle_of_rotation, rotation_from_axis_angle, slerp
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.wbench.metrics.rules import CARD, FIRST_PERSON, CameraAction, find_requested_turns

# Files that name no estimator are taken for MegaSAM's, whose files do not name it either.
MEGASAM = PublishedMaker("MegaSAM", "poses_from", others=("odometry", "mapanything-", "vggt", "da3"))
NO_PAIR = "no two turns of the case mirror or repeat each other, so that the benchmark gives it no score"
DID_NOT_GO = "no two turns that mirror or repeat each other went as asked, so that there is nothing to compare"
SAMPLES = 20  # poses of a turn that are compared
LEAST_WAY, LEAST_TURN = 0.5, 10.0  # what errors are divided by, at least: units and degrees
STILL_WAY, STILL_TURN = 0.1, 3.0  # a turn with less has not moved
RADIUS_TURN = 5.0  # degrees without which no radius of an orbit can be told
USUAL_WAY, USUAL_TURN, USUAL_DEPTH = 1.0, 30.0, 1.0  # taken where the prediction tells none
STEP = 2.0  # units that a turn with both a walk and a rotation goes, before it is scaled

# Sums that its table knows once their keys are sorted; of others, diagonals among them, the truth is no motion.
KNOWN = {frozenset(keys) for keys in (("W", "up"), ("W", "down"), *product("WSAD", ("left", "right")))}

Bounds = Sequence[tuple[int, int]]
SHARES = np.linspace(0, 1, SAMPLES)
TILTS = np.arange(-30.0, 31.0, 3.0), np.arange(-2.5, 3.0, 0.5)  # degrees, coarse and then fine


@dataclass(frozen=True)
class NavigationScore:
    """Accuracy and consistency, with the errors that they are made of; None where there is no pair of turns."""

    accuracy: float
    consistency: float | None
    facts: dict[str, float]

    @property
    def trajectory_score(self) -> float | None:
        return None if self.consistency is None else (self.accuracy + self.consistency) / 2


def _navigation_scores(
    case: Case, track: PoseTrack, rule: str, *, require_pairs: bool = True
) -> tuple[NavigationScore, dict[str, object]]:
    """The scores of a clip and what the record says of it; `require_pairs` asks for turns alike or mirrored."""
    upstream = is_upstream_rule(rule)
    turns = find_requested_turns(case, track, upstream)
    first_person = (case.annotations.get("perspective") or FIRST_PERSON) == FIRST_PERSON
    score = published_path_score if upstream else requested_path_score
    navigation = score(track.c2w, turns.bounds, turns.actions, first_person)
    by = "turns.json" if turns.from_file else "equal parts"
    facts: dict[str, object] = {**navigation.facts, "poses_from": track.source, "turns_by": by}
    if require_pairs and not comparable_turn_pairs(turns.actions):
        raise NoScore("does_not_apply", NO_PAIR, facts)
    return navigation, facts


@metric(
    id="wb_navigation", version=1, title="Navigation trajectory", needs=(Case, PoseTrack),
    upstream="navigation_trajectory", published_by=(MEGASAM,), responds_to=("disobeyed keys", "frozen camera"),
    blind_to=("content",), **CARD,
)  # fmt: skip
def navigation_trajectory(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """Mean of accuracy and consistency; accuracy alone where no mirrored turns went as asked (`corrected`)."""
    score, facts = _navigation_scores(case, track, rule)
    facts |= {"accuracy": score.accuracy, "consistency": score.consistency}
    return Score(score.accuracy if score.trajectory_score is None else score.trajectory_score, facts=facts)


@metric(
    id="wb_navigation_accuracy", version=1, title="Navigation accuracy", needs=(Case, PoseTrack), upstream="accuracy",
    published_by=(MEGASAM,), responds_to=("disobeyed keys", "frozen camera"), blind_to=("content",), **CARD,
)  # fmt: skip
def navigation_accuracy(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """How much of the camera's motion is what each turn asked for."""
    score, facts = _navigation_scores(case, track, rule, require_pairs=False)
    return Score(score.accuracy, facts=facts)


@metric(
    id="wb_navigation_consistency", version=1, title="Navigation consistency", needs=(Case, PoseTrack),
    upstream="consistency", published_by=(MEGASAM,), responds_to=("jitter",), blind_to=("content", "disobeyed keys"),
    **CARD,
)  # fmt: skip
def navigation_consistency(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """How alike the paths of turns are that repeat or mirror each other."""
    score, facts = _navigation_scores(case, track, rule)
    if score.consistency is None:
        return Unscored("at_rest", DID_NOT_GO, facts)
    return Score(score.consistency, facts=facts)


def published_path_score(
    c2w: np.ndarray, bounds: Bounds, actions: Sequence[CameraAction], first_person: bool
) -> NavigationScore:
    """Accuracy against the path built from the prediction, and likeness of turns that mirror each other."""
    truth = _build_true_turns(c2w, bounds, actions, first_person)
    predicted = np.concatenate([resample_by_distance(c2w[start:end]) for start, end in bounds])
    target = np.concatenate([resample_by_distance(part) for part in truth])
    whole = c2w[bounds[0][0] : bounds[-1][1]]
    way, angle = path_length(whole), total_turn_degrees(whole)
    error_way = float(np.linalg.norm(predicted[:, :3, 3] - target[:, :3, 3], axis=1).mean())
    error_angle = float(angle_between_rotations(predicted[:, :3, :3], target[:, :3, :3]).mean())
    share_way = min(error_way / max(way, LEAST_WAY), 1.0)
    share_angle = min(error_angle / max(angle, LEAST_TURN), 1.0)
    pairs = [
        turn_pair_errors(c2w[slice(*bounds[j])], c2w[slice(*bounds[k])], actions[j].mirror_signs(actions[k]))
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


def total_turn_degrees(c2w: np.ndarray) -> float:
    """Sum of the angles from each pose to the next, degrees."""
    return float(_degrees_between_poses(c2w[:-1], c2w[1:]).sum())


def _degrees_between_poses(first: np.ndarray, second: np.ndarray) -> np.ndarray:
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
    angle = total_turn_degrees(turn)
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
    turns = rotation_from_axis_angle(action.turn_axis, degrees * np.arange(count) / steps)
    if first_person:
        motion = turns @ walk / steps
        motion[0] = 0  # the first pose is at the origin
        return make_rigid_poses(turns, np.cumsum(motion, axis=0))
    offset = np.array([0.0, 0.0, -depth])
    out = turns @ offset
    looks = np.stack([_level_look_at_rotation(-one) for one in out])
    return make_rigid_poses(looks, np.arange(count)[:, None] / steps * walk - offset + out)


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


def turn_pair_errors(first: np.ndarray, second: np.ndarray, mirror_signs: np.ndarray) -> tuple[float, float]:
    """How far two turns differ, each from its own first pose, the second reflected; shares of what they moved."""
    count = min(len(first), len(second))
    one, other = (np.linalg.inv(part[0]) @ part for part in (first, second))
    one, other = (part[np.linspace(0, len(part) - 1, count).astype(int)] for part in (one, other))
    mirror = np.diag([*mirror_signs, 1.0])
    other = mirror @ other @ mirror
    way, angle = ((of(one) + of(other)) / 2 for of in (path_length, total_turn_degrees))
    error_way = float(np.linalg.norm(one[:, :3, 3] - other[:, :3, 3], axis=1).mean())
    error_angle = float(_degrees_between_poses(one, other).mean())
    return min(error_way / max(way, LEAST_WAY), 1.0), min(error_angle / max(angle, LEAST_TURN), 1.0)


@dataclass(frozen=True)
class TurnMotion:
    """What the camera did in a turn, from its first pose, and what it was asked to do."""

    action: CameraAction
    poses: np.ndarray  # (n, 4, 4), the first one the identity
    way: np.ndarray  # (SAMPLES, 3) positions at equal steps of the way
    rotation: np.ndarray  # (SAMPLES, 3, 3) orientations at about equal steps of the turn
    share: np.ndarray  # (SAMPLES,) of the turn that is made by then, 0 to 1
    turned: np.ndarray  # (SAMPLES, 3) rotation vectors of the steps until then, added up, degrees

    @cached_property
    def moved_as_asked(self) -> bool:
        """Whether the camera moved at all in the way it was asked to."""
        walked = path_length(self.poses) > STILL_WAY and np.linalg.norm(self.way, axis=1).max() > STILL_WAY
        turned = angle_between_rotations(np.eye(3), self.poses[:, :3, :3]).max() > STILL_TURN
        return (self.action.walk_direction is not None and bool(walked)) or (
            self.action.turn_axis is not None and bool(turned)
        )


@dataclass(frozen=True)
class Fit:
    """The numbers that explain a clip best, and how much of each turn they explain."""

    scores: tuple[float, ...]
    walk: float  # of a turn, in the poses' own unit
    degrees: float  # of a turn
    tilt: float  # degrees by which the camera looks down on its level way; up below 0


def requested_path_score(
    c2w: np.ndarray, bounds: Bounds, actions: Sequence[CameraAction], first_person: bool
) -> NavigationScore:
    """Mean over turns of how much of the motion is the asked one, and likeness of turns that mirror each other.

    Consistency is asked of turns that went as asked; with no pair of these, it is None although pairs were asked for.
    """
    # A turn begins where the one before it ended.
    stretches = [c2w[max(start - 1, 0) : end] for start, end in bounds]
    motions = [_measure_turn_motion(poses, action) for poses, action in zip(stretches, actions, strict=True)]
    best = _fit_amounts_for_tilt(motions, first_person, 0.0)
    for tilts in TILTS:
        fits = [_fit_amounts_for_tilt(motions, first_person, best.tilt + tilt) for tilt in tilts]
        best = max([best, *fits], key=lambda fit: round(sum(fit.scores), 9))
    pairs = [
        turn_pair_errors(motions[j].poses, motions[k].poses, actions[j].mirror_signs(actions[k]))
        for j, k in comparable_turn_pairs(actions)
        if best.scores[j] > 0 and best.scores[k] > 0
    ]
    facts = {
        "turns_that_went": float(sum(score > 0 for score in best.scores)), "turns": float(len(best.scores)),
        "walk_of_a_turn": best.walk, "degrees_of_a_turn": best.degrees, "tilt": best.tilt,
        "consistency_pairs": float(len(pairs)),
    }  # fmt: skip
    consistency = float(1 - np.mean(pairs)) if pairs else None
    return NavigationScore(float(np.mean(best.scores)), consistency, facts)


def _fit_amounts_for_tilt(motions: Sequence[TurnMotion], first_person: bool, tilt: float) -> Fit:
    """The amounts that explain all turns best, for a camera that looks down by `tilt`."""
    level = rotation_from_axis_angle((1.0, 0.0, 0.0), tilt)  # from the axes of the level ground to those of the camera
    degrees = _fit_turn_degrees(motions, level)
    columns = [_position_columns(motion.action, level, degrees, first_person) for motion in motions]
    amounts = _fit_nonnegative_walk_and_distance(columns, [motion.way for motion in motions])
    scores = tuple(
        _explained_turn_share(motion, column @ amounts, level, degrees, float(amounts[0]), first_person)
        for motion, column in zip(motions, columns, strict=True)
    )
    return Fit(scores, float(amounts[0]), degrees, float(tilt))


def _requested_turn_axis(action: CameraAction, level: np.ndarray) -> np.ndarray | None:
    """The axis of the asked turn as the camera sees it: up and down about its own right, aside about the vertical."""
    return None if action.turn_axis is None else level @ action.turn_axis


def _measure_turn_motion(turn: np.ndarray, action: CameraAction) -> TurnMotion:
    poses = np.linalg.inv(turn[0]) @ turn
    steps = [np.multiply(*axis_angle_of_rotation(a[:3, :3].T @ b[:3, :3])) for a, b in pairwise(poses)]
    vectors = np.array(steps).reshape(-1, 3)
    turned = np.concatenate([[0.0], np.cumsum(np.linalg.norm(vectors, axis=1))])
    total = np.concatenate([np.zeros((1, 3)), np.cumsum(vectors, axis=0)])
    nearest = np.abs(turned[None] - SHARES[:, None] * turned[-1]).argmin(axis=1)  # all 0 where nothing turns
    share = turned[nearest] / max(turned[-1], 1e-12)
    way = resample_by_distance(poses)[:, :3, 3]
    if len(way) < SAMPLES:
        way = np.stack([np.interp(SHARES, np.linspace(0, 1, len(way)), way[:, axis]) for axis in range(3)], axis=1)
    return TurnMotion(action, poses, way, poses[nearest, :3, :3], share, total[nearest])


def _fit_turn_degrees(motions: Sequence[TurnMotion], level: np.ndarray) -> float:
    """Degrees of a turn that explain all turns best."""
    turns = [(motion, axis) for motion in motions if (axis := _requested_turn_axis(motion.action, level)) is not None]
    size = sum(float(motion.share @ motion.share) for motion, _ in turns)
    projected = sum(float((motion.turned @ axis) @ motion.share) for motion, axis in turns)
    return max(0.0, projected / size) if size > 0 else 0.0


def _position_columns(action: CameraAction, level: np.ndarray, degrees: float, first_person: bool) -> np.ndarray:
    """(SAMPLES, 3, 2) positions of an asked turn per unit of walk, and per unit of the subject's distance."""
    columns = np.zeros((SAMPLES, 3, 2))
    axis = _requested_turn_axis(action, level)
    turned = np.tile(np.eye(3), (SAMPLES, 1, 1)) if axis is None else rotation_from_axis_angle(axis, degrees * SHARES)
    if action.walk_direction is not None:
        walk = level @ action.walk_direction
        steps = turned @ walk if first_person else np.tile(walk, (SAMPLES, 1))
        middles = np.concatenate([np.zeros((1, 3)), (steps[:-1] + steps[1:]) / 2])
        columns[:, :, 0] = np.cumsum(middles, axis=0) / (SAMPLES - 1)
    if axis is not None and not first_person:
        ahead = np.array([0.0, 0.0, 1.0])
        columns[:, :, 1] = ahead - turned @ ahead
    return columns


def _fit_nonnegative_walk_and_distance(columns: Sequence[np.ndarray], ways: Sequence[np.ndarray]) -> np.ndarray:
    """Walk and distance of the subject, none below 0, that explain the ways of all turns that ask for one best."""
    table = np.concatenate([column.reshape(-1, 2) for column in columns])
    target = np.concatenate([way.ravel() for way in ways])
    target = np.where(np.repeat([bool(np.any(column)) for column in columns], SAMPLES * 3), target, 0)
    best, least = np.zeros(2), float(target @ target)
    for used in ([0, 1], [0], [1]):
        if not np.abs(table[:, used]).sum(axis=0).all():
            continue
        amounts = np.zeros(2)
        amounts[used] = np.linalg.lstsq(table[:, used], target, rcond=None)[0]
        error = float(((table @ amounts - target) ** 2).sum())
        if (amounts >= 0).all() and error < least:
            best, least = amounts, error
    return best


def _explained_turn_share(
    motion: TurnMotion, requested_way: np.ndarray, level: np.ndarray, degrees: float, walk: float, first_person: bool
) -> float:
    """Share of a turn's motion that was asked for: 1 all of it, 0 none, or no motion where one was asked."""
    if not motion.moved_as_asked:
        return 0.0
    parts = []
    length = float(np.sqrt((motion.way**2).sum(axis=1).mean()))
    if length > STILL_WAY and (not first_person or motion.action.walk_direction is not None):
        parts.append(_explained_share(np.linalg.norm(motion.way - requested_way, axis=1), length))
    elif motion.action.walk_direction is not None:
        parts.append(0.0)
    axis = _requested_turn_axis(motion.action, level)
    if axis is not None:
        requested = rotation_from_axis_angle(axis, degrees * motion.share)
        size = float(np.sqrt((angle_between_rotations(np.eye(3), motion.rotation) ** 2).mean()))
        parts.append(_explained_share(angle_between_rotations(requested, motion.rotation), size) if size > 0 else 0.0)
    score = min(parts)
    if axis is None:  # a turn that was not asked for
        score *= max(0.0, 1 - float(angle_between_rotations(np.eye(3), motion.rotation).mean()) / USUAL_TURN)
    elif motion.action.walk_direction is None and first_person and walk > 0:  # a walk that was not asked for
        score *= max(0.0, 1 - length / walk)
    return score


def _explained_share(errors: np.ndarray, size: float) -> float:
    return max(0.0, 1 - float(np.sqrt((errors**2).mean())) / size)
