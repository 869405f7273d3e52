"""Rank statistics: closed forms, scipy, and the oracle's numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.stats.correlation import auc, kendall_tau, paired_cohen_d

scipy_stats = pytest.importorskip("scipy.stats")


def test_perfect_order_is_one_and_its_reverse_minus_one() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == -1


def test_a_column_that_never_varies_has_no_tau() -> None:
    assert kendall_tau([1, 2, 3], [5, 5, 5]) is None
    assert kendall_tau([], []) is None


def test_tau_agrees_with_scipy_on_ties() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 6, 25), rng.integers(0, 4, 25)
        assert kendall_tau(x.tolist(), y.tolist()) == pytest.approx(scipy_stats.kendalltau(x, y).statistic, abs=1e-12)


def test_tau_within_groups_does_not_compare_groups() -> None:
    # Within each scene y grows with x; between scenes it falls.
    x, y = [0, 1, 2, 3, 4, 5], [10, 11, 12, 1, 2, 3]
    assert kendall_tau(x, y, groups=["a"] * 3 + ["b"] * 3) == 1
    overall = kendall_tau(x, y)
    assert overall is not None and overall < 0


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="same length"):
        kendall_tau([1, 2], [1, 2, 3])


def test_auc_is_the_share_of_pairs_in_order_and_ties_count_half() -> None:
    assert auc([3, 4], [1, 2]) == 1
    assert auc([1, 2], [1, 2]) == 0.5
    assert auc([1], [2]) == 0
    assert auc([], [1]) is None


def test_auc_agrees_with_mann_whitney() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 8, 30), rng.integers(0, 6, 20)
    u = scipy_stats.mannwhitneyu(a, b).statistic
    assert auc(a.tolist(), b.tolist()) == pytest.approx(u / 600, abs=1e-12)


def test_paired_effect_is_mean_over_deviation() -> None:
    found = paired_cohen_d([1.0, 2.0, 3.0, 4.0], [0.5, 1.2, 2.9, 3.0])
    change = np.array([-0.5, -0.8, -0.1, -1.0])
    assert found is not None and found["size"] == pytest.approx(change.mean() / change.std(ddof=1))
    assert found["difference"] == pytest.approx(-0.6) and found["n"] == 4
    assert (
        found["low"] is not None
        and found["high"] is not None
        and found["low"] < -0.6 / change.std(ddof=1) < found["high"]
    )


def test_paired_effect_interval_covers_as_the_bootstrap_of_scipy() -> None:
    rng = np.random.default_rng(2)
    before = rng.normal(0, 1, 40)
    after = before + rng.normal(0.8, 1.0, 40)
    found = paired_cohen_d(before.tolist(), after.tolist())
    assert found is not None and found["low"] is not None and found["high"] is not None

    def size(change: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(change.mean(axis=axis) / change.std(axis=axis, ddof=1))

    theirs = scipy_stats.bootstrap(
        (after - before,), size, method="percentile", n_resamples=4000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert found["low"] == pytest.approx(theirs.low, abs=0.06) and found["high"] == pytest.approx(theirs.high, abs=0.06)


def test_equal_differences_have_no_bound_and_no_difference_is_zero() -> None:
    equal = paired_cohen_d([1, 2, 3], [0, 1, 2])
    assert equal is not None and equal["size"] is None and equal["difference"] == -1
    none = paired_cohen_d([1, 2, 3], [1, 2, 3])
    assert none is not None and none["size"] == 0
    assert paired_cohen_d([1], [0]) is None


def test_tau_agrees_with_the_oracle_on_printed_tables(shared: Path) -> None:
    oracle = json.loads((shared / "golden/stats_oracle.json").read_text())["kendall_b"]
    table = json.loads((shared / "golden/wrbench_table2.json").read_text())
    checked = 0
    for pair, (tau, _) in oracle.items():
        first, second = pair.split("~")
        columns = [[row[name] for row in table] for name in (first, second)]
        assert kendall_tau(*columns) == pytest.approx(tau, abs=1e-12), pair
        checked += 1
    assert checked == 4
