"""Metric against people: closed forms, independent libraries, and raters with a planted order."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from revisit.stats.alignment import (
    Comparison,
    Preference,
    compare_win_ratios,
    draw_fit_scenes,
    evaluate_decisions,
    fit_bradley_terry,
    fit_tie_region,
    gate_judgeability,
    spearman_of_pairs,
)


def test_win_ratios_in_closed_form():
    votes = [("a", "b", 1), ("a", "c", 0), ("b", "c", -1), ("a", "b", -1)]
    found = compare_win_ratios([Comparison(one, other, verdict, verdict / 7) for one, other, verdict in votes])
    assert found is not None and found.people == found.metric
    ratios, counts = found.people, found.counts
    assert ratios == {"a": 1.5 / 3, "b": 1 / 3, "c": 1.5 / 2}
    assert counts == {"a": 3, "b": 3, "c": 2}
    assert sum(ratios[model] * counts[model] for model in ratios) == len(votes)


def test_rho_and_tau_of_win_ratios_agree_with_scipy():
    from scipy.stats import kendalltau, spearmanr

    rng = np.random.default_rng(1)
    models, pairs = "abcdef", []
    for scene in range(12):
        for one, other in combinations(models, 2):
            gap = ord(other) - ord(one)
            verdict = int(np.sign(round(gap / 2 + rng.normal())))
            pairs.append(Comparison(one, other, verdict, gap / 5 + rng.normal(0, 0.8), scene))
    found = compare_win_ratios(pairs)
    people, metric = list(found.people.values()), list(found.metric.values())
    assert found.rho == pytest.approx(spearmanr(people, metric).statistic, abs=1e-12)
    assert found.tau == pytest.approx(kendalltau(people, metric).statistic, abs=1e-12)
    assert found.rho_interval[0] <= found.rho <= found.rho_interval[1]
    rho, n = spearman_of_pairs(pairs) or (None, 0)
    expected = spearmanr([p.verdict for p in pairs], [p.difference for p in pairs]).statistic
    assert n == len(pairs) and rho == pytest.approx(expected, abs=1e-12)


def test_a_metric_that_agrees_or_contradicts():
    order = {"a": 3, "b": 2, "c": 1, "d": 0}
    votes = [(x, y) for x, y in combinations(order, 2)]
    same = compare_win_ratios([Comparison(x, y, 1, order[x] - order[y], s) for s in range(4) for x, y in votes])
    turned = compare_win_ratios([Comparison(x, y, 1, order[y] - order[x], s) for s in range(4) for x, y in votes])
    assert (same.rho, same.tau, turned.rho, turned.tau) == (1, 1, -1, -1)
    assert same.people == {"a": 1.0, "b": 2 / 3, "c": 1 / 3, "d": 0.0}


def test_decisions_reversals_and_ties_in_closed_form():
    pairs = [
        Comparison("a", "b", 1, 0.5), Comparison("a", "b", 1, 0.05), Comparison("a", "b", 1, -0.4),
        Comparison("a", "b", 0, 0.05), Comparison("a", "b", 0, -0.3), Comparison("a", "b", -1, -0.2),
    ]  # fmt: skip
    found = evaluate_decisions(pairs, 0.1)
    assert (found["exact"], found["strict"], found["tie"]) == (3 / 6, 2 / 4, 1 / 2)
    assert (found["reversals"], found["preferred"], found["n"]) == (1, 4, 6)
    assert evaluate_decisions(pairs, 1.0)["reversals"] == 0  # all ties: nothing is turned round
    assert found["tau"] == 0.1 and evaluate_decisions([], 0.1)["exact"] is None


def test_a_planted_tie_region_is_found_on_some_scenes_and_holds_on_others():
    rng = np.random.default_rng(7)
    pairs = []
    for scene in range(60):
        for _ in range(4):
            difference = rng.uniform(-1, 1)
            verdict = 0 if abs(difference) <= 0.3 else int(np.sign(difference))
            pairs.append(Comparison("a", "b", verdict, difference, scene))
    chosen = draw_fit_scenes([pair.scene for pair in pairs])
    assert len(chosen) == 30
    fitted = fit_tie_region([pair for pair in pairs if pair.scene in chosen])
    assert fitted == pytest.approx(0.3, abs=0.03)
    held = evaluate_decisions([pair for pair in pairs if pair.scene not in chosen], fitted)
    assert held["exact"] is not None and held["exact"] > 0.95 and held["reversals"] == 0


def test_judgeability_counts_both_ways():
    found = gate_judgeability([True, True, False, False, True], [True, True, True, False, False])
    assert found == {
        "judgeable": 2 / 3, "not_judgeable": 0.5, "balanced": (2 / 3 + 0.5) / 2, "n_judgeable": 3, "n_not": 2,
    }  # fmt: skip
    assert gate_judgeability([True], [True])["balanced"] is None


def test_planted_strengths_are_within_their_intervals():
    planted = {"a": 1.0, "b": 0.3, "c": -0.3, "d": -1.0}
    inside = total = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        votes = []
        for scene in range(30):
            for one, other in combinations(planted, 2):
                chance = 1 / (1 + math.exp(planted[other] - planted[one]))
                won = (one, other) if rng.random() < chance else (other, one)
                votes.append(Preference(*won, cluster=scene))
        for found in fit_bradley_terry(votes).strengths:
            inside += found["low"] <= planted[found["model"]] <= found["high"]
            total += 1
    assert 0.91 <= inside / total <= 0.99
