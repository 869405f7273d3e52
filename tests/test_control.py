"""Camera control: scripts compiled to paths, payloads that say what was compiled, records of what was delivered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.control.compiling import amplified, compile_script, intrinsics
from revisit.control.delivery import deliver
from revisit.control.generators import generator, generators
from revisit.control.payloads import FAMILIES
from revisit.control.payloads.family import PayloadError, relative
from revisit.control.presets import PRESETS, preset
from revisit.control.provenance import Inputs, leaks, provenance
from revisit.core import UsageError
from revisit.geometry.poses import invert

OUT_AND_BACK = "yaw:left:60@40,yaw:right:60@40"


def test_yaw_left_then_dolly_forward_moves_along_minus_x() -> None:
    path = compile_script("yaw:left:90@10,dolly:forward:1@10").path
    np.testing.assert_allclose(path.c2w[-1, :3, 3], [-1, 0, 0], atol=1e-9)


def test_frames_that_count_both_ends_reach_the_peak_twice() -> None:
    plan = compile_script("yaw:left:60@40,yaw:right:60@41", frames=81)
    assert len(plan) == 81
    assert plan.yaw[39] == pytest.approx(-60) == plan.yaw[40]
    assert plan.yaw[-1] == pytest.approx(0, abs=1e-9)
    assert plan.peak_yaw == pytest.approx(-60)


def test_the_first_frame_is_not_counted_by_default() -> None:
    plan = compile_script(OUT_AND_BACK)
    assert len(plan) == 81
    assert plan.yaw[40] == pytest.approx(-60)


def test_resampling_follows_the_arc_and_stays_rigid() -> None:
    plan = compile_script(OUT_AND_BACK, frames=121)
    assert len(plan) == 121
    assert np.abs(np.linalg.det(plan.path.rotations) - 1).max() < 1e-12
    assert plan.yaw[30] == pytest.approx(-30)


def test_intrinsics_of_sixty_degrees() -> None:
    assert intrinsics((832, 480))[0, 0] == pytest.approx(720.533, abs=1e-3)


def test_gains_scale_turns_and_ways_and_leave_the_plan_alone() -> None:
    plan = compile_script("yaw:left:20+dolly:forward:0.5@20")
    before = plan.path.c2w.copy()
    fed = amplified(plan.path.c2w, rotation=3, translation=2, limit=0.6)
    assert np.degrees(np.arctan2(fed[-1, 0, 2], fed[-1, 2, 2])) == pytest.approx(-60)
    assert np.abs(fed[:, :3, 3]).max() == pytest.approx(0.6)
    np.testing.assert_array_equal(plan.path.c2w, before)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_compile_and_come_back(name: str) -> None:
    plan = compile_script(preset(name))
    assert len(plan) == 81
    np.testing.assert_allclose(plan.path.c2w[-1], plan.path.c2w[0], atol=1e-6)


def test_an_orbit_looks_at_one_point() -> None:
    path = compile_script(preset("orbit")).path
    centre = np.array([0, 0, 1.0])
    ahead = path.rotations[:, :, 2]
    np.testing.assert_allclose(path.centres + ahead, np.tile(centre, (81, 1)), atol=2e-3)


# What each family can say: turns on the spot for all; ways where the form has room for them.
SCRIPTS = {
    "angles": [OUT_AND_BACK, "yaw:right:30@20,tilt:up:10@20", "dolly:forward:1@20"],
    "tokens": [OUT_AND_BACK, "dolly:forward:0.5@40,hold@8", "tilt:up:12@8"],
    "actions": [OUT_AND_BACK, "truck:left:0.5@20,truck:right:0.5@20", "yaw:left:30+dolly:forward:1@20"],
}
ANY = [OUT_AND_BACK, "yaw:left:30+dolly:forward:1@20,truck:right:0.4@12", "tilt:up:15@12,hold@4"]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_payload_says_the_compiled_path(family: str) -> None:
    for script in SCRIPTS.get(family, ANY):
        plan = compile_script(script)
        said = FAMILIES[family].read(FAMILIES[family].write(plan, plan.path.c2w))
        np.testing.assert_allclose(said.c2w, relative(plan.path.c2w)[said.frame], atol=1e-4, err_msg=script)


def test_camera_text_is_what_realestate10k_readers_expect() -> None:
    """Columns read by position, as CameraCtrl's loaders do: intrinsics in 1-4, the matrix in 7-18."""
    plan = compile_script(OUT_AND_BACK)
    rows = FAMILIES["camera_text"].write(plan, plan.path.c2w).decode().splitlines()[1:]
    table = np.array([[float(word) for word in row.split()] for row in rows])
    assert table.shape == (81, 19)
    np.testing.assert_allclose(table[0, 1:5], [720.533 / 832, 720.533 / 480, 0.5, 0.5], atol=1e-5)
    w2c = table[:, 7:].reshape(-1, 3, 4)
    np.testing.assert_allclose(w2c, invert(plan.path.c2w)[:, :3], atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["yaw:left", "yaw:right", "dolly:forward", "truck:left"]), st.integers(1, 60)),
        min_size=1,
        max_size=4,
    )
)
def test_exact_families_round_trip_any_path(moves: list[tuple[str, int]]) -> None:
    words = [f"{move}:{amount if move.startswith('yaw') else amount / 30}@{4 + amount % 5}" for move, amount in moves]
    plan = compile_script(",".join(words))
    for id in ("camera_text", "w2c_arrays", "blender_npz", "json_lines", "pose_table", "relative_rows"):
        said = FAMILIES[id].read(FAMILIES[id].write(plan, plan.path.c2w))
        np.testing.assert_allclose(said.c2w, plan.path.c2w[said.frame], atol=1e-4)


def test_what_a_family_cannot_say_is_refused_in_a_sentence() -> None:
    sideways = compile_script("truck:left:1@10")
    with pytest.raises(PayloadError, match="sideways"):
        FAMILIES["angles"].write(sideways, sideways.path.c2w)
    at_once = compile_script("yaw:left:30+dolly:forward:1@20")
    with pytest.raises(PayloadError, match="two moves at once"):
        FAMILIES["tokens"].write(at_once, at_once.path.c2w)
    hasty = compile_script("dolly:forward:1@10,dolly:forward:1@20")
    with pytest.raises(PayloadError, match="one speed"):
        FAMILIES["actions"].write(hasty, hasty.path.c2w)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("broken", [b"", b"\x00\xff\x13", b"{}", b"[1]", b"j*x\n"])
def test_broken_payloads_are_one_sentence(family: str, broken: bytes) -> None:
    with pytest.raises(PayloadError):
        FAMILIES[family].read(broken)


@pytest.mark.parametrize("name", sorted(generators()))
def test_every_generator_gets_a_payload_that_reads_back(name: str) -> None:
    to = generator(name)
    plan = compile_script(
        preset("yaw_LR", degrees=18, frames=to.frames if to.frames % 2 else to.frames + 1), size=to.size, fps=to.fps
    )
    delivery = deliver(plan, to)
    # 76 frames are no whole number of tokens there and back.
    assert delivery.exact or (to.payload == "tokens" and delivery.largest_turn_error < 2), delivery.facts()
    # The gain is in the payload; the plan still asks for what was asked.
    assert plan.peak_yaw == pytest.approx(-18)


def test_tokens_that_do_not_divide_the_turn_are_told() -> None:
    delivery = deliver(compile_script("yaw:left:20@40,yaw:right:13@40"), generator("minwm-hy"))
    assert not delivery.exact
    assert delivery.largest_turn_error > 1


def test_a_generator_that_cannot_hold_still_says_so() -> None:
    with pytest.raises(PayloadError, match="hold"):
        deliver(compile_script("hold@80"), generator("recammaster"))


def test_unknown_names_are_sentences(tmp_path) -> None:
    with pytest.raises(UsageError, match="no generator"):
        generator("nobody")
    with pytest.raises(UsageError, match="no camera preset"):
        preset("zoom")
    own = tmp_path / "own.yaml"
    own.write_text("generators: {mine: {payload: telepathy}}")
    with pytest.raises(UsageError, match="payload"):
        generators(own)
    own.write_text("generators: {mine: {title: Mine, payload: w2c_arrays, frames: 49}}")
    assert generators.__wrapped__(own)["mine"].frames == 49


def test_the_record_keeps_intent_delivery_and_inputs_apart() -> None:
    plan, to = compile_script(OUT_AND_BACK), generator("spatia")
    made = provenance("cup__yaw60_LR@spatia", plan, to, deliver(plan, to), Inputs("a cup", 7, policy="full_target"))
    assert made["intended"]["peak_yaw_degrees"] == pytest.approx(-60)
    assert made["delivered"]["gain"] == [3, 1, 0.6]
    assert made["viewpoint_condition"] == "geometry_cache"
    assert leaks("full_target") and not made["inputs"]["enters_memory_tables"]
    with pytest.raises(UsageError, match="input policy"):
        Inputs("a cup", 7, policy="peeking")
