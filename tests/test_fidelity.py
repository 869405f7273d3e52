"""Fidelity: PSNR and two families of SSIM against the aligned reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored
from revisit.evidence.fidelity import FrameFidelity
from revisit.evidence.frames import CasePhases
from revisit.metrics.fidelity import by_phase, psnr, psnr_per_frame, psnr_returned, ssim, ssim_returned
from revisit.observers.lite.fidelity import frame_fidelity, ssim_map, without_border
from tests.looking import as_frames, look, read, wall, window


def made(mse: list[float], similarity: float = 0.5) -> FrameFidelity:
    n = len(mse)
    flat = np.full(n, similarity)
    return FrameFidelity(np.arange(n), np.arange(n), np.array(mse), flat, flat, 640, 360)


def value(answer: Score | Unscored) -> float:
    assert isinstance(answer, Score), answer
    return answer.value


def test_identical_clips_reach_the_bounds():
    frames = as_frames([window(wall(), x) for x in (0, 4, 8)])
    seen = look(frame_fidelity, frames, reference=frames)
    score = psnr(seen)
    assert isinstance(score, Score)
    assert score.value == 99.0
    assert score.facts["identical_frames"] == 3
    for family in ("rgb", "gray_border"):
        assert value(ssim(seen, family=family)) == pytest.approx(1, abs=1e-6)


def test_another_size_and_shape_of_the_reference_is_stretched_to_the_clip():
    frames = as_frames([window(wall(), 0)])
    large = as_frames([cv2.resize(frames[0].rgb, (1600, 1000), interpolation=cv2.INTER_CUBIC)])
    seen = look(frame_fidelity, frames, reference=large)
    assert (seen.width, seen.height) == (320, 180)
    assert value(psnr(seen)) > 35


def test_no_aligned_frame_is_unscored():
    empty = made([])
    assert psnr(empty) == Unscored("no frame of the clip has an aligned frame in the reference")
    assert isinstance(ssim(empty), Unscored)


def test_phases_split_the_frames_and_the_return_is_scored_alone():
    seen = made([100.0] * 4 + [1000.0] * 3 + [400.0] * 3)
    phases = CasePhases(4, 7, "given")
    parts = by_phase(seen.mse, seen.index, phases)
    assert {name: len(part) for name, part in parts.items()} == {"visible": 4, "hidden": 3, "returned": 3}
    score = psnr_returned(seen, phases)
    assert isinstance(score, Score)
    assert score.value == pytest.approx(psnr_per_frame(np.array([400.0]))[0])
    assert score.facts["frames"] == {"visible": 4, "hidden": 3, "returned": 3}
    assert score.facts["mean"]["visible"] > score.facts["mean"]["returned"] > score.facts["mean"]["hidden"]
    assert value(ssim_returned(seen, phases)) == 0.5


def test_a_return_after_the_last_frame_is_unscored():
    answer = psnr_returned(made([1.0, 2.0]), CasePhases(1, 5, "given"))
    assert isinstance(answer, Unscored)
    assert "frame 5" in answer.reason


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    good = made([1.0, 2.0])
    with pytest.raises(InvalidEvidence, match="one row each"):
        psnr(replace(good, mse=np.ones(3)))
    with pytest.raises(InvalidEvidence, match="0 to 65025"):
        psnr(replace(good, mse=np.array([1.0, 1e6])))
    with pytest.raises(InvalidEvidence, match="choose one of rgb, gray_border"):
        ssim(good, family="kornia")
    with pytest.raises(InvalidEvidence, match="hidden first and returns later"):
        psnr_returned(good, CasePhases(2, 1, "given"))


def test_matches_scikit_image():
    from skimage import data
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    picture = data.astronaut()
    noisy = np.clip(picture + np.random.default_rng(0).normal(0, 15, picture.shape), 0, 255).astype(np.uint8)
    seen = look(frame_fidelity, as_frames([picture]), reference=as_frames([noisy]), long_side=None)
    wanted = structural_similarity(
        picture, noisy, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255, channel_axis=2
    )
    assert seen.ssim_rgb[0] == pytest.approx(wanted, abs=1e-5)
    assert value(psnr(seen)) == pytest.approx(peak_signal_noise_ratio(picture, noisy), abs=1e-6)


def test_matches_the_stored_numbers_of_real_frames(shared: Path):
    golden = json.loads((shared / "golden/img_oracle.json").read_text())
    for key, clip, first, second in (
        ("sam2_coffee_0_150", "sam2_coffee", 0, 150),
        ("sam2_bedroom_10_11", "sam2_bedroom", 10, 11),
    ):
        frames, _ = read(shared / f"clips/{clip}.mp4", [first, second])
        a, b = (frame.rgb for frame in frames)
        assert without_border(ssim_map(a, b)).mean() == pytest.approx(golden[key]["ssim_skimage_gauss_rgb"], abs=1e-4)
        mse = np.array([((a.astype(float) - b) ** 2).mean()])
        assert psnr_per_frame(mse)[0] == pytest.approx(golden[key]["psnr_skimage"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["Barnyard_001", "HongKong_001", "Real_007"])
def test_agrees_with_memobench(shared: Path, scene: str):
    """Nine clips each. The upstream numbers are rounded to four digits; nothing else separates us."""
    oracle = json.loads((shared / "oracle/memobench/oracle.json").read_text())["psnr_ssim_site_videos"]
    folder = shared / "memobench/videos"
    reference, _ = read(folder / f"{scene}_gt.mp4")
    wanted = {key.split("/")[1]: row for key, row in oracle.items() if key.startswith(scene)}
    assert len(wanted) == 9
    for model, row in wanted.items():
        frames, fps = read(folder / f"{scene}_{model}.mp4")
        seen = look(frame_fidelity, frames, fps, reference=reference)
        score = psnr(seen)
        assert isinstance(score, Score)
        assert [seen.width, seen.height] == row["eval_wh"], model
        found = [score.value, score.facts["first"], score.facts["last"]]
        assert found == pytest.approx([row["psnr"], row["psnr_first"], row["psnr_last"]], abs=1e-3), model
        assert value(ssim(seen, family="gray_border")) == pytest.approx(row["ssim"], abs=2e-4), model
