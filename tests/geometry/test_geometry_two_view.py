"""Two views: epipolar distances, triangulation, reprojection."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.geometry.poses import InvalidPoses, invert_rigid_poses
from revisit.geometry.rotations import rotation_from_yaw_pitch
from revisit.geometry.two_view import (
    fundamental,
    projection_matrix,
    relative_pose,
    reprojection_error,
    symmetric_epipolar_distance,
    triangulate,
)
from tests.geometry.test_geometry_poses import pose

K = np.array([[500.0, 0, 320], [0, 480, 240], [0, 0, 1]])
R, T = rotation_from_yaw_pitch(10, 3), np.array([0.5, -0.1, 0.2])
X = np.random.default_rng(0).uniform([-2, -1, 4], [2, 1, 9], (40, 3))


def seen(p: np.ndarray) -> np.ndarray:
    pixels = np.column_stack([X, np.ones(len(X))]) @ p.T
    return pixels[:, :2] / pixels[:, 2:]


P1, P2 = projection_matrix(K), projection_matrix(K, R, T)
X1, X2 = seen(P1), seen(P2)


def test_exact_matches_have_no_error():
    f = fundamental(K, K, R, T)
    assert np.allclose(symmetric_epipolar_distance(X1, X2, f), 0, atol=1e-9)
    points = triangulate(X1, X2, P1, P2)
    assert np.allclose(points, X, atol=1e-8)
    assert np.allclose(reprojection_error(points, X2, P2), 0, atol=1e-8)


def test_independent_values(shared: Path):
    with np.load(shared / "golden/geom_case.npz") as file:
        case = dict(file)
    oracle = json.loads((shared / "golden/geom_oracle.json").read_text())
    x1, x2 = case["x1"], case["x2"]
    f = fundamental(case["K"], case["K"], case["R"], case["t"])
    assert symmetric_epipolar_distance(x1, x2, f).mean() == pytest.approx(oracle["sym_epi_mean"], rel=1e-9)
    p1, p2 = projection_matrix(case["K"]), projection_matrix(case["K"], case["R"], case["t"])
    points = triangulate(x1, x2, p1, p2)
    error = (reprojection_error(points, x1, p1) + reprojection_error(points, x2, p2)) / 2
    assert error.mean() == pytest.approx(oracle["cv2_dlt_reproj_mean"], rel=1e-9)


def test_the_distance_is_that_to_a_level_line():
    # A camera that moves to the right draws level lines: only the difference in height counts.
    f = fundamental(K, K, np.eye(3), np.array([-1.0, 0, 0]))
    assert np.allclose(symmetric_epipolar_distance(np.array([[100.0, 50]]), np.array([[70.0, 53]]), f), 3)


def test_relative_pose_takes_points_from_the_first_camera_to_the_second():
    first, second = pose(rotation_from_yaw_pitch(20, 0), (1, 2, 3)), pose(rotation_from_yaw_pitch(-5, 8), (0, 1, 0))
    rotation, translation = relative_pose(first, second)
    point = np.array([0.3, -0.2, 5, 1])
    assert np.allclose(rotation @ point[:3] + translation, (invert_rigid_poses(second) @ first @ point)[:3])


def test_a_camera_that_only_turned_has_no_epipolar_lines():
    with pytest.raises(InvalidPoses, match="use a pair that moved"):
        fundamental(K, K, R, np.zeros(3))


def test_points_behind_the_camera_or_at_infinity_have_an_infinite_error():
    points = np.array([[0, 0, 5.0], [0, 0, -5.0], [np.inf, np.inf, np.inf]])
    error = reprojection_error(points, np.tile([320.0, 240], (3, 1)), P1)
    assert error.tolist() == [0, np.inf, np.inf]
    same = np.array([[320.0, 240], [100, 7]])  # both cameras see it in the same direction: parallel rays
    assert np.isinf(triangulate(same, same, P1, projection_matrix(K, np.eye(3), np.array([1.0, 0, 0])))).all()
