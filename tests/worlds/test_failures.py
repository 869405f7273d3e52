"""Failures: strength 0 is perfect memory, more strength is further from the truth, and each does what its name says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.geometry.rotations import angle_between_rotations
from revisit.worlds import TARGET, Film, make_world, play
from revisit.worlds.failures import FAILURES, FLOORS, Failure, camera_path, generate
from revisit.worlds.layouts.common import Model

SIZE = (72, 128)
STRENGTHS = (0.5, 1.0)
CAMERA = {"frozen_camera", "timid_camera", "camera_drift", "late_return", "partial_return"}
WHOLE_CLIP = {"flicker", "blur", "collapse"}
MEMORY = set(FAILURES) - CAMERA - WHOLE_CLIP
SCRIPT = "yaw:{away}:60@6,yaw:{back}:60@6"
QUICK = {"vanish", "state_reset", "teleport", "blur", "background"}  # of each sort one or two
world_of = cache(make_world)


@cache
def shot(event: str = "rolling", script: str = SCRIPT) -> Film:
    """A film of 13 frames; a ball that rolls is seen to begin, so every failure has something to fail at."""
    world = world_of(4, "room", "ball")
    away, back = ("right", "left") if world.turn == "right" else ("left", "right")
    return play(world, script.format(away=away, back=back), event, SIZE)


@cache
def made(kind: str, strength: float = 1.0) -> list[np.ndarray]:
    return list(generate(kind, shot(), strength))


@pytest.fixture(scope="module")
def film() -> Film:
    return shot()


def distance(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """How far two clips are apart, seen from so far that a thing moved further is further off."""
    import cv2

    def blurred(rgb: np.ndarray) -> np.ndarray:
        return cv2.GaussianBlur(rgb, (0, 0), SIZE[0] / 6, borderType=cv2.BORDER_REFLECT).astype(float)

    return float(np.mean([np.abs(blurred(a) - blurred(b)).mean() for a, b in zip(one, other, strict=True)]))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two pictures differ by no more than the noise."""
    return bool(np.abs(one.astype(int) - other).mean() < 1.5)


def test_the_kinds_are_those_of_the_benchmarks():
    memobench = {"vanish", "colour_drift", "texture_drift", "shape_drift", "state_reset", "teleport", "background",
                 "camera_drift"}  # fmt: skip
    wrbench = {"frozen_camera", "partial_return", "state_reset", "teleport", "duplicate"}
    assert memobench | wrbench <= set(FAILURES)
    assert set(FLOORS) == {"noise", "shuffled", "other_clip"}
    page = (Path(__file__).parents[2] / "docs/failures.md").read_text(encoding="utf-8")
    assert [kind for kind in (*FAILURES, *FLOORS) if f"`{kind}`" not in page] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAILURES)
def test_strength_0_is_perfect_memory(kind: str, film: Film):
    assert FAILURES[kind].applies(film)
    for frame, (rgb, perfect) in enumerate(zip(made(kind, 0.0), made("perfect"), strict=True)):
        assert np.array_equal(rgb, perfect), f"frame {frame}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.long) for kind in sorted(set(FAILURES) - CAMERA)],
)
def test_more_strength_is_further_from_the_truth(kind: str):
    far = [distance(made(kind, strength), made("perfect")) for strength in (0.0, *STRENGTHS)]
    assert far == sorted(set(far)), far


@pytest.mark.parametrize("kind", sorted(CAMERA))
def test_more_strength_is_further_from_the_camera_path(kind: str, film: Film):
    far = []
    for strength in np.linspace(0, 1, 6):
        poses = camera_path(kind, film, strength)
        shift = np.linalg.norm(poses[:, :3, 3] - film.poses[:, :3, 3], axis=1)
        far.append(float(np.mean(np.radians(angle_between_rotations(poses[:, :3, :3], film.poses[:, :3, :3])) + shift)))
    assert far == sorted(set(far)), far
    assert distance(made(kind), made("perfect")) > 3


@pytest.mark.parametrize("kind", FAILURES)
def test_what_is_seen_before_the_target_leaves_is_the_truth(kind: str, film: Film):
    first = film.phases[0] if kind in MEMORY else 1
    for frame in range(first):
        assert np.array_equal(made(kind)[frame], made("perfect")[frame]), f"frame {frame}"


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes(film: Film):
    again = play(make_world(4, "room", "ball"), film.script, film.event, SIZE)
    for kind in ("camera_drift", "background", "flicker", "state_reset"):
        assert all(np.array_equal(a, b) for a, b in zip(made(kind), generate(kind, again), strict=True)), kind
        other = generate(kind, film, seed=1)
        assert not all(np.array_equal(a, b) for a, b in zip(made(kind), other, strict=True)), kind


def test_vanish_leaves_the_empty_room(film: Film):
    assert same(made("vanish")[-1], film.shot(len(film) - 1).rgb)
    there = film.truth(len(film) - 1).mask == TARGET
    half = made("vanish", 0.5)[-1].astype(int)[there]
    truth, empty = film.truth(len(film) - 1).rgb[there], film.shot(len(film) - 1).rgb[there]
    assert np.abs(half - (truth.astype(int) + empty) / 2).mean() < 1.5


@pytest.mark.parametrize("kind", ["colour_drift", "texture_drift", "shape_drift"])
def test_identity_drifts_on_the_target_alone(kind: str, film: Film):
    changed = np.abs(made(kind)[-1].astype(int) - made("perfect")[-1]).max(axis=2) > 30
    there = film.truth(len(film) - 1).mask == TARGET
    assert changed[there].mean() > 0.25
    rows, columns = np.nonzero(there)
    near = np.zeros_like(there)
    near[max(rows.min() - 20, 0) : rows.max() + 20, max(columns.min() - 20, 0) : columns.max() + 20] = True
    assert not changed[~near].any()


def test_reset_and_frozen_return_to_two_different_moments(film: Film):
    last = len(film) - 1
    assert same(made("state_reset")[-1], film.shot(last, film.states[0]).rgb)
    assert same(made("state_frozen")[-1], film.shot(last, film.states[film.phases[0] - 1]).rgb)
    assert distance(made("state_frozen"), made("perfect")) < distance(made("state_reset"), made("perfect"))
    assert distance(made("state_frozen"), made("state_reset")) > 0


def test_half_a_reset_is_on_the_path_of_the_event(film: Film):
    half = made("state_reset", 0.5)[-1]
    nearest = min(
        np.abs(half.astype(int) - film.shot(len(film) - 1, film.state_at(k / 4)).rgb).mean() for k in range(84)
    )
    assert nearest < 1.5


def test_teleport_is_off_the_path_and_in_view(film: Film):
    last = len(film) - 1
    away = [
        float(np.abs(made("teleport")[-1].astype(int) - film.shot(last, state).rgb).mean()) for state in film.states
    ]
    assert min(away) > 2
    assert not same(made("teleport")[-1], film.shot(last).rgb), "the target is in view"


def test_a_duplicate_adds_a_second_target(film: Film):
    last = len(film) - 1
    added = np.abs(made("duplicate")[-1].astype(int) - film.truth(last).rgb).max(axis=2) > 40
    target = film.truth(last).mask == TARGET
    assert added.sum() > 0.4 * target.sum() and not (added & target).sum() > 0.2 * target.sum()


def test_the_background_changes_around_the_target(film: Film):
    last = len(film) - 1
    changed = np.abs(made("background")[-1].astype(int) - film.truth(last).rgb).max(axis=2) > 25
    mask = film.truth(last).mask
    table = next(id for id, name in film.world.instances.items() if name == "table")
    assert changed[mask == TARGET].mean() < 0.15 and changed[mask == table].mean() < 0.25
    assert changed[~np.isin(mask, (TARGET, table))].mean() > 0.5


def test_a_cut_shows_another_place_and_comes_back(film: Film):
    wrong = [not same(a, b) for a, b in zip(made("cut"), made("perfect"), strict=True)]
    assert sum(wrong) == -(-len(film) // 2) and not wrong[-1]
    assert np.flatnonzero(wrong)[0] > film.phases[0]
    assert sum(not same(a, b) for a, b in zip(made("cut", 0.05), made("perfect"), strict=True)) == 1


def test_cameras_fail_as_they_say(film: Film):
    def turned(kind: str, strength: float = 1.0) -> np.ndarray:
        poses = camera_path(kind, film, strength)
        return np.asarray(angle_between_rotations(poses[0, :3, :3], poses[:, :3, :3]))

    truth = turned("perfect")
    assert turned("frozen_camera").max() == 0
    assert turned("frozen_camera", 0.5).max() == pytest.approx(30)
    assert turned("timid_camera") == pytest.approx(0.25 * truth)
    assert turned("late_return")[-1] == pytest.approx(0) and (turned("late_return") >= truth - 1e-6).all()
    assert turned("late_return")[9] == pytest.approx(60)
    assert turned("partial_return")[-1] == pytest.approx(60)
    assert turned("partial_return", 0.5)[-1] == pytest.approx(30)
    drift = np.array(angle_between_rotations(camera_path("camera_drift", film)[:, :3, :3], film.poses[:, :3, :3]))
    assert drift[0] == 0 and 9 < drift[-1] < 15 and (np.diff(drift) > 0).all()


def test_a_camera_that_never_turned_sees_no_jump():
    moved = shot("moved")
    frames = list(generate("frozen_camera", moved))
    assert all(same(rgb, moved.truth(0).rgb) for rgb in frames)


@pytest.mark.parametrize("kind", FLOORS)
def test_floors_are_far_from_the_truth(kind: str):
    assert sum(same(a, b) for a, b in zip(made(kind), made("perfect"), strict=True)) <= 3


def test_failures_apply_where_there_is_something_to_fail_at():
    nothing, moved = shot("none"), shot("moved")
    dark = shot("moved", "hold@4,lights:down:1@3,hold@6,lights:up:1@3,hold@4")
    assert not FAILURES["state_reset"].applies(nothing) and FAILURES["state_reset"].applies(moved)
    assert not FAILURES["state_frozen"].applies(moved), "nothing of it was seen, so it would be a reset"
    assert not any(FAILURES[kind].applies(dark) for kind in CAMERA)
    frames = list(generate("vanish", dark))
    assert same(frames[3], dark.truth(3).rgb) and same(frames[-1], dark.shot(len(dark) - 1).rgb)


def test_a_new_kind_is_one_function_and_one_row(monkeypatch: pytest.MonkeyPatch, film: Film):
    def upside_down(film: Film, strength: float, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The picture stands on its head on return; strength is the share of it that does."""
        rows = round(strength * film.size[0])
        for frame in range(len(film)):
            rgb = film.truth(frame).rgb.copy()
            if frame >= film.phases[1]:
                rgb[:rows] = rgb[:rows][::-1]
            yield rgb

    monkeypatch.setitem(FAILURES, "upside_down", Failure("upside down", "the picture stands on its head", upside_down))
    frames = list(generate("upside_down", film))
    assert same(frames[-1], film.truth(len(film) - 1).rgb[::-1])
    assert np.array_equal(frames[0], made("perfect")[0])
    assert Model.parse("upside_down@0.5").name == "upside_down@0.5"


def test_what_does_not_exist_is_refused_with_a_sentence(film: Film):
    with pytest.raises(UsageError, match="choose one of perfect, frozen_camera"):
        next(generate("forgets", film))
    with pytest.raises(UsageError, match="from 0 to 1"):
        next(generate("vanish", film, 1.5))
