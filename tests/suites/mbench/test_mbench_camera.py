"""Camera interaction of MBench: left is left, however poses are stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored, UsageError
from revisit.geometry.camera_script import camera_path, parse_script
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.suites.mbench.evidence import GeometryTrack
from revisit.suites.mbench.imports import geometry
from revisit.suites.mbench.metrics.camera import camera_interaction, motion_between_poses
from tests.mbench_world import case, frame_facts, room, track, write_npz


def path(script: str) -> np.ndarray:
    return np.array(camera_path(parse_script(script), np.eye(4)))


LEFT_RIGHT = path("yaw:left:60@20,yaw:right:60@20")
RIGHT_LEFT = path("yaw:right:60@20,yaw:left:60@20")


def scored(poses: np.ndarray | GeometryTrack, action: str, **params: object) -> Score:
    found = poses if isinstance(poses, GeometryTrack) else track(poses)
    made = camera_interaction(case(action=action), frame_facts(len(found.c2w)), found, **params)
    assert isinstance(made, Score), made
    return made


@pytest.mark.parametrize("rule", ["corrected", "paper"])
def test_left_is_left(rule: str) -> None:
    assert scored(LEFT_RIGHT, "left_then_right", rule=rule).value == pytest.approx(1, abs=1e-9)
    assert scored(RIGHT_LEFT, "left_then_right", rule=rule).value == 0
    assert scored(RIGHT_LEFT, "left_then_right", rule=rule).raw == pytest.approx(-1, abs=1e-9)
    assert scored(RIGHT_LEFT, "right_then_left", rule=rule).value == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("w2c", [True, False])
def test_left_is_left_in_a_rendered_room_and_in_both_stored_conventions(tmp_path: Path, w2c: bool) -> None:
    found = geometry.fn(write_npz(tmp_path / "results.npz", w2c=w2c))
    assert found.convention == ("w2c" if w2c else "c2w") and found.found == "the depth"
    there, back = room().turn, {"left": "right", "right": "left"}[room().turn]
    # one step of eight also goes to the side
    assert scored(found, f"{there}_then_{back}").value > 0.95
    assert scored(found, f"{back}_then_{there}").value == 0


def test_a_mirrored_video_turns_the_other_way() -> None:
    mirror = np.diag([-1.0, 1, 1, 1])
    assert scored(mirror @ LEFT_RIGHT @ mirror, "left_then_right").raw == pytest.approx(-1, abs=1e-9)


def test_the_papers_left_is_plus_one_of_world_to_camera() -> None:
    assert motion_between_poses(LEFT_RIGHT, 1.0)[0, 4] < 0 < motion_between_poses(LEFT_RIGHT, 1.0, literal=True)[0, 4]
    forward = path("dolly:forward:1@10")
    assert motion_between_poses(forward, 1.0)[0, 2] > 0 > motion_between_poses(forward, 1.0, literal=True)[0, 2]


@pytest.mark.parametrize(
    ("script", "action"),
    [
        ("dolly:forward:2@20,dolly:back:2@20", "forward_then_backward"),
        ("yaw:left:360@40", "left_360"),
        ("yaw:right:60@20,yaw:left:60@20", "right_then_left_25s"),
    ],
)
def test_other_actions(script: str, action: str) -> None:
    action = action.removesuffix("_25s")
    made = scored(path(script), action)
    assert made.value == pytest.approx(1, abs=1e-6)
    if action == "left_360":
        assert made.facts["total_turn_degrees"] == pytest.approx(-360, abs=1e-6)


def test_a_turn_at_an_angle_scores_its_cosine() -> None:
    axis = rotation_from_axis_angle((0, 0, 1), 30)  # the turn is about an axis that leans by 30 degrees
    poses = LEFT_RIGHT.copy()
    poses[:, :3, :3] = axis @ LEFT_RIGHT[:, :3, :3] @ axis.T
    assert scored(poses, "left_then_right").raw == pytest.approx(np.cos(np.radians(30)), abs=1e-9)


def test_sideways_motion_is_weighed_by_the_depth_of_the_scene() -> None:
    poses = path("yaw:left:60+truck:right:1@20")
    near, far = (scored(track(poses, depth), "left_60").raw for depth in (1.0, 100.0))
    assert near is not None and far is not None and near < 0.95 < 0.999 < far


def test_pauses_are_left_out_and_counted() -> None:
    made = scored(path("yaw:left:60@20,hold@10,yaw:right:60@20"), "left_then_right")
    assert made.value == pytest.approx(1) and made.facts["response_rate"] == pytest.approx(0.8)


def test_a_late_turn_costs_and_a_tolerance_forgives() -> None:
    poses = path("yaw:left:60@24,yaw:right:60@16")
    strict, lenient = (scored(poses, "left_then_right", tolerance=t) for t in (0.0, 0.15))
    assert strict.value == pytest.approx(1 - 2 * 4 / 40, abs=0.06) and lenient.value == pytest.approx(1)


def test_strided_poses_switch_at_the_middle_of_the_clip() -> None:
    found = track(LEFT_RIGHT[::4])
    made = camera_interaction(case(action="left_then_right"), frame_facts(41), found)
    assert isinstance(made, Score) and made.value == pytest.approx(1) and "every 4th" in made.facts["note"]


def test_a_camera_at_rest_obeys_only_static() -> None:
    still = path("hold@40")
    assert scored(still, "left_then_right").value == 0 and scored(still, "left_then_right").facts["response_rate"] == 0
    assert scored(still, "static").value == 1
    assert scored(LEFT_RIGHT, "static").value < 0.01


def test_what_cannot_be_asked_is_unscored() -> None:
    frames = frame_facts(41)
    for action in ("wave", "left_then_wave", "left_right", "left_then_right_slowly"):
        made = camera_interaction(case(action=action), frames, track(LEFT_RIGHT))
        assert isinstance(made, Unscored) and made.kind == "unreadable" and repr(action) in made.sentence
        assert f"actions: {{{action}: [{{left: 4}}" in made.sentence, "it says what to write"
    made = camera_interaction(case(action=""), frames, track(LEFT_RIGHT))
    assert isinstance(made, Unscored) and made.kind == "no_camera"
    refused = replace(track(LEFT_RIGHT), refused="nothing tells")
    assert camera_interaction(case(action="left_360"), frames, refused) == Unscored("unreadable", "nothing tells")
    short = camera_interaction(case(action="left_360"), frame_facts(1), track(LEFT_RIGHT[:1]))
    assert isinstance(short, Unscored) and short.kind == "too_short"
    with pytest.raises(InvalidEvidence, match="it must be"):
        camera_interaction(case(action="left_360"), frames, replace(track(LEFT_RIGHT), median_depth=np.zeros(3)))


# Conditions of one's own


def declared(poses: np.ndarray, motion: list[tuple[str, float]], **params: object) -> Score:
    made = camera_interaction(case(action="mine", motion=motion), frame_facts(len(poses)), track(poses), **params)
    assert isinstance(made, Score), made
    return made


@pytest.mark.parametrize(
    ("action", "script"),
    [
        ("left_then_right_then_left", "yaw:left:40@20,yaw:right:40@20,yaw:left:40@20"),
        ("left_right", "yaw:left:40@20,yaw:right:40@20"),
        ("left_then_wait", "yaw:left:40@20,hold@20"),
    ],
)
def test_a_perfect_camera_is_never_scored_by_a_guess(action: str, script: str) -> None:
    """Guessed phases gave 0.33 and 0 here; a name that does not say its phases is asked for them."""
    poses = path(script)
    made = camera_interaction(case(action=action), frame_facts(len(poses)), track(poses))
    assert isinstance(made, Unscored) and "actions: {" in made.sentence
    motion = [
        (word.split(":")[1], float(word.rpartition("@")[2])) if word.startswith("yaw") else ("wait", 20.0)
        for word in script.split(",")
    ]
    assert declared(poses, motion).value == pytest.approx(1, abs=1e-6)


def test_names_are_read_as_far_as_they_go() -> None:
    from revisit.suites.mbench.metrics.actions import RequestedMotion, parse_requested_motion

    assert parse_requested_motion("left_then_right") == RequestedMotion((("left", 0.5), ("right", 0.5)))
    assert parse_requested_motion("right_720") == RequestedMotion((("right", 1.0),))
    assert parse_requested_motion("static") == parse_requested_motion("wait") == RequestedMotion((("wait", 1.0),))
    assert parse_requested_motion("strafe_left") == RequestedMotion((("strafe_left", 1.0),))
    assert parse_requested_motion("left_then_wait_then_right") == RequestedMotion(
        (("left", 0.5), ("right", 0.5)), waits=True
    )
    for name in ("left_then_right_then_left", "left_then_wait", "wait_then_left_then_right"):
        assert "does not say how long" in str(parse_requested_motion(name)), "three phases may be of any length"


@pytest.mark.parametrize("rule", ["corrected", "paper"])
@pytest.mark.parametrize("waiting", [1, 9, 20, 60, 150])
def test_exit_wait_reenter_is_understood_however_long_the_wait(waiting: int, rule: str) -> None:
    """A perfect camera scores 1 by the name alone, with the noise of estimated poses in its wait; a mirrored one 0."""
    poses = path(f"yaw:left:60@20,hold@{waiting},yaw:right:60@20")
    rng = np.random.default_rng(0)
    noisy = poses.copy()
    for k in range(21, 20 + waiting):
        noisy[k, :3, :3] = rotation_from_axis_angle(rng.normal(size=3), 0.05) @ poses[k, :3, :3]
    for found in (poses, noisy):
        made = scored(found, "left_then_wait_then_right", rule=rule)
        assert made.value == pytest.approx(1, abs=0.01) and "waiting is not scored" in made.facts["note"]
        assert scored(found, "right_then_wait_then_left", rule=rule).value == 0
    exact = declared(poses, [("left", 20), ("wait", waiting), ("right", 20)], rule=rule)
    assert exact.value == pytest.approx(1, abs=1e-6) and list(exact.facts["cosine"]) == ["1 left", "2 wait", "3 right"]


def test_a_camera_that_does_not_wait_loses_its_wait() -> None:
    """Turning on through the middle third in place of resting: two of three phases are right."""
    poses = path("yaw:left:60@20,yaw:left:60@20,yaw:right:120@20")
    assert declared(poses, [("left", 1), ("wait", 1), ("right", 1)]).value == pytest.approx(2 / 3, abs=0.02)
    literal = declared(poses, [("left", 1), ("wait", 1), ("right", 1)], rule="paper")
    assert literal.value == pytest.approx(1, abs=0.02), "the paper's cosine says nothing of a rest"


@pytest.mark.parametrize("rule", ["corrected", "paper"])
def test_sequences_that_the_dataset_declares(rule: str) -> None:
    swing = path("yaw:left:40@10,yaw:right:80@20,yaw:left:40@10")
    assert declared(swing, [("left", 1), ("right", 2), ("left", 1)], rule=rule).value == pytest.approx(1, abs=1e-9)
    thirds = declared(swing, [("left", 1), ("right", 1), ("left", 1)], rule=rule)
    assert thirds.value == pytest.approx(1 - 2 * 6 / 40, abs=0.06), "six of forty steps lie in the wrong third"
    forgiven = declared(swing, [("left", 1), ("right", 1), ("left", 1)], rule=rule, tolerance=0.1)
    assert forgiven.value == pytest.approx(1, abs=1e-6)
    aside = path("truck:left:2@20,truck:right:2@20")
    assert declared(aside, [("strafe_left", 1), ("strafe_right", 1)], rule=rule).value == pytest.approx(1, abs=1e-9)


def test_declarations_are_checked() -> None:
    from revisit.suites.mbench.metrics.actions import parse_declared_phases

    swing = parse_declared_phases([{"left": 4}, {"pause": 2}, {"right": 4}], "card")
    assert swing == [("left", 4), ("wait", 2), ("right", 4)]
    assert parse_declared_phases(["left", "right", "left"], "card") == [("left", 1), ("right", 1), ("left", 1)]
    for wrong in (
        "left",
        [],
        ["wave"],
        [{"left": 0}],
        [{"left": "4s"}],
        [{"left": 1}, "right"],
        [{"left": 1, "up": 1}],
    ):
        with pytest.raises(UsageError, match=r"^card: .*expected a list such as"):
            parse_declared_phases(wrong, "card")
