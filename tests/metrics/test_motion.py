"""Motion: flow with exact truth, the camera gate, smoothness and flicker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import GateResult, InvalidEvidence, Score, Unscored
from revisit.evidence.motion import FlowStats
from revisit.metrics.motion import TOO_SHORT, camera_moved, flicker, frozen_camera, motion_amount, motion_smoothness
from revisit.observers.flow import fit_similarity, flow_stats
from revisit.observers.frames import frame_facts
from tests.looking import as_frames, look, read, wall, window


def flow_of(pictures: list[np.ndarray], fps: float = 24.0) -> FlowStats:
    found: FlowStats = look(flow_stats, as_frames(pictures, fps), fps)
    return found


def verdict_on(flow: FlowStats) -> GateResult:
    verdict = camera_moved(flow)
    assert isinstance(verdict, GateResult)
    return verdict


def still(count: int = 6) -> FlowStats:
    return flow_of([window(wall(), 0)] * count)


def test_a_known_pan_is_measured():
    flow = flow_of([window(wall(), x) for x in range(0, 60, 6)])
    assert flow.shift[:, 0] == pytest.approx(-6 / 320, abs=0.001)
    assert flow.shift[:, 1] == pytest.approx(0, abs=0.001)
    assert np.abs(flow.log_scale).max() < 0.002
    assert flow.warp_error.max() < 0.03
    assert flow.inside == pytest.approx(1 - 6 / 320, abs=0.005)
    amount = motion_amount(flow)
    assert isinstance(amount, Score)
    assert amount.value == pytest.approx(24 * 6 / 320, rel=0.05)


def test_a_known_zoom_and_turn_are_measured():
    scene = window(wall(), 0)
    pictures = [
        cv2.warpAffine(scene, cv2.getRotationMatrix2D((159.5, 89.5), -k, 1.02**k), (320, 180)) for k in range(4)
    ]
    flow = flow_of([p[20:-20, 40:-40].copy() for p in pictures])
    assert flow.log_scale == pytest.approx(np.log(1.02), abs=0.003)
    assert flow.rotation == pytest.approx(np.pi / 180, abs=0.003)


def test_the_camera_is_found_beside_a_moving_thing():
    rng = np.random.default_rng(0)
    places = rng.uniform(-0.5, 0.5, (400, 2))
    vectors = np.tile([0.02, 0.0], (400, 1))
    vectors[:120] = [-0.05, 0.03]
    shift, scale, turn, left = fit_similarity(places, vectors)
    assert shift == pytest.approx((0.02, 0.0), abs=0.001)
    assert abs(scale) < 0.002
    assert abs(turn) < 0.002
    assert (left < 0.01).mean() == pytest.approx(0.7)


def test_a_still_camera_closes_the_gate_and_says_so():
    verdict = verdict_on(still())
    assert (verdict.state, verdict.label) == ("closed", "frozen camera")
    assert verdict.reason.startswith("frozen camera: the picture never moves by more than 0.0%")
    share = frozen_camera(still())
    assert isinstance(share, Score)
    assert share.value == 1
    smooth = motion_smoothness(still())
    assert isinstance(smooth, Score)
    assert smooth.value == pytest.approx(1, abs=1e-3)


def test_a_pan_opens_the_gate_and_a_hardly_visible_one_is_unsure():
    assert verdict_on(flow_of([window(wall(), x) for x in range(0, 60, 6)])).state == "open"
    assert verdict_on(flow_of([window(wall(), x) for x in range(0, 24, 2)])).state == "unsure"


def test_a_flat_picture_is_unsure():
    verdict = verdict_on(flow_of([np.full((180, 320, 3), 128, np.uint8)] * 4))
    assert verdict.state == "unsure"
    assert "too little texture" in verdict.reason


def test_the_gate_on_real_clips(shared: Path):
    for clip, state in (("wf_lingbot", "closed"), ("wrb_case_a_yaw_rl", "open"), ("wrb_cat_reobs_worldplay", "open")):
        frames, fps = read(shared / f"clips/{clip}.mp4")
        assert verdict_on(look(flow_stats, frames, fps)).state == state, clip


def test_one_frame_is_unscored():
    one = flow_of([window(wall(), 0)])
    for metric in (motion_amount, motion_smoothness, frozen_camera):
        assert metric(one) == Unscored(TOO_SHORT)
    assert verdict_on(one).state == "unsure"


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    good = still()
    with pytest.raises(InvalidEvidence, match="it must be"):
        motion_amount(replace(good, mean=good.mean[:2]))
    with pytest.raises(InvalidEvidence, match="not finite"):
        motion_smoothness(replace(good, warp_error=np.full(5, np.nan)))


def test_flicker_is_zero_in_steady_light_and_counts_gray_levels():
    gray = [np.full((60, 80, 3), level, np.uint8) for level in (100, 102, 104, 106)]
    steady = flicker(look(frame_facts, as_frames(gray)))
    assert isinstance(steady, Score)
    assert steady.value == pytest.approx(0, abs=1e-4)
    restless = flicker(look(frame_facts, as_frames([gray[0], gray[2], gray[0], gray[2]])))
    assert isinstance(restless, Score)
    assert restless.value == pytest.approx(4, abs=1e-3)
    assert flicker(look(frame_facts, as_frames(gray[:2]))) == Unscored(
        "too_short", "flicker needs at least three frames; there are 2"
    )
