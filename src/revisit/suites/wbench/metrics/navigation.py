"""Navigation: did the camera go where each turn asked it to, and are turns that mirror each other alike?

`upstream` is in `published_path.py`. `corrected` scores against what was asked: the truth of a turn is the asked path
from the pose at which it begins. The benchmark asks for directions and not for amounts, and estimated poses have
neither a unit nor a horizon. So four numbers are fitted: how far a turn walks, by how much it turns, how far ahead the
subject is that a third-person camera goes around, and by how much the camera looks up or down while it walks and turns
on level ground. Each is one number for all turns of the clip; amounts are never below 0: who goes the other way, or
not at all, is explained by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from revisit.core import Case, NoScore, PublishedMaker, Score, Unscored, metric
from revisit.evidence.poses import PoseTrack
from revisit.geometry.rotations import angle_between_rotations, axis_angle_of_rotation, rotation_from_axis_angle
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.wbench.metrics.published_path import (
    SAMPLES,
    STILL_TURN,
    STILL_WAY,
    USUAL_TURN,
    Bounds,
    NavigationScore,
    comparable_turn_pairs,
    path_length,
    published_path_score,
    resample_by_distance,
    turn_pair_error,
)
from revisit.suites.wbench.metrics.rules import CARD, FIRST_PERSON, CameraAction, find_requested_turns

# Files that name no estimator are taken for MegaSAM's, whose files do not name it either.
MEGASAM = PublishedMaker("MegaSAM", "poses_from", others=("odometry", "mapanything-", "vggt", "da3"))
NO_PAIR = "no two turns of the case mirror or repeat each other, so that the benchmark gives it no score"
DID_NOT_GO = "no two turns that mirror or repeat each other went as asked, so that there is nothing to compare"
SHARES = np.linspace(0, 1, SAMPLES)
TILTS = np.arange(-30.0, 31.0, 3.0), np.arange(-2.5, 3.0, 0.5)  # degrees, coarse and then fine


def _navigation_scores(
    case: Case, track: PoseTrack, rule: str, *, in_pairs: bool = True
) -> tuple[NavigationScore, dict[str, object]]:
    """The scores of a clip and what the record says of it; `in_pairs` asks for turns that are alike or mirrored."""
    upstream = is_upstream_rule(rule)
    turns = find_requested_turns(case, track, upstream)
    first_person = (case.annotations.get("perspective") or FIRST_PERSON) == FIRST_PERSON
    score = published_path_score if upstream else requested_path_score
    navigation = score(track.c2w, turns.bounds, turns.actions, first_person)
    by = "turns.json" if turns.from_file else "equal parts"
    facts: dict[str, object] = {**navigation.facts, "poses_from": track.source, "turns_by": by}
    if in_pairs and not comparable_turn_pairs(turns.actions):
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
    score, facts = _navigation_scores(case, track, rule, in_pairs=False)
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
        turn_pair_error(motions[j].poses, motions[k].poses, actions[j].mirror_signs(actions[k]))
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
    amounts = _fit_walk_and_distance(columns, [motion.way for motion in motions])
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


def _fit_walk_and_distance(columns: Sequence[np.ndarray], ways: Sequence[np.ndarray]) -> np.ndarray:
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
