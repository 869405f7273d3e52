"""The number of clusters needed: against statsmodels' power analysis, scipy's noncentral t, and in simulation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from revisit.stats.intervals import Estimate, estimate_mean, welch_difference
from revisit.stats.paired import paired_test
from revisit.stats.pairwise import clusters_needed, clusters_to_detect


@pytest.mark.parametrize("effect", [0.15, 0.4, 0.9])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 28])
def test_numbers_are_those_of_statsmodels(effect: float, alpha: float) -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    expected = power.TTestPower().solve_power(effect, alpha=alpha, power=0.8)
    assert clusters_to_detect(effect, alpha) == pytest.approx(expected, abs=0.6, rel=0.02)


def test_the_range_is_that_of_the_noncentral_t() -> None:
    n, mean, error = 12, 0.06, 0.04
    made = clusters_needed(Estimate(mean, error, n - 1, n))
    assert made is not None and made[0] is not None
    for clusters, share in zip(made, (0.5, 0.75), strict=False):
        sure = stats.norm.ppf(0.975)
        effect = (sure + stats.norm.ppf(0.8)) / math.sqrt(clusters - sure**2 / 2)
        t, shift = mean / error, effect * math.sqrt(n)
        assert stats.nct.sf(t, n - 1, shift) + stats.nct.cdf(-t, n - 1, shift) == pytest.approx(share, abs=0.02)


def test_what_hardly_differs_has_no_number() -> None:
    made = clusters_needed(Estimate(0.001, 0.05, 9, 10))
    assert made is not None and made[0] is None and made[2] is None
    assert clusters_needed(Estimate(0.0, 0.0, 9, 10)) is None


@pytest.mark.parametrize(("effect", "n"), [(0.3, 10), (0.5, 20), (0.2, 40), (0.8, 6)])
def test_the_range_holds_the_true_number_half_of_the_time(effect: float, n: int) -> None:
    """Over all datasets, and the likely number lies above and below the true one equally often."""
    rng = np.random.default_rng(n)
    truth = clusters_to_detect(effect)
    inside = above = 0
    for row in rng.normal(effect, 1, (1500, n)):
        made = clusters_needed(Estimate(float(row.mean()), float(row.std(ddof=1)) / math.sqrt(n), n - 1, n))
        assert made is not None
        about, low, high = (math.inf if end is None else end for end in made)
        inside += low <= truth <= high
        above += about > truth
    assert inside / 1500 == pytest.approx(0.5, abs=0.05)
    assert above / 1500 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("wins", "losses", "truth"), [(0.3, 0.1, 77), (0.5, 0.1, 28), (0.2, 0.05, 82), (0.3, 0.0, 25)])
def test_the_range_of_yes_and_no_is_right_about_half_of_the_time(wins: float, losses: float, truth: int) -> None:
    """`truth` is how many scenes the test of yes and no needs for 80 % power, found by trying; counts are coarse."""
    rng = np.random.default_rng(8)
    for n in (10, 20, 40):
        seen = Counter(map(tuple, rng.multinomial(n, [wins, losses, 1 - wins - losses], 1000).tolist()))
        inside = above = 0
        for (better, worse, same), count in seen.items():
            made = paired_test([0.0] * n, [1.0] * better + [-1.0] * worse + [0.0] * same, list(range(n)), 1.0)
            assert made is not None and made.estimate is not None
            told = clusters_needed(replace(made.estimate, mean=(better - worse) / n, clusters=n))
            assert told is not None
            about, low, high = (math.inf if end is None else end for end in told)
            inside += count * (low <= truth <= high)
            above += count * (about > truth)
        assert 0.4 <= inside / 1000 <= 0.85 and 0.35 <= above / 1000 <= 0.7


def test_so_many_clusters_do_decide_four_times_of_five() -> None:
    rng = np.random.default_rng(3)
    n = math.ceil(clusters_to_detect(0.4))
    found = [estimate_mean(row.tolist()).p <= 0.05 for row in rng.normal(0.4, 1, (1500, n))]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_pairs_find_what_separate_means_miss() -> None:
    """A shift of 0.02 on 100 clips, with 0.2 between scenes and 0.05 within."""
    paired = apart = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scene = rng.normal(0.5, 0.2, 100)
        one, other = scene + rng.normal(0, 0.05, 100), scene + 0.02 + rng.normal(0, 0.05, 100)
        made = paired_test(one.tolist(), other.tolist(), list(range(100)))
        assert made is not None and made.estimate is not None and made.p is not None
        plain = replace(made.estimate, skew=0.0)
        assert made.p >= plain.p == pytest.approx(stats.ttest_rel(other, one).pvalue)
        welched = welch_difference(one.tolist(), other.tolist())
        assert welched is not None
        separate = welched.p
        assert separate == pytest.approx(stats.ttest_ind(other, one, equal_var=False).pvalue)
        paired += made.p <= 0.05
        apart += separate <= 0.05
    assert paired >= 30  # 80 % power would be 32 of 40
    assert apart <= 4
