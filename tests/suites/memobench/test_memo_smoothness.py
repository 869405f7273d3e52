"""Motion smoothness of MemoBench: the direction of the warp, the step, the phases, and upstream's numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from revisit.core import InvalidEvidence, UsageError
from revisit.suites.memobench.evidence import WarpErrors
from revisit.suites.memobench.metrics.smoothness import motion_smoothness, smoothness_or_zero_if_too_few
from revisit.suites.memobench.observers.warp_errors import dis_warp as warp_errors
from revisit.suites.memobench.observers.warp_errors import (
    divide_by_255,
    reversed_warp_error,
    sampled_frames_by_phase,
    warp_error_and_shares,
    warp_statistics_of_pair,
)
from revisit.worlds import Film, make_room, play
from tests.looking import as_frames, look, wall, window
from tests.memo import RULES, case, frames, refused, scored


def errors(visible=3, returned=3, step=4, closed=False, **columns):
    """Evidence of so many pairs in each phase."""
    count = visible + returned
    start = np.r_[np.arange(visible) * step, 25 + np.arange(returned) * step]
    plain = {"error": 0.03, "compared": 0.9, "inside": 0.9, "wrong_way": 0.06, "still": 0.05, "length": 0.01} | columns
    return WarpErrors(
        index=start, other=start + step, phase=np.repeat([0, 2], [visible, returned]), step=step, fps=16.0,
        closed=closed, maker="made up", width=64, height=48, **{k: np.resize(v, count) for k, v in plain.items()},
    )  # fmt: skip


def test_no_error_is_100_under_every_rule():
    perfect = errors(error=0.0, wrong_way=0.0, still=0.0)
    for rule in ("corrected", "paper"):
        assert scored(motion_smoothness(case(), frames(), perfect, rule=rule)).value == 100
    assert scored(motion_smoothness(case(), frames(), replace(perfect, closed=True), rule="upstream")).value == 100


def test_the_rules_differ_as_the_header_says():
    seen = errors(closed=True, error=[0.03], wrong_way=[0.0, 0.0, 0.0, 0.3, 0.3, 0.3])
    corrected, upstream, paper = (
        scored(motion_smoothness(case((13, 25)), frames(), seen, rule=rule)) for rule in RULES
    )
    assert corrected.value == pytest.approx(100 * np.exp(-0.03 / 0.15))
    assert upstream.value == round(50 * (1 + np.exp(-2)), 1)  # a mean of two scores
    assert paper.value == pytest.approx(100 * np.exp(-1))  # the score of a mean
    assert upstream.facts["by_phase"]["visible"] == 1
    assert corrected.facts["without_flow"] == pytest.approx(np.exp(-0.05 / 0.15))
    shared = scored(motion_smoothness(case((12, 25)), frames(), seen, rule="paper"))
    assert shared.facts["pairs"] == {"visible": 2, "returned": 3}  # the pair that ends on frame 12 is upstream's alone
    assert (corrected.facts["step"], corrected.facts["seconds"], corrected.facts["flow"]) == (4, 0.25, "made up")


def test_a_short_phase_is_unscored_and_zero_upstream():
    seen = errors(visible=1, closed=True, wrong_way=0.0)
    reason = refused(motion_smoothness(case((7, 25)), frames(), seen))
    assert reason.kind == "too_short" and reason.sentence == (
        "the 7 frames of the visible phase hold 1 pairs that are 4 frames apart, and 2 are needed"
    )
    assert refused(motion_smoothness(case((7, 25)), frames(), seen, rule="paper")).kind == "too_short"
    assert scored(motion_smoothness(case((7, 25)), frames(), seen, rule="upstream")).value == 50
    last = errors(returned=0, closed=True, wrong_way=0.0)  # a return of two frames is left out instead
    assert scored(motion_smoothness(case((12, 38)), frames(), last, rule="upstream")).value == 100


def test_other_pairs_than_the_rule_asks_for_are_refused():
    assert refused(motion_smoothness(case(), frames(), errors(step=6), rule="paper")).kind == "other_settings"
    assert "not shared" in refused(motion_smoothness(case(), frames(), errors(), rule="upstream")).sentence
    assert refused(motion_smoothness(case(None), frames(), errors())).kind == "no_phases"
    assert refused(motion_smoothness(case((12, 80)), frames(), errors())).kind == "mismatch"


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="between 0 and 1; one value is 12"):
        motion_smoothness(case(), frames(), errors(error=12.0))
    with pytest.raises(InvalidEvidence, match="must be 0 or 2"):
        motion_smoothness(case(), frames(), replace(errors(), phase=np.ones(6, int)))
    with pytest.raises(InvalidEvidence, match="it must be"):
        motion_smoothness(case(), frames(), replace(errors(), still=np.zeros(2)))
    with pytest.raises(UsageError, match="unknown rule 'strict'"):
        motion_smoothness(case(), frames(), errors(), rule="strict")


def test_upstream_warps_are_reproduced(shared):
    folder = shared / "oracle/memobench"
    cases = json.loads((folder / "oracle.json").read_text())["temporal_stub_flow"]
    clip = np.load(folder / "temporal_vid.npz")["vid"]
    assert len(cases) == 15
    for one in cases:
        sampled = range(one["start"], one["end"] + 1, one["step"])
        flow = np.broadcast_to(np.float32(one["flow"]), (*clip.shape[1:3], 2))
        found = [
            reversed_warp_error(divide_by_255(clip[a]), divide_by_255(clip[a + one["step"]]), flow)
            for a in sampled[:-1]
        ]
        assert smoothness_or_zero_if_too_few(np.array(found), 0.15) == pytest.approx(one["expected"], abs=1e-6)


def true_flow(film: Film, start: int, stop: int) -> np.ndarray:
    """Where each pixel of one frame is in another, in pixels, from depth and poses."""
    depth = film.truth(start).depth.astype(float)
    ys, xs = np.mgrid[: depth.shape[0], : depth.shape[1]]
    K, a, b = film.K, film.poses[start], film.poses[stop]
    rays = np.stack([(xs - K[0, 2]) / K[0, 0], (ys - K[1, 2]) / K[1, 1], np.ones_like(depth)], axis=-1)
    there = ((rays * depth[..., None]) @ a[:3, :3].T + a[:3, 3] - b[:3, 3]) @ b[:3, :3]
    x, y = (there[..., k] / there[..., 2] * K[k, k] + K[k, 2] for k in (0, 1))
    return np.stack([x - xs, y - ys], axis=-1).astype(np.float32)


@pytest.fixture(scope="module")
def pan() -> Film:
    """A camera that turns by 6 degrees from one frame to the next, and back."""
    return play(make_room(3), "yaw:right:60@10,yaw:left:60@10", size=(270, 480))


def clip_of(film: Film, flow) -> WarpErrors:
    """Evidence of all pairs of neighbouring frames in both phases, by a flow of one's own."""
    hidden, returned = film.phases
    starts = [*range(hidden - 1), *range(returned, len(film) - 1)]
    rows = []
    for k in starts:
        there, back = flow(film, k, k + 1), flow(film, k + 1, k)
        rows.append(
            warp_statistics_of_pair(divide_by_255(film.truth(k).rgb), divide_by_255(film.truth(k + 1).rgb), there, back)
        )
    index = np.array(starts)
    names = ("error", "compared", "inside", "wrong_way", "still", "length")
    return WarpErrors(
        index=index, other=index + 1, phase=np.where(index < hidden, 0, 2), step=4, fps=16.0, closed=True,
        maker="exact", width=480, height=270, **dict(zip(names, np.array(rows).T, strict=True)),
    )  # fmt: skip


@pytest.mark.long
def test_exact_flow_is_smooth_corrected_and_worse_than_no_flow_upstream(pan):
    """The fault: the public evaluator looks for the origin of a pixel on the opposite side."""
    seen = clip_of(pan, true_flow)
    rested = clip_of(pan, lambda film, a, b: np.zeros_like(true_flow(film, a, b)))
    of = case(pan.phases), frames(len(pan))
    exact = scored(motion_smoothness(*of, seen))
    assert 255 * (exact.raw or 1) < 1  # of 255 grey levels: what rounding and sampling between pixels leave
    assert exact.value > 97.5
    noise = np.random.default_rng(0).normal(0, 3 / 255, (2, 270, 480, 3)).astype(np.float32)
    resting = [divide_by_255(pan.truth(0).rgb) + part for part in noise]
    assert (exact.raw or 1) < warp_error_and_shares(resting[0], resting[1], np.zeros((270, 480, 2), np.float32))[0]
    wrong = scored(motion_smoothness(*of, seen, rule="upstream"))
    nothing = scored(motion_smoothness(*of, rested, rule="upstream"))
    assert wrong.value < nothing.value - 1
    assert wrong.value < 40 < exact.value
    assert nothing.facts["temporal_score"] == pytest.approx(nothing.facts["without_flow"], abs=0.02)


@pytest.mark.long
def test_the_lite_observer_follows_fast_pans(pan):
    """Three steps of 6 degrees from one sampled frame to the next: a third of the view is gone."""
    shots = as_frames([pan.truth(k).rgb for k in range(len(pan))], fps=12.0)
    seen = look(warp_errors, shots, fps=12.0, phases=(8, 12))
    assert (seen.step, seen.width, seen.height) == (3, 480, 270)
    assert seen.inside.max() < 0.75
    assert scored(motion_smoothness(case((8, 12)), frames(len(pan)), seen)).value > 93
    again = look(warp_errors, shots, fps=12.0, phases=(8, 12))
    assert np.array_equal(seen.error, again.error)


def test_pixels_that_leave_or_are_covered_are_not_compared():
    scene = wall()
    earlier, later = (
        divide_by_255(window(scene, 40)),
        divide_by_255(window(scene, 0)),
    )  # the picture moves to the right by 40
    flow = np.broadcast_to(np.float32([40, 0]), (*earlier.shape[:2], 2))
    error, compared, inside = warp_error_and_shares(earlier, later, flow, -flow)
    assert error == pytest.approx(0, abs=1e-3)
    assert inside == pytest.approx(280 / 320, abs=0.01)
    assert compared == inside
    covered = later.copy()
    covered[40:120, 100:200] = 1  # something comes in front; the flow back says so
    back = -flow.copy()
    back[40:120, 100:200] = 0
    assert (
        warp_error_and_shares(earlier, covered, flow, back)[0] < 0.01 < warp_error_and_shares(earlier, covered, flow)[0]
    )


def test_a_picture_that_boils_is_not_saved_by_what_was_left_out():
    rng = np.random.default_rng(0)
    boiling = [np.clip(window(wall(seed=k), 0) + rng.normal(0, 5, (180, 320, 3)), 0, 255) for k in range(16)]
    seen = look(warp_errors, as_frames([p.astype(np.uint8) for p in boiling], 8.0), 8.0, phases=(7, 9))
    assert scored(motion_smoothness(case((7, 9)), frames(16), seen)).value < 75
    steady = look(warp_errors, as_frames([window(wall(), 2 * k) for k in range(16)], 8.0), 8.0, phases=(7, 9))
    assert scored(motion_smoothness(case((7, 9)), frames(16), steady)).value > 97


def test_steps_last_a_quarter_of_a_second():
    for fps, step in ((16, 4), (24, 6), (60, 15), (2, 1)):
        shots = as_frames([window(wall(), k) for k in range(4)], fps)
        assert look(warp_errors, shots, fps, phases=(2, 3)).step == step
    shared = sampled_frames_by_phase(40, (12, 25), 4, closed=True)
    assert {phase: list(chosen) for phase, chosen in shared.items()} == {0: [0, 4, 8, 12], 2: [25, 29, 33, 37]}
    assert list(sampled_frames_by_phase(40, (12, 25), 4, closed=False)[0]) == [0, 4, 8]


@pytest.mark.parametrize("score", [0.01347, 0.61246, 0.9, 0.33335])
def test_upstream_rounds_the_score_before_it_is_put_on_100(score: float):
    """Its CSV has TemporalScore to four decimals, and the percentage is made of that: 0.01347 gives 1.4, not 1.3."""
    error = -0.15 * np.log(score)
    seen = errors(closed=True, wrong_way=error)
    made = scored(motion_smoothness(case(), frames(), seen, rule="upstream"))
    assert made.facts["temporal_score"] == round(score, 4)
    assert made.value == round(float(np.clip(round(score, 4) / 1 * 100, 0, 100)), 1)
