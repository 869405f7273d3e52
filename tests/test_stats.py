"""Intervals against scipy and against the stored oracle."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from scipy import stats as scipy_stats

from revisit.stats.intervals import difference_interval, estimate, mean_interval, of_ends, share_interval
from revisit.stats.student import t_quantile, t_tail


@pytest.mark.parametrize("df", [1, 1.4, 2, 3, 4, 7.25, 12, 30, 101, 250.5])
@pytest.mark.parametrize("probability", [0.025, 0.5, 0.9, 0.975, 0.995])
def test_student_t_matches_scipy(df, probability):
    expected = scipy_stats.t.ppf(probability, df)
    assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert t_tail(expected, df) == pytest.approx(2 * scipy_stats.t.sf(abs(expected), df), rel=1e-9)


def test_far_tails_match_scipy():
    for t, df in ((40.0, 3), (8.5, 60), (1e6, 1), (0.0, 5)):
        assert t_tail(t, df) == pytest.approx(2 * scipy_stats.t.sf(t, df), rel=1e-9)


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


def test_welch_matches_scipy():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.6, 0.1, 9), rng.normal(0.5, 0.3, 5)
    expected = scipy_stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert difference_interval(list(first), list(second)) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (1, 7, 2, 12, 4, 1), (5, 1)])
def test_clusters_of_unequal_sizes_match_an_independent_derivation(sizes):
    """CR2 and its degrees of freedom from the matrices of Bell and McCaffrey; CR1 from statsmodels for equal sizes."""
    rng = np.random.default_rng(2)
    names = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.normal(size=len(names)) + rng.normal(size=len(sizes))[names]
    n, groups = len(values), len(sizes)
    hat = np.full((n, n), 1 / n)
    rows, variance = [], 0.0
    for group in range(groups):
        mine = np.flatnonzero(names == group)
        w, v = np.linalg.eigh(np.eye(len(mine)) - hat[np.ix_(mine, mine)])
        adjust = v @ np.diag(np.where(w > 1e-9, w, 1) ** -0.5) @ v.T
        variance += float((adjust @ (values - values.mean())[mine]).sum() / n) ** 2
        rows.append((np.eye(n) - hat)[:, mine] @ adjust @ np.ones(len(mine)) / n)
    product = np.array(rows) @ np.array(rows).T
    made = estimate(list(values), list(names))
    assert made.error == pytest.approx(np.sqrt(variance))
    assert made.freedom == pytest.approx(np.trace(product) ** 2 / (product**2).sum())
    if len(set(sizes)) == 1:
        models = pytest.importorskip("statsmodels.api")
        fit = models.OLS(values, np.ones(n)).fit(
            cov_type="cluster", cov_kwds={"groups": names, "use_correction": False}
        )
        assert made.error == pytest.approx(float(fit.bse[0]) * np.sqrt(groups / (groups - 1)))
        assert made.freedom == pytest.approx(groups - 1)


def _coverage(clusters, kind, uneven, repeats=4000):
    """The share of simulated datasets whose interval holds the true mean; clusters share half of their spread."""
    rng = np.random.default_rng([clusters, len(kind), uneven])
    held = 0
    for _ in range(repeats):
        sizes = 1 + rng.geometric(0.3, clusters).clip(max=12) if uneven else np.full(clusters, 3)
        names = np.repeat(np.arange(clusters), sizes)
        if kind == "normal":
            values = (0.2 * rng.standard_normal(clusters))[names] + 0.15 * rng.standard_normal(len(names))
            truth = 0.0
        else:  # scores that crowd at the ceiling
            values = 0.7 * rng.beta(4, 1, clusters)[names] + 0.3 * rng.beta(4, 1, len(names))
            truth = 0.8
        made = estimate(values.tolist(), names.tolist())
        held += abs(made.mean - truth) <= _quantile(round(made.freedom, 1)) * made.error
    return held / repeats


@cache
def _quantile(freedom):
    return t_quantile(0.975, freedom)


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [False, True])
def test_intervals_cover_what_they_say(uneven):
    """95 +- 2 % at 10, 20 and 40 clusters, 90 % at 6 and more."""
    for clusters in (10, 20, 40):
        assert 0.93 <= _coverage(clusters, "normal", uneven) <= 0.97
    assert _coverage(6, "normal", uneven) >= 0.9
    assert _coverage(6, "skewed", uneven) >= 0.9
    assert _coverage(20, "skewed", uneven) >= 0.915


def test_three_of_three_is_no_certainty():
    assert estimate([1.0] * 3, "abc").interval() == (1, 1)  # what the spread alone would say
    low, high = of_ends([1.0] * 3, "abc", (0.0, 1.0)).interval()
    wilson = share_interval(3, 3)[0]
    assert 0 < low < wilson < 1 <= high


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_intervals_of_ends_cover(share):
    rng = np.random.default_rng(5)
    for n in (6, 10, 20, 40):
        found = [of_ends([1.0] * k + [0.0] * (n - k), list(range(n)), (0, 1)).interval() for k in range(n + 1)]
        hits = [found[k][0] <= share <= found[k][1] for k in rng.binomial(n, share, 4000)]
        assert np.mean(hits) >= 0.93
