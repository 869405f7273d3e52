"""Pairs of frames out and back, and the numbering of poses."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.geometry.camera_script import camera_path, parse_script
from revisit.geometry.fold_pairs import (
    early_late_segment_pairs,
    frame_numbers_of_poses,
    out_and_back_pairs,
    segment_bounds,
    symmetric_pairs,
)
from revisit.geometry.poses import InvalidPoses
from revisit.suites.mbench.metrics.rules import frame_pairs_out_and_back
from tests.mbench_world import case, frame_facts, track


def path(script: str) -> np.ndarray:
    return np.array(camera_path(parse_script(script), np.eye(4)))


THERE_AND_BACK = "yaw:left:60@40,yaw:right:60@40"


def test_a_round_trip_folds_onto_itself() -> None:
    found = out_and_back_pairs(path(THERE_AND_BACK))
    assert found.how == "fold" and found.turnaround == 40
    assert len(found.row) == 20
    assert found.row.tolist() == list(range(20)), "the largest spans come first"
    assert (found.row + found.other == 80).all()
    assert found.distance.max() < 1e-9


def test_a_faster_way_back_is_matched_by_pose_and_not_by_time() -> None:
    found = out_and_back_pairs(path("yaw:right:60@60,yaw:left:60@20"))
    assert found.turnaround == 60
    expected = 80 - found.row / 3
    assert np.abs(found.other - expected).max() <= 0.5


def test_the_pairs_match_a_search_by_hand() -> None:
    rng = np.random.default_rng(0)
    poses = path("yaw:left:40+dolly:forward:0.5@12,yaw:right:40+dolly:back:0.5@15").copy()
    poses[:, :3, 3] += rng.normal(0, 0.02, (len(poses), 3))
    found = out_and_back_pairs(poses, depth=2.0, least_gap=0)
    n = len(poses)

    def apart(i: int, j: int) -> float:
        way = np.linalg.norm(poses[i, :3, 3] - poses[j, :3, 3]) / 2
        cosine = (np.trace(poses[i, :3, :3].T @ poses[j, :3, :3]) - 1) / 2
        return float(way + np.degrees(np.arccos(np.clip(cosine, -1, 1))) / 180)

    far = max(range(n), key=lambda j: apart(0, j))
    by_hand = {i: min(range(far + 1, n), key=lambda j: apart(i, j)) for i in range(far)}
    assert found.turnaround == far
    assert dict(zip(found.row.tolist(), found.other.tolist(), strict=True)) == by_hand


@pytest.mark.parametrize("script", ["hold@40", "yaw:left:2@20,yaw:right:2@20", "yaw:left:60@40", "dolly:forward:2@40"])
def test_without_a_clear_turnaround_frames_are_paired_from_both_ends(script: str) -> None:
    found = out_and_back_pairs(path(script))
    assert found.how == "symmetric" and found.note.startswith("no clear turnaround")
    assert (found.row + found.other == 40).all()
    assert (found.other - found.row >= 4).all(), "a tenth of the clip lies between"


def test_the_scale_of_a_path_does_not_matter_when_depth_has_it_too() -> None:
    poses = path("truck:right:1+yaw:left:5@20,truck:left:1+yaw:right:5@20")
    large = poses.copy()
    large[:, :3, 3] *= 50
    one, other = out_and_back_pairs(poses, 3.0), out_and_back_pairs(large, 150.0)
    assert (one.row == other.row).all() and (one.other == other.other).all()
    assert np.allclose(one.distance, other.distance)


def test_the_literal_reading_takes_translation_vectors_as_they_are() -> None:
    poses = path(THERE_AND_BACK).copy()
    poses[:, :3, 3] += [3.0, 0, 0]  # off the origin, a pure turn moves the w2c translation
    plain, literal = out_and_back_pairs(poses), out_and_back_pairs(poses, literal=True)
    assert plain.distance.max() < 1e-9 and literal.turnaround == 40
    assert out_and_back_pairs(poses, least_gap=0.5).other.min() >= 41


def test_early_and_late_segments_are_ranked_by_return_then_by_span() -> None:
    frames = np.arange(100)
    found = early_late_segment_pairs(path("yaw:left:50@50,yaw:right:50@49"), frames, 100, 5)
    assert found.how == "segments" and len(found.row) == 5
    assert (found.row < 40).all() and (found.other >= 60).all()
    assert (np.diff(found.distance) >= -1e-9).all()
    resting = early_late_segment_pairs(path("hold@99"), frames, 100, 5)
    assert resting.row[0] == 0 and resting.other[0] == 99, "equal returns: the largest span"


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_few_segments_never_pair_a_frame_with_a_neighbour(segments: int) -> None:
    found = early_late_segment_pairs(path("hold@99"), np.arange(100), 100, segments)
    assert (found.other - found.row >= 10).all()


def test_segments_are_equal() -> None:
    assert segment_bounds(401, 5).tolist() == [0, 80, 160, 241, 321, 401]


def test_frames_are_numbered_as_given_or_assumed_and_told() -> None:
    given, note = frame_numbers_of_poses(3, np.array([0, 5, 9]), 10)
    assert given.tolist() == [0, 5, 9] and note == ""
    assert frame_numbers_of_poses(10, None, 10)[0].tolist() == list(range(10))
    strided, note = frame_numbers_of_poses(13, np.zeros(0), 49)
    assert strided.tolist() == list(range(0, 49, 4)) and "every 4th" in note
    spread, note = frame_numbers_of_poses(30, None, 49)
    assert len(spread) == 30 and spread[-1] == 48 and "evenly" in note


@pytest.mark.parametrize(
    ("poses", "given", "word"), [(12, None, "another clip"), (2, [0, 10], "another clip"), (2, [3, 1], "increasing")]
)
def test_poses_of_another_clip_are_refused(poses: int, given: list[int] | None, word: str) -> None:
    with pytest.raises(InvalidPoses, match=word):
        frame_numbers_of_poses(poses, None if given is None else np.array(given), 10)


def test_without_poses_pairs_come_from_both_ends_and_that_is_told() -> None:
    found = frame_pairs_out_and_back.fn(case(), frame_facts(41), None)
    assert found.how == "symmetric" and found.note == "no pose file" and (found.frame + found.other == 40).all()
    strided = track(path(THERE_AND_BACK)[::4])
    found = frame_pairs_out_and_back.fn(case(), frame_facts(81), strided)
    assert found.how == "fold" and found.turnaround == 40 and (found.frame % 4 == 0).all() and "every 4th" in found.note
    assert symmetric_pairs(2).row.tolist() == [0]
