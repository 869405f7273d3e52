"""Intervals against scipy and against the stored oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from revisit.stats.intervals import (
    add_skew_to_t,
    estimate_mean,
    estimate_mean_with_added_ends,
    interval_of_two_valued_mean,
    mean_interval,
    remove_skew_from_t,
    t_quantile,
    two_sided_t_p,
    welch_interval,
    wilson_interval,
)


@pytest.mark.parametrize("df", [1, 1.4, 2, 3, 4, 7.25, 12, 30, 101, 250.5])
@pytest.mark.parametrize("probability", [0.025, 0.5, 0.9, 0.975, 0.995])
def test_student_t_matches_scipy(df, probability):
    expected = scipy_stats.t.ppf(probability, df)
    assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert two_sided_t_p(expected, df) == pytest.approx(2 * scipy_stats.t.sf(abs(expected), df), rel=1e-9)


def test_far_tails_match_scipy():
    for t, df in ((40.0, 3), (8.5, 60), (1e6, 1), (0.0, 5)):
        assert two_sided_t_p(t, df) == pytest.approx(2 * scipy_stats.t.sf(t, df), rel=1e-9)


def test_independent_values_without_skew_give_the_textbook_interval():
    half = np.random.default_rng(0).normal(0, 0.1, 8)
    values = [*(0.6 + half), 0.6, *(0.6 - half)]
    low, high = scipy_stats.t.interval(0.95, 16, 0.6, np.std(values, ddof=1) / np.sqrt(17))
    assert mean_interval(values) == pytest.approx((low, high))
    assert estimate_mean(values).p == pytest.approx(scipy_stats.ttest_1samp(values, 0).pvalue)


def by_scipy(values):
    """Interval and p of a mean of independent values: the farther end of Student's and Hall's, at most twice his."""
    n, mean, error = len(values), np.mean(values), scipy_stats.sem(values)
    skew, t = scipy_stats.skew(values, bias=False) / np.sqrt(n), scipy_stats.t.ppf(0.975, n - 1)
    hall = [mean - error * 3 / skew * (np.cbrt(1 + skew * (z - skew / 6)) - 1) for z in (t, -t)]
    seen = mean / error
    straight = seen + skew * seen**2 / 3 + skew**2 * seen**3 / 27 + skew / 6
    student, by_hall, twice = (2 * scipy_stats.t.sf(abs(x), n - 1) for x in (seen, straight, seen / 2))
    down, up = (np.clip(abs(end - mean) / error, t, 2 * t) for end in hall)
    return (mean - down * error, mean + up * error), max(student, min(by_hall, twice))


def test_skew_takes_room_on_its_side_and_never_any_from_student():
    values = [0.93, 0.97, 0.99, 0.9, 0.55, 0.98, 0.96, 0.95, 0.7, 0.99]
    interval, p = by_scipy(values)
    student = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval[0] < student[0] - 0.03 and interval[1] == pytest.approx(student[1])
    assert mean_interval(values) == pytest.approx(interval) and estimate_mean(values).p == pytest.approx(p)
    wild = [0.99, 0.98, 0.99, 0.97, 0.99, 0.1]
    twice = 2 * scipy_stats.t.ppf(0.975, 5) * scipy_stats.sem(wild)
    assert mean_interval(wild)[0] == pytest.approx(np.mean(wild) - twice)
    for level in (0.5, 0.95, 0.999):
        for shift in (-1.5, 0.3, 0.7, 0.8, 0.95, 1.1, 2.0):
            for some in (values, wild):
                made = estimate_mean([value - shift for value in some])
                low, high = made.interval(level)
                assert (made.p < 1 - level) == (not low <= 0 <= high)  # test and interval say the same
    for skew in (-2.0, -0.3, 0.0, 1e-7, 0.4, 3.0):
        assert add_skew_to_t(remove_skew_from_t(1.7, skew), skew) == pytest.approx(1.7, abs=1e-6)


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
        assert wilson_interval(successes, n) == pytest.approx(interval, abs=1e-9)


def test_welch_matches_scipy():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.6, 0.1, 9), rng.normal(0.5, 0.3, 5)
    expected = scipy_stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert welch_interval(list(first), list(second)) == pytest.approx(tuple(expected))


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
    made = estimate_mean(list(values), list(names))
    assert made.error == pytest.approx(np.sqrt(variance))
    assert made.freedom == pytest.approx(np.trace(product) ** 2 / (product**2).sum())
    if len(set(sizes)) == 1:
        models = pytest.importorskip("statsmodels.api")
        fit = models.OLS(values, np.ones(n)).fit(
            cov_type="cluster", cov_kwds={"groups": names, "use_correction": False}
        )
        assert made.error == pytest.approx(float(fit.bse[0]) * np.sqrt(groups / (groups - 1)))
        assert made.freedom == pytest.approx(groups - 1)


KINDS = {  # how values are drawn, and their mean; benchmarks/coverage.py has more of them
    "normal": (lambda rng, n: rng.standard_normal(n), 0.0),
    "ceiling": (lambda rng, n: rng.beta(4, 1, n), 0.8),
    "skewed": (lambda rng, n: rng.exponential(1, n), 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "uneven"), [("normal", False), ("ceiling", True), ("skewed", True)])
def test_intervals_cover_what_they_say(kind, uneven):
    """95 +- 2 % at 10, 20 and 40 clusters, 90 % at 6 and more; a miss of p < 0.05 is a miss of the interval."""
    draw, truth = KINDS[kind]
    for clusters in (6, 10, 20, 40):
        rng = np.random.default_rng([clusters, uneven])
        held = 0
        for _ in range(1000):
            sizes = 1 + rng.geometric(0.3, clusters).clip(max=12) if uneven else np.full(clusters, 3)
            names = np.repeat(np.arange(clusters), sizes)
            values = 0.7 * draw(rng, clusters)[names] + 0.3 * draw(rng, len(names)) - truth
            held += estimate_mean(values.tolist(), names.tolist()).p > 0.05
        assert (0.9 if clusters == 6 else 0.92) <= held / 1000 <= (1 if clusters == 6 else 0.975)


def share_of(values: list[float], names: Sequence[Any]) -> tuple[float, float]:
    made = interval_of_two_valued_mean(values, names, (0.0, 1.0))
    assert made is not None
    return made


def test_three_of_three_is_no_certainty():
    assert estimate_mean([1.0] * 3, "abc").interval() == (1, 1)  # what the spread alone would say
    low, high = share_of([1.0] * 3, "abc")
    wilson = wilson_interval(3, 3)[0]
    assert 0.3 < low < wilson < high == 1
    assert interval_of_two_valued_mean([1.0] * 9, "aaabbbccc", (0.0, 1.0)) == pytest.approx(
        (low, high)
    )  # the same three scenes
    assert interval_of_two_valued_mean([5.0] * 3, "abc", (1.0, 5.0)) == pytest.approx((1 + 4 * low, 5))
    assert interval_of_two_valued_mean([1.0, 0.0], "aa", (0.0, 1.0)) is None


def test_shares_of_independent_values_are_those_of_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for yes, n in ((7, 10), (19, 20), (3, 6), (31, 40)):
        low, high = share_of([1.0] * yes + [0.0] * (n - yes), range(n))
        expected = proportion.proportion_confint(yes + 2, n + 4, method="normal")  # Agresti and Coull's two and two
        assert (low, high) == pytest.approx((expected[0], min(1, expected[1])))


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_intervals_of_ends_cover(share):
    """Of one clip a scene, and of three whose chances are alike; never by much less, and at most as counts allow."""
    rng = np.random.default_rng(5)
    for n in (6, 10, 20, 40):
        found = [share_of([1.0] * k + [0.0] * (n - k), range(n)) for k in range(n + 1)]
        hits = [found[k][0] <= share <= found[k][1] for k in rng.binomial(n, share, 4000)]
        assert 0.925 <= np.mean(hits) <= 0.99
    names, held = np.repeat(np.arange(20), 3), 0
    for _ in range(300):
        chance = rng.beta(share, 1 - share, 20)
        low, high = share_of((rng.random(60) < chance[names]).astype(float).tolist(), names.tolist())
        held += low <= share <= high
    assert held / 300 >= 0.92


def test_differences_of_yes_and_no_get_one_more_of_each():
    """Bonett and Price: one scene is added in each direction, as large as the others."""
    made = estimate_mean_with_added_ends([1.0, 1.0, 0.0, 1.0], "aabb", (-1.0, 1.0))
    plain = estimate_mean([1.0, 1.0, 0.0, 1.0, -1.0, -1.0, 1.0, 1.0], "aabbccdd")
    assert (made.mean, made.error, made.skew) == (plain.mean, plain.error, 0.0)
