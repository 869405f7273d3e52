"""Camera controllability of MemoBench: did the camera turn as the true one did (docs/memobench-metrics.md)?

    100 * max(0, 1 - E / max(Theta, 10 degrees)),  E = root mean square of e_i,  Theta = net true rotation   (Eq. 7)

with e_i the angle between the two cameras in frame i, laid onto each other in the first. The path decides the scale,
and a camera that never moves scores 42 on an even turn; so the facts hold what a resting camera would get
(`static_score`), both by the way turned (`path_score`), and `better_than_static`. `smooth` is set by `paper` only: that
paper smooths the poses of real clips, which are an estimator's, and does not tell its filter; ours is a Gaussian over
rotations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Case, InvalidEvidence, PublishedMaker, Score, Series, Unscored
from revisit.evidence.camera import ObservedCamera, TruePoseTrack
from revisit.evidence.frames import FrameFacts
from revisit.geometry.rotations import angle_between_rotations, smooth_rotations
from revisit.suites.memobench.metrics import rules

LEAST_BUDGET = 10.0  # degrees, theta_0
MOMENTS = 25  # of the true path whose turns are added, so that the shake of single poses does not add up
ESTIMATED = "Real"  # the split whose true poses are estimated
RESTING = 1.0  # degrees: a true camera that turns less gives nothing to be better at


@dataclass(frozen=True)
class RotationErrors:
    """Rotation errors of a camera against the true one. Angles are degrees."""

    errors: np.ndarray  # (N,) of each frame, after both are aligned in the first
    ate: float  # their root mean square
    steps: float  # mean error of the turns from frame to frame
    net: float  # angle between the first and the last true view
    way: float  # true turns added up
    farthest: float  # the largest angle from the first true view

    def score_for_total_turn(self, total_degrees: float) -> float:
        """Eq. 7 with a total rotation of the true camera."""
        return max(0.0, 1 - self.ate / max(total_degrees, LEAST_BUDGET))


def rotation_errors_against_truth(rotations: np.ndarray, true: np.ndarray) -> RotationErrors:
    """Errors of rotations (N, 3, 3) against the true ones (N, 3, 3) of the same frames."""
    aligned = true[0] @ rotations[0].T @ rotations
    errors = angle_between_rotations(true, aligned)
    turns = [np.swapaxes(path[:-1], 1, 2) @ path[1:] for path in (true, rotations)]
    moments = true[np.unique(np.rint(np.linspace(0, len(true) - 1, MOMENTS)).astype(int))]
    return RotationErrors(
        errors=errors,
        ate=float(np.sqrt(np.mean(errors**2))),
        steps=float(angle_between_rotations(*turns).mean()),
        net=float(angle_between_rotations(true[0], true[-1])),
        way=float(angle_between_rotations(moments[:-1], moments[1:]).sum()),
        farthest=float(angle_between_rotations(true[0], true).max()),
    )


@rules.percent_metric(
    id="memo_camera", version=2, title="Camera controllability",
    needs=(Case, FrameFacts, TruePoseTrack, ObservedCamera), paper=f"{rules.PAPER} eq. 7",
    upstream="CameraControllability", responds_to=("wrong camera", "turn cut short", "camera drift"),
    blind_to=("content", "distance travelled", "frozen camera on a path that turns evenly"),
    published_by=(PublishedMaker("MapAnything", "poses_from", others=("odometry", "vggt", "vipe", "da3")),),
)  # fmt: skip
def camera_controllability(
    case: Case,
    frames: FrameFacts,
    truth: TruePoseTrack,
    camera: ObservedCamera,
    *,
    rule: str = "corrected",
    smooth: float = 0.0,
) -> Score | Unscored:
    """100 * (1 - rotation error / net true rotation), not below 0; the facts hold what a resting camera would score.

    Facts: error (`ate_deg`), mean error of the turns between frames, net true rotation, the way turned, and the scores
    that the module's header explains.
    """
    if not np.allclose(camera.rotation @ np.swapaxes(camera.rotation, 1, 2), np.eye(3), atol=1e-3):
        raise InvalidEvidence("ObservedCamera.rotation must hold rotation matrices: orthonormal, camera to world")
    rules.check_rule(rule)
    count = frames.frame_count
    rows = np.flatnonzero(camera.index < count)
    if len(rows) < 2 or len(truth.c2w) < 2:
        return Unscored(
            "too_short",
            f"a path needs at least two poses; {len(rows)} of the clip's {count} frames have one, and the true camera "
            f"has {len(truth.c2w)}",
        )
    index = camera.index[rows]
    raw = truth.c2w[:, :3, :3]
    path = smooth_rotations(raw, smooth) if case.subset == ESTIMATED else raw
    # The true poses of the clip's frames are the nearest in share of the length.
    true = path[np.minimum(np.rint(index * (len(raw) - 1) / max(count - 1, 1)).astype(int), len(raw) - 1)]
    errors = rotation_errors_against_truth(camera.rotation[rows], true)
    static = rotation_errors_against_truth(np.broadcast_to(np.eye(3), true.shape), true)
    score = rules.round_if_upstream_rule(errors.score_for_total_turn(errors.net), 4, rule)
    facts: dict[str, object] = {
        "controllability": score,
        "static_score": rules.scale_to_percent(static.score_for_total_turn(errors.net), 0, 1, rule),
        "path_score": rules.scale_to_percent(errors.score_for_total_turn(errors.way), 0, 1, rule),
        "static_path_score": rules.scale_to_percent(static.score_for_total_turn(errors.way), 0, 1, rule),
        "better_than_static": 1 - errors.ate / static.ate if static.ate > RESTING else None,
        "ate_deg": rules.round_if_upstream_rule(errors.ate, 3, rule),
        "step_error_deg": rules.round_if_upstream_rule(errors.steps, 3, rule),
        "true_rotation_deg": rules.round_if_upstream_rule(errors.net, 3, rule),
        "true_way_deg": errors.way,
        "true_farthest_deg": errors.farthest,
        "poses": len(rows),
        "poses_from": camera.source,
        "true_poses_from": truth.source,
    }
    if path is not raw:
        moved = angle_between_rotations(raw, path)
        facts["true_poses_smoothed"] = {
            "frames": smooth,
            "moved_deg": float(np.sqrt(np.mean(moved**2))),
            "most_deg": float(moved.max()),
        }
    if camera.field_of_view:
        facts |= {"field_of_view": camera.field_of_view, "field_of_view_estimated": camera.field_of_view_estimated}
    return Score(rules.scale_to_percent(score, 0, 1, rule), errors.ate, Series(frame=index, value=errors.errors), facts)
