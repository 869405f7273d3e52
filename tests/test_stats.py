"""Intervals against scipy and against the stored oracle."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats as scipy_stats

from revisit.stats.intervals import mean_interval, share_interval, student_t_quantile


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 12, 30, 101, 250])
@pytest.mark.parametrize("probability", [0.5, 0.9, 0.975, 0.995])
def test_student_t_matches_scipy(df, probability):
    assert student_t_quantile(probability, df) == pytest.approx(scipy_stats.t.ppf(probability, df), rel=1e-9, abs=1e-9)


def test_independent_values_give_the_textbook_interval():
    values = np.random.default_rng(0).normal(0.6, 0.1, 17)
    low, high = scipy_stats.t.interval(0.95, 16, values.mean(), values.std(ddof=1) / np.sqrt(17))
    assert mean_interval(list(values)) == pytest.approx((low, high))


def test_copies_within_a_cluster_add_no_certainty():
    values, names = [0.2, 0.5, 0.9], ["a", "b", "c"]
    assert mean_interval(values * 4, names * 4) == pytest.approx(mean_interval(values, names))


def test_one_cluster_has_no_interval():
    assert mean_interval([0.1, 0.2], ["a", "a"]) is None
    assert mean_interval([]) is None


def test_share_matches_the_oracle(shared):
    oracle = json.loads((shared / "golden/stats_oracle.json").read_text())
    for share, interval in oracle["wilson"].items():
        successes, n = map(int, share.split("/"))
        assert share_interval(successes, n) == pytest.approx(interval, abs=1e-9)
