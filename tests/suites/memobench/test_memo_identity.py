"""Object identity of MemoBench: patches of the return against those of the first frame."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from revisit.core import InvalidEvidence
from revisit.suites.memobench.evidence import IdentityTokens
from revisit.suites.memobench.metrics.identity import best_patch_similarity, object_identity
from revisit.suites.memobench.metrics.rules import evenly_spread_frames
from revisit.suites.memobench.observers.identity import crop_central_square, identity_by_gradients_and_colour
from tests.looking import as_frames, look, wall, window
from tests.memo import RULES, case, frames, refused, scored


def tokens(count=40, like_the_first=1.0, seed=0):
    """Descriptors of every frame: a share of the first frame's and the rest at random."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(50, 8))
    other = rng.normal(size=(count, 50, 8))
    made = np.concatenate([first[None], like_the_first * first + (1 - like_the_first) * other[1:]])
    return IdentityTokens(np.arange(count), made, "made up", False)


def test_the_same_patches_score_100_under_every_rule():
    for rule in RULES:
        made = scored(object_identity(case(), frames(), tokens(), rule=rule))
        assert made.value == pytest.approx(100)
        assert made.facts["described_by"] == "made up"


def test_opposite_patches_score_0():
    seen = tokens()
    opposite = replace(seen, tokens=np.concatenate([seen.tokens[:1], -seen.tokens[1:]]))
    assert scored(object_identity(case(), frames(), opposite)).value == 0


def test_the_best_patches_count_and_the_worst_of_them_weighs_three_tenths():
    first = np.tile([1.0, 0.0], (10, 1))
    later = np.stack(
        [np.array([0.9, 0.8, 0.7, 0.6, *[0.1] * 6]), np.sqrt(1 - np.r_[0.81, 0.64, 0.49, 0.36, [0.01] * 6])], 1
    )
    means, minima = best_patch_similarity(first, later[None], best_share=0.4)
    assert means == pytest.approx([0.75]) and minima == pytest.approx([0.6])
    seen = IdentityTokens(np.arange(40), np.concatenate([first[None], np.tile(later, (39, 1, 1))]), "x", False)
    assert scored(object_identity(case(), frames(), seen)).value == pytest.approx(70 * 0.75 + 30 * 0.6)
    assert scored(object_identity(case(), frames(), seen, top=0.2)).value > 80  # Table S7 sweeps it


def test_a_short_return_repeats_frames_upstream_only():
    upstream = scored(object_identity(case((12, 38)), frames(), tokens(), rule="upstream"))
    assert len(upstream.units) == 9
    assert scored(object_identity(case((12, 38)), frames(), tokens())).units["frame"].tolist() == [38, 39]


def test_what_cannot_be_told_is_unscored():
    few = replace(tokens(), index=np.arange(30), tokens=tokens().tokens[:30])
    missing = refused(object_identity(case(), frames(), few))
    assert missing.kind == "not_observed" and "6 of the 9 frames" in missing.sentence
    assert refused(object_identity(case(None), frames(), tokens())).kind == "no_phases"


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="must begin with frame 0"):
        object_identity(case(), frames(), replace(tokens(), index=np.arange(1, 41)))
    with pytest.raises(InvalidEvidence, match="it must be"):
        object_identity(case(), frames(), replace(tokens(), tokens=np.zeros((3, 5, 8))))


def test_upstream_is_reproduced(shared):
    folder = shared / "oracle/memobench"
    seen = np.load(folder / "dino_tokens.npz")["tok"]
    cases = json.loads((folder / "oracle.json").read_text())["obj_identity_stub"]
    assert len(cases) == 4
    for one in cases:
        expected = one["expected"]
        means, minima = best_patch_similarity(
            seen[0], seen[evenly_spread_frames(one["start"], one["end"], one["n_sample"])], 0.4
        )
        assert round(float(means.mean()), 4) == expected["obj_identity_consistency"]
        assert round(float(minima.min()), 4) == expected["obj_min_identity_consistency"]
    evidence = IdentityTokens(np.arange(40), seen, "seeded", False)
    made = scored(object_identity(case((12, 25)), frames(), evidence, rule="upstream"))
    assert (made.facts["mean"], made.facts["minimum"]) == (0.8964, 0.8546)
    assert made.value == round(0.7 * 89.6 + 0.3 * 85.5, 2)


def test_lite_patches_tell_the_same_view_from_another():
    back = [window(wall(), x) for x in (0, 60, 400, 400, 60, 0, 0, 1, 0)]
    elsewhere = [*back[:5], *[window(wall(), 900)] * 4]
    scores = []
    for shown in (back, elsewhere):
        seen = look(identity_by_gradients_and_colour, as_frames(shown), phases=(2, 5))
        assert seen.index.tolist() == [0, 5, 6, 7, 8]
        scores.append(scored(object_identity(case((2, 5)), frames(9), seen)).value)
    assert scores[0] > 90 > 70 > scores[1]
    cropped = look(identity_by_gradients_and_colour, as_frames(back), phases=(2, 5), crop=True)
    assert cropped.cropped and cropped.tokens.shape[1] == 20 * 20


def test_the_middle_of_a_frame_is_a_square():
    assert crop_central_square(np.zeros((464, 832, 3), np.uint8)).shape == (406, 406, 3)
