"""F1 of kinds of failure, against counts by hand."""

from __future__ import annotations

import pytest

from revisit.audit.analyse import score_kinds


def test_f1_by_kind_their_mean_and_the_confusions():
    clips = [
        ("perfect", set()),
        ("perfect", {"blur"}),
        ("blur", {"blur"}),
        ("blur", {"blur", "cut"}),
        ("cut", {"cut"}),
        ("cut", set()),
    ]
    scores = score_kinds(["blur", "cut", "flicker"], clips)
    assert scores["kinds"]["blur"] == {"clips": 2, "found": 2, "wrongly": 1, "f1": 0.8}
    assert scores["kinds"]["cut"] == {"clips": 2, "found": 1, "wrongly": 1, "f1": 0.5}
    assert scores["kinds"]["flicker"]["f1"] is None, "no clip shows it"
    assert scores["macro_f1"] == pytest.approx(0.65)
    assert scores["confusion"]["perfect"] == {"clips": 2, "found": {"blur": 1}, "nothing": 1}
    assert scores["confusion"]["blur"]["found"] == {"blur": 2, "cut": 1}


def test_a_grid_without_failures_has_no_mean():
    assert score_kinds(["blur"], [("perfect", set())])["macro_f1"] is None
