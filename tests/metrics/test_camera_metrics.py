"""Camera paths against true ones: perfect, degenerate, malformed, and against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from revisit.core import Case, Clip, InvalidEvidence, Score, Unscored
from revisit.evidence.camera import CameraPath, PoseTrack, TruePoseTrack
from revisit.geometry.rotations import rotation_from_axis_angle, rotation_from_yaw_pitch
from revisit.metrics import camera


def case(**annotations):
    return Case(id="s@m", suite="mind", model="m", sample="s", clip=Clip(Path("a.mp4")), annotations=annotations)


def bent_path(n=20, turn=2.0, step=0.1):
    """A walk on a curve: `turn` degrees and `step` metres a frame."""
    poses, at, yaw = [], np.zeros(3), 0.0
    for _ in range(n):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotation_from_yaw_pitch(yaw, 0), at
        poses.append(pose)
        at, yaw = at + step * pose[:3, 2], yaw + turn
    return np.stack(poses)


def elsewhere(poses, scale=3.0):
    moved = poses.copy()
    turn = rotation_from_axis_angle((1, 1, 0), 70)
    moved[:, :3, :3] = turn @ poses[:, :3, :3]
    moved[:, :3, 3] = scale * poses[:, :3, 3] @ turn.T + 5
    return moved


def tracks(estimate, truth, first=0):
    return (
        PoseTrack(np.arange(len(estimate)), estimate, False, "vipe"),
        TruePoseTrack(np.arange(len(truth)) + first, truth, True, "unreal"),
    )


METRICS = (camera.camera_ate, camera.camera_rpe_translation, camera.camera_rpe_rotation, camera.camera_path_length,
           camera.camera_direction)  # fmt: skip


def test_the_true_path_in_another_world_is_perfect():
    truth = bent_path()
    both = tracks(elsewhere(truth), truth)
    values = [metric(case(), *both).value for metric in METRICS]
    assert values == pytest.approx([0, 0, 0, 1, 1], abs=1e-9)
    assert camera.camera_ate(case(), *both).facts["scale"] == pytest.approx(1 / 3)


def test_true_frames_count_from_where_the_case_says():
    truth = bent_path(30)
    both = tracks(elsewhere(truth[10:]), truth)
    assert camera.camera_ate(case(true_poses_from=10), *both).value == pytest.approx(0, abs=1e-9)
    late = camera.camera_ate(case(true_poses_from=99), *both)
    assert isinstance(late, Unscored) and late.kind == "mismatch"


def test_weaker_turns_and_shorter_steps_have_their_closed_forms():
    truth, weaker = bent_path(turn=2.0), bent_path(turn=1.8)
    assert camera.camera_rpe_rotation(case(), *tracks(weaker, truth)).value == pytest.approx(0.2, abs=1e-9)
    straight, slow = bent_path(turn=0), bent_path(turn=0)
    slow[10:, :3, 3] = slow[9, :3, 3]  # stops halfway
    found = camera.camera_rpe_translation(case(), *tracks(slow, straight))
    scale = found.facts["scale"]
    expected = [abs(1 - scale) * 0.1] * 9 + [0.1] * 10
    assert found.units["value"] == pytest.approx(expected, abs=1e-9)


def test_a_camera_that_rests_is_charged_the_steps_it_did_not_make():
    truth = bent_path()
    still = np.tile(truth[:1], (20, 1, 1))
    both = tracks(still, truth)
    assert camera.camera_rpe_translation(case(), *both).value == pytest.approx(0.1)
    assert camera.camera_rpe_rotation(case(), *both).value == pytest.approx(2.0)
    assert camera.camera_path_length(case(), *both).value == 0
    assert camera.camera_ate(case(), *both).kind == "at_rest"
    assert camera.camera_direction(case(), *both).kind == "at_rest"


def test_a_true_camera_that_rests_leaves_the_scale_open():
    truth = np.tile(np.eye(4), (20, 1, 1))
    both = tracks(bent_path(), truth)
    for metric in (camera.camera_rpe_translation, camera.camera_path_length):
        assert metric(case(), *both).reason == camera.TRUE_STILL
    assert camera.camera_rpe_rotation(case(), *both).value == pytest.approx(2.0)


def test_gaps_are_not_steps():
    truth = bent_path()
    there = np.r_[0:8, 12:20]
    track = PoseTrack(there, truth[there], False, "colmap")
    found = camera.camera_rpe_rotation(case(), track, tracks(truth, truth)[1])
    assert found.units["frame"].tolist() == [*range(7), *range(12, 19)]


def test_one_pose_and_malformed_tracks():
    truth = bent_path()
    assert camera.camera_ate(case(), *tracks(truth[:1], truth)).kind == "too_short"
    with pytest.raises(InvalidEvidence, match="it must be"):
        PoseTrack(np.arange(3), truth, False, "colmap")
    mirrored = truth * np.array([-1, 1, 1, 1])
    with pytest.raises(InvalidEvidence, match="mirrored"):
        camera.camera_ate(case(), *tracks(mirrored, truth))


def seen(poses, reliable=None):
    n = len(poses)
    rotation = np.swapaxes(poses[:1, :3, :3], 1, 2) @ poses[:, :3, :3]
    return CameraPath(
        index=np.arange(n), time=np.arange(n) / 24, rotation=rotation, direction=np.full((n, 3), np.nan),
        inliers=np.full(n, 50), quality=np.ones(n), reliable=np.ones(n, bool) if reliable is None else reliable,
        field_of_view=60.0, field_of_view_estimated=False,
    )  # fmt: skip


def test_turns_as_seen():
    truth = bent_path()
    both = tracks(truth, truth)[1]
    assert camera.camera_turn_seen(case(), seen(truth), both).value == pytest.approx(0, abs=1e-9)
    weaker = camera.camera_turn_seen(case(), seen(bent_path(turn=1.8)), both)
    assert isinstance(weaker, Score) and weaker.value == pytest.approx(0.2)
    lost = np.zeros(20, bool)
    assert camera.camera_turn_seen(case(), seen(truth, lost), both).kind == "not_followed"
