"""Light and style on return, and the colour statistics behind them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored
from revisit.evidence.appearance import LabStats, StyleStats
from revisit.evidence.views import ReturnPairs
from revisit.metrics.appearance import NO_RETURN, lighting_consistency, style_consistency
from revisit.observers.color_texture import lab_stats, style_stats
from tests.looking import as_frames, look, read, wall, window


def pairs(i: list[int], j: list[int], overlap: float = 0.9) -> ReturnPairs:
    n = len(i)
    one = np.ones(n)
    return ReturnPairs(np.array(i, int), np.array(j, int), one, overlap * one, np.tile(np.eye(3), (n, 1, 1)), one)


def lab(*means: tuple[float, float, float]) -> LabStats:
    table = np.array(means)
    return LabStats(np.arange(len(table)), table, np.ones_like(table))


def style_of(*pictures: np.ndarray) -> StyleStats:
    found: StyleStats = look(style_stats, as_frames(pictures))
    return found


def test_the_same_light_and_style_score_one():
    same = lab((50, 3, 4), (20, 0, 0), (50, 3, 4))
    score = lighting_consistency(same, pairs([0], [2]))
    assert isinstance(score, Score)
    assert score.value == 1
    picture = window(wall(), 0)
    kept = style_consistency(style_of(picture, picture), pairs([0], [1]))
    assert isinstance(kept, Score)
    assert kept.value == 1


def test_lighting_follows_the_formula():
    score = lighting_consistency(lab((50, 0, 0), (56, 3, 4)), pairs([0], [1]))
    assert isinstance(score, Score)
    assert score.raw == pytest.approx(0.5 * 6 + 0.5 * 5)
    assert score.value == pytest.approx(np.exp(-0.55))
    assert score.facts["lightness"] == pytest.approx(6)


def test_blur_and_bleaching_cost_style():
    picture = window(wall(), 0)
    gray = np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)
    for worse in (cv2.GaussianBlur(picture, (0, 0), 3), gray):
        score = style_consistency(style_of(picture, worse), pairs([0], [1]))
        assert isinstance(score, Score)
        assert score.value < 0.85


def test_no_return_and_little_overlap_are_unscored():
    light = lab((50, 0, 0), (50, 0, 0))
    assert lighting_consistency(light, pairs([], [])) == Unscored(NO_RETURN)
    answer = lighting_consistency(light, pairs([0], [1], overlap=0.4))
    assert isinstance(answer, Unscored)
    assert answer.kind == "no_overlap" and "share at least 70% of their view" in answer.sentence
    assert isinstance(style_consistency(style_of(window(wall(), 0)), pairs([], [])), Unscored)


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    light = lab((50, 0, 0), (50, 0, 0))
    with pytest.raises(InvalidEvidence, match="it must be"):
        lighting_consistency(replace(light, mean=light.mean[:, :2]), pairs([0], [1]))
    with pytest.raises(InvalidEvidence, match="it must be"):
        lighting_consistency(light, replace(pairs([0], [1]), j=np.array([1, 1])))


def test_thinning_large_frames_keeps_the_statistics():
    large = cv2.resize(wall(1920, 1080), (1920, 1080))
    thinned: LabStats = look(lab_stats, as_frames([large]))
    exact = cv2.cvtColor(large.astype(np.float32) / 255, cv2.COLOR_RGB2LAB).reshape(-1, 3).astype(float)
    assert thinned.mean[0] == pytest.approx(exact.mean(axis=0), abs=0.05)
    assert thinned.std[0] == pytest.approx(exact.std(axis=0), abs=0.05)


@pytest.mark.long
def test_matches_two_other_implementations_on_real_frames(shared: Path):
    """Stored OpenCV means were summed in 32 bits, which costs up to 0.15; scikit-image's white point up to 0.11.

    They were made of frames whose levels swscale had cut off, half a level darker than ours.
    """
    golden = json.loads((shared / "golden/img_oracle.json").read_text())
    for key, clip, first, second in (
        ("sam2_coffee_0_150", "sam2_coffee", 0, 150),
        ("sam2_bedroom_10_11", "sam2_bedroom", 10, 11),
    ):
        frames, _ = read(shared / f"clips/{clip}.mp4", [first, second])
        found: LabStats = look(lab_stats, frames, fps=8.0)  # so that every frame is looked at
        for row, side in enumerate("xy"):
            assert found.mean[row] == pytest.approx(golden[key][f"lab_mean_cv2float_{side}"], abs=0.2 + 0.5)
            assert found.mean[row] == pytest.approx(golden[key][f"lab_mean_skimage_{side}"], abs=0.12 + 0.5)
