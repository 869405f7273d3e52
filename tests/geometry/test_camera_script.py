"""Camera scripts: poses in closed form, and sentences for what cannot be parsed."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.geometry.camera_script import camera_path, light_or_screen_levels, parse_script
from revisit.geometry.rotations import rotation_from_yaw_pitch, yaw_pitch_of_rotation


def path(script: str, **options: object) -> np.ndarray:
    return camera_path(parse_script(script), **options)  # type: ignore[arg-type]


def test_out_and_back_is_linear_and_closes():
    poses = path("yaw:right:60@40,yaw:left:60@40")
    assert poses.shape == (81, 4, 4)
    yaw, pitch = yaw_pitch_of_rotation(poses[:, :3, :3])
    np.testing.assert_allclose(yaw, np.r_[np.linspace(0, 60, 41), np.linspace(58.5, 0, 40)], atol=1e-9)
    np.testing.assert_allclose(pitch, 0, atol=1e-9)
    np.testing.assert_allclose(poses[:, :3, 3], 0, atol=1e-12)
    np.testing.assert_allclose(poses, poses[::-1], atol=1e-12)


def test_moves_go_where_their_words_say():
    ends = {
        "dolly:forward:2@4": (0, 0, 2),
        "dolly:back:2@4": (0, 0, -2),
        "truck:right:1@4": (1, 0, 0),
        "truck:left:1@4": (-1, 0, 0),
        "yaw:right:90@3,dolly:forward:1@2": (1, 0, 0),
        "tilt:down:40@3,dolly:forward:1@2": (0, 0, 1),
        "hold@5": (0, 0, 0),
    }
    for script, end in ends.items():
        np.testing.assert_allclose(path(script)[-1, :3, 3], end, atol=1e-12, err_msg=script)
    np.testing.assert_allclose(path("pitch:up:20@5")[-1, :3, :3], rotation_from_yaw_pitch(0, 20), atol=1e-12)


def test_everything_that_upstream_accepts_is_understood():
    for script, same in (
        ("static@81", "hold@81"),
        ("pan:left:0.5@40,pan:right:0.5@41", "truck:left:0.5@40,truck:right:0.5@41"),
        ("dolly:backward:1@9", "dolly:back:1@9"),
        ("roll:ccw:10@9,roll:cw:10@9", "roll:left:10@9,roll:right:10@9"),
        ("pitch:up:20@9", "tilt:up:20@9"),
        ("Yaw:Left:60@40, ,yaw:right:60@41,", "yaw:left:60@40,yaw:right:60@41"),
        ("yaw:left:-30@9,crane:up:-0.5@9", "yaw:right:30@9,crane:down:0.5@9"),
        ("yaw:left:0@9", "hold@9"),
        ("static+yaw:left:30@09", "yaw:left:30@9"),
    ):
        assert ",".join(map(str, parse_script(script))) == ",".join(map(str, parse_script(same))), script


def test_rising_and_rolling():
    up = path("yaw:left:90@3,crane:up:0.5@4")[-1]
    np.testing.assert_allclose(up[:3, 3], (0, -0.5, 0), atol=1e-12)
    # Roll left is positive about the line of sight, as upstream has it: the camera's right side sinks.
    rolled = path("roll:left:90@3")[-1, :3, :3]
    np.testing.assert_allclose(rolled @ (1, 0, 0), (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(rolled @ (0, 0, 1), (0, 0, 1), atol=1e-12)
    back = path("tilt:up:20+roll:cw:30+crane:up:1@5,tilt:down:20+roll:ccw:30+crane:down:1@5")
    np.testing.assert_allclose(back[-1], back[0], atol=1e-12)


@pytest.mark.parametrize("frames", [1, 7, 40])
def test_turning_dolly_follows_the_arc_however_finely_it_is_cut(frames: int):
    end = path(f"yaw:right:90+dolly:forward:1@{frames}")[-1]
    radius = 1 / np.radians(90)
    np.testing.assert_allclose(end[:3, 3], (radius, 0, radius), atol=1e-12)


@pytest.mark.parametrize("frames", [1, 7])
def test_an_orbit_keeps_its_pivot_where_it_is_in_the_picture(frames: int):
    pivot = np.array([0.5, -0.4, 3.0])
    poses = path(f"orbit:right:40@{frames},tilt:up:5@2,orbit:left:40@{frames},tilt:down:5@1", pivot=pivot)
    seen = np.einsum("nji,nj->ni", poses[:, :3, :3], pivot - poses[:, :3, 3])
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), np.linalg.norm(pivot), atol=1e-12)
    np.testing.assert_allclose(seen[: frames + 1], np.tile(pivot, (frames + 1, 1)), atol=1e-12)
    assert poses[frames, 0, 3] > 1  # to the right
    np.testing.assert_allclose(yaw_pitch_of_rotation(poses[frames, :3, :3]), (-40, 0), atol=1e-9)
    np.testing.assert_allclose(poses[-1], poses[0], atol=1e-12)


def test_an_orbit_without_a_pivot_goes_around_what_is_two_metres_ahead():
    end = path("orbit:right:90@3")[-1]
    np.testing.assert_allclose(end[:3, 3], (2, 0, 2), atol=1e-12)
    np.testing.assert_allclose(yaw_pitch_of_rotation(end[:3, :3]), (-90, 0), atol=1e-9)


def test_orbit_and_yaw_at_once_add_up():
    poses = path("orbit:right:30+yaw:right:70@5")
    np.testing.assert_allclose(yaw_pitch_of_rotation(poses[-1, :3, :3])[0], 40, atol=1e-9)
    np.testing.assert_allclose(poses[:, :3, 3], path("orbit:right:30@5")[:, :3, 3], atol=1e-12)


def test_lights_and_screen_have_levels_and_move_no_camera():
    steps = parse_script("hold@1,lights:down:0.9@3,screen:in:1@2,lights:up:0.9+screen:out:1@1")
    np.testing.assert_allclose(light_or_screen_levels(steps, "light", 1.0), [1, 1, 0.7, 0.4, 0.1, 0.1, 0.1, 1])
    np.testing.assert_allclose(light_or_screen_levels(steps, "screen"), [0, 0, 0, 0, 0, 0.5, 1, 0])
    poses = camera_path(steps)
    np.testing.assert_array_equal(poses, np.tile(np.eye(4), (8, 1, 1)))


def test_path_begins_at_the_start_and_yaws_about_the_vertical():
    start = np.eye(4)
    start[:3, :3], start[:3, 3] = rotation_from_yaw_pitch(30, -10), (1, -1.4, 2)
    poses = path("yaw:left:45@3,dolly:forward:2@2", start=start)
    np.testing.assert_array_equal(poses[0], start)
    np.testing.assert_allclose(yaw_pitch_of_rotation(poses[-1, :3, :3]), (-15, -10), atol=1e-9)
    heading = np.radians(-15)
    np.testing.assert_allclose(
        poses[-1, :3, 3] - start[:3, 3], (2 * np.sin(heading), 0, 2 * np.cos(heading)), atol=1e-12
    )


def test_scripts_come_back_as_text():
    text = "yaw:left:30+dolly:forward:0.5@20,hold@10"
    steps = parse_script(text)
    assert ",".join(map(str, steps)) == text


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("", "is empty"),
        ("yaw:right:60", "how many frames it takes"),
        ("yaw:right:60@0", "how many frames it takes"),
        ("zoom:in:2@3", "known moves: yaw"),
        ("yaw:up:3@3", "yaw:right:amount or yaw:left:amount"),
        ("yaw:right@3", "yaw:right:amount"),
        ("dolly:forward:far@3", "a number of metres"),
        ("yaw:right:nan@3", "a number of degrees"),
        ("yaw:right:inf@3", "a number of degrees"),
        ("orbit:right:-3@3", "a positive number of degrees"),
        ("lights:down:0@3", "a positive share of 1"),
        ("orbit:right:30+truck:left:1@3", "make two steps"),
        (" , ,", "has no step"),
        ("roll:up:3@3", "roll:left:amount or roll:right:amount"),
        ("yaw:ccw:3@3", "yaw:right:amount or yaw:left:amount"),
        ("static:left:3@3", "known moves"),
        ("hold@1000000000", "at most 100000 frames"),
        ("hold@" + "9" * 5000, "at most 100000 frames"),
        (",".join(["hold@90000"] * 2), "180000 frames; at most 100000"),
        ("hold@²", "how many frames it takes"),
        ("hold@\0", "how many frames it takes"),
    ],
)
def test_mistakes_are_sentences(script: str, says: str):
    with pytest.raises(UsageError, match=says):
        parse_script(script)
