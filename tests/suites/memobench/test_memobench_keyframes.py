"""Key frames and pairs of frames: upstream's numbers, closed forms, and the engine that pairs by phases."""

from __future__ import annotations

import json

import numpy as np
import pytest

from revisit.core import ClipInfo, Frame, UsageError
from revisit.core.phase_pairs import (
    find_rows_of_frame_pairs,
    first_row_of_each_frame,
    format_phase_rule,
    frame_pairs_by_phase,
    parse_phase_rule,
    spread_evenly,
)
from revisit.engine.observe import ReferenceUse, make_partners_function, reference_frame_numbers_for
from revisit.suites.memobench.metadata import Marks


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ((90, 203, 300, 81), (24, 55)),
        ((90, 203, 300, 129), (39, 87)),
        ((90, 203, 300, 285), (86, 193)),
        ((1, 2, 300, 81), (2, 4)),
        ((290, 299, 300, 81), (77, 80)),
        ((150, 300, 300, 81), (40, 80)),
        ((60, 119, 150, 80), (32, 63)),
        ((45, 110, 267, 125), (21, 51)),
        ((10, 12, 300, 5), (2, 4)),
        ((40, 250, 260, 81), (12, 78)),
    ],
)
def test_key_frames_of_the_table(marks, expected):
    assert Marks(*marks[:2]).phases_in_clip_of_length(*marks[2:]) == expected


def test_key_frames_agree_with_upstream(shared):
    cases = json.loads((shared / "oracle/memobench/oracle.json").read_text())["map_keyframes"]
    assert len(cases) == 60
    for case in cases:
        found = Marks(case["h"], case["r"]).phases_in_clip_of_length(case["gt_total"], case["gen_total"])
        assert list(found) == case["expected"], case


def test_marks_that_cannot_be():
    assert Marks(0, 1).problem_sentence(1) is None and Marks(150, 300).problem_sentence(300) is None
    for exits, returns in ((-1, 5), (5, 5), (9, 5), (5, 301)):
        assert "expected 0 <= leaves < returns <= 300" in (Marks(exits, returns).problem_sentence(300) or "")


def test_stretching_rounds_half_to_even():
    assert spread_evenly(5, 0, 10).tolist() == [0, 2, 5, 8, 10]  # 2.5 and 7.5 go to the even neighbour
    assert spread_evenly(3, 4, 4).tolist() == [4, 4, 4] and spread_evenly(1, 7, 9).tolist() == [7]
    assert spread_evenly(0, 0, 5).tolist() == []


def test_each_phase_has_a_map_of_its_own():
    maps = frame_pairs_by_phase(81, 300, (24, 55), (90, 203))
    assert maps["all"][1][[0, 24, 80]].tolist() == [0, 90, 299]
    assert maps["visible"][0][[0, -1]].tolist() == [0, 24] and maps["visible"][1][[0, -1]].tolist() == [0, 90]
    assert maps["hidden"][0][[0, -1]].tolist() == [24, 55] and maps["hidden"][1][[0, -1]].tolist() == [90, 203]
    assert maps["returned"][0][[0, -1]].tolist() == [55, 80] and maps["returned"][1][[0, -1]].tolist() == [203, 299]
    whole = dict(zip(*(part.tolist() for part in maps["all"]), strict=True))
    assert any(whole[frame] != partner for frame, partner in zip(*maps["returned"], strict=True))
    half_open = frame_pairs_by_phase(81, 300, (24, 55), (90, 203), closed=False)
    assert [len(half_open[name][0]) for name in ("visible", "hidden", "returned")] == [24, 31, 26]
    assert half_open["visible"][1].tolist() == maps["visible"][1][:-1].tolist()  # the same map, one frame less


def test_a_return_marked_at_the_very_end_stays_inside_the_reference():
    maps = frame_pairs_by_phase(81, 300, (40, 80), (150, 300))
    assert max(partners.max() for _, partners in maps.values()) == 299


def test_rows_of_pairs():
    index, reference = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 3, 6, 5])
    assert (
        first_row_of_each_frame(index).tolist() == [0, 2, 3]
        and first_row_of_each_frame(np.zeros(0, int)).tolist() == []
    )
    assert find_rows_of_frame_pairs(index, reference, (np.array([0, 2]), np.array([1, 6]))).tolist() == [1, 3]
    assert find_rows_of_frame_pairs(index, reference, (np.array([0, 9]), np.array([1, 6]))).tolist() == [
        1
    ]  # no row of frame 9
    assert find_rows_of_frame_pairs(index, reference, (np.array([1]), np.array([4]))).tolist() == [2]  # the nearest


def test_the_rule_as_a_case_names_it():
    rule = format_phase_rule((24, 55), (90, 203))
    assert rule == "phases:24,55/90,203" and parse_phase_rule(rule) == ((24, 55), (90, 203))
    with pytest.raises(UsageError, match="not an alignment by phases"):
        parse_phase_rule("phases:24/90")


def test_the_engine_hands_out_every_pair_once_and_keeps_what_it_needs():
    rule = "phases:24,55/90,203"
    info = ClipInfo(4, 4, 81, 16.0, np.arange(81) / 16)
    partners = make_partners_function(rule, info, 300, np.arange(300) / 60)
    frames = [Frame(k, k / 16, np.zeros((4, 4, 3), np.uint8), "") for k in range(81)]
    found = {(k, other) for k in range(81) for other in partners(frames[k])}
    maps = frame_pairs_by_phase(81, 300, (24, 55), (90, 203))
    assert found == {(int(a), int(b)) for pairs in maps.values() for a, b in zip(*pairs, strict=True)}
    assert all(partners(frames[k])[0] == maps["all"][1][k] for k in range(81))
    assert all(len(set(partners(frames[k]))) == len(partners(frames[k])) for k in range(81))
    kept = reference_frame_numbers_for(ReferenceUse(rule, 81), 300)
    assert {other for _, other in found} == set(kept.tolist()) and len(kept) < 200  # of 300 frames
    assert reference_frame_numbers_for(ReferenceUse("index", 5), 3).tolist() == [0, 1, 2]
    assert reference_frame_numbers_for(ReferenceUse("stretch", 3), 9).tolist() == [0, 4, 8]
    assert (
        len(reference_frame_numbers_for(ReferenceUse("time", 3), 9))
        == len(reference_frame_numbers_for(ReferenceUse("auto", 3), 9))
        == 9
    )
    assert reference_frame_numbers_for(ReferenceUse("auto", 9, (0, 3, 8)), 9).tolist() == [0, 3, 8]
    assert len(reference_frame_numbers_for(ReferenceUse("auto", 8, (0, 3, 7)), 9)) == 0  # refused, which the clip tells
    assert reference_frame_numbers_for(ReferenceUse("index", 9, (0, 3, 8)), 5).tolist() == [0, 3]
