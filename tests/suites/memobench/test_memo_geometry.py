"""Geo3D consistency of MemoBench: depth maps of one phase against each other."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from revisit.core import InvalidEvidence
from revisit.suites.memobench.evidence import DepthMaps
from revisit.suites.memobench.metrics.geometry import geo3d_consistency, successive_depth_cosines
from revisit.suites.memobench.metrics.rules import evenly_spread_frames
from tests.memo import RULES, case, frames, refused, scored


def maps(count=40, noise=0.0):
    rng = np.random.default_rng(0)
    ramp = np.linspace(0, 1, 48).reshape(6, 8)
    return DepthMaps(np.arange(count), ramp + noise * rng.uniform(size=(count, 6, 8)), True, "made up")


def test_the_same_depth_scores_100_under_every_rule():
    for rule in RULES:
        made = scored(geo3d_consistency(case(), frames(), maps(), rule=rule))
        assert made.value == pytest.approx(100)
        assert (made.facts["depth_by"], made.facts["near_is_large"]) == ("made up", True)


def test_scale_and_shift_do_not_matter_and_relief_does():
    seen = maps()
    scaled = replace(seen, depth=seen.depth * np.linspace(1, 9, 40)[:, None, None] + 3)
    assert scored(geo3d_consistency(case(), frames(), scaled)).value == pytest.approx(100)
    flat = replace(seen, depth=np.where(np.arange(40)[:, None, None] == 39, 1.0, seen.depth))
    made = scored(geo3d_consistency(case(), frames(), flat))
    assert made.facts["minimum"] == 0  # depth has collapsed
    assert made.value == pytest.approx(70 * (1 + 0.5) / 2)


def test_a_phase_of_one_frame_is_unscored_and_zero_upstream():
    assert refused(geo3d_consistency(case((12, 39)), frames(), maps())).kind == "too_short"
    assert scored(geo3d_consistency(case((12, 39)), frames(), maps(), rule="upstream")).value == 35


def test_frames_of_a_short_phase_are_repeated_upstream_only():
    noisy = maps(noise=1.0)
    upstream = scored(geo3d_consistency(case((12, 38)), frames(), noisy, rule="upstream"))
    corrected = scored(geo3d_consistency(case((12, 38)), frames(), noisy))
    assert upstream.units["other"].tolist() == [6, 12, 38, 39]
    assert corrected.units["other"].tolist() == [5, 11, 39]
    assert upstream.facts["by_phase"]["returned"] > corrected.facts["by_phase"]["returned"]


def test_missing_depth_is_unscored():
    some = replace(maps(), index=np.arange(0, 40, 2), depth=maps().depth[::2])
    missing = refused(geo3d_consistency(case((12, 25)), frames(), some))
    assert missing.kind == "not_observed" and "2 of the 3 frames" in missing.sentence


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="it must be"):
        geo3d_consistency(case(), frames(), replace(maps(), depth=np.zeros((40, 6))))
    with pytest.raises(InvalidEvidence, match="a map needs rows and columns"):
        geo3d_consistency(case(), frames(), replace(maps(), depth=np.zeros((40, 1, 1))))


def test_upstream_is_reproduced(shared):
    folder = shared / "oracle/memobench"
    depth = np.load(folder / "depth_maps.npz")["d"]
    cases = json.loads((folder / "oracle.json").read_text())["geo3d_stub"]
    assert len(cases) == 4
    for one in cases:
        first, last, expected = one["start"], one["end"], one["expected"]
        if first < last:
            found = successive_depth_cosines(depth[evenly_spread_frames(first, last, one["n_sample"])])
            assert round(found.mean(), 4) == expected["geo_consistency"]
            assert round(found.min(), 4) == expected["min_geo_consistency"]
    evidence = DepthMaps(np.arange(40), depth, True, "seeded")
    made = scored(
        geo3d_consistency(case((14, 25)), frames(), evidence, rule="upstream")
    )  # the first two cases in one clip
    assert made.facts["by_phase"] == {"visible": 0.7355, "returned": 0.7286}
    assert made.facts["mean"] == pytest.approx(0.73205, abs=6e-5) and made.facts["minimum"] == 0.727
    lone = scored(
        geo3d_consistency(case((14, 39)), frames(), evidence, rule="upstream")
    )  # the last: a phase of one frame
    assert lone.facts["by_phase"]["returned"] == 0 == lone.facts["minimum"]
