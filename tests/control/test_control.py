"""Camera control: scripts compiled to paths, generators as data, records of what was delivered.

What the payloads say to their loaders is tested in test_payload_loaders.py and test_upstream_payloads.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.control.delivery import make_delivery, plan_for_generator
from revisit.control.generators import Generator, find_generator, load_generators
from revisit.control.job_runner import provenance_record
from revisit.control.jobs import Job
from revisit.control.payloads import PayloadError
from revisit.control.requested_path import (
    PRESETS,
    amplify_path,
    compile_script,
    intrinsics,
    limit_translation_per_axis,
    preset_script,
)
from revisit.core import UsageError
from revisit.geometry.camera_script import ALIASES, MOVES, RESTS

OUT_AND_BACK = "yaw:left:60@40,yaw:right:60@40"


def test_yaw_left_then_dolly_forward_moves_along_minus_x() -> None:
    path = compile_script("yaw:left:90@10,dolly:forward:1@10").path
    np.testing.assert_allclose(path.c2w[-1, :3, 3], [-1, 0, 0], atol=1e-9)


def test_frames_that_count_both_ends_reach_the_peak_twice() -> None:
    plan = compile_script("yaw:left:60@40,yaw:right:60@41", frames=81)
    assert len(plan) == 81
    assert plan.yaw_degrees[39] == pytest.approx(-60) == plan.yaw_degrees[40]
    assert plan.yaw_degrees[-1] == pytest.approx(0, abs=1e-9)
    assert plan.farthest_signed_yaw_degrees == pytest.approx(-60)


def test_the_first_frame_is_not_counted_by_default() -> None:
    plan = compile_script(OUT_AND_BACK)
    assert len(plan) == 81
    assert plan.yaw_degrees[40] == pytest.approx(-60)


def test_resampling_follows_the_arc_and_stays_rigid() -> None:
    plan = compile_script(OUT_AND_BACK, frames=121)
    assert len(plan) == 121
    assert np.abs(np.linalg.det(plan.path.rotations) - 1).max() < 1e-12
    assert plan.yaw_degrees[30] == pytest.approx(-30)


def test_intrinsics_of_sixty_degrees() -> None:
    assert intrinsics((832, 480))[0, 0] == pytest.approx(720.533, abs=1e-3)


def test_gains_scale_turns_and_ways_and_leave_the_plan_alone() -> None:
    plan = compile_script("yaw:left:20+dolly:forward:0.5@20")
    before = plan.path.c2w.copy()
    fed = limit_translation_per_axis(amplify_path(plan.path.c2w, rotation=3, translation=2), 0.6)
    assert np.degrees(np.arctan2(fed[-1, 0, 2], fed[-1, 2, 2])) == pytest.approx(-60)
    assert np.abs(fed[:, :3, 3]).max() == pytest.approx(0.6)
    np.testing.assert_array_equal(plan.path.c2w, before)


@pytest.mark.parametrize(
    ("script", "frames"),
    [
        ("static@81", 81), ("hold@80", 81), ("yaw:left:60@40,yaw:right:60@41", 81), (OUT_AND_BACK, 81),
        ("yaw:left:60@27,static@27,pan:right:0.5@27", 81), ("pan:left:0.5@24,pan:right:0.5@25", 49),
        ("yaw:left:9@1", 2),
    ],
)  # fmt: skip
def test_a_script_of_81_frames_gives_81_poses(script: str, frames: int) -> None:
    assert len(compile_script(script)) == frames
    assert len(compile_script(script, frames=33)) == 33


def test_a_generator_decides_where_frames_can_be_counted_in_two_ways() -> None:
    assert len(plan_for_generator("yaw:left:60@33,yaw:right:60@33", find_generator("magicworld"))) == 66
    assert len(plan_for_generator("yaw:left:60@32,yaw:right:60@33", find_generator("lingbot-world"))) == 65
    assert len(plan_for_generator("yaw:left:60@32,yaw:right:60@33", find_generator("liveworld"))) == 65
    assert len(plan_for_generator("yaw:left:60@32,yaw:right:60@32", find_generator("liveworld"))) == 65
    hydra = find_generator("hydra")
    with pytest.raises(PayloadError, match="clips of 77 frames, not 81; give --frames 77"):
        make_delivery(plan_for_generator("yaw:left:60@40,yaw:right:60@41", hydra, 81), hydra)
    spread = make_delivery(plan_for_generator("yaw:left:60@40,yaw:right:60@41", hydra), hydra)
    assert len(spread.plan) == 77 and spread.plan.farthest_signed_yaw_degrees == pytest.approx(-60, abs=1)
    assert "the script has 81 frames; the path was spread over 77" in spread.remarks()
    assert not make_delivery(plan_for_generator("yaw:left:60@40,yaw:right:60@36", hydra), hydra).remarks()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_compile_and_come_back(name: str) -> None:
    plan = compile_script(preset_script(name))
    assert len(plan) == 81
    np.testing.assert_allclose(plan.path.c2w[-1], plan.path.c2w[0], atol=1e-6)
    assert len(compile_script(preset_script(name, frames=66), frames=66)) == 66


def test_a_circle_and_a_way_around_look_at_one_point() -> None:
    for name, distance in (("circle", 1.0), ("around_LR", 2.0), ("around_RL", 2.0)):
        path = compile_script(preset_script(name)).path
        looked_at = path.centres + distance * path.rotations[:, :, 2]
        np.testing.assert_allclose(looked_at, np.tile([0, 0, distance], (81, 1)), atol=2e-3, err_msg=name)
    assert compile_script(preset_script("around_LR")).path.centres[:, 0].min() < -1


def test_ways_along_the_first_view_are_upstreams() -> None:
    script = "yaw:left:90@10,dolly:forward:1@10"
    np.testing.assert_allclose(compile_script(script).path.centres[-1], [-1, 0, 0], atol=1e-9)
    first_view = compile_script(script, axes="first_view").path
    np.testing.assert_allclose(first_view.centres[-1], [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(first_view.rotations, compile_script(script).path.rotations)


def test_gains_hold_beyond_half_a_turn() -> None:
    plan = compile_script("yaw:left:800@200,yaw:right:800@200")
    fed = amplify_path(plan.path.c2w, rotation=1.5, translation=1)
    yaw = np.degrees(np.unwrap(np.arctan2(fed[:, 0, 2], fed[:, 2, 2])))
    np.testing.assert_allclose(yaw, 1.5 * plan.yaw_degrees, atol=1e-6)


def test_what_a_generator_cannot_be_told_is_refused_in_a_sentence() -> None:
    for id, script, says in (
        ("inspatio-world", "truck:left:1@80", "sideways"),
        ("inspatio-world", "roll:cw:10@80", "rolls"),
        ("inspatio-world", "yaw:left:30@20,yaw:right:30@20,yaw:left:30@40", "smoothed away"),
        ("minwm-hy", "yaw:left:90@38,yaw:right:90@38", "ask for 30 degrees or 0.8 metres in 40 frames"),
        ("minwm-hy", "yaw:left:30@40,static@8,yaw:right:21@28", "none rests but in the end"),
        ("minwm-wan", "yaw:left:60+dolly:forward:1@76", "either turns or moves"),
        ("recammaster", "static@81", "keep its camera still"),
        ("matrix-game-3", "crane:up:0.5@496", "rises"),
        ("voyager", "tilt:up:20@48", "one of six moves by name"),
    ):
        to = find_generator(id)
        with pytest.raises(PayloadError, match=says):
            make_delivery(plan_for_generator(script, to), to)


def test_tokens_are_as_near_as_they_can_be_and_say_how_far_off() -> None:
    to = find_generator("minwm-wan")
    made = make_delivery(plan_for_generator("yaw:left:30@38,yaw:right:30@38", to), to)
    assert made.one_line_payload == "j*10,l*9"
    assert made.turn_error == pytest.approx(3) and not made.is_exact
    assert any("off by up to 3.00 degrees" in remark for remark in made.remarks())
    whole = make_delivery(plan_for_generator("yaw:left:30@40,yaw:right:27@36", to), to)
    assert whole.one_line_payload == "j*10,l*9" and whole.is_exact


def test_a_peak_between_two_poses_that_a_loader_reads_is_not_told_to_it() -> None:
    hydra = find_generator("hydra")
    between = make_delivery(
        plan_for_generator("yaw:left:60@38,yaw:right:60@38", hydra), hydra
    )  # poses 36 and 40 are read
    assert between.turn_error == pytest.approx(60 * 2 / 38) and not between.is_exact
    assert make_delivery(plan_for_generator("yaw:left:60@40,yaw:right:60@36", hydra), hydra).is_exact
    jitter = ",".join(["yaw:left:9@2,yaw:right:9@2"] * 19)
    assert make_delivery(plan_for_generator(jitter, hydra), hydra).turn_error == pytest.approx(9)


def test_words_say_every_move() -> None:
    to = find_generator("prompt")
    script = "yaw:left:60+crane:up:0.5@40,roll:cw:10@20,static@20"
    made = make_delivery(plan_for_generator(script, to), to)
    assert made.one_line_payload.startswith(
        "The camera turns left by 60 degrees while it moves up by 0.5 metres for 40 frames, then"
    )
    assert "rolls right by 10 degrees" in made.one_line_payload and "stays still for 20 frames" in made.one_line_payload
    assert made.turn_error == pytest.approx(0, abs=1e-9) and made.way_error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", sorted(load_generators()))
def test_the_gain_is_in_the_payload_and_the_plan_asks_for_what_was_asked(name: str) -> None:
    to = find_generator(name)
    if name in ("voyager", "minwm-hy", "minwm-wan"):
        pytest.skip("takes no turn of this size")
    plan = plan_for_generator(preset_script("yaw_LR", degrees=18, frames=to.frames), to, to.frames)
    delivery = make_delivery(plan, to)
    mirrored = name.endswith("mirrored")
    assert delivery.turn_error is None or (delivery.turn_error < 1) is not mirrored
    assert plan.farthest_signed_yaw_degrees == pytest.approx(-18)


def test_a_generator_that_cannot_hold_still_says_so() -> None:
    with pytest.raises(PayloadError, match="keep its camera still"):
        make_delivery(compile_script("hold@80"), find_generator("recammaster"))


def test_the_lengths_of_clips() -> None:
    def entry(*lengths: int) -> Generator:
        return Generator("x", "X", "prompt", "image", "prompt_only", 81, 16, (8, 8), (1, 1, 1), lengths)

    assert [n for n in range(1, 9) if entry().can_make_length(n)] == [2, 3, 4, 5, 6, 7, 8]
    assert [n for n in range(200) if entry(81).can_make_length(n)] == [81] and entry(81).lengths_text == "81"
    assert [n for n in range(100) if entry(33, 33).can_make_length(n)] == [33, 66, 99]
    assert [n for n in range(300) if entry(121, 72, 193).can_make_length(n)] == [121, 193]
    assert entry(121, 72, 193).lengths_text == "121, 193" and entry(33, 33).lengths_text == "33, 66, 99 ..."
    assert entry(5, 4, 81).lengths_text == "5, 9, 13 ... to 81"


def test_unknown_names_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown generator"):
        find_generator("nobody")
    with pytest.raises(UsageError, match="there is no camera preset"):
        preset_script("zoom")
    own = tmp_path / "own.yaml"
    for content, says in (
        ("{payload: telepathy}", "payload"), ("{payload: tokens, options: {speed: 3}}", "options"),
        ("{payload: prompt, lengths: [33, 33]}", "lengths"), ("{payload: prompt, checked: [me]}", "checked"),
    ):  # fmt: skip
        own.write_text(f"generators: {{mine: {content}}}")
        with pytest.raises(UsageError, match=f"`{says}`"):
            load_generators.__wrapped__(own)
    own.write_text("generators: {mine: {title: Mine, payload: w2c_arrays, frames: 49}}")
    mine = load_generators.__wrapped__(own)["mine"]
    assert mine.frames == 49 and mine.checked_text == "no loader stated"
    assert not make_delivery(plan_for_generator(preset_script("yaw_LR", frames=49), mine), mine).is_exact


def test_the_record_keeps_intent_delivery_and_inputs_apart() -> None:
    to = find_generator("spatia")
    plan = plan_for_generator("yaw:left:60@60,yaw:right:60@60", to)
    job = Job("cup__yaw60_LR@spatia", Path("cup.mp4"), 121, seed=7, prompt="a cup", policy="full_target")
    made = provenance_record(job, None, plan, make_delivery(plan, to), to)
    assert made["intended"]["peak_yaw_degrees"] == pytest.approx(-60)
    assert made["delivered"]["gain"] == [3, 1, 0.6]
    assert made["delivered"]["loader"].startswith("ZhaoJingjing713/Spatia")
    assert made["delivered"]["checked"] == ["loader", "upstream"] and made["delivered"]["exact"]
    assert made["viewpoint_condition"] == "geometry_cache"
    assert not made["inputs"]["enters_memory_tables"]
    with pytest.raises(UsageError, match="input policy"):
        provenance_record(replace(job, policy="peeking"), None, plan, None, to)
    voyager = find_generator("voyager")
    told = make_delivery(plan_for_generator("yaw:left:60@48", voyager), voyager).record_facts()
    assert told["converter"] and not told["exact"] and told["largest_turn_error_degrees"] == pytest.approx(15)
    json.dumps(told)


def test_the_docs_say_what_every_payload_was_checked_against() -> None:
    text = (Path(__file__).parents[2] / "docs/camera.md").read_text(encoding="utf-8")
    told = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            for name in cells[0].split(", "):
                told[name.strip("`")] = cells[1].strip("`"), cells[2], cells[3]
    assert told == {
        id: (to.payload, to.lengths_text if to.lengths else "any", to.checked_text)
        for id, to in load_generators().items()
    }
    for name in PRESETS:
        assert f"`{name}`" in text
    for word in (*MOVES, *ALIASES, *RESTS):
        assert word in text or word in ("lights", "screen")
