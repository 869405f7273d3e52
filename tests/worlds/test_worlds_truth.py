"""Worlds are what they say: rays of another engine, closed forms and numerical integration agree with the truth.

MuJoCo casts a ray through the centre of every pixel of a scene built from the same shapes; depth and instance ids
must be the same. Events are integrated step by step and must arrive where their closed forms say.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from revisit.geometry.camera_script import camera_path, parse_script
from revisit.media import load_npz
from revisit.worlds import EVENTS, SCRIPTS, TARGET, TARGETS, Film, Shot, State, World, make_world, play, save_truth
from revisit.worlds.events import GRAVITY
from revisit.worlds.render import Camera, Surface, intrinsics_from_fov
from revisit.worlds.shapes import Ball, Panel, Shape, Tube
from revisit.worlds.world import WorldView
from tests.looking import as_frames, look

SMALL = (90, 156)
PLACES = ("room", "yard")
ONE_BY_DEFAULT = ("room", pytest.param("yard", marks=pytest.mark.long))


def few(names: Iterable[str], *chosen: str) -> list[Any]:
    """All of them as parameters; those that were not chosen are `long`."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.long) for name in names]


world_of = cache(make_world)


@cache
def film_of(place: str, kind: str, script: str, event: str) -> Film:
    world = world_of(3, place)
    return play(replace(world, kind=kind), script, event, SMALL, frames=41)


def points_of(film: Film, frame: int, shot: Shot) -> np.ndarray:
    """World points under the pixel centres."""
    y, x = np.mgrid[: shot.depth.shape[0], : shot.depth.shape[1]]
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T
    pose = film.poses[frame]
    return np.asarray((rays * shot.depth[..., None]) @ pose[:3, :3].T + pose[:3, 3])


# Depth agrees with itself


@pytest.mark.parametrize("place", ONE_BY_DEFAULT)
@pytest.mark.parametrize("script", few(["yaw", "pan", "dolly", "orbit", "tilt"], "yaw", "orbit", "dolly"))
def test_depth_of_one_frame_is_found_in_another(place: str, script: str) -> None:
    film = film_of(place, "ball", script, "none")
    a, b = 4, 8
    first, second = film.truth(a), film.truth(b)
    seen = (points_of(film, a, first) - film.poses[b][:3, 3]) @ film.poses[b][:3, :3]
    pixels = seen @ film.K.T
    u, v = pixels[..., 0] / pixels[..., 2], pixels[..., 1] / pixels[..., 2]
    inside = (seen[..., 2] > 0.1) & (u >= 0) & (u < SMALL[1] - 1) & (v >= 0) & (v < SMALL[0] - 1)
    assert inside.mean() > 0.5
    # Inverse depth is linear across the pixels of a plane, so it is what may be interpolated.
    inverse = 1 / second.depth
    x, y = np.floor(u[inside]).astype(int), np.floor(v[inside]).astype(int)
    s, t = u[inside] - x, v[inside] - y
    between = (1 - t) * ((1 - s) * inverse[y, x] + s * inverse[y, x + 1])
    between += t * ((1 - s) * inverse[y + 1, x] + s * inverse[y + 1, x + 1])
    assert np.median(np.abs(1 / between - seen[..., 2][inside])) < 1e-3


# Another engine sees the same


@pytest.mark.long
def test_rays_of_another_engine_see_the_same_depth_and_things() -> None:
    """Thousands of pixels of rooms and yards, with a chest half open, a ball in the air and the screen half in."""
    views: list[tuple[World, State, str, float]] = []
    for place in PLACES:
        world = world_of(3, place)
        chest = replace(world, kind="chest")
        ball = replace(world, kind="ball")
        views.append((chest, replace(world.first_state, amount=0.6), "hold@1", 0.0))
        views.append((ball, EVENTS["falling"].at(ball, 0.1), f"yaw:{world.turn}:25+truck:{world.turn}:0.5@1", 0.0))
        views.append((ball, replace(world.first_state, scale=1.2, shape=0.6), "tilt:down:20+dolly:forward:0.6@1", 0.4))
    for world, state, script, screen in views:
        camera = Camera(
            intrinsics_from_fov(SMALL, world.fov), camera_path(parse_script(script), world.start)[-1], SMALL
        )
        everything = [*world.room, *world.target_surfaces_and_shadow(state)[0], *world.screen_surfaces(screen)]
        kept = [s for s in everything if comparable(s, everything)]
        assert len(kept) > 0.8 * len(everything)
        fixed = tuple(s for s in kept if s in world.room)
        moving = tuple(s for s in kept if s not in world.room)
        without_the_rest = replace(world, room=fixed)
        vars(without_the_rest)["target_surfaces_and_shadow"] = {
            state: (moving, world.target_surfaces_and_shadow(state)[1])
        }.__getitem__
        shot = WorldView(without_the_rest, camera).shot(state)
        depth, ids = cast(kept, camera)
        agree = np.abs(depth - shot.depth) < 1e-3 * np.maximum(1, depth)
        assert agree.mean() > 0.998, f"{world.name} {script}: depth differs in {1 - agree.mean():.2%} of the pixels"
        assert (ids == shot.mask).mean() > 0.998, f"{world.name} {script}"
        assert np.median(np.abs(depth - shot.depth)) < 1e-5
        assert (ids == TARGET).sum() > 100


def comparable(drawn: Surface, everything: Sequence[Surface]) -> bool:
    """Whether the other engine has the shape: it knows no cones, and its cylinders are closed at the top."""
    shape = drawn.shape
    if not isinstance(shape, Tube):
        return True
    tops = [s.shape for s in everything if isinstance(s.shape, Panel) and s.shape.round]
    centre = shape.at - (0, shape.height, 0)
    closed = any(np.allclose(top.corner + (top.across + top.down) / 2, centre, atol=1e-6) for top in tops)
    return shape.bottom == shape.top and closed


def cast(surfaces: Sequence[Surface], camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Depth and instance ids of the nearest geometry under every pixel centre, by MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", angle="radian")
    body = ElementTree.SubElement(root, "worldbody")
    for drawn in surfaces:
        ElementTree.SubElement(body, "geom", **geometry(drawn.shape))
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    height, width = camera.size
    y, x = np.mgrid[:height, :width]
    rays = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3) @ np.linalg.inv(camera.K).T
    lengths = np.linalg.norm(rays, axis=1)
    ways = (rays / lengths[:, None]) @ camera.pose[:3, :3].T
    hit, distance = np.zeros(len(rays), np.int32), np.zeros(len(rays))
    extra = {"normal": None} if "normal:" in mujoco.mj_multiRay.__doc__ else {}  # newer versions can return them
    mujoco.mj_multiRay(
        m=model, d=data, pnt=camera.pose[:3, 3], vec=ways.ravel(), geomgroup=None, flg_static=True, bodyexclude=-1,
        geomid=hit, dist=distance, nray=len(rays), cutoff=1e3, **extra,
    )  # fmt: skip
    ids = np.array([drawn.instance for drawn in surfaces] + [0])[hit]
    return (distance / lengths).reshape(camera.size), ids.reshape(camera.size)


def geometry(shape: Shape) -> dict[str, str]:
    """A shape as MuJoCo writes it; flat things are a thousandth of a millimetre thick."""

    def text(values: np.ndarray | Sequence[float]) -> str:
        return " ".join(f"{float(v):.12g}" for v in values)

    thin = 1e-6
    if isinstance(shape, Panel):
        wide, high = np.linalg.norm(shape.across), np.linalg.norm(shape.down)
        axes = np.stack([shape.across / wide, shape.down / high, np.cross(shape.across / wide, shape.down / high)], 1)
        x, y, z, w = Rotation.from_matrix(axes).as_quat()
        middle = {"pos": text(shape.corner + (shape.across + shape.down) / 2), "quat": text((w, x, y, z))}
        if shape.round:
            assert wide == pytest.approx(high)
            return {"type": "cylinder", "size": text((wide / 2, thin)), **middle}
        return {"type": "box", "size": text((wide / 2, high / 2, thin)), **middle}
    if isinstance(shape, Ball):
        size = (shape.radius, shape.radius * shape.squash, shape.radius)
        return {"type": "ellipsoid", "size": text(size), "pos": text(shape.at)}
    upright = text((np.sqrt(0.5), np.sqrt(0.5), 0, 0))  # MuJoCo's cylinders lie along z
    middle = {"pos": text(shape.at - (0, shape.height / 2, 0)), "quat": upright}
    return {"type": "cylinder", "size": text((shape.top, shape.height / 2)), **middle}


def test_the_outline_of_a_ball_is_its_conic() -> None:
    """A ray that passes the centre within the radius is in the mask, any other is not."""
    film = film_of("room", "ball", "yaw", "rolling")
    for frame in (0, 4, 8, len(film) - 1):
        pose, (x, y, z) = film.poses[frame], film.states[frame].place
        centre = pose[:3, :3].T @ (np.array([x, y - 0.17, z]) - pose[:3, 3])
        rows, columns = np.mgrid[: SMALL[0], : SMALL[1]]
        rays = np.stack([columns, rows, np.ones_like(rows)], axis=-1) @ np.linalg.inv(film.K).T
        rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
        passes = np.linalg.norm(np.cross(rays, centre), axis=-1)
        mask = film.truth(frame).mask == TARGET
        clear = np.abs(passes - 0.17) > 1e-4  # on the very outline, rounding decides
        assert np.array_equal(mask[clear], (passes < 0.17)[clear])


def test_the_level_in_the_glass_is_the_state() -> None:
    film = film_of("room", "cup", "occluder", "filling")
    size = (480, 832)
    world = film.world
    camera = Camera(intrinsics_from_fov(size, world.fov), world.start, size)
    view = WorldView(world, camera)
    x, y, z = world.first_state.place
    toward = np.array([-x, 0, -z]) / np.hypot(x, z)
    for amount in (0.2, 0.5, 0.8):
        level = 0.04 + 0.88 * amount
        radius = 0.115 + 0.02 * level
        edge = np.array([x, y - 0.34 * level, z]) + radius * toward  # the front of the level
        u, v, depth = camera.K @ (world.start[:3, :3].T @ (edge - world.start[:3, 3]))
        column, row = round(u / depth), round(v / depth)
        shot = view.shot(replace(world.first_state, amount=amount))
        red, _, blue = (shot.rgb[:, column, c].astype(int) for c in range(3))
        juice = red - blue > 60
        assert juice[row + 2 : row + 8].mean() > 0.5 > juice[row - 8 : row - 2].mean()  # the rest are marks


@pytest.mark.parametrize(("kind", "whole", "lost"), [("candle", 0.58, 0.32), ("snowman", 0.671, 0.416)])
def test_what_burns_or_melts_is_as_high_as_its_state_says(kind: str, whole: float, lost: float) -> None:
    world = replace(world_of(3, "room"), kind=kind)
    size = (480, 832)
    camera = Camera(intrinsics_from_fov(size, world.fov), world.start, size)
    view = WorldView(world, camera)
    for amount in (0.0, 0.4, 1.0):
        top = np.array(world.first_state.place) - (0, whole - lost * amount, 0)
        _, v, depth = camera.K @ (world.start[:3, :3].T @ (top - world.start[:3, 3]))
        rows = np.flatnonzero((view.shot(replace(world.first_state, amount=amount)).mask == TARGET).any(axis=1))
        assert abs(rows[0] - v / depth) <= 4  # a hat has a far edge, a flame a thin tip


# Events


def test_falling_is_what_integration_finds() -> None:
    world = world_of(3, "room")
    event = EVENTS["falling"]
    assert world.perch is not None
    floor = event.state_after(world).place[1]

    def hits(_: float, state: np.ndarray) -> float:
        return float(floor - state[0])

    hits.terminal, hits.direction = True, -1  # type: ignore[attr-defined]
    start, now = np.array([world.perch[1], 0.0]), 0.0
    for _ in range(5):
        flight = solve_ivp(
            lambda _, s: [s[1], GRAVITY], (now, now + 2), start, events=hits, rtol=1e-10, atol=1e-12, dense_output=True
        )
        for moment in np.linspace(now, flight.t[-1], 9):
            assert event.at(world, float(moment)).place[1] == pytest.approx(flight.sol(moment)[0], abs=1e-6)
        now, start = float(flight.t[-1]), np.array([floor - 1e-13, -0.55 * flight.y[1, -1]])
    assert event.at(world, 10.0) == event.state_after(world)


def test_falling_in_the_air_is_what_a_physics_engine_simulates() -> None:
    mujoco = pytest.importorskip("mujoco")
    world = world_of(3, "room")
    event, first = EVENTS["falling"], EVENTS["falling"].state_before(world).place
    speed = (np.array(event.at(world, 0.02).place) - first) / 0.02
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 {GRAVITY} 0" timestep="1e-4" integrator="RK4"/><worldbody>'
        '<body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qpos[:3], data.qvel[:3] = first, (speed[0], 0, 0)
    for _ in range(1500):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(event.at(world, 0.15).place, data.qpos[:3], atol=1e-6)


def test_rolling_slows_down_evenly_and_does_not_slip() -> None:
    world = replace(world_of(3, "room"), kind="ball")
    event = EVENTS["rolling"]
    far = world.places[1][0] - world.places[0][0]
    brake = 2 * far / 2.5**2
    path = solve_ivp(lambda _, s: [s[1], -brake], (0, 2.5), [0, 2.5 * brake], rtol=1e-10, atol=1e-12, dense_output=True)
    for seconds in np.linspace(0, 2.5, 11):
        state = event.at(world, float(seconds))
        way = state.place[0] - world.places[0][0]
        assert way == pytest.approx(path.sol(seconds)[0], abs=1e-7)
        assert np.radians(state.roll) * 0.17 == pytest.approx(way)
    assert event.state_after(world).place == pytest.approx(world.places[1])


@pytest.mark.parametrize(
    "name", few([name for name, event in EVENTS.items() if event.in_view], "melting", "opening", "rolling", "falling")
)
def test_lasting_events_begin_in_view_and_go_on_unseen(name: str) -> None:
    film = film_of("room", EVENTS[name].kinds[0], "yaw", name)
    hidden, returned = film.phases
    assert 0 < film.begins < hidden < returned
    first, left, back = film.states[0], film.states[hidden], film.states[returned]
    assert first == EVENTS[name].state_before(film.world)
    assert first != left != back != first
    assert all(film.states[k] == film.state_at(k) for k in range(len(film)))


@pytest.mark.parametrize("place", ONE_BY_DEFAULT)
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_loses_the_target_and_finds_it_again(script: str, place: str) -> None:
    for event, kind in (("none", "figure"), ("falling", "gift")):
        film = film_of(place, kind, script, event)
        hidden, returned = film.phases
        assert len(film) == 41
        assert not any(film.target_visible(k) for k in range(hidden, returned))
        assert all(film.target_visible(k) for k in [*range(hidden), *range(returned, len(film))])
        np.testing.assert_allclose(film.poses[-1], film.poses[0], atol=1e-9)


@pytest.mark.parametrize("place", ONE_BY_DEFAULT)
def test_a_film_tells_what_it_shows(place: str) -> None:
    film = film_of(place, "candle", "orbit", "burning")
    assert f"{place} with a " in film.prompt and "around the target" in film.prompt and "burns down" in film.prompt
    stretched = play(film.world, film.script.replace("hold@", "hold@1"), "burning", SMALL)
    assert len(stretched) > len(film) and stretched.prompt == film.prompt


@pytest.mark.long
def test_amounts_show() -> None:
    """Every kind that an event can happen to looks different at its beginning, in its middle and at its end."""
    for name, event in EVENTS.items():
        if not event.in_view:
            continue
        world = replace(world_of(3, "yard"), kind=event.kinds[0])
        view = WorldView(world, Camera(intrinsics_from_fov((120, 208), world.fov), world.start, (120, 208)))
        shots = [view.shot(event.at(world, seconds)) for seconds in (-1.0, 1.2, 9.0)]
        for one, other in ((0, 1), (1, 2)):
            both = (shots[one].mask == TARGET) | (shots[other].mask == TARGET)
            assert np.abs(shots[one].rgb[both].astype(int) - shots[other].rgb[both]).mean() > 8, name


@pytest.mark.parametrize("kind", few(TARGETS, "ball", "cup", "figure"))
def test_drifts_grow_with_their_strength(kind: str) -> None:
    world = replace(world_of(3, "room"), kind=kind)
    view = WorldView(world, Camera(intrinsics_from_fov((120, 208), world.fov), world.start, (120, 208)))
    first = world.first_state
    plain = view.shot(first).rgb.astype(int)
    for field in ("colour", "texture", "shape"):
        change = [
            np.abs(view.shot(replace(first, **{field: share})).rgb - plain).sum() for share in (0.0, 0.33, 0.66, 1.0)
        ]
        assert change[0] == 0 and change[1] < change[2] < change[3], (field, change)


# The same again


@pytest.mark.long
def test_same_seed_same_bytes_in_another_process(tmp_path: Path) -> None:
    program = (
        "import sys, hashlib, numpy as np\n"
        "from pathlib import Path\n"
        "from revisit.worlds import make_world, play, save_truth\n"
        "film = play(make_world(3, 'yard'), 'orbit', 'none', (60, 104), frames=13)\n"
        "frames = {k: film.truth(k).rgb.tobytes() for k in reversed(range(13))}\n"
        "save_truth(film, Path(sys.argv[1]))\n"
        "print(hashlib.sha256(b''.join(frames[k] for k in range(13))).hexdigest())\n"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there.npz")], capture_output=True, text=True, check=True
    )
    film = play(world_of(3, "yard"), "orbit", "none", (60, 104), frames=13)
    here = hashlib.sha256(b"".join(film.truth(k).rgb.tobytes() for k in range(13)))  # in the other order
    save_truth(film, tmp_path / "here.npz")
    assert there.stdout.strip() == here.hexdigest()
    assert (tmp_path / "there.npz").read_bytes() == (tmp_path / "here.npz").read_bytes()


def test_truth_files_hold_every_frame(tmp_path: Path) -> None:
    film = film_of("room", "cup", "occluder", "filling")
    save_truth(film, tmp_path / "truth.npz", depth_every=1)
    saved = load_npz(tmp_path / "truth.npz")
    assert saved["depth"].shape == saved["masks"].shape == (41, *SMALL)
    for frame in (0, 20, 40):
        shot = film.truth(frame)
        assert np.array_equal(saved["masks"][frame], shot.mask)
        np.testing.assert_allclose(saved["depth"][frame], shot.depth, rtol=1e-3)
    assert saved["amount"].tolist() == [state.amount for state in film.states]
    assert saved["instances"][255] == "screen" and (saved["masks"][20] == 255).any()
    assert saved["phases"].tolist() == list(film.phases) and saved["begins"] == film.begins


# Films made of films


def test_a_film_along_other_poses_shares_what_it_can() -> None:
    film = film_of("room", "ball", "yaw", "rolling")
    late = film.along(film.poses[np.maximum(np.arange(len(film)) - 2, 0)])
    assert late.views[12] is film.views[10] and late.states == film.states and late.phases == film.phases
    assert np.array_equal(late.shot(12).rgb, film.shot(10).rgb)


@pytest.mark.long
def test_a_film_goes_on_in_another_place_with_the_target_where_it_was() -> None:
    film = film_of("room", "vase", "yaw", "none")
    for place in ("yard",):
        other = film.in_world(make_world(8, place, like=film.world))
        mine, theirs = film.truth(0), other.truth(0)
        assert np.array_equal(mine.mask == TARGET, theirs.mask == TARGET)
        there = mine.mask == TARGET
        assert np.abs(mine.rgb[there].astype(int) - theirs.rgb[there]).mean() < 40  # another light, the same vase
        assert np.abs(mine.rgb[~there].astype(int) - theirs.rgb[~there]).mean() > 25


def test_two_targets_can_be_shown_at_once() -> None:
    film = film_of("room", "ball", "yaw", "none")
    one, two = State(film.world.places[0]), State(film.world.places[1])
    masks = [film.shot(0, *states).mask == TARGET for states in ((one,), (two,), (one, two))]
    assert np.array_equal(masks[0] | masks[1], masks[2])


# What can be seen is enough to find the way


def sift_matches(first: np.ndarray, second: np.ndarray) -> int:
    import cv2

    finder = cv2.SIFT.create(nfeatures=4000)
    (_, one), (_, two) = (
        finder.detectAndCompute(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), None) for rgb in (first, second)
    )

    def best(a: np.ndarray, b: np.ndarray) -> dict[int, int]:
        pairs = cv2.BFMatcher().knnMatch(a, b, k=2)
        return {m.queryIdx: m.trainIdx for m, n in pairs if m.distance < 0.75 * n.distance}

    there, back = best(one, two), best(two, one)
    return sum(back.get(b) == a for a, b in there.items())


def views_along(world: World, script: str, size: tuple[int, int], frames: Sequence[int]) -> Iterator[np.ndarray]:
    poses = camera_path(parse_script(script), world.start)
    for frame in frames:
        yield (
            WorldView(world, Camera(intrinsics_from_fov(size, world.fov), poses[frame], size))
            .shot(world.first_state)
            .rgb
        )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("place", ONE_BY_DEFAULT)
@pytest.mark.parametrize("seed", [0, 3])
def test_neighbouring_frames_share_500_features(place: str, seed: int) -> None:
    world = world_of(seed, place)
    for pair in ((0, 1), (39, 40)):
        first, second = views_along(world, f"yaw:{world.turn}:60@40", (480, 832), pair)
        assert sift_matches(first, second) >= 500, pair


@pytest.mark.slow
@pytest.mark.parametrize("place", ONE_BY_DEFAULT)
def test_lite_odometry_finds_the_turn_within_two_degrees(place: str) -> None:
    from revisit.geometry.rotations import yaw_pitch_of_rotation
    from revisit.observers.odometry import odometry

    world = world_of(3, place)
    away, back = ("right", "left") if world.turn == "right" else ("left", "right")
    film = play(world, f"yaw:{away}:60@12,yaw:{back}:60@12", "none", (240, 416))
    found = look(odometry, as_frames(film.truth(k).rgb for k in range(len(film))), fps=16.0)
    yaw, _ = yaw_pitch_of_rotation(found.rotation)
    true = np.r_[np.linspace(0, 60, 13), np.linspace(60, 0, 13)[1:]][found.index] * (1 if away == "right" else -1)
    assert np.abs(yaw - true).max() < 2
