"""Questions of memory are asked only where the camera looked away: a resting camera wins nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import Record
from revisit.engine import in_memory
from revisit.engine.cache import MemoryCache
from tests.looking import wall, window
from tests.metrics.test_target import AWAY, BACK, BOX
from tests.metrics.test_target import scene as make_scene

SHARED = Path(__file__).parents[3] / "shared" / "data"
TARGET_METRICS = ("target_reappearance", "target_identity")
pytestmark = pytest.mark.slow
scene = cache(make_scene)
EVIDENCE = MemoryCache()


@pytest.fixture(autouse=True)
def _evidence_of_the_same_frames_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "SeenBefore", partial(in_memory.SeenBefore, cache=EVIDENCE))


def answers(frames: list[np.ndarray], box: tuple[float, float, float, float] = BOX, **given) -> Mapping[str, Record]:
    """What is said of the target and of the camera."""
    asked = ["target_return", *TARGET_METRICS]
    results = revisit.score(np.stack(frames), target=box, metrics=asked, **given)
    return results.of(results.cases[0])


def turned(columns: np.ndarray = BACK, picture: np.ndarray | None = None) -> list[np.ndarray]:
    """A camera that slides along the wall."""
    return [window(scene() if picture is None else picture, int(x)) for x in columns]


def passed_by() -> list[np.ndarray]:
    """A camera that rests, while somebody wider than the target walks in front of it and stops there for a second."""
    walker = wall(width=130, seed=11) // 2 + 40
    place = np.r_[np.linspace(-130, 80, 12), np.full(24, 80), np.linspace(80, 330, 14)].astype(int)
    frames = [window(scene(), 600)] * 8
    for x in place:
        frame = window(scene(), 600).copy()
        low, high = max(x, 0), min(x + 130, 320)
        if high > low:
            frame[20:, low:high] = walker[20:, low - x : high - x]
        frames.append(frame)
    return [*frames, *[window(scene(), 600)] * 10]


def test_a_camera_that_rests_is_not_scored_though_its_target_was_hidden_and_came_back() -> None:
    found = answers(passed_by())
    assert found["target_return"].label == "hidden, returned"  # else the clip poses no question
    for metric in TARGET_METRICS:
        assert not found[metric].scored, metric
        assert found[metric].reason is not None and found[metric].reason.kind == "gate_closed"
        assert "never looks away" in found[metric].reason.sentence
    assert found["look_away"].label == "never looks away"


def test_a_real_return_is_scored_as_before() -> None:
    found = answers(turned())
    assert found["look_away"].label == "looks away" and found["look_away"].status == "open"
    assert found["target_reappearance"].value == 1 and (found["target_identity"].value or 0) > 0.6


@pytest.mark.long
def test_a_target_that_the_camera_leaves_for_good_is_no_question_of_a_resting_camera() -> None:
    found = answers(turned(AWAY))
    assert found["look_away"].label == "looks away"
    assert found["target_reappearance"].reason.kind == "no_return"  # its place is not seen again, as before


@pytest.mark.parametrize(
    "given", [{"annotations": {"hidden_by": "passer-by"}}, {"camera": "hold@8,screen:in:1@12,hold@24,screen:out:1@15"}]
)
def test_a_case_may_say_that_something_in_the_scene_hides_the_target(given) -> None:
    found = answers(passed_by(), **given)
    assert found["look_away"].label == "hidden in the scene"
    assert found["target_reappearance"].value == 1 and found["target_identity"].scored


def test_the_camera_is_what_hides_the_target_unless_somebody_says_otherwise() -> None:
    found = answers(passed_by(), annotations={"hidden_by": "camera"}, camera="yaw:left:60@30,yaw:right:60@31")
    assert found["look_away"].label == "never looks away" and not found["target_reappearance"].scored


def test_a_small_turn_counts_where_it_takes_the_target_out_of_the_frame() -> None:
    box = (0.0, 0.3, 0.1, 0.75)
    picture = wall(seed=3) // 2 + 60
    picture[54:135, 600:632] = (210, 190, 40)
    picture[54:135:16, 600:632] = (60, 20, 120)
    columns = np.r_[np.full(6, 600), 600 + 4 * np.arange(1, 14), np.full(12, 652), 652 - 4 * np.arange(1, 14)]
    found = answers(turned(np.r_[columns, np.full(8, 600)], picture), box)
    assert found["look_away"].label == "looks away" and found["look_away"].facts["by"] == "the target's place"
    assert found["look_away"].facts["lost_strip"] < 0.25
    middle = answers(turned(np.r_[columns, np.full(8, 600)], scene()))
    assert middle["look_away"].label == "never looks away"  # the same turn leaves the middle of the picture in view


def test_a_cut_away_and_back_is_not_called_a_look_away() -> None:
    elsewhere = wall(seed=8)
    frames = [window(scene(), 600)] * 16 + [window(elsewhere, 200)] * 16 + [window(scene(), 600)] * 16
    found = answers(frames)
    assert found["look_away"].status == "unsure"
    assert all(not found[metric].scored for metric in TARGET_METRICS)


@pytest.mark.long
def test_light_that_goes_out_is_no_look_away() -> None:
    light = np.r_[np.ones(12), np.linspace(1, 0.03, 8), np.full(16, 0.03), np.linspace(0.03, 1, 8), np.ones(12)]
    frames = [(window(scene(), 600) * share).astype(np.uint8) for share in light]
    found = answers(frames)
    assert found["look_away"].status != "open"
    assert all(not found[metric].scored for metric in TARGET_METRICS)


@pytest.mark.parametrize(
    "name, labels",
    [
        ("moving/sam2_dog", {"never looks away"}),  # the dog runs out of the picture and back
        pytest.param("memobench/videos/Real_007_ltxvideo", {"never looks away"}, marks=pytest.mark.long),
        pytest.param(  # foam grows over all of it
            "memobench_more/Real_024_opensora", {"never looks away", "cannot tell"}, marks=pytest.mark.long
        ),
        ("memobench/videos/Real_007_svc", {"looks away"}),
    ],
)
def test_real_cameras_that_rest_and_one_that_turns(name: str, labels: set[str]) -> None:
    clip = SHARED / f"{name}.mp4"
    if not clip.is_file():
        pytest.skip(f"needs {clip}")
    results = revisit.score(clip, target=(0.35, 0.52, 0.555, 0.78), metrics=["look_away"])
    assert results.of(results.cases[0])["look_away"].label in labels
