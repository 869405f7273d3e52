"""Camera controllability of MemoBench: closed forms, the resting camera beside it, and upstream's numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Record, Unscored
from revisit.evidence.camera import CameraPath, ObservedCamera, PoseTrack, TruePoseTrack
from revisit.geometry.rotations import rotation_from_yaw_pitch
from revisit.metrics.camera import derive_observed_camera
from revisit.results import Results
from revisit.suites.memobench.metrics.camera import camera_controllability
from revisit.suites.memobench.summary import summarise
from tests.memo import RULES, case, frames, refused, scored


def poses(yaws) -> np.ndarray:
    """Camera-to-world poses that look to the right by these degrees."""
    made = np.tile(np.eye(4), (len(yaws), 1, 1))
    made[:, :3, :3] = [rotation_from_yaw_pitch(yaw, 0) for yaw in yaws]
    return made


def judged(yaws, true_yaws, rule="corrected"):
    turns = ObservedCamera(np.arange(len(yaws)), poses(yaws)[:, :3, :3], None, "made up")
    truth = TruePoseTrack(np.arange(len(true_yaws)), poses(true_yaws), True, "made up")
    return scored(camera_controllability(case(), frames(len(yaws)), truth, turns, rule=rule))


RAMP = np.linspace(0, 90, 81)
OUT_AND_BACK = 60 * (1 - np.abs(np.linspace(-1, 1, 81)))


def test_the_true_path_scores_100_in_any_world_and_at_any_length():
    for rule in RULES:
        assert judged(RAMP + 30, RAMP, rule).value == pytest.approx(100)
        assert judged(RAMP, np.linspace(0, 90, 300), rule).value == pytest.approx(100, abs=0.2)


def test_a_resting_camera_gets_42_on_a_ramp_and_the_baseline_says_so():
    for true in (RAMP, 2 * RAMP):
        made = judged(np.zeros(81), true, "upstream")
        assert made.value == 42.1 == made.facts["static_score"]
    exact = judged(np.zeros(81), RAMP)
    assert exact.value == pytest.approx(100 * (1 - np.sqrt(161 / 480)))  # 1 - 1/sqrt(3) for ever more frames
    assert exact.facts["static_score"] == exact.value
    assert exact.facts["better_than_static"] == pytest.approx(0, abs=1e-9)


def test_nine_tenths_of_an_out_and_back_path_get_65_6():
    made = judged(0.9 * OUT_AND_BACK, OUT_AND_BACK, "upstream")
    assert made.value == 65.6
    assert made.facts["true_rotation_deg"] == 0 and made.facts["static_score"] == 0
    assert made.facts["true_way_deg"] == pytest.approx(120, abs=0.5)
    exact = judged(0.9 * OUT_AND_BACK, OUT_AND_BACK)
    assert exact.facts["path_score"] == pytest.approx(100 * (1 - 3.44 / 120), abs=0.1)
    assert exact.facts["static_path_score"] == pytest.approx(71.3, abs=0.2)  # which is why it stands beside it
    assert exact.facts["better_than_static"] == pytest.approx(0.9)


def test_a_true_camera_that_rests_leaves_nothing_to_be_better_at():
    made = judged(np.zeros(81), np.zeros(81))
    assert made.value == 100 == made.facts["static_score"]
    assert made.facts["better_than_static"] is None


def test_too_few_poses_are_unscored():
    truth = TruePoseTrack(np.arange(81), poses(RAMP), True, "made up")
    one = ObservedCamera(np.array([0]), np.eye(3)[None], None, "made up")
    assert refused(camera_controllability(case(), frames(1), truth, one)).kind == "too_short"


def test_a_file_of_poses_comes_before_odometry():
    n = 20
    track = PoseTrack(np.arange(n), poses(RAMP[:n]), False, "vipe")
    turns = poses(2 * RAMP[:n])[:, :3, :3]
    flags = np.ones(n, bool)
    path = CameraPath(np.arange(n), np.arange(n) / 16, turns, np.zeros((n, 3)), flags, flags, flags, 60.0, False)
    assert derive_observed_camera.fn(track, path).source == "vipe"
    from_picture = derive_observed_camera.fn(None, path)
    assert (from_picture.source, from_picture.field_of_view) == ("odometry", 60.0)
    truth = TruePoseTrack(np.arange(n), track.c2w, False, "x")
    assert (
        scored(camera_controllability(case(), frames(n), truth, from_picture)).facts["field_of_view_estimated"] is False
    )
    lost = CameraPath(path.index, path.time, turns, path.direction, flags, flags, flags & False, 60.0, False)
    assert derive_observed_camera.fn(None, lost).kind == "not_followed"
    assert isinstance(derive_observed_camera.fn(None, None), Unscored)


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    truth = TruePoseTrack(np.arange(3), poses(RAMP[:3]), True, "x")
    with pytest.raises(InvalidEvidence, match="rotation matrices: orthonormal"):
        camera_controllability(case(), frames(3), truth, ObservedCamera(np.arange(3), np.ones((3, 3, 3)), None, "x"))
    with pytest.raises(InvalidEvidence, match="it must be"):
        camera_controllability(case(), frames(3), truth, ObservedCamera(np.arange(3), np.ones((2, 3, 3)), None, "x"))


def test_upstream_is_reproduced(shared):
    folder = shared / "oracle/memobench"
    cases = json.loads((folder / "oracle.json").read_text())["camera_controllability"]
    assert len(cases) == 5
    for one in cases:
        arrays = np.load(folder / one["file"])
        turns = ObservedCamera(np.arange(one["n_gen"]), arrays["est"][:, :3, :3], None, "network")
        truth = TruePoseTrack(np.arange(one["n_gt"]), arrays["gt"], True, "dataset")
        made = scored(camera_controllability(case(), frames(one["n_gen"]), truth, turns, rule="upstream"))
        assert {
            "camera_controllability": made.facts["controllability"],
            "ate_rot_deg": made.facts["ate_deg"],
            "total_gt_rotation_deg": made.facts["true_rotation_deg"],
            "mean_rot_error_deg": made.facts["step_error_deg"],
        } == one["expected"]


def test_the_resting_camera_is_printed_beside_the_score():
    made = judged(np.zeros(81), RAMP, "upstream")
    record = Record(case(), "memo_camera", False, "scored", made.value, facts=made.facts)
    (table,) = summarise(Results([case()], [record]))["tables"]
    assert table["title"] == "Camera controllability, compared with a resting camera"
    values = dict(zip(table["columns"], (cell["mean"] for cell in table["rows"][0]["cells"]), strict=True))
    assert values["score"] == values["resting"] == 42.1
    assert values["error removed"] == pytest.approx(0, abs=1e-9)
