"""Rotations against closed forms and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from revisit.geometry.rotations import (
    angle_between_rotations,
    axis_angle_of_rotation,
    rotation_from_axis_angle,
    rotation_from_yaw_pitch,
    slerp,
    yaw_pitch_of_rotation,
)


def random_rotations(count: int) -> np.ndarray:
    return Rotation.random(count, random_state=3).as_matrix()


def test_axis_angle_agrees_with_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        axis, degrees = rng.normal(size=3), rng.uniform(-200, 200)
        expected = Rotation.from_rotvec(axis / np.linalg.norm(axis) * np.radians(degrees)).as_matrix()
        np.testing.assert_allclose(rotation_from_axis_angle(axis, degrees), expected, atol=1e-12)


@pytest.mark.parametrize("degrees", [0.0, 1e-7, 0.3, 90.0, 179.5, 180.0])
def test_axis_and_angle_come_back(degrees: float):
    rotation = rotation_from_axis_angle((0.3, -2.0, 0.7), degrees)
    axis, angle = axis_angle_of_rotation(rotation)
    assert angle == pytest.approx(degrees, abs=1e-6)
    np.testing.assert_allclose(rotation_from_axis_angle(axis, angle), rotation, atol=1e-7)


def test_geodesic_agrees_with_scipy_and_keeps_tiny_angles():
    first, second = random_rotations(30)[:15], random_rotations(30)[15:]
    expected = np.degrees((Rotation.from_matrix(first).inv() * Rotation.from_matrix(second)).magnitude())
    np.testing.assert_allclose(angle_between_rotations(first, second), expected, atol=1e-9)
    assert angle_between_rotations(np.eye(3), rotation_from_axis_angle((1, 2, 3), 1e-6)) == pytest.approx(
        1e-6, rel=1e-6
    )


def test_slerp_agrees_with_scipy():
    first, second = random_rotations(2)
    expected = Slerp([0, 1], Rotation.from_matrix([first, second]))([0, 0.25, 1]).as_matrix()
    for t, matrix in zip((0, 0.25, 1), expected, strict=True):
        np.testing.assert_allclose(slerp(first, second, t), matrix, atol=1e-9)


def test_yaw_turns_right_and_pitch_lifts():
    forward = np.array([0, 0, 1.0])
    np.testing.assert_allclose(rotation_from_yaw_pitch(90, 0) @ forward, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_from_yaw_pitch(0, 90) @ forward, [0, -1, 0], atol=1e-12)
    for yaw, pitch in ((-170, 30), (12, -60), (95, 5)):
        np.testing.assert_allclose(yaw_pitch_of_rotation(rotation_from_yaw_pitch(yaw, pitch)), (yaw, pitch), atol=1e-9)
