"""MIND's rules: which frames and steps count, labels and groups, and its metrics on made-up evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import SUITES, Case, Clip, Reason, Score, Unscored, UsageError
from revisit.evidence.camera import PoseTrack, TruePoseTrack
from revisit.evidence.frames import FrameFacts
from revisit.evidence.reference import FrameFidelity, PerceptualDistance
from revisit.metrics.fidelity import IDENTICAL_DB
from revisit.suites.mind.evidence import ActionTrack, DistanceFromStart, FeatureError
from revisit.suites.mind.metrics import action, gsc, lcm, selection, visual
from tests.metrics.test_camera_metrics import bent_path, elsewhere

# What the public evaluator was seen to score of clips of so many frames.
SCORED_UPSTREAM = {48: 0, 97: 0, 100: 0, 101: 100, 200: 100, 240: 200, 300: 200, 500: 400}


@pytest.mark.parametrize(("frames", "scored"), SCORED_UPSTREAM.items())
def test_upstream_loses_the_last_chunk_and_corrected_scores_every_frame(frames, scored):
    assert selection.count_scored_frames(frames, "upstream") == scored
    assert selection.count_scored_frames(frames, "corrected") == frames
    made = lcm.lcm_mse(main(frames), facts(frames), pairs(frames), rule="upstream")
    assert (made.facts["length"], made.facts["compared"]) == (scored, frames)
    if scored:
        assert isinstance(made, Score) and len(made.units) == scored
    else:
        assert made.kind == "refused"
    assert len(lcm.lcm_mse(main(frames), facts(frames), pairs(frames)).units) == frames


def keys(*held):
    """Rows of keys: forward, side, tilt, turn."""
    columns = np.array(held, dtype=np.int8).reshape(-1, 4).T
    return ActionTrack(np.arange(len(held)), *columns)


def test_labels():
    track = keys((0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (0, 0, 1, 2), (1, 2, 2, 1))
    assert selection.action_labels(track, range(5)) == [
        "no_op", "forward", "backward+left", "look_up+look_right", "forward+right+look_down+look_left"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "corrected", "upstream"),
    [
        ("forward", "translation", "translation"),
        ("left", "translation", "translation"),
        ("forward+left", "translation", "other"),
        ("look_left", "rotation", "other"),
        ("look_up+look_left", "rotation", "other"),
        ("forward+look_left", "mixed", "other"),
        ("no_op", "no_op", "other"),
    ],
)
def test_groups(label, corrected, upstream):
    assert selection.action_group_of_label(label, "corrected") == corrected
    assert selection.action_group_of_label(label, "upstream") == upstream


def test_an_unknown_rule_is_refused():
    with pytest.raises(UsageError, match="unknown rule 'strict'"):
        selection.count_scored_frames(10, "strict")


def main(frames, total=None, mark=0, condition="mem_test"):
    said = {"mark_time": mark, "total_time": mark + (total or frames), "true_poses_from": 0}
    return Case(
        id="s@m", suite="mind", model="m", sample="s", clip=Clip(Path("a.mp4")), condition=condition, annotations=said
    )


def facts(n, fps=24.0):
    return FrameFacts(
        np.arange(n), np.arange(n) / fps, np.zeros((n, 16), np.uint8), np.zeros(n), np.zeros(n), 64, 48, fps
    )


def pairs(n, mse=10.0, mirrored=0):
    index = np.arange(mirrored - n, mirrored) if mirrored else np.arange(n)
    other = mirrored - 1 - index if mirrored else np.arange(n)
    return FrameFidelity(index, other, np.full(n, float(mse)), 1280, 720, ssim_torchmetrics=np.full(n, 0.5))


def test_lcm_ends_where_the_shorter_one_ends():
    assert lcm.lcm_mse(main(50, total=12), facts(50), pairs(50)).facts["length"] == 12
    one = lcm.lcm_psnr(main(1), facts(1), pairs(1))
    assert isinstance(one, Score) and len(one.units) == 1
    short = lcm.lcm_mse(main(50, total=50), facts(50), pairs(20))
    assert "fewer frames than its action.json says" in short.facts["note"]
    assert lcm.lcm_mse(main(3), facts(3), pairs(0)).kind == "no_overlap"
    assert lcm.lcm_mse(main(3, condition="mirror_test"), facts(3), pairs(3)).kind == "does_not_apply"


def test_lcm_values():
    assert lcm.lcm_mse(main(5), facts(5), pairs(5, 650.25)).value == pytest.approx(0.01)
    assert lcm.lcm_psnr(main(5), facts(5), pairs(5, 650.25)).value == pytest.approx(20)
    assert lcm.lcm_ssim(main(5), facts(5), pairs(5)).value == 0.5


def test_the_feature_error_names_its_network():
    seen = FeatureError(np.arange(4), np.arange(4), np.array([0.0, 0.001, 0.002, 0.001]), "dinov3-base")
    made = visual.dino_feature_error(main(4), facts(4), seen)
    assert made.value == pytest.approx(0.001)
    assert made.facts["described_by"] == "dinov3-base"
    assert visual.dino_feature_error(main(3), facts(3), replace(seen, index=seen.index[:0], reference=seen.index[:0],
                       mse=seen.mse[:0])).facts["described_by"] == "dinov3-base"  # fmt: skip


def test_upstream_takes_no_substitute_for_its_networks():
    small = FeatureError(np.arange(150), np.arange(150), np.full(150, 0.1), "efficientnet-lite0")
    assert isinstance(visual.dino_feature_error(main(150), facts(150), small), Score)
    left_out = visual.dino_feature_error(main(150), facts(150), small, rule="upstream")
    assert isinstance(left_out, Unscored)
    assert left_out.reason == Reason("other_settings", "upstream needs dinov3-base, but efficientnet-lite0 was used")
    real = replace(small, net="dinov3-base, rescaled twice")
    assert isinstance(visual.dino_feature_error(main(150), facts(150), real, rule="upstream"), Score)
    vgg = PerceptualDistance(np.arange(150), np.arange(150), np.full(150, 0.1), "lpips_vgg", "", 1280, 720)
    assert lcm.lcm_lpips(main(150), facts(150), vgg, rule="upstream").kind == "other_settings"
    assert isinstance(lcm.lcm_lpips(main(150), facts(150), replace(vgg, net="lpips_alex"), rule="upstream"), Score)


@pytest.mark.parametrize(("most", "scored"), [(None, 200), (101, 100), (100, 0), (200, 100), (201, 200), (250, 200)])
def test_video_max_time_is_applied_before_chunks_are_dropped(most: int | None, scored: int):
    """n = min(total - mark, frames, video_max_time); of these upstream loses the chunk that it reads last."""
    made = lcm.lcm_mse(main(240), facts(240), pairs(240), rule="upstream", video_max_time=most)
    assert made.facts["length"] == scored and isinstance(made, Score) == bool(scored)
    assert lcm.lcm_mse(main(240), facts(240), pairs(240), video_max_time=7).facts["length"] == 7


def test_identical_frames_are_capped_and_infinite_upstream():
    capped = lcm.lcm_psnr(main(150), facts(150), pairs(150, 0))
    assert capped.value == IDENTICAL_DB and capped.facts["psnr_is_capped"] == 150
    infinite = lcm.lcm_psnr(main(150), facts(150), pairs(150, 0), rule="upstream")
    assert isinstance(infinite, Unscored) and infinite.kind == "unbounded"


def mirror(n, motion=0.05, rule="corrected", mse=10.0):
    outset = DistanceFromStart(np.array([0, n // 2, n - 1]), np.array([0, motion, 0]))
    case = main(n, condition="mirror_test")
    return gsc.gsc_mse(case, facts(n), outset, pairs(n // 2, mse, mirrored=n), rule=rule)


def test_gsc_takes_odd_lengths_and_upstream_does_not():
    assert mirror(48).units["other"].tolist() == list(range(24))
    assert mirror(48).units["frame"].tolist() == list(range(47, 23, -1))
    assert mirror(49).units["frame"].tolist() == list(range(48, 24, -1))
    assert mirror(49, rule="upstream").kind == "refused"
    for n in (42, 62, 82):
        assert mirror(n).facts["length"] == n // 2
        assert mirror(n, rule="upstream").kind == "refused"
    assert mirror(1).kind == "too_short"
    assert isinstance(mirror(48, rule="upstream"), Score)


def test_a_static_clip_does_not_win_gsc():
    assert mirror(48, motion=1e-5, mse=0).kind == "at_rest"
    assert mirror(48, motion=5e-4).kind == "at_rest"
    assert mirror(48, motion=0.05).facts["motion_mse"] == 0.05
    assert isinstance(mirror(48, motion=0.0, rule="upstream"), Score)  # as the public evaluator has it


def actions_case(n, source="colmap", label=(0, 0, 0, 2)):
    truth = bent_path(n)
    track = PoseTrack(np.arange(n), elsewhere(bent_path(n, turn=1.8)), False, "vipe")
    true = TruePoseTrack(np.arange(n), truth, False, source)
    return main(n), track, true, keys(*[label] * n)


def test_action_scores_all_steps_and_upstream_the_first_96():
    found = action.action_rotation(*actions_case(150))
    assert found.facts["steps"] == 149 and found.value == pytest.approx(0.2)
    assert set(found.facts["groups"]) == {"__overall__", "rotation", "act:look_right"}
    legacy = action.action_rotation(*actions_case(150), rule="upstream")
    assert legacy.facts["steps"] == 96 and set(legacy.facts["groups"]) == {"__overall__", "other", "act:look_right"}


def test_upstream_has_no_action_without_97_rows_of_images_txt():
    assert action.action_rotation(*actions_case(60), rule="upstream").kind == "refused"
    assert action.action_rotation(*actions_case(150, "unreal"), rule="upstream").kind == "refused"
    case, track, true, held = actions_case(150)
    short = PoseTrack(track.frame[:8], track.c2w[:8], False, "vipe")
    assert action.action_rotation(case, short, true, held, rule="upstream").kind == "too_short"
    assert action.action_rotation(case, short, true, held).facts["steps"] == 7


def test_action_needs_rows_for_the_predicted_frames():
    case, track, true, held = actions_case(20)
    before = ActionTrack(held.frame - 100, held.forward, held.side, held.tilt, held.turn)
    assert action.action_translation(case, track, true, before).kind == "mismatch"


def test_both_protocols_ask_the_same_metrics_with_different_hashes():
    from revisit.core import METRICS
    from revisit.engine.dependencies import ObserverSet, protocol_facts, short_hash
    from revisit.observers.sets import load_roles

    mind = SUITES["mind"]
    lite = ObserverSet("lite", load_roles("lite"))
    assert list(mind.protocols) == ["corrected", "upstream"]
    for id in (id for id in mind.metrics() if id.startswith("mind_")):
        hashes = {short_hash(protocol_facts(METRICS[id], lite, parameters)) for parameters in mind.protocols.values()}
        assert len(hashes) == 2, f"{id} is one number under both protocols"
