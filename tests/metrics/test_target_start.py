"""A clip that begins without the target: said so, and not "never hidden"."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

import revisit
from revisit.evidence.reference import PairedViews
from revisit.evidence.target import TargetTrack
from revisit.metrics.target_return import (
    ABSENT,
    best_box_correlation,
    gather_target_observations,
    start_box_correlation,
    target_return,
)
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world

SIZE = (120, 208)
SEEDS = range(9100, 9106)


def film_of(seed: int, kind: str = "vase") -> Film:
    return play(make_world(seed, "room", kind, block=False), "yaw", "none", SIZE, frames=9, fps=8)


@pytest.fixture(scope="module")
def film() -> Film:
    return film_of(9101)


def likeness(picture: np.ndarray, truth: np.ndarray, box: tuple[float, float, float, float]) -> float:
    value = best_box_correlation(picture, truth, box)
    assert value is not None
    return value


def judged(film: Film, frames: np.ndarray):
    truth = np.stack([film.truth(frame).rgb for frame in range(len(film))])
    track = revisit.observe(frames, "lite.target", target=film.target_box(), fps=film.fps)
    views = revisit.observe(frames, "lite.outcome", reference=truth, fps=film.fps)
    assert isinstance(track, TargetTrack) and isinstance(views, PairedViews)
    return target_return(gather_target_observations.fn(track, None, views)), track, views


def test_a_target_that_a_clip_begins_without_is_said_to_be_absent(film):
    resting = np.stack([film.shot(0, None).rgb] * len(film))
    answer, track, views = judged(film, resting)
    assert answer.state == "unsure" and "not there in the first frame" in answer.reason
    alone = target_return(gather_target_observations.fn(track, None, None))
    assert "not there" not in str(alone.reason)  # without a reference nobody can say what should be there
    late = replace(views, index=views.index + 1)
    assert start_box_correlation(track, late) is None


def test_a_target_that_is_there_is_judged(film):
    answer, track, views = judged(film, np.stack([film.shot(0, film.states[0]).rgb] * len(film)))
    alike = start_box_correlation(track, views)
    assert answer.label == "never hidden" and alike is not None and alike > 0.95


@pytest.mark.long
def test_noise_blur_and_light_leave_it_there_and_another_picture_does_not():
    """Six rooms; the threshold was chosen on other pictures, of real clips."""
    rng = np.random.default_rng(0)
    absent = 0
    for seed in SEEDS:
        film = film_of(seed)
        truth, box = film.shot(0, film.states[0]).rgb, film.target_box()
        noisy = np.clip(truth * 0.9 + rng.normal(0, 6, truth.shape), 0, 255)
        for picture in (truth, noisy, cv2.GaussianBlur(truth, (0, 0), 1.5), np.roll(truth, 2, axis=1)):
            assert likeness(picture, truth, box) > 0.8
        absent += likeness(film.shot(0, None).rgb, truth, box) < ABSENT
    assert absent >= 4


def test_light_and_noise_leave_the_target_there(film):
    truth, box = film.shot(0, film.states[0]).rgb, film.target_box()
    noisy = np.clip(truth * 0.9 + np.random.default_rng(0).normal(0, 6, truth.shape), 0, 255)
    assert likeness(noisy, truth, box) > 0.95 and likeness(np.roll(truth, 2, axis=1), truth, box) > 0.95
    assert best_box_correlation(truth, truth, (0.5, 0.5, 0.51, 0.51)) is None
