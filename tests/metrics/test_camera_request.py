"""Did the camera do what it was asked to? Golden numbers are those of WRBench's public code on ideal poses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Case, Clip, InvalidEvidence, Metric, Score, Unscored, UsageError
from revisit.evidence.camera import CameraPath, ObservedCamera, PoseTrack
from revisit.evidence.frames import FrameFacts
from revisit.geometry.camera_script import camera_path_of_length, parse_script
from revisit.metrics.camera import derive_observed_camera, derive_requested_camera
from revisit.suites.wrbench.metrics import camera
from revisit.suites.wrbench.metrics.camera import static_hold_score

N = 81
OUT_AND_BACK = "yaw:left:60@40,yaw:right:60@41"


def case(script: str, **annotations: str) -> Case:
    return Case("c", "wrbench", "m", "s", Clip(Path("c.mp4")), camera=script, annotations=annotations)


def facts(count: int = N) -> FrameFacts:
    zeros = np.zeros(count)
    digests = np.zeros((count, 16), np.uint8)
    return FrameFacts(np.arange(count), zeros, digests, zeros, zeros, 832, 480, 16.0)


def seen(script: str, frames: int = N, *, turns_only: bool = False) -> ObservedCamera:
    c2w = camera_path_of_length(parse_script(script), frames)
    return ObservedCamera(np.arange(frames), c2w[:, :3, :3], None if turns_only else c2w[:, :3, 3], "test")


def ask(metric: Metric, case: Case, frames: FrameFacts, seen: ObservedCamera, **params: str) -> Any:
    """A metric's answer about a case that came with a script and no file."""
    asked = derive_requested_camera.fn(case, frames, None)
    return asked if isinstance(asked, Unscored) else metric(case, asked, seen, **params)


camera_precision = partial(ask, camera.camera_precision)
camera_alignment = partial(ask, camera.camera_alignment)
static_hold = partial(ask, camera.static_hold)


def out_and_back(degrees: float, first: str = "left", second: str = "right") -> str:
    return f"yaw:{first}:{degrees}@40,yaw:{second}:{degrees}@41"


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1.9, 0), (2.1, 0.525536), (5, 0.542747), (15, 0.606528), (30, 0.716531), (45, 0.846477), (75, 0.846478),
     (90, 0.716531)],
)  # fmt: skip
def test_precision_of_a_turn_of_another_size(degrees: float, expected: float) -> None:
    made = camera_precision(case(OUT_AND_BACK), facts(), seen(out_and_back(degrees)), rule="upstream")
    assert made.value == pytest.approx(expected, abs=6e-6)


def test_precision_of_the_requested_turn() -> None:
    # The public code gets 0.999795: it rounds to float32 before an arc cosine. Ours does too, with other bits.
    upstream = camera_precision(case(OUT_AND_BACK), facts(), seen(OUT_AND_BACK), rule="upstream")
    assert upstream.value == pytest.approx(0.999795, abs=2.5e-4)
    assert upstream.value < 1
    assert camera_precision(case(OUT_AND_BACK), facts(), seen(OUT_AND_BACK)).value == pytest.approx(1, abs=1e-9)


def test_precision_of_other_paths() -> None:
    one_way = camera_precision(case(OUT_AND_BACK), facts(), seen("yaw:left:60@80"), rule="upstream")
    assert one_way.value == pytest.approx(0.634096, abs=6e-6)
    mirrored = camera_precision(case(OUT_AND_BACK), facts(), seen(out_and_back(60, "right", "left")), rule="upstream")
    assert mirrored.value == 0
    pan = "truck:left:0.5@40,truck:right:0.5@41"
    larger = camera_precision(case(pan), facts(), seen("truck:left:2@40,truck:right:2@41"), rule="upstream")
    assert larger.value == pytest.approx(1, abs=2e-4)
    one_way = camera_precision(case(pan), facts(), seen("truck:left:0.5@80"), rule="upstream")
    assert one_way.value == pytest.approx(0.510290, abs=2e-4)
    other_side = camera_precision(case(pan), facts(), seen("truck:right:0.5@40,truck:left:0.5@41"), rule="upstream")
    assert other_side.value == 0


def test_upstream_moves_along_the_first_view_and_corrected_along_the_heading() -> None:
    script = "yaw:left:90@40,dolly:forward:1@41"
    turned, straight = (
        ObservedCamera(np.arange(N), path[:, :3, :3], path[:, :3, 3], "test")
        for path in (
            camera_path_of_length(parse_script(script), N),
            camera_path_of_length(parse_script(script), N, axes="first_view"),
        )
    )
    for rule, followed, other in (("corrected", turned, straight), ("upstream", straight, turned)):
        asked = replace(case(script), condition="yaw_LR")  # by its label the public evaluator scores it
        assert camera_precision(asked, facts(), followed, rule=rule).value == pytest.approx(1, abs=2.5e-4)
        assert camera_precision(asked, facts(), other, rule=rule).value < 0.7


@pytest.mark.parametrize(
    "script", ["yaw:left:60+dolly:forward:1@40,yaw:right:60+dolly:back:1@40", "orbit:left:60@80", "dolly:forward:1@80"]
)
def test_upstream_has_no_precision_of_arcs_orbits_and_other_motions(script: str) -> None:
    """Its status is unsupported_camera_type, and such clips are in no mean, whatever the profile."""
    for profile in camera.PROFILES:
        left_out = camera_precision(case(script), facts(), seen(script), rule="upstream", profile=profile)
        assert isinstance(left_out, Unscored) and left_out.kind == "does_not_apply"
        assert left_out.facts == {"upstream_reason": "unsupported_camera_type"}
    assert camera_precision(case(script), facts(), seen(script)).value == pytest.approx(1, abs=1e-6)


def test_a_drift_does_not_hurt_a_path_that_only_turns() -> None:
    path = seen(OUT_AND_BACK)
    drifting = ObservedCamera(path.index, path.rotation, np.linspace(0, 5, N)[:, None] * [1.0, 0, 0], "test")
    assert camera_precision(case(OUT_AND_BACK), facts(), drifting).value == pytest.approx(1, abs=1e-6)


def test_precision_of_another_length() -> None:
    longer = seen("yaw:left:60@60,yaw:right:60@60", 121)
    upstream = camera_precision(case(OUT_AND_BACK), facts(121), longer, rule="upstream")
    assert isinstance(upstream, Unscored) and upstream.kind == "mismatch"
    assert camera_precision(case("yaw:left:60@40,yaw:right:60@40"), facts(121), longer).value > 0.999


def test_static_requests() -> None:
    resting, swaying = seen("hold@80"), seen("yaw:left:3@40,yaw:right:3@41")
    assert camera_precision(case("hold@80"), facts(), resting).value == 1
    assert camera_precision(case("hold@80"), facts(), swaying).value == 0
    assert static_hold(case("hold@80"), facts(), resting).value == 1
    assert static_hold(case("hold@80"), facts(), swaying).value == pytest.approx(0.4)
    moved = np.zeros((2, 3))
    moved[1, 0] = 0.05
    assert static_hold_score(np.stack([np.eye(3)] * 2), moved) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("yaw", "rule", "expected"),
    [(1.9, "upstream", 0), (16, "upstream", 0.5), (30, "upstream", 1), (60, "upstream", 1), (16, "corrected", 14 / 58),
     (31, "corrected", 0.5), (60, "corrected", 1), (90, "corrected", 1)],
)  # fmt: skip
def test_alignment(yaw: float, rule: str, expected: float) -> None:
    made = camera_alignment(case(OUT_AND_BACK), facts(), seen(out_and_back(yaw)), rule=rule)
    assert made.value == pytest.approx(expected, abs=1e-6)


def test_alignment_of_the_wrong_side_a_one_way_turn_and_a_request_in_words() -> None:
    wrong = camera_alignment(case(OUT_AND_BACK), facts(), seen(out_and_back(60, "right", "left")))
    assert wrong.value == 0 and wrong.facts["finding"] == "wrong direction"
    assert camera_alignment(case(OUT_AND_BACK), facts(), seen("yaw:left:60@80")).value == pytest.approx(1)
    told = case(OUT_AND_BACK, viewpoint_condition="prompt_only")
    assert camera_alignment(told, facts(), seen(out_and_back(16))).value == pytest.approx(0.5)
    assert isinstance(camera_precision(told, facts(), seen(OUT_AND_BACK)), Unscored)


def test_what_is_not_asked_is_unscored_with_its_reason() -> None:
    assert camera_precision(case(""), facts(), seen(OUT_AND_BACK)).kind == "no_camera"
    assert camera_alignment(case("spin"), facts(), seen(OUT_AND_BACK)).kind == "unreadable"
    assert camera_alignment(case("hold@80"), facts(), seen(OUT_AND_BACK)).kind == "does_not_apply"
    assert static_hold(case(OUT_AND_BACK), facts(), seen(OUT_AND_BACK)).kind == "does_not_apply"
    assert camera_alignment(case(OUT_AND_BACK), facts(1), seen(OUT_AND_BACK)).kind == "too_short"
    pan = camera_precision(case("truck:left:1@80"), facts(), seen("truck:left:1@80", turns_only=True))
    assert pan.kind == "no_camera"


def test_odometry_serves_turns() -> None:
    path = seen(OUT_AND_BACK)
    zeros = np.zeros(N)
    found = CameraPath(
        path.index, zeros, path.rotation, np.zeros((N, 3)), zeros, zeros + 1, np.ones(N, bool), 60.0, False
    )
    camera = derive_observed_camera.fn(None, found)
    assert camera.centre is None and camera.source == "odometry"
    assert camera_precision(case(OUT_AND_BACK), facts(), camera).value == pytest.approx(1, abs=1e-6)
    lost = CameraPath(path.index, zeros, path.rotation, np.zeros((N, 3)), zeros, zeros, np.zeros(N, bool), 60.0, False)
    assert isinstance(derive_observed_camera.fn(None, lost), Unscored)
    assert isinstance(derive_observed_camera.fn(None, None), Unscored)
    poses = PoseTrack(path.index, camera_path_of_length(parse_script(OUT_AND_BACK), N), False, "vggt")
    assert derive_observed_camera.fn(poses, found).source == "vggt"


def test_malformed_evidence_raises() -> None:
    with pytest.raises(InvalidEvidence, match="it must be"):
        ObservedCamera(np.arange(3), np.zeros((2, 3, 3)), None, "test")
    with pytest.raises(UsageError, match="rule"):
        camera_alignment(case(OUT_AND_BACK), facts(), seen(OUT_AND_BACK), rule="generous")
    assert isinstance(camera_alignment(case(OUT_AND_BACK), facts(), seen(OUT_AND_BACK)), Score)
