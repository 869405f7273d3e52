"""Scene cuts: exact truth on joined clips, and what the eye counts on real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored
from revisit.evidence.motion import CutSignal, ShotChanges
from revisit.metrics.cuts import find_cut_rows, scene_cuts, shot_changes
from revisit.observers.cuts import cut_signal
from tests.looking import as_frames, look, read, wall, window


def cuts_in(pictures: list[np.ndarray], fps: float = 24.0) -> list[int]:
    score = scene_cuts(look(cut_signal, as_frames(pictures, fps), fps))
    assert isinstance(score, Score)
    frames: list[int] = score.facts["frames"]
    assert score.value == len(frames)
    return frames


def pan(seed: int, count: int = 30, speed: int = 4) -> list[np.ndarray]:
    scene = wall(seed=seed)
    return [window(scene, x) for x in range(0, count * speed, speed)]


def test_a_pan_has_no_cut_at_any_speed():
    for speed in (1, 8, 32, 60):
        assert cuts_in(pan(0, 12, 1) + pan(0, 25, speed)) == [], speed


def test_joined_clips_are_cut_where_they_were_joined():
    assert cuts_in(pan(0) + pan(1, 40) + pan(2)) == [30, 70]


def test_a_flash_or_a_damaged_frame_is_no_cut():
    pictures = pan(3, 40)
    pictures[15] = np.clip(pictures[15].astype(int) + 130, 0, 255).astype(np.uint8)
    pictures[28] = np.random.default_rng(0).integers(0, 255, pictures[28].shape, dtype=np.uint8)
    assert cuts_in(pictures) == []


def test_a_cut_between_flat_frames_shows_in_the_colours():
    dark, bright = np.full((90, 160, 3), 10, np.uint8), np.full((90, 160, 3), 240, np.uint8)
    assert cuts_in([dark] * 20 + [bright] * 20) == [20]


def test_one_frame_is_unscored():
    assert scene_cuts(look(cut_signal, as_frames(pan(0, 1)))) == Unscored(
        "too_short", "finding a cut needs at least two frames"
    )


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    good: CutSignal = look(cut_signal, as_frames(pan(0, 4)))
    with pytest.raises(InvalidEvidence, match="between 0 and 1"):
        scene_cuts(replace(good, score=good.score + 2))
    with pytest.raises(InvalidEvidence, match="it must be"):
        scene_cuts(replace(good, lasting=good.lasting[:1]))


def test_of_two_close_peaks_the_higher_one_counts():
    score = np.array([0.0, 0.6, 0.9, 0.0, 0.0, 0.0, 0.7])
    assert find_cut_rows(score, np.arange(7) * 0.2, 0.5, 0.5).tolist() == [2, 6]


def shots(probability: list[float], fps: float = 10.0) -> ShotChanges:
    index = np.arange(1, len(probability) + 1)
    values = np.array(probability)
    return ShotChanges(index, index / fps, values, values, "transnetv2")


def test_shot_changes_are_counted_once() -> None:
    score = shot_changes(shots([0.0, 0.6, 0.9, 0.1, 0.0, 0.0, 0.0, 0.0, 0.7]))
    assert isinstance(score, Score) and score.value == 2
    assert score.facts["frames"] == [3, 9] and score.facts["under_change"] == pytest.approx(3 / 9)
    still = shot_changes(shots([0.0] * 5))
    assert isinstance(still, Score) and still.value == 0


def test_degenerate_and_malformed_shot_changes() -> None:
    assert shot_changes(shots([])) == Unscored("too_short", "finding a cut needs at least two frames")
    good = shots([0.1, 0.2])
    with pytest.raises(InvalidEvidence, match="between 0 and 1"):
        shot_changes(replace(good, during=good.during + 1))
    with pytest.raises(InvalidEvidence, match="it must be"):
        shot_changes(replace(good, probability=good.probability[:1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clip", "wanted"),
    [
        ("hamilton", [20, 82, 211]),
        ("skv_bikes", [30, 76, 137, 187, 242]),
        pytest.param("wmark_m5_bad", [241], marks=pytest.mark.long),
        ("wrb_case_a_yaw_rl", []),
        pytest.param("sam2_cups", [], marks=pytest.mark.long),
        pytest.param("wf_mg3_city", [], marks=pytest.mark.long),
    ],
)
def test_what_the_eye_counts(shared: Path, clip: str, wanted: list[int]):
    frames, fps = read(shared / f"clips/{clip}.mp4")
    score = scene_cuts(look(cut_signal, frames, fps))
    assert isinstance(score, Score)
    assert score.facts["frames"] == wanted


@pytest.mark.long
def test_a_morph_into_another_place_is_noticed(shared: Path):
    frames, fps = read(shared / "clips/wf_yume15.mp4")
    score = scene_cuts(look(cut_signal, frames, fps))
    assert isinstance(score, Score)
    assert score.value >= 1
    assert all(34 <= frame <= 45 for frame in score.facts["frames"])


@pytest.mark.long
def test_a_fast_turn_of_a_real_camera_is_no_cut(shared: Path):
    frames, fps = read(shared / "memobench/videos/Real_007_gt.mp4")
    score = scene_cuts(look(cut_signal, frames, fps))
    assert isinstance(score, Score)
    assert score.value == 0


def test_two_pictures_are_as_alike_as_at_their_best_shift_by_hand():
    from revisit.observers.cuts import COARSE, COARSE_SHIFTS, best_shift_correlation

    rng = np.random.default_rng(4)
    a = rng.integers(0, 256, COARSE[::-1]).astype(np.uint8)
    for b in (np.roll(a, (3, -7), axis=(0, 1)), rng.integers(0, 256, COARSE[::-1]).astype(np.uint8)):
        height, width = a.shape
        best = -1.0
        for y in range(-COARSE_SHIFTS[1], COARSE_SHIFTS[1] + 1):
            for x in range(-COARSE_SHIFTS[0], COARSE_SHIFTS[0] + 1):
                mine = a[max(0, y) : height + min(0, y), max(0, x) : width + min(0, x)]
                other = b[max(0, -y) : height + min(0, -y), max(0, -x) : width + min(0, -x)]
                best = max(best, float(np.corrcoef(mine.ravel(), other.ravel())[0, 1]))
        assert best_shift_correlation(a, b) == pytest.approx(best, abs=1e-9)
