"""Visual integrity on classical patch descriptors, and the descriptors themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored, per_second
from revisit.evidence.appearance import IntegrityTokens, PatchFeatures
from revisit.evidence.frames import FrameFacts
from revisit.metrics.integrity import best_patch_cosines, visual_integrity, wr_integrity
from revisit.observers.frames import frame_facts
from revisit.observers.patches import patch_features, patch_tokens
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
    frames = per_second(3, at_most=24).pick(count, fps)
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
    assert isinstance(answer, Unscored) and answer.kind == "too_short"


def test_malformed_features_say_what_a_valid_one_looks_like():
    frames = as_frames([window(wall(), x) for x in (0, 8)])
    features: PatchFeatures = look(patch_features, frames)
    facts: FrameFacts = look(frame_facts, frames)
    with pytest.raises(InvalidEvidence, match="unit vectors"):
        visual_integrity(replace(features, whole=features.whole * 3), facts)
    with pytest.raises(InvalidEvidence, match="it must be"):
        visual_integrity(replace(features, whole=features.whole[:1]), facts)


def test_likeness_is_the_best_cosine_in_both_directions():
    a = np.eye(3, dtype=np.float32)[None]
    b = np.eye(3, dtype=np.float32)[None, :1]
    assert best_patch_cosines(a, b).tolist() == [1, 0, 0, 1]


def tokens(count: int = 9, patches: int = 12, seed: int = 0) -> IntegrityTokens:
    """Descriptors of a network, of any length, every eighth frame at 24 frames a second."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(count, patches, 6)) + 1.5 * rng.normal(size=(patches, 6))
    valid = rng.random((count, patches)) < 0.7
    valid[:, 0] = True
    whole = rng.normal(size=(count, 5)) + 1.0
    return IntegrityTokens(8 * np.arange(count), made.astype(np.float16), valid, whole, "made up", False)


def facts_of(seen: IntegrityTokens, fps: float = 24.0) -> FrameFacts:
    frames = as_frames([np.zeros((8, 8, 3), np.uint8)] * (int(seen.index[-1]) + 1), fps)
    return look(frame_facts, frames, fps)


def by_hand(seen: IntegrityTokens) -> float:
    """Equations 3 and 11 to 13, patch by patch."""

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        a, b = a.astype(float), b.astype(float)
        return min(max(float(a @ b / np.sqrt((a @ a) * (b @ b))), 0.0), 1.0)

    low = []
    for k in range(len(seen.index) - 1):
        one, other = (seen.tokens[i][seen.valid[i]] for i in (k, k + 1))
        best = [max(cosine(a, b) for b in other) for a in one] + [max(cosine(a, b) for a in one) for b in other]
        low.append(np.percentile(best, 20))
    return min(cosine(seen.whole[0], seen.whole[-1]), float(np.percentile(low, 20)))


def test_integrity_of_a_network_is_the_papers_formula():
    for seed in range(3):
        seen = tokens(seed=seed)
        score = wr_integrity(seen, facts_of(seen))
        assert score.value == pytest.approx(by_hand(seen), abs=1e-5)
        assert score.facts["sampled_frames"] == 9
        assert score.facts["described_by"] == "made up"


def test_the_patch_mean_is_a_check_beside_the_score():
    """Two frames whose own tokens agree and whose patches do not: only the check falls."""
    tokens = np.zeros((2, 4, 4), np.float16)
    tokens[0, :, 0] = tokens[1, :2, 0] = tokens[1, 2:, 1] = 1
    valid = np.ones((2, 4), bool)
    seen = IntegrityTokens(np.array([0, 1]), tokens, valid, np.ones((2, 3), np.float32), "dinov2-base", False)
    facts = wr_integrity(seen, facts_of(seen)).facts
    assert facts["first_to_last"] == pytest.approx(1)
    assert facts["first_to_last_patch_mean"] == pytest.approx(1 / np.sqrt(2), abs=1e-6)
    assert facts["with_patch_mean"] == pytest.approx(min(facts["neighbours"], 1 / np.sqrt(2)), abs=1e-6)
    masked = replace(seen, valid=np.array([[True] * 4, [True, True, False, False]]))
    assert wr_integrity(masked, facts_of(masked)).facts["first_to_last_patch_mean"] == pytest.approx(1)


def test_integrity_of_a_network_at_its_bounds():
    seen = tokens()
    still = replace(
        seen, tokens=np.tile(seen.tokens[:1], (9, 1, 1)), whole=np.tile(seen.whole[:1], (9, 1)), valid=seen.valid | True
    )
    assert wr_integrity(still, facts_of(still)).value == pytest.approx(1, abs=1e-6)
    turned = still.whole.copy()
    turned[-1] *= -1
    assert wr_integrity(replace(still, whole=turned), facts_of(still)).value == 0
    # patches that hold padding do not count, whatever is written there
    half = np.arange(12)[None] < 6
    padded = still.tokens.copy()
    padded[:, 6:] = np.random.default_rng(1).normal(size=(9, 6, 6))
    masked = replace(still, tokens=padded, valid=np.tile(half, (9, 1)))
    assert wr_integrity(masked, facts_of(still)).value == pytest.approx(1, abs=1e-6)
    assert wr_integrity(replace(still, tokens=padded), facts_of(still)).value < 0.95


def test_integrity_of_a_network_has_a_sentence_for_what_is_wrong():
    seen = tokens()
    one = IntegrityTokens(seen.index[:1], seen.tokens[:1], seen.valid[:1], seen.whole[:1], "made up", False)
    short = wr_integrity(one, facts_of(seen))
    assert isinstance(short, Unscored) and short.kind == "too_short"
    with pytest.raises(InvalidEvidence, match="N, patches"):
        wr_integrity(replace(seen, valid=seen.valid[:, :5]), facts_of(seen))
    with pytest.raises(InvalidEvidence, match="each frame needs one that counts"):
        wr_integrity(replace(seen, valid=seen.valid & False), facts_of(seen))
    with pytest.raises(InvalidEvidence, match="it must be"):
        wr_integrity(replace(seen, whole=seen.whole[:3]), facts_of(seen))


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


@pytest.mark.long
def test_neighbouring_frames_are_told_from_other_clips(shared: Path):
    """On real clips, a third of a second apart against another clip: the first is well above."""
    views = []
    for clip in ("wrb_case_a_yaw_rl", "wf_mg3_city", "sam2_bedroom", "skv_bikes", "7scenes_redkitchen_return"):
        frames, fps = read(shared / f"clips/{clip}.mp4", [40, 41, 42, 43, 44, 45, 48, 50])
        gap = min(frames, key=lambda f: abs(f.index - 40 - fps / 3))
        views.append([patch_tokens(f.at(320)) for f in (frames[0], gap)])
    same = [np.percentile(best_patch_cosines(a, b), 20) for a, b in views]
    other = [np.percentile(best_patch_cosines(p[0], q[0]), 20) for p in views for q in views if p is not q]
    assert min(same) > np.mean(other) + 0.1
    assert np.mean(same) > np.mean(other) + 0.2


@pytest.mark.slow
@pytest.mark.long
def test_a_clip_that_ends_in_another_place_scores_below_one_that_returns(shared: Path):
    scores = {}
    for clip in ("wmark_m6_good", "wmark_m6_bad", "wmark_m5_bad"):
        frames, fps = read(shared / f"clips/{clip}.mp4")
        score = visual_integrity(look(patch_features, frames, fps), look(frame_facts, frames, fps))
        assert isinstance(score, Score)
        scores[clip] = score.value
    assert scores["wmark_m6_good"] > max(scores["wmark_m6_bad"], scores["wmark_m5_bad"]) + 0.1
