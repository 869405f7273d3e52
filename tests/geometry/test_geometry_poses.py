"""Trajectories, the conventions they come in, and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.core import InvalidEvidence
from revisit.geometry.poses import (
    InvalidPoses,
    from_opengl,
    from_unreal,
    from_w2c,
    invert_rigid_poses,
    make_trajectory,
    resample,
    to_unreal,
)
from revisit.geometry.rotations import (
    angle_between_rotations,
    quaternions_of_rotations,
    rotation_from_axis_angle,
    rotation_from_yaw_pitch,
    rotations_from_quaternions,
    yaw_pitch_of_rotation,
)

steady = settings(derandomize=True, max_examples=25, deadline=None, database=None)
seeds = st.integers(0, 2**32 - 1)


def random_poses(seed: int, n: int = 8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (n, 1, 1))
    poses[:, :3, :3] = rotations_from_quaternions(rng.normal(size=(n, 4)))
    poses[:, :3, 3] = rng.normal(size=(n, 3)) * 3
    return poses


def pose(rotation: np.ndarray | None = None, at: tuple[float, float, float] = (0, 0, 0)) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) if rotation is None else rotation
    matrix[:3, 3] = at
    return matrix


# What a trajectory accepts


def test_a_trajectory_counts_frames_and_is_read_only():
    path = make_trajectory(random_poses(0)[:, :3])
    assert path.times.tolist() == list(range(8)) and len(path) == 8
    assert path.c2w[:, 3].tolist() == [[0, 0, 0, 1]] * 8
    with pytest.raises(ValueError, match="read-only"):
        path.c2w[0, 0, 0] = 2


def test_taking_poses_takes_times_and_intrinsics():
    k = np.tile(np.diag([500.0, 510.0, 1.0]), (8, 1, 1))
    k[:, 0, 2] = np.arange(8)
    part = make_trajectory(random_poses(0), np.arange(8) / 10, time_unit="seconds", intrinsics=k).take(np.array([2, 5]))
    assert part.times.tolist() == [0.2, 0.5]
    assert part.intrinsics is not None and part.intrinsics[:, 0, 2].tolist() == [2, 5]


def broken(change: str) -> np.ndarray:
    poses = random_poses(1)
    if change == "nan":
        poses[3, 0, 0] = np.nan
    if change == "scale":
        poses[3, :3, :3] *= 1.01
    if change == "mirror":
        poses[3, :, 0] *= -1
    if change == "transpose":
        poses = poses.transpose(0, 2, 1)
    return poses


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("nan", "pose 3 holds NaN"),
        ("scale", "the rotation of pose 3 is not orthonormal"),
        ("mirror", "pose 3 is mirrored: its determinant is -1"),
        ("transpose", "is the matrix transposed"),
    ],
)
def test_poses_that_are_no_rigid_motions_are_refused_by_name(change, sentence):
    with pytest.raises(InvalidPoses, match=sentence):
        make_trajectory(broken(change))


def test_wrong_shapes_say_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match=r"shape \(4, 4\); expected \(N, 4, 4\)"):
        make_trajectory(np.eye(4))
    with pytest.raises(InvalidPoses, match="N >= 1"):
        make_trajectory(np.empty((0, 4, 4)))
    with pytest.raises(InvalidPoses, match="not an array of real numbers"):
        make_trajectory(np.array([["a"]]))
    with pytest.raises(InvalidPoses, match=r"8 poses need \(8,\)"):
        make_trajectory(random_poses(0), np.arange(7))
    with pytest.raises(InvalidPoses, match=r"8 poses need \(8, 3, 3\)"):
        make_trajectory(random_poses(0), intrinsics=np.eye(3))
    with pytest.raises(InvalidPoses, match="focal lengths above zero"):
        make_trajectory(random_poses(0), intrinsics=np.zeros((8, 3, 3)))


def test_time_may_rest_and_not_run_backwards():
    assert len(make_trajectory(random_poses(0), np.array([0, 1, 1, 2, 3, 4, 5, 6]))) == 8
    with pytest.raises(InvalidPoses, match="time runs backwards from pose 1"):
        make_trajectory(random_poses(0), np.array([0, 2, 1, 3, 4, 5, 6, 7]))
    with pytest.raises(InvalidPoses, match="the time of pose 1 is not a finite number"):
        make_trajectory(random_poses(0), np.array([0, np.inf, 1, 3, 4, 5, 6, 7]))


# Conventions


def test_world_to_camera_is_the_inverse():
    poses = random_poses(2)
    assert np.allclose(invert_rigid_poses(poses) @ poses, np.eye(4), atol=1e-12)
    assert np.allclose(from_w2c(invert_rigid_poses(poses)[:, :3]), poses, atol=1e-12)
    assert np.allclose(make_trajectory(poses).w2c, np.linalg.inv(poses), atol=1e-12)


def test_a_world_to_camera_translation_is_not_the_centre():
    # A camera one metre behind the origin looks at it: the origin is one metre in front of the camera.
    w2c = pose(at=(0, 0, 1))
    assert make_trajectory(from_w2c(w2c[None])).centres.tolist() == [[0, 0, -1]]


def test_an_opengl_camera_looks_along_minus_z_with_y_up():
    opencv = from_opengl(np.eye(4)[None])[0]
    assert opencv[:3, 2].tolist() == [0, 0, -1]  # forward
    assert opencv[:3, 1].tolist() == [0, -1, 0]  # down
    poses = random_poses(3)
    assert np.array_equal(from_opengl(from_opengl(poses)), poses)
    assert np.array_equal(from_opengl(poses)[:, :3, 3], poses[:, :3, 3])


def test_a_resting_unreal_camera_is_the_identity():
    assert np.allclose(from_unreal(np.zeros((1, 3)), np.zeros((1, 3))), np.eye(4))


@pytest.mark.parametrize(
    ("unreal", "opencv"),
    [((100, 0, 0), (0, 0, 1)), ((0, 100, 0), (1, 0, 0)), ((0, 0, 100), (0, -1, 0))],
    ids=["forward", "right", "up"],
)
def test_unreal_directions_keep_their_meaning(unreal, opencv):
    assert np.allclose(from_unreal(np.array([unreal]), np.zeros((1, 3)))[0, :3, 3], opencv)


def test_unreal_turns_keep_their_meaning():
    right, up, lean = from_unreal(np.zeros((3, 3)), np.array([[0, 0, 30.0], [0, 20, 0], [10, 0, 0]]))[:, :3, :3]
    assert np.allclose(yaw_pitch_of_rotation(right), (30, 0))
    assert np.allclose(yaw_pitch_of_rotation(up), (0, 20))
    # Leaning right lowers the camera's right side: its x axis points down, which is +y.
    assert np.allclose(lean[:, 0], [np.cos(np.radians(10)), np.sin(np.radians(10)), 0])


def test_unreal_agrees_with_its_rotation_matrix():
    # The forward, right and up axes of a rotator as Unreal documents them, mapped by (Y, -Z, X).
    roll, pitch, yaw = np.radians([12.0, -34.0, 56.0])
    sr, cr, sp, cp, sy, cy = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch), np.sin(yaw), np.cos(yaw)
    forward = np.array([cp * cy, cp * sy, sp])
    right = np.array([sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp])
    up = np.array([-(cr * sp * cy + sr * sy), cy * sr - cr * sp * sy, cr * cp])
    to_opencv = np.array([[0, 1, 0], [0, 0, -1], [1, 0, 0]])
    expected = to_opencv @ np.stack([right, -up, forward], axis=1)
    found = from_unreal(np.zeros((1, 3)), np.array([[12.0, -34.0, 56.0]]))[0, :3, :3]
    assert np.allclose(found, expected, atol=1e-12)


def test_walking_forward_after_turning_right_goes_right():
    yaw = np.radians(90)
    ahead = np.array([[0, 0, 0], [100 * np.cos(yaw), 100 * np.sin(yaw), 0]])
    poses = from_unreal(ahead, np.array([[0, 0, 90.0]] * 2))
    step = poses[0, :3, :3].T @ (poses[1, :3, 3] - poses[0, :3, 3])
    assert np.allclose(step, [0, 0, 1], atol=1e-12)  # forward, as the camera sees it


@steady
@given(seeds)
def test_unreal_round_trip(seed):
    poses = random_poses(seed)
    assert np.allclose(from_unreal(*to_unreal(poses)), poses, atol=1e-9)


# Quaternions


@steady
@given(seeds)
def test_quaternion_round_trip(seed):
    q = np.random.default_rng(seed).normal(size=(3, 2, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    back = quaternions_of_rotations(rotations_from_quaternions(q))
    assert (back[..., 0] >= 0).all()
    assert np.allclose(np.abs((back * q).sum(axis=-1)), 1, atol=1e-12)


def test_quaternions_of_known_turns():
    half = np.sqrt(0.5)
    assert np.allclose(quaternions_of_rotations(rotation_from_axis_angle((0, 1, 0), 90)), [half, 0, half, 0])
    assert np.allclose(rotations_from_quaternions(np.array([half, 0, half, 0])), rotation_from_yaw_pitch(90, 0))
    for axis in np.eye(3):  # half a turn: w is 0 and the trace tells nothing
        turned = rotation_from_axis_angle(tuple(axis), 180)
        assert np.allclose(rotations_from_quaternions(quaternions_of_rotations(turned)), turned, atol=1e-12)


# Resampling


def test_resampling_halves_turns_and_steps():
    path = make_trajectory(np.stack([pose(), pose(rotation_from_yaw_pitch(60, 0), (2, 0, 4))]), np.array([0, 10]))
    middle = resample(path, np.array([0, 2.5, 10]))
    assert np.allclose(yaw_pitch_of_rotation(middle.rotations)[0], [0, 15, 60])
    assert np.allclose(middle.centres, np.array([[0, 0, 0], [0.5, 0, 1], [2, 0, 4]]))
    assert middle.times.tolist() == [0, 2.5, 10]


def test_resampling_at_its_own_times_changes_nothing():
    path = make_trajectory(
        random_poses(4), np.array([0, 1, 1, 2, 3, 5, 8, 13]), intrinsics=np.tile(np.diag([2.0, 2, 1]), (8, 1, 1))
    )
    kept = path.take(np.array([0, 2, 3, 4, 5, 6, 7]))
    again = resample(path, kept.times)
    assert np.allclose(again.c2w, kept.c2w, atol=1e-9)
    assert again.intrinsics is not None and np.allclose(again.intrinsics, path.intrinsics[:7])  # type: ignore[index]


def test_resampling_a_single_pose_and_times_outside():
    path = make_trajectory(random_poses(5, 1), np.array([3.0]))
    assert np.allclose(resample(path, np.array([3.0, 3.0])).c2w, path.c2w)
    with pytest.raises(InvalidPoses, match="known from 3 to 3; ask for times inside"):
        resample(path, np.array([2.0]))
    with pytest.raises(InvalidPoses, match="at least one number"):
        resample(path, np.array([]))


def test_geodesic_of_resampled_rotations_is_even():
    path = make_trajectory(np.stack([pose(), pose(rotation_from_axis_angle((1, 2, 3), 120))]))
    turned = resample(path, np.linspace(0, 1, 7)).rotations
    assert np.allclose(angle_between_rotations(turned[:-1], turned[1:]), 20)
