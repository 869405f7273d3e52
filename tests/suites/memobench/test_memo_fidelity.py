"""Fidelity of MemoBench: the whole clip, its phases, and the drop from the first to the last of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Reason
from revisit.core.phase_pairs import frame_pairs_by_phase
from revisit.evidence.reference import FrameFidelity, PerceptualDistance
from revisit.suites.memobench.metrics.fidelity import memo_lpips, memo_psnr, memo_ssim
from tests.memo import RULES, case, frames, refused, scored


def compared(mse, count=40, similarity=0.5):
    values = np.resize(np.asarray(mse, float), count)
    return FrameFidelity(
        np.arange(count), np.arange(count), values, 64, 48, ssim_gray_border=np.full(count, similarity)
    )


def distances(value, net="lpips_alex", count=40):
    values = np.resize(np.asarray(value, float), count)
    return PerceptualDistance(np.arange(count), np.arange(count), values, net, "0123", 64, 48)


def test_identical_clips_reach_the_bounds():
    for rule in RULES:
        assert scored(memo_psnr(case(), frames(), compared(0), rule=rule)).value == 99
        assert scored(memo_ssim(case(), frames(), compared(0, similarity=1), rule=rule)).value == 1
    assert scored(memo_lpips(case(), frames(), distances(0))).value == 0


def test_phases_and_the_drop_stand_beside_the_whole():
    worse = np.r_[np.full(12, 65.025), np.full(13, 6502.5), np.full(15, 650.25)]  # 30, 10 and 20 dB
    made = scored(memo_psnr(case(), frames(), compared(worse)))
    assert made.facts["mean"] == pytest.approx(
        {"all": (360 + 130 + 300) / 40, "visible": 30, "hidden": 10, "returned": 20}
    )
    assert made.facts["drop"] == pytest.approx(10)
    assert made.value == made.facts["mean"]["all"]
    lpips = scored(memo_lpips(case(), frames(), distances(np.r_[np.full(12, 0.1), np.full(28, 0.4)])))
    assert lpips.facts["drop"] == pytest.approx(0.3)  # positive is worse, here as there


def test_upstream_counts_shared_frames_twice():
    values = compared(np.r_[np.full(12, 65.025), np.full(28, 6502.5)])
    assert scored(memo_psnr(case(), frames(), values)).facts["frames"]["visible"] == 12
    shared = scored(memo_psnr(case(), frames(), values, rule="upstream")).facts
    assert shared["frames"] == {"all": 40, "visible": 13, "hidden": 14, "returned": 15}
    assert shared["mean"]["visible"] == round((12 * 30 + 10) / 13, 4)


def test_each_phase_has_its_own_map_onto_a_longer_reference():
    here = case((12, 25), gt_frames=150, gt_phases=[60, 90])
    maps = frame_pairs_by_phase(40, 150, (12, 25), (60, 90))
    pairs = [pair for name in ("all", "visible", "hidden", "returned") for pair in zip(*maps[name], strict=True)]
    index, reference = np.array(sorted(dict.fromkeys(pairs), key=lambda pair: pair[0])).T  # the whole clip's come first
    returned = set(zip(*maps["returned"], strict=True))
    good = np.array([pair in returned for pair in zip(index, reference, strict=True)])
    evidence = FrameFidelity(index, reference, np.where(good, 65.025, 6502.5), 64, 48)
    made = scored(memo_psnr(here, frames(), evidence))
    assert made.facts["mean"]["returned"] == pytest.approx(30)
    assert made.facts["frames"]["returned"] == 15 and len(made.units) == 40
    assert made.value < 30


def test_without_phases_the_whole_is_scored_alone():
    made = scored(memo_psnr(case(None), frames(), compared(650.25)))
    assert made.value == pytest.approx(20) and set(made.facts["mean"]) == {"all"} and made.facts["drop"] is None
    assert made.facts["note"].startswith("it was not given when")


def test_nothing_to_compare_is_unscored():
    assert refused(memo_psnr(case(), frames(), compared(1, count=0))).kind == "no_overlap"
    other = replace(compared(1), ssim_gray_border=None)
    assert refused(memo_ssim(case(), frames(), other)).kind == "other_settings"


def test_the_network_belongs_to_the_rule():
    assert scored(memo_lpips(case(), frames(), distances(0.2, "lpips_vgg"))).facts["net"] == "lpips_vgg"
    assert refused(memo_lpips(case(), frames(), distances(0.2), rule="paper")) == Reason(
        "other_settings", "the rule paper needs lpips_vgg, but lpips_alex was used"
    )
    assert scored(memo_lpips(case(), frames(), distances(0.2), rule="upstream")).value == 0.2


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="between 0 and 65025"):
        memo_psnr(case(), frames(), compared(1e9))
    with pytest.raises(InvalidEvidence, match="between -1e-6 and inf"):
        memo_lpips(case(), frames(), distances(-1))
