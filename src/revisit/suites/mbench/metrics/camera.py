"""Camera interaction of MBench: does the camera move as it was told (docs/mbench-metrics.md)?

From each pose to the next the camera's motion as it sees it itself (OpenCV: x right, y down, z ahead) is
    v = R_i^T (C_{i+1} - C_i) / depth of the scene,    w = axis-angle of R_i^T R_{i+1}, in radians
and its cosine with the ideal motion is taken (eq. 16, 17): left is w_y = -1, right +1, forward v_z = +1, backward -1.
`paper` computes with world-to-camera matrices (v = t_{i+1} - t_i, w of R_{i+1} R_i^T), of which left is +1.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Reason, Score, Series, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.geometry.fold_pairs import frame_numbers_of_poses, pairwise_pose_distances
from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import axis_angle_of_rotation
from revisit.suites.mbench.evidence import GeometryTrack
from revisit.suites.mbench.metrics.actions import IDEAL, WAIT, parse_requested_motion
from revisit.suites.mbench.metrics.rules import PAPER, check_rule, first_median_depth_or_one, score_metric

SHORT = 0.1  # of the median step: a pause
AT_REST = 1e-5  # radians or depths a step: what rounding leaves of no motion
FAST = 90  # percentile of the steps of a clip that is told to wait: how fast it is when it moves
RESTS = 0.1  # radians or depths from the first pose, over which a camera that should rest loses 1/e: about 5 degrees


def motion_between_poses(c2w: np.ndarray, length_unit: float, literal: bool = False) -> np.ndarray:
    """(N-1, 6) motion from each pose to the next: translation, then rotation in radians."""
    poses = invert_rigid_poses(c2w) if literal else c2w
    rotation, at = poses[:, :3, :3], poses[:, :3, 3]
    step = np.diff(at, axis=0)
    if literal:
        between = rotation[1:] @ np.swapaxes(rotation[:-1], 1, 2)
    else:
        step = np.einsum("nji,nj->ni", rotation[:-1], step) / length_unit
        between = np.swapaxes(rotation[:-1], 1, 2) @ rotation[1:]
    turns = [axis * np.radians(degrees) for axis, degrees in map(axis_angle_of_rotation, between)]
    return np.hstack([step, np.array(turns).reshape(-1, 3)])


def best_phase_switches(
    values: np.ndarray, times: np.ndarray, switches: np.ndarray, tolerance_share: float
) -> np.ndarray:
    """Where each further phase begins: as asked, or at the best moment within the tolerance around that."""
    span = times[-1] - times[0]
    chosen_switches = switches.copy()
    for k in range(len(switches)):
        after = chosen_switches[k - 1] if k else -np.inf
        before = switches[k + 1] if k + 1 < len(switches) else np.inf
        near = times[(np.abs(times - switches[k]) <= tolerance_share * span) & (times > after) & (times < before)]
        if len(near):
            inside = (times >= after) & (times < before)
            gains = [np.where(times < c, values[:, k], values[:, k + 1])[inside].sum() for c in near]
            chosen_switches[k] = near[int(np.argmax(gains))]
    return chosen_switches


@score_metric(
    id="mb_camera_interaction", version=2, title="Camera follows its action", needs=(Case, FrameFacts, GeometryTrack),
    paper=f"{PAPER} eq. 16-17", upstream="camera_interaction",
    responds_to=("frozen camera", "wrong direction", "no return"),
    blind_to=("content", "speed and size of the motion", "pauses"),
)  # fmt: skip
def camera_interaction(
    case: Case, frames: FrameFacts, track: GeometryTrack, *, rule: str = "corrected", tolerance: float = 0.0
) -> Score | Unscored:
    """Mean cosine between the camera's motion and the one asked for, at least 0.

    Facts: share of steps that move, cosine of each direction, total turn in degrees (right is positive), and the
    other way of putting a cosine on 0 to 1, (1 + cosine) / 2.
    """
    literal = check_rule(rule) == "paper"
    action = str(case.annotations.get("action") or case.camera)
    requested = parse_requested_motion(action, case.annotations.get("motion"))
    if isinstance(requested, Reason):
        return Unscored(requested)
    if track.refused:
        return Unscored("unreadable", track.refused)
    if len(track.c2w) < 2:
        return Unscored("too_short", "a motion takes two poses")
    count = frames.frame_count or len(track.c2w)
    numbers, note = frame_numbers_of_poses(len(track.c2w), track.frame, count)
    depth = first_median_depth_or_one(track)
    facts: dict[str, object] = {
        "action": action, "convention": track.convention, "convention_said_by": track.found, "poses_by": track.maker,
        "note": note,
    }  # fmt: skip
    if requested.rests_throughout:
        distance, turn = pairwise_pose_distances(track.c2w, depth)
        apart = distance[0] + np.radians(turn[0])
        units = Series(frame=numbers, value=np.exp(-apart / RESTS), raw=apart)
        return Score(float(np.exp(-apart.max() / RESTS)), raw=float(apart.max()), units=units, facts=facts)
    motion = motion_between_poses(track.c2w, depth, literal)
    size = np.linalg.norm(motion, axis=1)
    words = [word for word, _ in requested.phases]
    usual = float(np.percentile(size, FAST) if requested.waits or WAIT in words else np.median(size))
    # The paper counts every step; where it waits for a time that nobody tells, no step of the wait can be counted.
    moves = size > (0 if literal and not requested.waits else max(AT_REST, SHORT * usual))
    own = motion_between_poses(track.c2w, depth)
    facts |= {
        "response_rate": float(moves.mean()),
        "total_turn_degrees": float(np.degrees(own[:, 4].sum())),
        "turned_degrees": float(np.degrees(np.abs(own[:, 4]).sum())),
    }
    if not moves.any():
        return Score(0.0, raw=0.0, facts={**facts, "note": "the camera rests"})
    at = (numbers[:-1] + numbers[1:]) / 2
    unit = motion / np.maximum(size, 1e-12)[:, None]
    pace = float(np.median(size[moves]))
    still = 1 - np.minimum(size / pace, 1)
    unit *= -1 if literal else 1  # world-to-camera matrices tell a direction the other way round
    values = np.stack([still if word == WAIT else unit[:, IDEAL[word][0]] * IDEAL[word][1] for word in words], axis=1)
    rests = np.array([word == WAIT for word in words])
    scored_steps = (moves[:, None] & ~rests) | (rests & (not literal))
    begins = np.cumsum([share for _, share in requested.phases])[:-1] * (count - 1)  # frames, not whole numbers
    switches = best_phase_switches(np.where(scored_steps, values, 0), at, begins, tolerance)
    phase = np.searchsorted(switches, at, side="right")
    value, counts = values[np.arange(len(at)), phase], scored_steps[np.arange(len(at)), phase]
    if not counts.any():
        return Score(0.0, raw=0.0, facts={**facts, "note": "the camera moves in none of the phases in which it should"})
    mean = float(value[counts].mean())
    parts = {f"{k + 1} {word}": value[counts & (phase == k)] for k, word in enumerate(words)}
    by = {name: float(part.mean()) if len(part) else None for name, part in parts.items()}
    facts |= {"cosine": by, "half_of_one_plus_cosine": (1 + mean) / 2}
    if len(switches):
        facts["switch_frame"] = switches.tolist() if len(switches) > 1 else float(switches[0])
    if requested.waits:
        facts["note"] = "; ".join(filter(None, [note, "how long to wait is not declared, so waiting is not scored"]))
    units = Series(frame=numbers[:-1][counts], other=numbers[1:][counts], value=value[counts], size=size[counts])
    return Score(max(0.0, mean), raw=mean, units=units, facts=facts)
