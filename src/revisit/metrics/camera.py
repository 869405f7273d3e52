"""Camera: what was asked of it, what it did, and whether it followed the true path (docs/poses.md).

The requested path comes from a script or from a file.

A path estimated from pictures has its own world and unit, so it is aligned with the true one (Umeyama, Sim(3)) before
lengths are compared. A rotation and translation of the world cancel in steps (RPE), so only the scale of the alignment
matters there, and rotations need none at all. A clip whose camera rests has no scale, but needs none: its error is the
requested step. If the true camera rests, the scale is undetermined: Unscored. `CameraPath` (what the picture shows) has
turns and no lengths: only its rotations are compared.

The observed camera comes from a pose file if one was given, and is otherwise estimated from the video. Odometry knows
rotations but no distances; a metric that needs distances has to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import Case, Metric, NoScore, Reason, Score, Series, Unscored, UsageError, derived, metric
from revisit.evidence.camera import CameraPath, ObservedCamera, PoseTrack, RequestedCamera, TruePoseTrack
from revisit.evidence.frames import FrameFacts
from revisit.geometry import trajectory_errors
from revisit.geometry.alignment import SAME_PLACE, STILL, TrajectoryAlignment, align, apply, match_by_time
from revisit.geometry.camera_script import Step, camera_path_of_length, parse_script
from revisit.geometry.poses import Scale, Trajectory, make_trajectory, resample
from revisit.geometry.rotations import angle_between_rotations, scale_turns_from_first

ODOMETRY = "odometry"
SIDEWAYS = {"truck", "pan"}  # moves along the camera's own right
STILL_TURN, STILL_WAY = 0.01, 1e-6  # degrees and units of a path: what single precision leaves of a camera that rests
LEAST_RELIABLE = 0.6  # of the frames, as for the camera's turning: with more gaps the steps are a guess
ONE_POSE = Reason("too_short", "fewer than two frames have a pose in both paths, so nothing can be compared")
NO_WAY = Reason("at_rest", "the camera never changes position, so scale and rotation are undetermined")
TRUE_STILL = Reason("at_rest", "the true camera never changes position, so the scale is undetermined")


@dataclass(frozen=True)
class PathSteps:
    """Errors of the motion from each frame to the next; no translation where the scale is not determined."""

    frame: np.ndarray  # (M,) the frame a step begins at
    translation: np.ndarray | None  # (M,)
    rotation: np.ndarray  # (M,) degrees
    facts: Mapping[str, object]


def shared_camera_paths(case: Case, track: PoseTrack, truth: TruePoseTrack) -> tuple[Trajectory, Trajectory]:
    """Both camera paths at the frames they share, numbered as the clip's."""
    origin = int(case.annotations.get("true_poses_from", 0))
    both = []
    for record, first in ((track, 0), (truth, origin)):
        later = record.frame >= first
        if not later.any():
            raise NoScore("mismatch", f"the pose file ends before frame {first}, where the clip begins")
        scale: Scale = "metres" if record.metres else "unknown"
        both.append(make_trajectory(record.c2w[later], record.frame[later] - first, scale=scale))
    if len(np.intersect1d(both[0].times, both[1].times)) < 2:
        raise NoScore(ONE_POSE)
    return match_by_time(both[0], both[1], tolerance=0.5)


def align_estimate(
    estimate: Trajectory, reference: Trajectory
) -> tuple[Trajectory, TrajectoryAlignment, dict[str, object]]:
    """The estimate in the world of the reference, how it got there, and what to know about that."""
    alignment = align(estimate, reference, "sim3")
    aligned = apply(alignment, estimate)
    facts: dict[str, object] = {
        "scale": None if alignment.degenerate == STILL else alignment.scale,
        "degenerate": alignment.degenerate,
        "mirrored": alignment.mirrored,
        "agreement": alignment.agreement,
        "true_path_length": trajectory_errors.path_length(reference),
        "path_length": trajectory_errors.path_length(aligned),
        "unit": "metres" if reference.scale == "metres" else "that of the true path",
    }
    return aligned, alignment, facts


def step_errors(estimate: Trajectory, reference: Trajectory) -> PathSteps:
    """Relative errors over one frame; gaps in either file are left out."""
    aligned, alignment, facts = align_estimate(estimate, reference)
    start = np.flatnonzero(np.diff(reference.times) == 1)
    errors = trajectory_errors.relative_errors(aligned, reference, (start, start + 1))
    open_scale = alignment.degenerate == STILL and is_path_at_rest(reference)
    return PathSteps(
        reference.times[start].astype(int), None if open_scale else errors.translation, errors.rotation, facts
    )


def is_path_at_rest(path: Trajectory) -> bool:
    """Whether all centres of a path are in one place, up to what remains of doubles after a subtraction."""
    return bool(np.ptp(path.centres, axis=0).max() <= SAME_PLACE * max(1.0, np.abs(path.centres).max()))


def register_path_metric(**card: Any) -> Callable[[Callable[[Trajectory, Trajectory], Score | Unscored]], Metric]:
    """Register a function of the estimated and the true path, at the frames that they share, as a metric."""

    def register(fn: Callable[[Trajectory, Trajectory], Score | Unscored]) -> Metric:
        def score_shared_paths(case: Case, track: PoseTrack, truth: TruePoseTrack) -> Score | Unscored:
            return fn(*shared_camera_paths(case, track, truth))

        return metric(**{"version": 1, "doc": fn.__doc__, **card})(score_shared_paths)

    return register


@register_path_metric(
    id="camera_ate", title="Camera path error", unit="metres", range=(0, None), higher_is_better=False,
    suites=("mind",), paper="Sturm et al. 2012",
    responds_to=("wrong camera", "drift"), blind_to=("content", "scale of the path", "rotation in place"),
)  # fmt: skip
def camera_ate(estimate: Trajectory, reference: Trajectory) -> Score | Unscored:
    """Root mean square distance between the camera centres, after the best similarity (ATE)."""
    aligned, alignment, facts = align_estimate(estimate, reference)
    if alignment.degenerate == STILL:
        return Unscored(NO_WAY, facts=facts)
    errors = trajectory_errors.absolute_errors(aligned, reference).translation
    units = Series(frame=reference.times.astype(int), value=errors)
    return Score(trajectory_errors.statistics(errors).rmse, raw=float(errors.mean()), units=units, facts=facts)


def register_step_error_metric(part: str, **card: Any) -> Metric:
    """The metric of one part of the error of the motion from each frame to the next: its way or its turn."""

    def score_steps(estimate: Trajectory, reference: Trajectory) -> Score | Unscored:
        steps = step_errors(estimate, reference)
        errors = getattr(steps, part)
        if errors is None:
            return Unscored(TRUE_STILL, facts=steps.facts)
        if not len(steps.frame):
            return Unscored(ONE_POSE)
        return Score(float(errors.mean()), units=Series(frame=steps.frame, value=errors), facts=steps.facts)

    return register_path_metric(id=f"camera_rpe_{part}", higher_is_better=False, paper="Sturm et al. 2012", **card)(
        score_steps
    )


camera_rpe_translation = register_step_error_metric(
    "translation", title="Step error", unit="metres", range=(0, None),
    responds_to=("wrong camera", "frozen camera"), blind_to=("content", "slow drift", "scale of the path"),
    doc="Mean error of the way from each frame to the next (RPE), after the best similarity.",
)  # fmt: skip
camera_rpe_rotation = register_step_error_metric(
    "rotation", title="Turn error", unit="degrees", range=(0, 180),
    responds_to=("wrong camera", "frozen camera", "turn cut short"), blind_to=("content", "slow drift"),
    doc="Mean error of the turn from each frame to the next (RPE); needs no alignment.",
)  # fmt: skip


@register_path_metric(
    id="camera_path_length", title="Path length against the true one", unit="ratio", range=(0, None), suites=("mind",),
    responds_to=("jitter", "frozen camera"), blind_to=("content", "direction"),
)  # fmt: skip
def camera_path_length(estimate: Trajectory, reference: Trajectory) -> Score | Unscored:
    """Length of the camera's way after the best similarity, over the length of the true way."""
    aligned, _, facts = align_estimate(estimate, reference)
    if is_path_at_rest(reference):
        return Unscored(TRUE_STILL, facts=facts)
    length = trajectory_errors.path_length(aligned)
    return Score(length / trajectory_errors.path_length(reference), raw=length, facts=facts)


@register_path_metric(
    id="camera_direction", title="Direction of travel", unit="score", range=(-1, 1), higher_is_better=True,
    suites=("mind",), responds_to=("wrong direction",), blind_to=("content", "speed", "frozen camera"),
)  # fmt: skip
def camera_direction(estimate: Trajectory, reference: Trajectory) -> Score | Unscored:
    """Mean cosine between the directions of travel, each as its camera sees it; steps at rest are left out."""
    agreement = trajectory_errors.direction_agreement(estimate, reference)
    if not len(agreement.cosine):
        return Unscored("at_rest", "in every step one of the two cameras rests, so no directions can be compared")
    units = Series(frame=reference.times[agreement.start].astype(int), value=agreement.cosine)
    return Score(float(agreement.cosine.mean()), units=units, facts={"resting": agreement.resting})


@metric(
    id="camera_turn_seen", version=1, title="Rotation error (estimated from the video)", unit="degrees", range=(0, 180),
    higher_is_better=False, needs=(Case, CameraPath, TruePoseTrack), suites=("mind",), paper="Sturm et al. 2012",
    responds_to=("wrong camera", "frozen camera", "turn cut short"), blind_to=("content", "distance travelled"),
)  # fmt: skip
def camera_turn_seen(case: Case, path: CameraPath, truth: TruePoseTrack) -> Score | Unscored:
    """Mean error of the turns that the picture shows, from each observed frame to the next.

    Rests on lite.odometry, whose field of view is often assumed: a description to fall back on where no file of
    poses was given. Its steps have no lengths, so translation is not compared.
    """
    if len(path.index) < 2:
        return Unscored(ONE_POSE)
    if float(path.reliable.mean()) < LEAST_RELIABLE:
        return Unscored(
            "not_followed", f"the camera could be followed in only {path.reliable.mean():.0%} of the frames"
        )
    origin = int(case.annotations.get("true_poses_from", 0))
    rows = {int(frame) - origin: row for row, frame in enumerate(truth.frame)}
    shared = np.array([k for k, frame in enumerate(path.index.tolist()) if frame in rows], dtype=int)
    pairs = [(i, j) for i, j in pairwise(shared.tolist()) if path.reliable[j]]
    if not pairs:
        return Unscored("no_overlap", "fewer than two observed frames have true poses, so nothing can be compared")
    turns = np.stack([path.rotation[i].T @ path.rotation[j] for i, j in pairs])
    at = [(rows[int(path.index[i])], rows[int(path.index[j])]) for i, j in pairs]
    true_turns = np.stack([truth.c2w[i, :3, :3].T @ truth.c2w[j, :3, :3] for i, j in at])
    errors = angle_between_rotations(true_turns, turns)
    facts = {
        "field_of_view": round(path.field_of_view, 1),
        "field_of_view_estimated": path.field_of_view_estimated,
        "frames_per_step": float(np.diff(path.index[shared]).mean()),
    }
    return Score(float(errors.mean()), units=Series(frame=path.index[[i for i, _ in pairs]], value=errors), facts=facts)


@derived(makes=ObservedCamera, needs=(), optional=(PoseTrack, CameraPath), version=3)
def derive_observed_camera(track: PoseTrack | None, path: CameraPath | None) -> ObservedCamera | Unscored:
    """The clip's camera: as its file of poses says, or else as the picture shows its turns."""
    if track is not None:
        turns, centres = track.c2w[:, :3, :3], track.c2w[:, :3, 3]
        if ODOMETRY in track.source:  # kept in a file, it still knows no ways
            return ObservedCamera(track.frame, turns, None, ODOMETRY)
        return ObservedCamera(track.frame, turns, centres, track.source)
    if path is None:
        return Unscored(
            "no_camera", "no pose file was given, and the observer set has no observer that tracks the camera"
        )
    share = float(path.reliable.mean()) if len(path.index) else 0.0
    if share < LEAST_RELIABLE:
        return Unscored(
            "not_followed",
            f"the camera could be tracked in only {share:.0%} of the frames (too little texture, or cuts); a pose "
            "file from `revisit camera poses` may help",
        )
    sure = path.reliable  # where the path was lost nobody knows where the camera looked
    field = path.field_of_view, path.field_of_view_estimated
    return ObservedCamera(path.index[sure], path.rotation[sure], None, ODOMETRY, *field)


@dataclass(frozen=True, eq=False)
class CameraRequest:
    """What a script asks of a camera."""

    steps: tuple[Step, ...]
    kind: str  # yaw | sideways | static | other

    def requested_poses(self, frames: int, rule: str = "corrected") -> np.ndarray:
        """Camera-to-world poses over so many frames; the public code moves along the axes of the first view."""
        return camera_path_of_length(self.steps, frames, axes="first_view" if rule == "upstream" else "heading")


def camera_request_of_case(case: Case) -> CameraRequest | Unscored:
    """The request of a case, or why there is none."""
    if not case.camera:
        return Unscored("no_camera", "no camera script or path was given for this case")
    try:
        steps = parse_script(case.camera)
    except UsageError as error:
        return Unscored("unreadable", f"the camera script cannot be read: {error}")
    kinds = {move.kind for step in steps for move in step.moves}
    kind = "static" if not kinds else "yaw" if "yaw" in kinds else "sideways" if kinds <= SIDEWAYS else "other"
    return CameraRequest(steps, kind)


@derived(makes=RequestedCamera, needs=(Case, FrameFacts), optional=(TruePoseTrack,), version=1)
def derive_requested_camera(case: Case, frames: FrameFacts, track: TruePoseTrack | None) -> RequestedCamera | Unscored:
    """What the camera was asked to do in each frame: the path that came as a file, else that of the script.

    A file may hold a pose for every few frames only; the path between them is interpolated.
    """
    count = frames.frame_count
    if count < 2:
        return Unscored("too_short", f"a path needs at least two frames; the clip has {count}")
    if track is None or len(track.c2w) < 2:
        request = camera_request_of_case(case)
        if isinstance(request, Unscored):
            return request
        steps = sum(step.frames for step in request.steps)
        return RequestedCamera(request.requested_poses(count), request.kind, (steps, steps + 1))
    poses = track.c2w.copy()
    poses[:, :3, :3] = scale_turns_from_first(poses[:, :3, :3], 1 / float(case.annotations.get("turn_gain") or 1))
    start = poses[0, :3, 3].copy()
    poses[:, :3, 3] = start + (poses[:, :3, 3] - start) / float(case.annotations.get("way_gain") or 1)
    path = resample(make_trajectory(poses), np.linspace(0, len(poses) - 1, count)).c2w
    return RequestedCamera(path, kind_of_path(path), (len(poses),), track.c2w)


def kind_of_path(path: np.ndarray) -> str:
    """What a path (N, 4, 4) asks for, as the kind of a script."""
    translation = (path[:, :3, 3] - path[0, :3, 3]) @ path[0, :3, :3]
    if abs(value_farthest_from_zero(relative_yaw(path[:, :3, :3]))) > STILL_TURN:
        return "yaw"
    if float(angle_between_rotations(path[0, :3, :3], path[:, :3, :3]).max()) > STILL_TURN:
        return "other"
    sideways, other_axes = float(np.abs(translation[:, 0]).max()), float(np.abs(translation[:, 1:]).max())
    return "static" if max(sideways, other_axes) < STILL_WAY else "sideways" if other_axes < STILL_WAY else "other"


def relative_yaw(rotation: np.ndarray) -> np.ndarray:
    """Degrees to the right of the first view, -180 to 180."""
    turned = rotation[0].T @ rotation
    return np.degrees(np.arctan2(turned[:, 0, 2], turned[:, 0, 0]))


def value_farthest_from_zero(values: np.ndarray) -> float:
    """The value farthest from 0, with its sign."""
    return float(values[np.argmax(np.abs(values))])
