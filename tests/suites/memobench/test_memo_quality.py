"""Visual quality and prompt fidelity of MemoBench, from what networks would say."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.core import InvalidEvidence, UsageError
from revisit.suites.memobench.evidence import AestheticScores, ImageQuality, ImageRewards, VisualHalves
from revisit.suites.memobench.metrics.quality import (
    aesthetic,
    combine_visual_halves,
    image_quality,
    image_reward,
    visual_quality,
)
from tests.memo import RULES, frames, refused, scored


def rated(kind, value, at=range(40)):
    return kind(np.array(at), np.resize(np.asarray(value, float), len(at)), "made up")


def halves(beauty=None, quality=None) -> VisualHalves:
    return combine_visual_halves.fn(
        None if beauty is None else rated(AestheticScores, beauty),
        None if quality is None else rated(ImageQuality, quality),
    )


def test_the_best_ratings_reach_the_bounds():
    for rule in RULES:
        assert scored(visual_quality(frames(), halves(10, 1), rule=rule)).value == 100
        assert scored(aesthetic(frames(), rated(AestheticScores, 10), rule=rule)).value == 10
        assert scored(image_quality(frames(), rated(ImageQuality, 1), rule=rule)).value == 1
        assert scored(image_reward(frames(), rated(ImageRewards, 50), rule=rule)).value == pytest.approx(100)


def test_the_range_of_the_aesthetic_score_is_worth_three_points():
    made = {rule: scored(visual_quality(frames(), halves(4.5, 0.5), rule=rule)) for rule in RULES}
    assert made["upstream"].value == (45 + 50) / 2
    assert made["paper"].value == made["corrected"].value == pytest.approx((350 / 9 + 50) / 2)
    assert made["upstream"].value - made["paper"].value == pytest.approx(3.06, abs=0.01)
    assert made["corrected"].facts["aesthetic_by"] == "made up" == made["corrected"].facts["image_quality_by"]
    assert made["upstream"].facts["aesthetic_range"] == [0, 10]


def test_one_half_alone_is_unscored_and_taken_alone_upstream():
    for seen, missing in ((halves(beauty=5), "image quality"), (halves(quality=0.5), "aesthetic")):
        for rule in ("corrected", "paper"):
            without = refused(visual_quality(frames(), seen, rule=rule))
            assert without.kind == "not_in_set" and missing in without.sentence
        alone = scored(visual_quality(frames(), seen, rule="upstream"))
        assert alone.value == 50 and "uses the other part alone" in alone.facts["note"]
    assert refused(halves()).kind == "not_in_set"


def test_upstream_takes_every_fourth_frame():
    beauty = np.where(np.arange(40) % 4 == 0, 8.0, 2.0)
    assert scored(aesthetic(frames(), rated(AestheticScores, beauty), rule="upstream")).value == 8
    assert scored(aesthetic(frames(), rated(AestheticScores, beauty))).value == pytest.approx(3.5)
    few = rated(AestheticScores, 5, range(0, 40, 8))
    missing = refused(aesthetic(frames(), few, rule="upstream"))
    assert missing.kind == "not_observed" and "5 of the 10 frames" in missing.sentence
    assert scored(aesthetic(frames(), few)).value == 5


def test_reward_is_the_mean_sigmoid_of_five_frames():
    rewards = np.zeros(40)
    rewards[[0, 9, 19, 29, 39]] = [1.0, -1.0, 0.0, 2.0, -2.0]
    made = scored(image_reward(frames(), rated(ImageRewards, rewards)))
    assert made.value == pytest.approx(50) and made.units["frame"].tolist() == [0, 9, 19, 29, 39]
    upstream = scored(image_reward(frames(), rated(ImageRewards, np.full(40, 0.3)), rule="upstream"))
    assert (upstream.facts["reward"], upstream.value) == (0.5744, 57.4)
    missing = refused(image_reward(frames(), rated(ImageRewards, 0, range(39))))
    assert missing.kind == "not_observed" and "1 of the 5 frames" in missing.sentence


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="it must be"):
        aesthetic(frames(), AestheticScores(np.arange(3), np.zeros(2), "x"))
    with pytest.raises(InvalidEvidence, match="not finite"):
        image_reward(frames(), rated(ImageRewards, np.nan))
    with pytest.raises(UsageError, match="unknown rule"):
        visual_quality(frames(), halves(5, 0.5), rule="strict")
