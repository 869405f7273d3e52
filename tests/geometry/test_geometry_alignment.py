"""Alignment and association."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.geometry.alignment import (
    STILL,
    STRAIGHT,
    TrajectoryAlignment,
    align,
    apply,
    associate,
    match_by_time,
    umeyama,
)
from revisit.geometry.poses import InvalidPoses, make_trajectory
from revisit.geometry.rotations import rotation_from_axis_angle, rotations_from_quaternions
from tests.geometry.test_geometry_poses import random_poses

steady = settings(derandomize=True, max_examples=25, deadline=None, database=None)


@steady
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_a_similarity_is_found_again(seed, scale):
    rng = np.random.default_rng(seed)
    rotation, translation = rotations_from_quaternions(rng.normal(size=4)), rng.normal(size=3) * 10
    points = rng.normal(size=(10, 3))
    found = umeyama(points, scale * points @ rotation.T + translation)
    assert found.degenerate is None and not found.mirrored
    assert np.isclose(found.scale, scale) and np.allclose(found.rotation, rotation, atol=1e-9)
    assert np.allclose(found.translation, translation, atol=1e-7)
    assert found.agreement == pytest.approx(1)


def test_umeyama_matches_the_independent_value(shared: Path):
    with np.load(shared / "golden/geom_case.npz") as case:
        found = umeyama(case["A"].T, case["B"].T)
    oracle = json.loads((shared / "golden/geom_oracle.json").read_text())
    assert found.scale == pytest.approx(oracle["evo_umeyama_scale"], rel=1e-9)


def test_a_mirrored_path_is_named_and_never_answered_with_a_reflection():
    points = np.random.default_rng(0).normal(size=(20, 3))
    for with_scale in (False, True):
        found = umeyama(points, points * [1, 1, -1], with_scale=with_scale)
        assert np.isclose(np.linalg.det(found.rotation), 1)
        assert found.mirrored and found.agreement is not None and found.agreement < 0.9


def test_a_flat_path_is_aligned_and_not_called_mirrored():
    points = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1, 0]
    rotation = rotation_from_axis_angle((1, 2, 3), 77)
    found = umeyama(points, points @ rotation.T)
    assert found.degenerate is None and not found.mirrored
    assert np.allclose(found.rotation, rotation)


@pytest.mark.parametrize("with_scale", [False, True])
def test_degenerate_paths_are_named(with_scale):
    points = np.random.default_rng(0).normal(size=(20, 3))
    line = np.linspace(0, 5, 20)[:, None] * np.array([1, 2, 3.0])
    spot = np.tile([7.0, 8, 9], (20, 1))
    assert umeyama(spot, points, with_scale=with_scale).degenerate == STILL
    assert umeyama(points, spot, with_scale=with_scale).degenerate == STILL
    assert umeyama(points[:1], points[:1], with_scale=with_scale).degenerate == STILL
    straight = umeyama(line, 2 * line + 1, with_scale=with_scale)
    assert straight.degenerate == STRAIGHT
    assert np.isclose(np.linalg.det(straight.rotation), 1)


def test_a_straight_path_has_a_scale_all_the_same():
    line = np.linspace(0, 5, 20)[:, None] * np.array([1, 2, 3.0])
    found = umeyama(line, 2 * line @ rotation_from_axis_angle((0, 0, 1), 40).T + 1)
    assert found.degenerate == STRAIGHT and np.isclose(found.scale, 2)
    assert np.allclose(
        2 * line @ found.rotation.T + found.translation, 2 * line @ rotation_from_axis_angle((0, 0, 1), 40).T + 1
    )


def test_noise_on_the_spot_shows_as_low_agreement():
    rng = np.random.default_rng(0)
    wandering = np.cumsum(rng.normal(size=(100, 3)), axis=0)
    found = umeyama(1e-3 * rng.normal(size=(100, 3)), wandering)
    assert found.degenerate is None and found.agreement is not None and found.agreement < 0.5


def test_origin_lays_the_first_poses_on_each_other():
    estimate, reference = make_trajectory(random_poses(0)), make_trajectory(random_poses(1))
    moved = apply(align(estimate, reference, "origin"), estimate)
    assert np.allclose(moved.c2w[0], reference.c2w[0])


def test_none_changes_nothing():
    estimate = make_trajectory(random_poses(0))
    assert np.allclose(apply(align(estimate, estimate, "none"), estimate).c2w, estimate.c2w)


def test_applying_turns_poses_and_scales_centres_only():
    estimate = make_trajectory(random_poses(0))
    turn = rotation_from_axis_angle((0, 1, 0), 90)
    moved = apply(TrajectoryAlignment(turn, np.array([1.0, 2, 3]), 10.0), estimate)
    assert np.allclose(moved.rotations, turn @ estimate.rotations)
    assert np.allclose(moved.centres, 10 * estimate.centres @ turn.T + [1, 2, 3])


def test_unusable_input_is_explained():
    estimate = make_trajectory(random_poses(0))
    with pytest.raises(InvalidPoses, match="the estimate has 8 poses and the reference 5"):
        align(estimate, estimate.take(slice(5)))
    with pytest.raises(InvalidPoses, match="choose one of none, origin, se3, sim3"):
        align(estimate, estimate, "affine")  # type: ignore[arg-type]
    with pytest.raises(InvalidPoses, match=r"both need the same \(N, 3\)"):
        umeyama(np.zeros((4, 2)), np.zeros((4, 2)))


# Association


def test_times_are_joined_with_the_nearest_once():
    i, j = associate(np.array([0.0, 1.0, 1.02, 5.0]), np.array([0.004, 1.015, 3.0]), 0.1)
    assert (i.tolist(), j.tolist()) == ([0, 2], [0, 1])  # 1.02 is nearer to 1.015 than 1.0


def test_half_a_frame_of_offset_loses_no_pair():
    i, j = associate(np.arange(4.0), np.arange(4.0) + 0.5, 0.5)
    assert i.tolist() == j.tolist() == [0, 1, 2, 3]


def test_pairs_do_not_cross():
    i, j = associate(np.array([1.0, 3.0]), np.array([0.0, 2.0]), 10)
    assert (np.diff(i) > 0).all() and (np.diff(j) > 0).all()


@steady
@given(st.integers(0, 2**32 - 1))
def test_association_is_one_to_one_within_tolerance_and_symmetric_for_copies(seed):
    rng = np.random.default_rng(seed)
    first, second = np.sort(rng.uniform(0, 5, 30)), np.sort(rng.uniform(0, 5, 50))
    i, j = associate(first, second, 0.05)
    assert (np.diff(i) > 0).all() and (np.diff(j) > 0).all()
    assert (np.abs(first[i] - second[j]) <= 0.05).all()
    i, j = associate(first, first, 0.05)
    assert i.tolist() == j.tolist() == list(range(30))


def test_matched_trajectories_have_the_same_length():
    full = make_trajectory(random_poses(0), np.arange(8) / 10, time_unit="seconds")
    part = make_trajectory(random_poses(0)[1::2], np.arange(8)[1::2] / 10 + 0.004, time_unit="seconds")
    estimate, reference = match_by_time(part, full)
    assert np.array_equal(estimate.c2w, reference.c2w) and len(estimate) == 4
    with pytest.raises(InvalidPoses, match="do both clocks start at the same time"):
        match_by_time(make_trajectory(random_poses(0), np.arange(8) + 100, time_unit="seconds"), full)
    with pytest.raises(InvalidPoses, match="counts time in frames and the reference in seconds"):
        match_by_time(make_trajectory(random_poses(0)), full)
