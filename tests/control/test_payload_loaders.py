"""What the generators' own loaders make of our payloads, by readers that were written from the loaders' facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from revisit.control.delivery import Delivery, make_delivery, plan_for_generator
from revisit.control.generators import Generator, find_generator, load_generators
from revisit.control.payloads import FAMILIES, PayloadError
from revisit.control.requested_path import CameraPlan
from revisit.suites.wrbench.tables import published_model_rows
from tests.loaders import READERS, lingbot_keys, rows_of_19, walked, wan_fun_focal

UNITS = {"hunyuan-game-craft": 10.0, "hunyuan-game-craft-mirrored": 10.0}  # of length, in the loader


def scripts(frames: int) -> dict[str, str]:
    """Scripts over so many frames, in upstream's words."""
    half, quarter, rest = (frames - 1) // 2, (frames - 1) // 4, frames - 1 - 3 * ((frames - 1) // 4)
    other = frames - 1 - half
    return {
        "yaw": f"yaw:left:60@{half},yaw:right:60@{other}",
        "small yaw": f"yaw:right:30@{half},yaw:left:30@{other}",
        "tilt": f"pitch:up:20@{half},pitch:down:20@{other}",
        "pan": f"pan:left:0.5@{half},pan:right:0.5@{other}",
        "dolly": f"dolly:forward:0.5@{half},dolly:backward:0.5@{other}",
        "arc": f"yaw:left:60+dolly:forward:0.4@{half},yaw:right:60+dolly:back:0.4@{other}",
        "custom": f"yaw:left:25@{quarter},dolly:forward:0.4@{quarter},yaw:right:40@{quarter},static@{rest}",
        "all": f"yaw:left:30+tilt:up:10@{quarter},roll:cw:15+crane:up:0.2@{quarter},"
        f"dolly:back:0.3+pan:right:0.2@{quarter},tilt:down:5@{rest}",
        "one way": f"yaw:left:60@{frames - 1}",
        "ahead": f"dolly:forward:0.9@{frames - 1}",
        "tokens": f"yaw:left:30@40,dolly:forward:{0.08 * ((frames - 1) // 4 - 10):.2f}@{frames - 41}",
    }


# What a loader has no room for, and why; everything else must be delivered.
REFUSED = {
    "inspatio-world": {"pan", "arc", "custom", "all", "tokens"},
    "matrix-game-2": {"all"}, "matrix-game-3": {"all"}, "lingbot-world-act": {"all"},
    "voyager": {"yaw", "small yaw", "tilt", "pan", "dolly", "arc", "custom", "all", "tokens"},
    "minwm-hy": {"tilt", "pan", "dolly", "arc", "custom", "all", "ahead"},
    "minwm-wan": {"arc", "custom", "all"},
}  # fmt: skip
ALL = sorted(scripts(81))


def delivered(to: Generator, name: str) -> tuple[CameraPlan, Delivery]:
    plan = plan_for_generator(scripts(to.frames)[name], to, to.frames)
    return plan, make_delivery(plan, to)


def asked_of(plan: CameraPlan, to: Generator) -> np.ndarray:
    """The path with the generator's gains and before anything is clipped."""
    c2w = plan.path.c2w.copy()
    gains = to.gain if FAMILIES[to.payload].gains else (1, 1)
    c2w[:, :3, :3] = Rotation.from_rotvec(gains[0] * Rotation.from_matrix(c2w[:, :3, :3]).as_rotvec()).as_matrix()
    c2w[:, :3, 3] *= gains[1]
    return c2w


def test_every_generator_with_a_loader_has_a_reader_here() -> None:
    checked = {id for id, entry in load_generators().items() if "loader" in entry.checked}
    assert checked == {*READERS, "matrix-game-2"}
    assert all(entry.loader for entry in load_generators().values() if entry.checked)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("id", sorted(READERS))
def test_a_loader_takes_the_delivered_path(id: str, name: str, tmp_path: Path) -> None:
    to = find_generator(id)
    if name in REFUSED.get(id, ()):
        with pytest.raises(PayloadError):
            delivered(to, name)
        return
    plan, made = delivered(to, name)
    assert len(plan) == to.frames
    written = made.write_files_beside(tmp_path / "clip")
    frames, c2w = READERS[id](written, replace(to, options=made.options))
    assert made.loaded.c2w is not None
    np.testing.assert_array_equal(frames, made.loaded.frame)
    said = made.loaded.c2w.copy()
    said[:, :3, 3] *= UNITS.get(id, 1)
    np.testing.assert_allclose(c2w, said, atol=1e-6)

    # What is stated about it: how far the loader's path is from what was asked, in any frame.
    every = np.arange(to.frames)
    assert frames[-1] == every[-1]
    asked = asked_of(plan, to)
    rotations = Slerp(frames, Rotation.from_matrix(c2w[:, :3, :3]))(every)
    turned = (Rotation.from_matrix(asked[:, :3, :3]).inv() * rotations).magnitude()
    assert made.turn_error == pytest.approx(np.degrees(turned.max()), abs=1e-4)
    ways = np.stack([np.interp(every, frames, axis) for axis in c2w[:, :3, 3].T / UNITS.get(id, 1)], axis=1)
    if id == "lingbot-world-act":  # the keys act along the heading that was asked for, which the gain is to bring about
        ways = walked(lingbot_keys(written), plan.yaw_degrees[frames])
        ways = np.stack([np.interp(every, frames, axis) for axis in ways.T], axis=1)
    if made.loaded.ways == "shape":
        scale = np.linalg.lstsq(ways.reshape(-1, 1), asked[:, :3, 3].ravel(), rcond=None)[0][0]
        ways = max(scale, 0) * ways
    assert made.way_error == pytest.approx(np.linalg.norm(asked[:, :3, 3] - ways, axis=1).max(), abs=1e-6)
    if made.is_exact:
        np.testing.assert_allclose(rotations.as_matrix(), asked[:, :3, :3], atol=2e-4)
        np.testing.assert_allclose(ways, asked[:, :3, 3], atol=1e-4)


ALL_MOTIONS = [
    "wan21-fun-14b", "easyanimate-v51", "magicworld", "hunyuan-game-craft", "hunyuan-worldplay", "versecrafter",
    "gen3c", "spatia", "recammaster", "hydra", "liveworld", "hyworld", "sana-wm", "lingbot-world",
]  # fmt: skip
MOVES = st.sampled_from(
    ["yaw:left", "yaw:right", "tilt:up", "tilt:down", "roll:cw", "roll:ccw", "dolly:forward", "dolly:back", "pan:left",
     "pan:right", "crane:up", "crane:down"]
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.lists(MOVES, max_size=3, unique=True), st.floats(0.1, 60), st.integers(2, 60)), min_size=1, max_size=4
)


@pytest.mark.parametrize("id", [id for id in ALL_MOTIONS if not id.startswith("lingbot")])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_path_reaches_a_loader_that_takes_poses(id: str, steps: list[Any], tmp_path: Path) -> None:
    to = find_generator(id)
    words = [
        "+".join(f"{move}:{size if move[:2] in ('ya', 'ti', 'ro') else size / 60:.6g}" for move in moves) or "static"
        for moves, size, _ in steps
    ]
    script = ",".join(f"{word}@{count}" for word, (_, _, count) in zip(words, steps, strict=True))
    plan = plan_for_generator(script, replace(to, static=True), to.frames)
    made = make_delivery(plan, replace(to, static=True))
    frames, c2w = READERS[id](made.write_files_beside(tmp_path / "clip"), to)
    most = to.gain[2]
    asked = asked_of(plan, to)[frames]
    asked[:, :3, 3] = UNITS.get(id, 1) * np.clip(asked[:, :3, 3], -most, most)
    np.testing.assert_allclose(c2w, asked, atol=5e-6, err_msg=script)


def signs(id: str, name: str, folder: Path) -> np.ndarray:
    """Yaw to the right, pitch up, way to the right, down and ahead, each at its farthest, as the loader reads them."""
    to = find_generator(id)
    _, c2w = READERS[id](delivered(to, name)[1].write_files_beside(folder / "clip"), to)
    yaw = np.degrees(np.unwrap(np.arctan2(c2w[:, 0, 2], c2w[:, 2, 2])))
    pitch = np.degrees(np.arcsin(np.clip(-c2w[:, 1, 2], -1, 1)))
    values = np.stack([yaw, pitch, *c2w[:, :3, 3].T])
    return np.array([row[np.argmax(np.abs(row))] for row in values])


@pytest.mark.parametrize("id", ALL_MOTIONS)
def test_left_is_left_up_is_up_and_ahead_is_ahead(id: str, tmp_path: Path) -> None:
    to = find_generator(id)
    turns, ways, most = to.gain
    near = {"abs": 4} if to.frames > 81 or "recam" in id or "hydra" in id or "world" in id else {"abs": 1e-3}
    yaw, pitch, *moved = signs(id, "yaw", tmp_path)
    assert yaw == pytest.approx(-60 * turns, **near) and abs(pitch) < 1e-4 and not np.abs(moved).max() > 1e-6
    yaw, pitch, *moved = signs(id, "tilt", tmp_path)
    assert pitch == pytest.approx(20 * turns, **near) and abs(yaw) < 1e-3 and not np.abs(moved).max() > 1e-6
    size = UNITS.get(id, 1) * min(0.5 * ways, most)
    right, down, ahead = signs(id, "pan", tmp_path)[2:]
    assert right < 0 and abs(down) + abs(ahead) < 1e-6
    assert id.startswith("lingbot") or right == pytest.approx(-size, rel=0.06)
    right, down, ahead = signs(id, "dolly", tmp_path)[2:]
    assert ahead > 0 and abs(down) + abs(right) < 1e-6
    assert id.startswith("lingbot") or ahead == pytest.approx(size, rel=0.06)


def test_angles_and_keys_have_the_right_signs(tmp_path: Path) -> None:
    assert signs("inspatio-world", "yaw", tmp_path)[0] == pytest.approx(-180)
    assert signs("inspatio-world", "tilt", tmp_path)[1] == pytest.approx(60)
    assert signs("inspatio-world", "dolly", tmp_path)[4] == pytest.approx(0.5)
    assert signs("matrix-game-3", "yaw", tmp_path)[0] == pytest.approx(-60, abs=0.3)
    assert signs("matrix-game-3", "tilt", tmp_path)[1] == pytest.approx(20, abs=0.3)
    assert signs("matrix-game-3", "pan", tmp_path)[2] < -1000 < 1000 < signs("matrix-game-3", "dolly", tmp_path)[4]
    assert signs("minwm-hy", "small yaw", tmp_path)[0] == pytest.approx(30)
    assert signs("voyager", "one way", tmp_path)[0] == pytest.approx(-45)
    assert signs("voyager", "ahead", tmp_path)[4] == pytest.approx(1)


def test_matrix_game_2_gets_whole_arrays_with_the_right_sides(tmp_path: Path) -> None:
    to = find_generator("matrix-game-2")
    found = {}
    for name in ("yaw", "tilt", "pan", "dolly"):
        path = delivered(to, name)[1].write_files_beside(tmp_path / name)
        with np.load(path) as file:
            found[name] = file["keyboard_cond"], file["mouse_cond"]
    for keys, mouse in found.values():
        assert keys.shape == (1, 597, 4) and mouse.shape == (1, 597, 2)
        assert set(np.unique(keys)) <= {0, 1} and set(np.unique(np.abs(mouse.round(6)))) <= {0, np.float32(0.1)}
        changes = np.flatnonzero(np.abs(np.diff(np.concatenate([keys, mouse], axis=2)[0], axis=0)).sum(axis=1)) + 1
        assert not (changes % 4).any()  # actions change every 4 frames
    turn = found["yaw"][1][0]  # up and right: left first, then right, as long each way
    assert (turn[:296, 1] < 0).all() and (turn[300:596, 1] > 0).all() and not turn[:, 0].any()
    assert found["tilt"][1][0, 0, 0] > 0 > found["tilt"][1][0, 400, 0]
    assert found["pan"][0][0, [0, 400]].tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]  # forward, back, left, right
    assert found["dolly"][0][0, [0, 400]].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    _, made = delivered(to, "yaw")
    assert made.turn_error is None and not made.is_exact


def test_keys_of_lingbot_act_are_held_while_the_path_moves(tmp_path: Path) -> None:
    keys = {
        name: np.load(
            delivered(find_generator("lingbot-world-act"), name)[1].write_files_beside(tmp_path / name) / "action.npy"
        )
        for name in ("pan", "dolly", "arc", "yaw")
    }
    assert keys["pan"][[0, 39, 40, 79]].tolist() == [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert keys["dolly"][[0, 39, 40, 79]].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]
    assert keys["arc"][:40, 0].all() and keys["arc"][40:80, 2].all()
    assert not keys["yaw"].any()


@pytest.mark.parametrize(("size", "focal"), [((832, 480), 720.533), ((1280, 704), 1108.513), ((1280, 544), 1108.513)])
def test_the_focal_length_of_wan_fun_is_what_its_loader_assumes(
    size: tuple[int, int], focal: float, tmp_path: Path
) -> None:
    to = replace(find_generator("wan22-fun-5b"), size=size)
    path = delivered(to, "yaw")[1].write_files_beside(tmp_path / "clip")
    assert wan_fun_focal(path, *size) == pytest.approx((focal, focal), abs=1e-3)
    if size == (832, 480):
        assert rows_of_19(path)[0, 1] == pytest.approx(720.533 / 853.333, abs=1e-6)


def test_counts_that_a_loader_asks_for(tmp_path: Path) -> None:
    rows = {
        id: rows_of_19(delivered(find_generator(id), "yaw")[1].write_files_beside(tmp_path / id))
        for id in ("easyanimate-v51", "magicworld", "hunyuan-game-craft", "wan21-fun-14b")
    }
    assert {id: len(table) for id, table in rows.items()} == {
        "easyanimate-v51": 145, "magicworld": 99, "hunyuan-game-craft": 99, "wan21-fun-14b": 81,
    }  # fmt: skip
    for id, frames in (("magicworld", 81), ("gen3c", 81), ("hydra", 81), ("recammaster", 77), ("liveworld", 81)):
        to = find_generator(id)
        with pytest.raises(PayloadError, match=f"give --frames {to.frames}"):
            make_delivery(plan_for_generator(scripts(frames)["yaw"], to, frames), to)
    two_chunks = plan_for_generator("yaw:left:60@33,yaw:right:60@33", find_generator("magicworld"))
    assert len(make_delivery(two_chunks, find_generator("magicworld")).loaded.frame) == 66


def test_a_picture_sets_the_lens_where_the_loader_takes_its_pixels(tmp_path: Path) -> None:
    to = find_generator("sana-wm")
    plan = plan_for_generator(scripts(to.frames)["yaw"], to)
    folder = make_delivery(plan, to, picture=(1294, 712)).write_files_beside(tmp_path / "clip")
    focal = 1294 / (2 * np.tan(np.radians(30)))
    np.testing.assert_allclose(np.load(folder / "intrinsics.npy"), [focal, focal, 647, 356], rtol=1e-9)


def test_a_way_that_is_cut_is_not_exact_and_is_told() -> None:
    to = find_generator("magicworld")
    plan = plan_for_generator("dolly:forward:2@49,dolly:back:2@49", to)
    made = make_delivery(plan, to)
    assert made.clipped and not made.is_exact
    assert made.way_error == pytest.approx(1.4)
    assert any("above 0.6 metres" in remark for remark in made.remarks())
    assert made.record_facts()["largest_way_error_metres"] == pytest.approx(1.4)
    short = make_delivery(plan_for_generator("dolly:forward:0.5@49,dolly:back:0.5@49", to), to)
    assert short.is_exact and not short.clipped and not short.remarks()


def test_what_no_loader_reads_is_never_exact() -> None:
    for id, to in load_generators().items():
        if to.converter or not to.loader:
            name = "one way" if id == "voyager" else "yaw"
            _, made = delivered(to, name)
            assert not made.is_exact and made.record_facts()["converter"], id
            assert any("converter needed" in remark for remark in made.remarks())
            assert to.checked_text == "converter needed"
    assert {id for id, to in load_generators().items() if to.converter} == {
        "gen3c", "matrix-game-2", "matrix-game-3", "voyager", "hailuo", "kling", "happyhorse", "wan22-i2v-plus",
        "wan26-i2v", "wan27-i2v", "wanx21-i2v-turbo", "prompt", "poses",
    }  # fmt: skip


def test_game_craft_turns_as_asked_and_the_other_way_by_name(tmp_path: Path) -> None:
    assert signs("hunyuan-game-craft", "small yaw", tmp_path)[0] == pytest.approx(90, abs=1e-3)
    assert signs("hunyuan-game-craft-mirrored", "small yaw", tmp_path)[0] == pytest.approx(-90, abs=1e-3)
    assert not delivered(find_generator("hunyuan-game-craft-mirrored"), "small yaw")[1].is_exact


def test_upstreams_names_find_the_same_generators() -> None:
    upstream = [
        "easyanimate-v51-camera", "gen3c", "hunyuan-game-craft", "hunyuan-worldplay", "hunyuanworld-voyager", "hydra",
        "hyworld-worldgen", "inspatio-world", "lingbot-world", "lingbot-world-act", "liveworld", "magicworld",
        "matrix-game-2", "matrix-game-3", "minwm-hy-action2v", "minwm-wan-action2v", "recammaster", "sana-wm", "spatia",
        "versecrafter", "wan21-fun-14b-cam", "wan21-fun-1p3b-cam", "wan22-fun-5b-cam", "wan22-fun-a14b-cam",
    ]  # fmt: skip
    assert len({find_generator(name).id for name in upstream}) == 24
    assert find_generator("WAN21_FUN_14B_CAM").id == "wan21-fun-14b"
    _, rows = published_model_rows()
    assert len(rows) == 23
    for row in rows:
        assert find_generator(row.model).condition == row.condition, row.model
