"""Decay of the picture: what is injected is found, and what only looks like it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import cv2
import numpy as np
import pytest

from revisit.audit.grid import grid_film
from revisit.core import Score, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.metrics.picture_decay import edge_sharpness, time_to_collapse
from revisit.observers.picture_statistics import edge_sharpness as sharpness_of
from revisit.observers.picture_statistics import gradient_coherence, gradient_lengths, picture_statistics

FPS = 8.0


@cache
def turning() -> np.ndarray:
    """A camera that looks around in a rendered room and comes back."""
    scene = grid_film(0, size=(120, 208))
    return np.stack([scene.truth(frame).rgb for frame in range(32)])


@cache
def resting() -> np.ndarray:
    return np.repeat(turning()[:1], 32, axis=0)


def collapse_of(pictures: np.ndarray) -> Score:
    statistics = picture_statistics(pictures)
    count, ones = len(pictures), np.ones(len(pictures))
    index = np.arange(count)
    frames = FrameFacts(index, index / FPS, np.zeros((count, 16), np.uint8), 0.5 * ones, ones, 160, 96, FPS)
    answer = time_to_collapse(frames, statistics)
    assert isinstance(answer, Score), answer
    return answer


def growing(pictures: np.ndarray, change: Callable[[np.ndarray, float], np.ndarray], start: int = 8) -> np.ndarray:
    """Pictures that change more and more from a frame on."""
    last = len(pictures) - 1
    shares = [max(0.0, (k - start) / (last - start)) for k in range(len(pictures))]
    changed = [change(rgb.astype(np.float32), share) for rgb, share in zip(pictures, shares, strict=True)]
    return np.stack([np.clip(rgb, 0, 255).astype(np.uint8) for rgb in changed])


def speckled(rgb: np.ndarray, share: float) -> np.ndarray:
    return rgb + np.random.default_rng(int(100 * share)).normal(0, 1 + 100 * share, rgb.shape).astype(np.float32)


def sharpened(rgb: np.ndarray, share: float) -> np.ndarray:
    return rgb + 3 * share * (rgb - cv2.GaussianBlur(rgb, (0, 0), 1.5))


def smeared(rgb: np.ndarray, share: float) -> np.ndarray:
    return cv2.GaussianBlur(rgb, (0, 0), 0.1 + 5 * share)


def darker(rgb: np.ndarray, share: float) -> np.ndarray:
    return rgb * (1 - 0.6 * share)


def brighter(rgb: np.ndarray, share: float) -> np.ndarray:
    return rgb * (1 + 0.4 * share)


def thing_that_grows(rgb: np.ndarray, share: float) -> np.ndarray:
    """A ball with a fine pattern over up to half of the picture."""
    height, width = rgb.shape[:2]
    y, x = np.mgrid[:height, :width]
    inside = np.hypot(x - width / 2, y - height / 2) < 0.4 * share * width
    pattern = np.stack([128 + 100 * np.sin(x / 2) * np.sin(y / 2)] * 3, axis=2)
    return np.where(inside[..., None], pattern, rgb).astype(np.float32)


@pytest.mark.parametrize("pictures", [turning, resting])
def test_noise_is_found_wherever_the_camera_looks(pictures: Callable[[], np.ndarray]) -> None:
    found = collapse_of(growing(pictures(), speckled))
    assert found.facts["noise"] > 0.5 and found.facts["collapse"] >= 0.75
    assert 8 / 32 <= found.value < 1
    assert found.facts["collapsed_at_frame"] == pytest.approx(32 * found.value, abs=1)


@pytest.mark.parametrize(("change", "by"), [(sharpened, "sharpened"), (smeared, "smeared")])
def test_a_picture_that_is_sharpened_or_smeared_more_and_more_decays(change: Callable, by: str) -> None:
    found = collapse_of(growing(resting(), change))
    assert found.facts["by"] == by and found.value < 0.8


@pytest.mark.parametrize("change", [None, darker, brighter, thing_that_grows])
@pytest.mark.parametrize("pictures", [turning, resting])
def test_another_view_light_or_thing_is_no_decay(pictures: Callable, change: Callable | None) -> None:
    shown = pictures() if change is None else growing(pictures(), change)
    found = collapse_of(shown)
    assert found.value == 1 and found.facts["collapse"] < 0.25, found.facts


def test_noise_from_the_first_frame_on_is_collapsed_from_the_start() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (16, 96, 160, 3), dtype=np.uint8)
    assert collapse_of(noise).value == 0


def test_a_clip_that_goes_black_says_from_where() -> None:
    dark = turning().copy()
    dark[20:] = 0
    facts = collapse_of(dark).facts
    assert (facts["blank"], facts["blank_from_frame"], facts["blank_share"]) == ("black", 20, 0.375)
    assert collapse_of(np.zeros_like(dark)).facts["blank_share"] == 1
    assert collapse_of(np.full_like(dark, 128)).facts["blank"] == "one colour"


def test_a_clip_that_is_dark_for_a_moment_or_at_night_is_not_blank() -> None:
    moment, night = turning().copy(), turning() // 12
    moment[10:16], night[:, 20:40, 20:40] = 0, 200  # a lamp
    assert "blank" not in collapse_of(moment).facts and "blank" not in collapse_of(night).facts


def test_few_frames_are_not_asked() -> None:
    assert isinstance(time_to_collapse(None, picture_statistics(turning()[:5])), Unscored)  # type: ignore[arg-type]


def test_direction_of_noise_and_of_stripes() -> None:
    rng = np.random.default_rng(0)
    stripes = np.tile(np.float32(128) + 100 * np.sin(np.arange(160, dtype=np.float32) / 3), (96, 1))
    assert gradient_coherence(stripes) == pytest.approx(1, abs=0.01)
    assert gradient_coherence(rng.normal(128, 40, (96, 160)).astype(np.float32)) < 0.36
    assert gradient_coherence(np.full((96, 160), 128, np.float32)) == 1


def test_sharpness_follows_the_width_of_an_edge() -> None:
    """An error function of deviation s has the slope 1 / (s sqrt(2 pi)): the ratio to that at a quarter of the size."""
    x = np.arange(320, dtype=np.float32)
    step = np.where(x < 161, 40, 200).astype(np.float32)
    picture = np.tile(step, (180, 1))
    blurred = [cv2.GaussianBlur(picture, (0, 0), sigma) for sigma in (0.3, 1.5, 3.0, 8.0)]
    values = [sharpness_of(one, gradient_lengths(one)) for one in blurred]
    assert values == sorted(values, reverse=True)
    assert values[0] >= 0.9 and values[-1] == pytest.approx(
        0.25, abs=0.03
    )  # a slope is four times as steep at a quarter


def test_blur_is_found_and_smooth_things_are_not_blur() -> None:
    def value(pictures: np.ndarray) -> float:
        answer = edge_sharpness(picture_statistics(pictures))
        assert isinstance(answer, Score)
        return answer.value

    sharp = turning()[::4]
    foam = np.stack([cv2.circle(rgb.copy(), (104, 70), 45, (235, 235, 230), -1) for rgb in sharp])
    soft = np.stack([cv2.GaussianBlur(rgb, (0, 0), 3) for rgb in sharp])
    assert value(soft) < 0.5 < 0.7 < min(value(sharp), value(foam))
    statistics = picture_statistics(sharp)
    without = replace(statistics, sharpness=np.full(len(sharp), np.nan, np.float32))
    assert isinstance(edge_sharpness(without), Unscored)
    assert isinstance(edge_sharpness(picture_statistics(np.full((6, 96, 160, 3), 128, np.uint8))), Unscored)
