"""What is drawn over the frames: boxes, masks, matches and what a judge said, as they lie in the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import EVIDENCE, import_registering_modules
from revisit.engine.cache import EvidenceCache
from revisit.report.drawings import judge_overlays, observer_overlays
from revisit.report.videos import Videos

import_registering_modules()


@pytest.fixture
def cache(tmp_path: Path) -> EvidenceCache:
    return EvidenceCache(tmp_path / "cache")


def test_masks_are_runs_of_a_coarse_grid(cache: EvidenceCache) -> None:
    mask = np.zeros((2, 96, 160), bool)
    mask[0, 30:60, 40:90] = True
    mask[0, 30:60, 100:101] = True  # thinner than a cell: may be lost, and must not break anything
    box = np.array([[0.25, 0.3, 0.6, 0.6], [np.nan] * 4])
    region = EVIDENCE["object_region"](np.array([3, 9]), np.array([True, False]), box, mask, "test")
    cache.save("ab" * 20, region)
    found: list[Any] = list(observer_overlays({"object_region": "ab" * 20}, cache))
    boxes, masks = found
    assert boxes["frame"] == [3, 9] and boxes["box"] == [[0.25, 0.3, 0.6, 0.6], None]
    wide, high = masks["grid"]
    drawn = np.zeros((high, wide), bool)
    for row, first, length in masks["runs"][0]:
        drawn[row, first : first + length] = True
    step = 160 // wide + (160 % wide > 0)
    assert (drawn == mask[0, ::step, ::step]).all() and drawn.any() and masks["runs"][1] == []
    json.dumps([boxes, masks], allow_nan=False)


def test_matches_are_those_of_the_fullest_pairs_in_fractions(cache: EvidenceCache) -> None:
    counts = np.array([2, 90, 5, 1, 7, 3, 4, 8])
    points = np.tile([10.0, 20.0, 30.0, 40.0], (counts.sum(), 1))
    pairs = np.arange(len(counts))
    found = EVIDENCE["pair_matches"](
        frame=pairs, other=pairs + 50, row=pairs, other_row=pairs, distance=np.zeros(8),
        offsets=np.r_[0, np.cumsum(counts)], points=points, how="fold", note="", matcher="SIFT",
    )  # fmt: skip
    track = EVIDENCE["geometry_track"](
        frame=pairs, c2w=np.tile(np.eye(4), (8, 1, 1)), intrinsics=np.tile(np.eye(3), (8, 1, 1)),
        median_depth=np.ones(8), width=100, height=50, convention="c2w", found="the file", error_w2c=0.0,
        error_c2w=0.0, refused="", maker="test",
    )  # fmt: skip
    cache.save("ab" * 20, found)
    cache.save("cd" * 20, track)
    (matches,) = observer_overlays({"pair_matches": "ab" * 20, "geometry_track": "cd" * 20}, cache)
    assert matches["frame"] == [1, 2, 4, 5, 6, 7] and [pair["n"] for pair in matches["pairs"]] == [90, 5, 7, 3, 4, 8]
    assert len(matches["pairs"][0]["points"]) == 60 and matches["pairs"][0]["points"][0] == [0.1, 0.4, 0.3, 0.8]
    json.dumps(matches, allow_nan=False)


def test_a_judges_answers_come_with_the_frames_it_saw(cache: EvidenceCache, tmp_path: Path) -> None:
    said = EVIDENCE["judge_answers"](
        question=np.array([1, 2, 3]), dimension=("state", "state", "place"), positive=np.array([True, False, True]),
        answer=np.array([1, 1, -1]), p_yes=np.array([0.9, 0.75, np.nan]), judge="a judge <b>",
        text=("is it <i>there</i>?", "is it gone?", "?"), problems=("question 3: no answer",),
    )  # fmt: skip
    jpeg = np.frombuffer(b"onetwo", np.uint8)
    shown = EVIDENCE["judge_frames"](
        np.array([4, 8]), np.array([0.4, 0.8]), jpeg, np.array([0, 3, 6]), 6, 4, "d" * 8, 1.0
    )
    cache.save("ab" * 20, said)
    cache.save("cd" * 20, shown)
    evidence = {"judge_answers": "ab" * 20, "judge_frames": "cd" * 20}
    (one,) = judge_overlays(evidence, cache, Videos(tmp_path))
    assert [(row["answer"], row["p"], row["good"]) for row in one["rows"]] == [
        ("yes", 0.9, True), ("yes", 0.75, False), ("no answer", None, None),
    ]  # fmt: skip
    assert one["rows"][0]["question"] == "is it <i>there</i>?" and one["problems"] == ["question 3: no answer"]
    assert [(frame, (tmp_path / src).read_bytes()) for frame, src in one["shots"]] == [(4, b"one"), (8, b"two")]
    json.dumps(one, allow_nan=False)


def test_what_is_not_in_the_cache_is_not_drawn(cache: EvidenceCache, tmp_path: Path) -> None:
    assert observer_overlays({"target_track": "ab" * 20, "object_region": "../../x"}, cache) == []
    assert judge_overlays({"judge_answers": "ab" * 20}, cache, Videos(tmp_path)) == []
