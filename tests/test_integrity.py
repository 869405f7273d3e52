"""Visual integrity on classical patch descriptors, and the descriptors themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored
from revisit.evidence.appearance import PatchFeatures
from revisit.evidence.frames import FrameFacts
from revisit.metrics.integrity import best_likeness, sample_frames, visual_integrity
from revisit.observers.lite.frames import frame_facts
from revisit.observers.lite.patches import patch_features, patch_tokens
from tests.looking import as_frames, look, read, wall, window


def integrity(pictures: list[np.ndarray], fps: float = 24.0) -> Score:
    frames = as_frames(pictures, fps)
    score = visual_integrity(look(patch_features, frames, fps), look(frame_facts, frames, fps))
    assert isinstance(score, Score)
    return score


@pytest.mark.parametrize(
    ("count", "fps", "length"),
    [
        (81, 16, 16),
        (121, 24, 16),
        (141, 24, 19),
        (150, 30, 16),
        (125, 24, 17),
        (77, 15, 17),
        (49, 8, 19),
        (497, 17, 24),
    ],
)
def test_sampling_takes_the_frames_the_paper_takes(count: int, fps: float, length: int):
    frames = sample_frames(count, fps)
    assert len(frames) == length
    assert frames[[0, -1]].tolist() == [0, count - 1]
    if (count, fps) == (81, 16):
        assert frames[:6].tolist() == [0, 5, 11, 16, 21, 27]


def test_a_still_clip_scores_one():
    assert integrity([window(wall(), 0)] * 12).value == pytest.approx(1, abs=0.01)


def test_a_cut_costs_more_than_a_pan():
    there = [window(wall(), x) for x in range(0, 48, 2)]
    elsewhere = [255 - cv2.resize(x[:45, :80], (320, 180)) for x in there]
    pan, cut = integrity(there), integrity(there[:12] + elsewhere[12:])
    assert pan.value > 0.75
    assert cut.value < pan.value - 0.2


def test_one_frame_is_unscored():
    frames = as_frames([window(wall(), 0)])
    answer = visual_integrity(look(patch_features, frames), look(frame_facts, frames))
    assert answer == Unscored("only one frame: integrity compares frames with each other")


def test_malformed_features_say_what_a_valid_one_looks_like():
    frames = as_frames([window(wall(), x) for x in (0, 8)])
    features: PatchFeatures = look(patch_features, frames)
    facts: FrameFacts = look(frame_facts, frames)
    with pytest.raises(InvalidEvidence, match="unit vectors"):
        visual_integrity(replace(features, whole=features.whole * 3), facts)
    with pytest.raises(InvalidEvidence, match="one row each"):
        visual_integrity(replace(features, whole=features.whole[:1]), facts)


def test_likeness_is_the_best_cosine_in_both_directions():
    a = np.eye(3, dtype=np.float32)[None]
    b = np.eye(3, dtype=np.float32)[None, :1]
    assert best_likeness(a, b).tolist() == [1, 0, 0, 1]


def test_descriptors_forgive_light_and_compression_but_not_another_place():
    picture = window(wall(), 0)
    tokens = patch_tokens(picture)
    assert tokens.shape[:2] == (11, 20)
    assert np.linalg.norm(tokens, axis=2) == pytest.approx(1, abs=1e-4)
    jpeg = np.asarray(cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 40])[1], cv2.IMREAD_COLOR))
    brighter = np.clip(picture * 1.15 + 5, 0, 255).astype(np.uint8)
    likeness = [float((tokens * patch_tokens(x)).sum(axis=2).mean()) for x in (jpeg, brighter, window(wall(seed=9), 0))]
    assert likeness[0] > 0.9
    assert likeness[1] > 0.9
    assert likeness[2] < 0.5


def test_neighbouring_frames_are_told_from_other_clips(shared: Path):
    """On real clips, a third of a second apart against another clip: the first is well above."""
    views = []
    for clip in ("wrb_case_a_yaw_rl", "wf_mg3_city", "sam2_bedroom", "skv_bikes", "7scenes_redkitchen_return"):
        frames, fps = read(shared / f"clips/{clip}.mp4", [40, 41, 42, 43, 44, 45, 48, 50])
        gap = min(frames, key=lambda f: abs(f.index - 40 - fps / 3))
        views.append([patch_tokens(f.at(320)) for f in (frames[0], gap)])
    same = [np.percentile(best_likeness(a, b), 20) for a, b in views]
    other = [np.percentile(best_likeness(p[0], q[0]), 20) for p in views for q in views if p is not q]
    assert min(same) > np.mean(other) + 0.1
    assert np.mean(same) > np.mean(other) + 0.2


@pytest.mark.slow
def test_a_clip_that_ends_in_another_place_scores_below_one_that_returns(shared: Path):
    scores = {}
    for clip in ("wmark_m6_good", "wmark_m6_bad", "wmark_m5_bad"):
        frames, fps = read(shared / f"clips/{clip}.mp4")
        score = visual_integrity(look(patch_features, frames, fps), look(frame_facts, frames, fps))
        assert isinstance(score, Score)
        scores[clip] = score.value
    assert scores["wmark_m6_good"] > max(scores["wmark_m6_bad"], scores["wmark_m5_bad"]) + 0.1
