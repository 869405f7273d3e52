"""Trajectory errors: definitions, invariances, and agreement with an independent implementation."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.geometry.alignment import Method, TrajectoryAlignment, align, apply, match_by_time
from revisit.geometry.formats import parse_kitti, parse_tum
from revisit.geometry.poses import InvalidPoses, Trajectory, make_trajectory
from revisit.geometry.rotations import rotation_from_yaw_pitch, rotations_from_quaternions
from revisit.geometry.trajectory_errors import (
    absolute_errors,
    direction_agreement,
    distance_pairs,
    frame_pairs,
    path_length,
    relative_errors,
    statistics,
)
from tests.geometry.test_geometry_poses import pose, random_poses

steady = settings(derandomize=True, max_examples=25, deadline=None, database=None)
seeds = st.integers(0, 2**32 - 1)


def similarity(seed: int, scale: float = 1.0) -> TrajectoryAlignment:
    rng = np.random.default_rng(seed)
    return TrajectoryAlignment(rotations_from_quaternions(rng.normal(size=4)), rng.normal(size=3) * 5, scale)


# Definitions


def test_a_perfect_copy_has_no_error():
    path = make_trajectory(random_poses(0))
    absolute, relative = absolute_errors(path, path), relative_errors(path, path)
    for errors in (absolute.translation, absolute.rotation, relative.translation, relative.rotation):
        assert np.allclose(errors, 0, atol=1e-6)
    assert np.allclose(direction_agreement(path, path).cosine, 1)


def test_errors_of_known_displacements():
    reference = make_trajectory(np.stack([pose(at=(0, 0, z)) for z in range(4)]))
    turned = make_trajectory(np.stack([pose(rotation_from_yaw_pitch(10, 0), (3, 4, z)) for z in range(4)]))
    errors = absolute_errors(turned, reference)
    assert np.allclose(errors.translation, 5) and np.allclose(errors.rotation, 10)
    # One metre ahead in the reference is one metre, 10 degrees to the left of the turned camera's axis.
    relative = relative_errors(turned, reference)
    assert np.allclose(relative.translation, 2 * np.sin(np.radians(5))) and np.allclose(relative.rotation, 0)
    assert np.allclose(direction_agreement(turned, reference).cosine, np.cos(np.radians(10)))


def test_a_double_step_is_off_by_one_step():
    reference = make_trajectory(np.stack([pose(at=(0, 0, z)) for z in range(5)]))
    double = make_trajectory(np.stack([pose(at=(0, 0, 2 * z)) for z in range(5)]))
    assert np.allclose(relative_errors(double, reference).translation, 1)
    assert np.allclose(relative_errors(double, reference, frame_pairs(5, 3)).translation, 3)
    assert (path_length(reference), path_length(double)) == (4, 8)


def test_pairs_of_frames():
    assert [a.tolist() for a in frame_pairs(5)] == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert [a.tolist() for a in frame_pairs(6, 2)] == [[0, 1, 2, 3], [2, 3, 4, 5]]
    assert [a.tolist() for a in frame_pairs(3, 5)] == [[], []]
    with pytest.raises(InvalidPoses, match="must be 1 or more"):
        frame_pairs(5, 0)


def test_pairs_along_the_path():
    path = make_trajectory(np.stack([pose(at=(0, 0, z)) for z in (0, 0.5, 1.5, 1.75, 2.5, 2.75)]))
    assert [a.tolist() for a in distance_pairs(path, 1)] == [[0, 2], [2, 4]]
    with pytest.raises(InvalidPoses, match="above 0"):
        distance_pairs(path, 0)


def test_resting_steps_have_no_direction():
    reference = make_trajectory(np.stack([pose(at=(0, 0, z)) for z in (0, 1, 1, 2)]))
    estimate = make_trajectory(np.stack([pose(at=(0, 0, z)) for z in (0, -1, -3, -4)]))
    found = direction_agreement(estimate, reference)
    assert found.start.tolist() == [0, 2] and found.resting == 1
    assert np.allclose(found.cosine, -1)


def test_nothing_to_sum_up_is_explained():
    with pytest.raises(InvalidPoses, match="at least one pose"):
        statistics(np.array([]))
    path = make_trajectory(random_poses(0))
    with pytest.raises(InvalidPoses, match="the estimate has 3 poses and the reference 8"):
        absolute_errors(path.take(slice(3)), path)


# Invariances


@steady
@given(seeds)
def test_a_motion_of_the_whole_world_cancels_in_relative_errors(seed):
    estimate, reference = make_trajectory(random_poses(seed)), make_trajectory(random_poses(seed + 1))
    moved = apply(similarity(seed), estimate)
    before, after = relative_errors(estimate, reference), relative_errors(moved, reference)
    assert np.allclose(before.translation, after.translation, atol=1e-9)
    assert np.allclose(before.rotation, after.rotation, atol=1e-6)


@steady
@given(seeds, st.floats(0.01, 100))
def test_aligned_absolute_errors_do_not_depend_on_the_world_of_the_estimate(seed, scale):
    reference = make_trajectory(random_poses(seed, 12))
    noisy = reference.c2w.copy()
    noisy[:, :3, 3] += np.random.default_rng(seed).normal(size=(12, 3)) * 0.1
    estimate = make_trajectory(noisy)
    moved = apply(similarity(seed, scale), estimate)
    errors = [absolute_errors(apply(align(path, reference), path), reference) for path in (estimate, moved)]
    assert np.allclose(errors[0].translation, errors[1].translation, atol=1e-7)
    assert np.allclose(errors[0].rotation, errors[1].rotation, atol=1e-5)


@steady
@given(seeds, st.floats(0.01, 100))
def test_directions_do_not_depend_on_scale_or_world(seed, scale):
    estimate, reference = make_trajectory(random_poses(seed)), make_trajectory(random_poses(seed + 1))
    moved = apply(similarity(seed, scale), estimate)
    before, after = direction_agreement(estimate, reference), direction_agreement(moved, reference)
    assert np.allclose(before.cosine, after.cosine, atol=1e-9)


# Golden numbers

SEQUENCES = {
    "fr1xyz_rgbdslam": ("freiburg1_xyz-groundtruth.txt", "freiburg1_xyz-rgbdslam.txt"),
    "fr1xyz_ORBmono": ("freiburg1_xyz-groundtruth.txt", "freiburg1_xyz-ORB_kf_mono.txt"),
    "fr2desk_ORB": ("fr2_desk_groundtruth.txt", "fr2_desk_ORB.txt"),
    "fr2desk_ORBmono": ("fr2_desk_groundtruth.txt", "fr2_desk_ORB_kf_mono.txt"),
    "KITTI00_ORB": ("KITTI_00_gt.txt", "KITTI_00_ORB.txt"),
    "KITTI00_SPTAM": ("KITTI_00_gt.txt", "KITTI_00_SPTAM.txt"),
}
ALIGNED: list[tuple[str, Method]] = [
    ("fr1xyz_rgbdslam", "none"),
    ("fr1xyz_rgbdslam", "se3"),
    ("fr1xyz_ORBmono", "sim3"),
    ("fr1xyz_ORBmono", "origin"),
    ("fr2desk_ORB", "se3"),
    ("fr2desk_ORBmono", "sim3"),
    ("KITTI00_ORB", "se3"),
    ("KITTI00_SPTAM", "none"),
]


@cache
def read(path: Path) -> Trajectory:
    parse = parse_kitti if path.name.startswith("KITTI") else parse_tum
    return parse(path.read_text())


def test_every_golden_track_is_checked(shared):
    golden = json.loads((shared / "golden/evo_golden.json").read_text())
    assert set(golden) == {f"{sequence}_{method}" for sequence, method in ALIGNED}


@pytest.mark.parametrize(("sequence", "method"), ALIGNED, ids=[f"{s}-{m}" for s, m in ALIGNED])
def test_errors_agree_with_an_independent_implementation(shared, sequence, method):
    golden = json.loads((shared / "golden/evo_golden.json").read_text())[f"{sequence}_{method}"]
    reference, estimate = (read(shared / "golden/evo_trajectories" / name) for name in SEQUENCES[sequence])
    if reference.time_unit == "seconds":
        estimate, reference = match_by_time(estimate, reference, 0.01)
    assert len(estimate) == golden["n"]

    alignment = align(estimate, reference, method)
    assert alignment.degenerate is None and not alignment.mirrored
    if "umeyama" in golden:
        assert np.allclose(alignment.rotation, golden["umeyama"]["R"], atol=1e-9)
        assert np.allclose(alignment.translation, golden["umeyama"]["t"], rtol=1e-6, atol=1e-9)
        assert alignment.scale == pytest.approx(golden["umeyama"]["s"], rel=1e-9)

    estimate = apply(alignment, estimate)
    absolute = absolute_errors(estimate, reference)
    steps = relative_errors(estimate, reference)
    metres = relative_errors(estimate, reference, distance_pairs(estimate, 1.0))
    found = {
        "ape_translation_part": absolute.translation,
        "ape_rotation_angle_deg": absolute.rotation,
        "rpe_translation_part_1frames": steps.translation,
        "rpe_rotation_angle_deg_1frames": steps.rotation,
        "rpe_translation_part_1.0meters": metres.translation,
        "rpe_rotation_angle_deg_1.0meters": metres.rotation,
    }
    assert set(found) == set(golden) - {"n", "umeyama"}
    for name, errors in found.items():
        ours = asdict(statistics(errors))
        del ours["n"]
        # An error of nothing at all is known only up to rounding.
        assert ours == pytest.approx(golden[name], rel=1e-6, abs=1e-12), name
