"""Worlds: geometry that agrees with itself, truth that is exact, and models that fail as they say."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.geometry.camera_script import camera_path, parse_script
from revisit.media import load_npz
from revisit.worlds import EVENTS, TARGET, Film, State, World, make_room, make_world, play
from revisit.worlds.demo import MODELS, DemoScene, generate_model_frames, render_demo
from revisit.worlds.render import Camera, intrinsics_from_fov
from revisit.worlds.targets import BY_SEED
from revisit.worlds.world import WorldView

SMALL = (90, 156)
room = cache(make_room)


@pytest.fixture(scope="module")
def world() -> World:
    return room(1)


@pytest.fixture(scope="module")
def film(world: World) -> Film:
    away, back = ("right", "left") if world.turn == "right" else ("left", "right")
    return play(world, f"yaw:{away}:60+truck:{away}:0.3@20,yaw:{back}:60+truck:{back}:0.3@20", "both", SMALL)


def target_pixels(film: Film, frame: int) -> int:
    return int((film.truth(frame).mask == TARGET).sum())


def test_depth_of_one_frame_predicts_the_depth_of_another(film: Film):
    a, b = 4, 9
    first, second = film.truth(a), film.truth(b)
    y, x = np.mgrid[: SMALL[0], : SMALL[1]]
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T
    points = (rays * first.depth[..., None]) @ film.poses[a][:3, :3].T + film.poses[a][:3, 3]
    seen = (points - film.poses[b][:3, 3]) @ film.poses[b][:3, :3]
    pixels = seen @ film.K.T
    u, v = pixels[..., 0] / pixels[..., 2], pixels[..., 1] / pixels[..., 2]
    inside = (seen[..., 2] > 0.1) & (u >= 0) & (u < SMALL[1] - 1) & (v >= 0) & (v < SMALL[0] - 1)
    # Inverse depth is linear across the pixels of a plane, so it is what may be interpolated.
    inverse = 1 / second.depth
    x0, y0 = np.floor(u[inside]).astype(int), np.floor(v[inside]).astype(int)
    s, t = u[inside] - x0, v[inside] - y0
    between = (1 - t) * ((1 - s) * inverse[y0, x0] + s * inverse[y0, x0 + 1])
    between += t * ((1 - s) * inverse[y0 + 1, x0] + s * inverse[y0 + 1, x0 + 1])
    error = np.abs(1 / between - seen[..., 2][inside])
    assert inside.mean() > 0.6
    assert np.median(error) < 1e-3
    assert np.mean(error < 5e-3) > 0.85  # the rest are occlusions and edges


def test_the_target_is_where_its_place_projects_to(film: Film):
    for state in set(film.states):
        shot = film.shot(0, state)
        centre = np.array(state.place) - (0, 0.1, 0)  # inside the target, 10 cm above what it stands on
        x, y, depth = film.K @ (film.poses[0][:3, :3].T @ (centre - film.poses[0][:3, 3]))
        column, row = round(x / depth), round(y / depth)
        assert shot.mask[row, column] == TARGET
        assert depth - 0.3 < shot.depth[row, column] < depth


def test_every_pixel_is_inside_the_closed_room(film: Film):
    shot = film.truth(13)
    assert np.isfinite(shot.depth).all() and shot.depth.min() > 0.3 and shot.depth.max() < 9
    assert (shot.mask > 0).all()
    assert set(np.unique(shot.mask)) <= set(film.world.instances)


def test_another_size_keeps_depth_and_ids(world: World):
    pose = camera_path(parse_script("yaw:right:25@1"), world.start)[1]
    views = []
    for scale in (1, 3):
        size = SMALL[0] * scale, SMALL[1] * scale
        views.append(WorldView(world, Camera(intrinsics_from_fov(size, world.fov), pose, size)))
    small, large = (view.shot(world.first_state) for view in views)
    # With three times as many pixels, every third centre is the centre of a small one.
    difference = np.abs(large.depth[1::3, 1::3] - small.depth)
    assert np.mean(difference < 2e-4) > 0.998  # the rest are outlines of things, where rounding decides
    assert np.mean(large.mask[1::3, 1::3] == small.mask) > 0.999


def test_same_seed_same_bytes_and_other_seed_another_room(film: Film, world: World):
    script = film.script.replace("@20", "@4")
    one, again = (play(place, script, film.event, SMALL) for place in (world, make_room(1)))
    for model in ("perfect", "drifts"):
        first, second = list(generate_model_frames(model, one)), list(generate_model_frames(model, again))
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    other = room(0)
    K = intrinsics_from_fov(SMALL, other.fov)
    shot = WorldView(other, Camera(K, other.start, SMALL)).empty_shot
    assert np.abs(shot.rgb.astype(int) - film.views[0].empty_shot.rgb).mean() > 20


def test_the_target_is_hidden_and_comes_back(film: Film):
    hidden, returned = film.phases
    assert all(target_pixels(film, frame) > 0 for frame in range(hidden))
    assert all(target_pixels(film, frame) == 0 for frame in range(hidden, returned))
    assert all(target_pixels(film, frame) > 0 for frame in range(returned, len(film)))
    change = next(frame for frame in range(1, len(film)) if film.states[frame] != film.states[frame - 1])
    assert hidden < change < returned


def test_forward_and_back_share_their_views(film: Film):
    assert film.views[3] is film.views[-4]
    assert len({id(view) for view in film.views}) == 21


@pytest.mark.parametrize("event", ["none", "moved", "changed", "both"])
def test_events_leave_the_state_they_say(event: str, world: World):
    before, after = world.first_state, EVENTS[event].state_after(world)
    assert (after.place != before.place) == (event in ("moved", "both"))
    assert (after.look != before.look) == (event in ("changed", "both"))


@pytest.mark.parametrize("seed", range(len(BY_SEED)))
def test_both_looks_of_a_target_differ_visibly(seed: int):
    world = replace(room(seed % 2), kind=BY_SEED[seed])
    camera = Camera(intrinsics_from_fov((120, 208), world.fov), world.start, (120, 208))
    view = WorldView(world, camera)
    for place in world.places:
        plain, changed = (view.shot(State(place, look)) for look in (0, 1))
        both = (plain.mask == TARGET) | (changed.mask == TARGET)
        assert np.abs(plain.rgb[both].astype(int) - changed.rgb[both]).mean() > 15
        width = np.flatnonzero((plain.mask == TARGET).any(axis=0))
        assert 0.08 <= len(width) / 208 <= 0.22
        assert width[0] > 2 and width[-1] < 205, "the target is whole in the first view"


def test_perfect_is_near_the_truth_and_never_equal(film: Film):
    for frame, rgb in enumerate(generate_model_frames("perfect", film)):
        error = np.abs(rgb.astype(int) - film.truth(frame).rgb)
        assert 0 < error.mean() < 1.5


def test_frozen_shows_the_first_view_throughout(film: Film):
    first = film.truth(0).rgb.astype(int)
    assert all(np.abs(rgb - first).mean() < 1.5 for rgb in generate_model_frames("frozen", film))


def test_forgets_has_no_target_on_return(film: Film):
    frames = list(generate_model_frames("forgets", film))
    for frame in range(film.phases[1], len(film)):
        empty = film.shot(frame, None)
        assert not (empty.mask == TARGET).any()
        assert np.abs(frames[frame].astype(int) - empty.rgb).mean() < 1.5
    assert np.abs(frames[0].astype(int) - film.truth(0).rgb).mean() < 1.5


def test_resets_returns_the_old_state(film: Film):
    frames = list(generate_model_frames("resets", film))
    assert film.states[-1] != film.states[0]
    assert np.abs(frames[-1].astype(int) - film.shot(len(film) - 1, film.states[0]).rgb).mean() < 1.5
    there = film.truth(len(film) - 1).mask == TARGET
    assert np.abs(frames[-1].astype(int) - film.truth(len(film) - 1).rgb)[there].mean() > 15


def test_drifts_is_right_until_it_looks_away_and_then_drifts_further(film: Film):
    error = [
        np.abs(rgb.astype(int) - film.truth(frame).rgb).mean()
        for frame, rgb in enumerate(generate_model_frames("drifts", film))
    ]
    hidden, returned = film.phases
    assert max(error[:hidden]) < 1.5
    assert error[hidden] < error[returned] < error[-1]
    assert error[-1] > 8


def test_a_script_that_never_looks_away_is_refused(world: World):
    with pytest.raises(UsageError, match="never loses sight"):
        play(world, "yaw:right:2@2", "none", SMALL)
    with pytest.raises(UsageError, match="never comes back"):
        play(world, f"yaw:{world.turn}:60@2", "none", SMALL)
    with pytest.raises(UsageError, match="unknown event"):
        play(world, "yaw:right:2@2", "stolen", SMALL)


def test_what_does_not_fit_is_refused_in_a_sentence(world: World):
    with pytest.raises(UsageError, match="needs a target of kind cup; possible with a gift here: none, moved"):
        play(world, "yaw", "filling", SMALL)
    with pytest.raises(UsageError, match="needs a block to fall from"):
        play(world, "yaw", "falling", SMALL)
    with pytest.raises(UsageError, match="choose one of room, yard"):
        make_world(0, "cave")
    with pytest.raises(UsageError, match="choose one of ball"):
        make_world(0, kind="teapot")


def test_demo_writes_clips_truth_and_manifest(tmp_path: Path):
    told: list[tuple[int, int, str]] = []
    scenes = [DemoScene("ball", "moved", "yaw:{away}:60@8,yaw:{back}:60@8")]
    manifest = render_demo(tmp_path, scenes=scenes, size=SMALL, progress=lambda *news: told.append(news))
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert [line["model"] for line in lines] == list(MODELS)
    for line in lines:
        assert (tmp_path / line["video"]).is_file() and (tmp_path / line["reference"]).is_file()
        x0, y0, x1, y1 = line["target"]["box"]
        assert 0 < x0 < x1 < 1 and 0 < y0 < y1 < 1
        assert 0 < line["phases"][0] < line["phases"][1] < 17
    truth = load_npz(tmp_path / "truth/ball-moved.npz")
    assert truth["poses"].shape == (17, 4, 4) and truth["masks"].shape == (17, *SMALL)
    assert truth["depth"].shape == (5, *SMALL) and truth["depth_frames"].tolist() == [0, 4, 8, 12, 16]
    assert truth["instances"][TARGET] == "striped ball"
    assert truth["phases"].tolist() == lines[0]["phases"]
    assert [done for done, _, _ in told] == list(range(1, 8)) and {total for _, total, _ in told} == {7}
