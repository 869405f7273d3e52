"""action: does the camera obey the keys? Errors of each step against the true camera, by what was asked.

The keys of frame `mark_time` + i ask for the step from frame i to frame i + 1 of the prediction. Steps are grouped into
translation, rotation, mixed and no_op, and by action. Errors are those of metrics/camera: lengths after the best
similarity, in the unit of the true path; degrees need no alignment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, Metric, NoScore, PublishedMaker, Score, Series, Unscored, metric
from revisit.evidence.camera import PoseTrack, TruePoseTrack
from revisit.metrics.camera import TRUE_STILL, PathSteps, shared_camera_paths, step_errors
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.mind.evidence import ActionTrack
from revisit.suites.mind.metrics.selection import ACTION_FRAMES, LEAST_STEPS, action_labels, error_statistics_by_group

FAMILY = "action"  # the group of these metrics, by which users name it


def errors_of_counted_steps(
    case: Case, track: PoseTrack, truth: TruePoseTrack, actions: ActionTrack, rule: str
) -> tuple[PathSteps, list[str]]:
    """The errors of all steps with keys and poses, and what each was asked to do; upstream of the first 97 frames."""
    upstream = is_upstream_rule(rule)
    if upstream and (truth.source != "colmap" or len(truth.frame) < ACTION_FRAMES):
        given = f"found {len(truth.frame)} poses from {truth.source}"
        raise NoScore("refused", f"upstream needs images.txt with {ACTION_FRAMES} rows or runs ViPE; {given}")
    both = shared_camera_paths(case, track, truth)
    mark = int(case.annotations["mark_time"])
    action_frames = set((actions.frame - mark).tolist())
    most = ACTION_FRAMES if upstream else len(both[1])
    steps = sum(1 for frame in both[1].times[: most - 1].tolist() if int(frame) in action_frames)
    if steps < 1:
        raise NoScore("mismatch", "the action file has no row for the predicted frames")
    errors = step_errors(both[0].take(slice(steps + 1)), both[1].take(slice(steps + 1)))
    counts = np.array([int(frame) in action_frames for frame in errors.frame], dtype=bool)
    if upstream:
        counts &= errors.rotation <= 179
        if counts.sum() < LEAST_STEPS:
            raise NoScore("too_short", f"upstream needs at least {LEAST_STEPS} steps; there are {counts.sum()}")
    names = action_labels(actions, (errors.frame[counts] + mark).tolist())
    translation = None if errors.translation is None else errors.translation[counts]
    facts = {**errors.facts, "poses_from": track.source, "true_poses": truth.source, "steps": int(counts.sum())}
    return PathSteps(errors.frame[counts], translation, errors.rotation[counts], facts), names


# Files that name no estimator are taken for ViPE's: the public evaluator's images.txt does not name it either.
VIPE = PublishedMaker("ViPE", "poses_from", others=("odometry", "mapanything", "vggt", "da3"))


def register_action_metric(part: str, component: str, called: str, **card: Any) -> Metric:
    """The metric of one part of a step's error: its way or its turn."""

    def score_action_errors(
        case: Case, track: PoseTrack, truth: TruePoseTrack, actions: ActionTrack, *, rule: str = "corrected"
    ) -> Score | Unscored:
        errors, labels = errors_of_counted_steps(case, track, truth, actions, rule)
        values = getattr(errors, part)
        if values is None:
            return Unscored(TRUE_STILL, facts=errors.facts)
        facts = {**errors.facts, "groups": error_statistics_by_group(values, labels, rule)}
        return Score(float(values.mean()), units=Series(frame=errors.frame, value=values), facts=facts)

    return metric(
        id=f"mind_action_{part}", version=1, title=f"Action: {called} error", higher_is_better=False,
        needs=(Case, PoseTrack, TruePoseTrack, ActionTrack), suites=("mind",),
        paper="MIND (arXiv 2602.08025)", published_by=(VIPE,), **card,
        doc=f"Mean error of the {component} of each step; the facts hold it by group and by action.",
    )(score_action_errors)  # fmt: skip


action_translation = register_action_metric(
    "translation", "way", "step", unit="metres", range=(0, None), upstream="action.__overall__.rpe_trans_mean",
    responds_to=("disobeyed keys", "frozen camera"), blind_to=("content", "scale of the path"),
)  # fmt: skip
action_rotation = register_action_metric(
    "rotation", "turn", "turn", unit="degrees", range=(0, 180), upstream="action.__overall__.rpe_rot_mean_deg",
    responds_to=("disobeyed keys", "frozen camera", "turn cut short"), blind_to=("content",),
)  # fmt: skip
