"""Drift over long clips: lag curves in closed form, and pictures that lose detail."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from revisit.core import Score, Unscored
from revisit.evidence.appearance import LabStats, StyleStats
from revisit.evidence.frames import FrameFacts
from revisit.metrics.drift import long_drift
from revisit.observers.color_texture import lab_stats, style_stats
from tests.painted_datasets import film

FPS = 8.0


def clip(count: int, gradient: np.ndarray | float = 0.1, light: np.ndarray | float = 50.0) -> tuple:
    index, ones = np.arange(count), np.ones(count)
    frames = FrameFacts(index, index / FPS, np.zeros((count, 16), np.uint8), 0.5 * ones, ones, 160, 96, FPS)
    lab = LabStats(index, np.column_stack([light * ones, 5 * ones, -5 * ones]), np.ones((count, 3)))
    return frames, lab, StyleStats(index, np.outer(gradient * ones, (1, 0.8, 0.6)), 0.2 * ones, 0.3 * ones)


def scored(answer: Score | Unscored) -> Score:
    assert isinstance(answer, Score), answer
    return answer


def test_a_steady_loss_of_detail_has_a_lag_curve_in_closed_form() -> None:
    rate, seconds = 0.02, np.arange(480) / FPS  # a minute; 2 % of detail are lost in a second
    made = scored(long_drift(*clip(480, 0.2 * np.exp(-rate * seconds))))
    step = 3 / 8 * rate * 2  # three of eight columns change, over stretches of two seconds
    assert made.facts["difference"] == pytest.approx(step * np.arange(1, 30), abs=1e-4)
    assert made.facts["per_minute"] == pytest.approx(3 / 8 * rate * 60, rel=1e-3)
    far = step * np.arange(15, 30).mean()
    assert made.raw == pytest.approx(far - step, rel=1e-3) and made.value == pytest.approx(np.exp(step - far), rel=1e-3)
    assert np.all(np.diff(made.units["value"]) <= 1e-9)


def test_what_changes_without_direction_is_no_drift() -> None:
    assert scored(long_drift(*clip(240))).value == 1.0
    rng = np.random.default_rng(0)
    content = np.repeat(np.exp(rng.normal(0, 0.3, 30)), 16)  # another view every two seconds
    assert scored(long_drift(*clip(480, 0.1 * content))).value > 0.97
    there_and_back = 50 + 20 * np.sin(np.linspace(0, np.pi, 480))
    darker = scored(long_drift(*clip(480, light=np.linspace(60, 30, 480))))
    assert darker.value < 0.85 < scored(long_drift(*clip(480, light=there_and_back))).value


def test_short_clips_are_not_asked() -> None:
    answer = long_drift(*clip(33))
    assert isinstance(answer, Unscored) and answer.kind == "too_short" and "4.0 s" in answer.sentence


def test_pictures_that_lose_detail_drift_and_others_do_not() -> None:
    """Through the observers: a camera that looks around for ten seconds, and the same while the picture blurs."""
    sharp = film("yaw:left:60@40,yaw:right:60@40")[0]
    blurred = np.stack([cv2.GaussianBlur(rgb, (0, 0), 0.05 + 3 * k / len(sharp)) for k, rgb in enumerate(sharp)])
    frames = clip(len(sharp))[0]
    steady, drifting = (long_drift(frames, lab_stats(rgb), style_stats(rgb)) for rgb in (sharp, blurred))
    assert scored(steady).value > 0.95 > 0.9 > scored(drifting).value
