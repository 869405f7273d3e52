"""Models that lack clips: pairs on their own common clips, against closed forms, enumeration and least squares."""

from __future__ import annotations

from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from revisit.stats.pairwise import (
    ModelPair,
    _undecide_pairs_in_cycles,
    clip_adjusted_means,
    models_with_few_clips,
    permutation_test,
    rank_models,
    shaffer_step_down_p,
)

PROJECT = Path(__file__).parents[2]


def scores_of(values: np.ndarray) -> dict[str, dict[int, float]]:
    return {f"m{k}": {c: float(v) for c, v in enumerate(row) if np.isfinite(v)} for k, row in enumerate(values)}


def test_a_pair_is_tested_on_its_own_clips_whatever_the_others_lack() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, (3, 12)) + np.array([[0.6], [0.5], [0.4]])
    values[2, 2:] = np.nan  # with two clips: no test, and no loss for the others
    values[1, 0] = np.nan
    ranking = rank_models(scores_of(values), {k: k for k in range(12)})
    pair = next(pair for pair in ranking.pairs if {pair.ahead, pair.behind} == {"m0", "m1"})
    change = (values[0] - values[1])[1:]
    assert pair.test.clips == 11 and pair.test.difference == pytest.approx(change.mean())
    assert pair.test.p is not None and pair.p == pair.test.p  # the only pair with a test
    assert pair.test.p >= stats.ttest_1samp(change, 0).pvalue - 1e-12  # room for skew, never less
    assert [p.test.p for p in ranking.pairs if "m2" in (p.ahead, p.behind)] == [None, None]
    assert ranking.counts == {"m0": 12, "m1": 11, "m2": 2}
    assert ranking.means["m1"] == pytest.approx(np.nanmean(values[1]))


def test_the_order_is_by_least_squares_of_models_and_clips() -> None:
    """A model that lacks the hard clips has the best mean, and stands behind those that it loses to."""
    rng = np.random.default_rng(1)
    values = np.array([[0.6], [0.5], [0.4]]) + np.linspace(-0.3, 0.3, 10) + rng.normal(0, 0.01, (3, 10))
    values[1, :5] = np.nan
    values[2, 7] = np.nan
    rows, columns = np.nonzero(np.isfinite(values))
    design = np.zeros((len(rows), 13))
    design[np.arange(len(rows)), rows] = design[np.arange(len(rows)), 3 + columns] = 1
    solved = np.linalg.lstsq(design, values[rows, columns], rcond=None)[0]
    made = clip_adjusted_means(values)
    assert np.diff(made) == pytest.approx(np.diff(solved[:3]), abs=1e-9)
    ranking = rank_models(scores_of(values), {k: k for k in range(10)})
    assert max(ranking.means, key=lambda model: ranking.means[model]) == "m1"
    assert ranking.order == ("m0", "m1", "m2") and ranking.best == "m0"
    complete = rng.normal(0, 1, (3, 6))
    assert clip_adjusted_means(complete) == pytest.approx(complete.mean(axis=1))


def test_models_that_score_the_same_on_all_common_clips_share_a_place() -> None:
    rng = np.random.default_rng(2)
    values = np.vstack([np.ones((2, 9)), rng.uniform(0, 0.2, (2, 9))])
    values[1, [0, 1]] = values[2, [1, 5]] = values[3, 7] = np.nan
    ranking = rank_models(scores_of(values), {k: k for k in range(9)})
    assert ranking.adjusted["m0"] != ranking.adjusted["m1"]  # by what the others score on the clips that one lacks
    assert not ranking.is_better("m0", "m1") and not ranking.is_better("m1", "m0")
    values[0, 3] = 0.9
    ranking = rank_models(scores_of(values), {k: k for k in range(9)})
    assert ranking.is_better("m1", "m0") and not ranking.is_better("m0", "m1")


def test_the_test_of_all_models_with_gaps_is_that_of_all_exchanges() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (3, 5))
    values[2] += 2.5
    values[0, 1] = values[1, 3] = np.nan
    pairs = [(0, 1), (0, 2), (1, 2)]

    def largest(table: np.ndarray) -> float:
        found = []
        for i, j in pairs:
            d = (table[i] - table[j])[np.isfinite(table[i] - table[j])]
            found.append(abs(d.sum()) / np.sqrt((d**2).sum()))
        return max(found)

    ways = []
    for column in values.T:
        present = np.flatnonzero(np.isfinite(column))
        ways.append([(present, column[list(order)]) for order in permutations(present)])
    every = []
    for chosen in product(*ways):
        table = np.full(values.shape, np.nan)
        for clip, (present, scores) in enumerate(chosen):
            table[present, clip] = scores
        every.append(largest(table))
    seen, drawn = largest(values), np.array(every)
    exact = (drawn > seen + 1e-9).mean() + (np.abs(drawn - seen) <= 1e-9).mean() / 2
    assert 0 <= permutation_test(values, np.arange(5), pairs) - exact <= 0.04  # on the safe side


def test_without_gaps_the_sum_of_a_scene_stands_for_its_clips() -> None:
    values = np.random.default_rng(5).normal(0, 1, (4, 12))
    scene = np.repeat(np.arange(4), 3)
    sums = np.column_stack([np.bincount(scene, mine) for mine in values])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    assert permutation_test(values, scene, pairs) == permutation_test(sums.T, np.arange(4), pairs)


def test_pairs_that_contradict_each_other_are_not_claimed() -> None:
    """Each of three pairs has clips of its own: a beats b, b beats c, c beats a."""
    rng = np.random.default_rng(2)
    scores: dict[str, dict[int, float]] = {"a": {}, "b": {}, "c": {}, "d": {}}
    for block, (better, worse) in enumerate((("a", "b"), ("b", "c"), ("c", "a"))):
        for k in range(12 * block, 12 * block + 12):
            scores[better][k], scores[worse][k] = rng.normal(0.8, 0.02), rng.normal(0.4, 0.02)
    scores["d"] = {k: rng.normal(0.1, 0.02) for k in range(36)}
    ranking = rank_models(scores, {k: k for k in range(36)})
    decided = {(pair.ahead, pair.behind) for pair in ranking.pairs if pair.decided}
    assert decided == {("a", "d"), ("b", "d"), ("c", "d")} and ranking.best is None


def test_models_without_a_chain_of_common_clips_stand_by_their_own_means() -> None:
    scores = {"low": dict.fromkeys(range(3), 0.2), "high": dict.fromkeys(range(2), 0.6), "alone": {7: 0.9, 8: 0.9}}
    ranking = rank_models(scores, {k: k for k in range(9)})
    assert ranking.order == ("alone", "high", "low")
    assert ranking.adjusted == pytest.approx({"alone": 0.9, "high": 0.6, "low": 0.2})


def test_a_chain_is_no_cycle() -> None:
    test = rank_models({"x": {0: 1.0}, "y": {0: 0.5}}, {0: 0}).pairs[0].test
    chain = [ModelPair(x, y, 1, 0, test, 0.01, True) for x, y in (("a", "b"), ("b", "c"), ("a", "c"))]
    assert all(pair.decided for pair in _undecide_pairs_in_cycles(chain))


def test_untested_pairs_do_not_weaken_the_correction() -> None:
    """Of five models, four of which may be equal, all five tested pairs may be true at once."""
    assert shaffer_step_down_p([0.004, 0.02, 0.03, 0.04, 0.05], 5, 0.0)[0] == pytest.approx(0.02)


def test_who_has_too_few_clips_is_not_compared_unless_nobody_else_is_there() -> None:
    assert models_with_few_clips({"a": 40, "b": 15, "c": 15, "d": 14}) == set()  # one with many clips leaves out nobody
    assert models_with_few_clips({"a": 14, "b": 14, "c": 6}) == {"c"}
    assert models_with_few_clips({"a": 40, "b": 10}) == set() and models_with_few_clips({"a": 4, "b": 0}) == {"b"}


def test_the_page_has_the_simulated_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than 5 % false claims, and never fewer true ones than on common clips; more where cells are missing."""
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks"))
    import gaps  # type: ignore[import-not-found]

    total = gaps.load(PROJECT / "benchmarks/claims/gaps.json")
    assert gaps.table(total) in (PROJECT / "docs/statistics.md").read_text(encoding="utf-8")
    assert set(total) == set(gaps.settings()) and {value["draws"] for value in total.values()} == {2000}
    more = dict.fromkeys(gaps.GAPS, 0)
    for setting, counts in total.items():
        bound = 0.05 + 2 * np.sqrt(0.05 * 0.95 / counts["draws"])
        assert counts["false, pairs"] / counts["draws"] <= bound, setting
        assert counts["cycles"] == 0 and counts["true, pairs"] >= counts["true, common"], setting
        more[setting[4]] += counts["true, pairs"] - counts["true, common"]
    assert more.pop(gaps.NONE) == 0 and all(gained > 0 for gained in more.values())


def test_the_stored_figures_are_those_of_this_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 100 of the stored draws of one setting, made anew."""
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks"))
    import gaps

    made = gaps.simulate(("3 levels", 3, 6, 1, "60 % of one model", 1.0), 100, 0)
    assert made == {"false, pairs": 0, "false, common": 0, "true, pairs": 21, "true, common": 12, "cycles": 0}


def test_no_pair_has_a_smaller_p_than_all_models_together() -> None:
    """Also where nothing is decided: a p that is shown is family-wise."""
    for seed in range(8):
        values = np.random.default_rng(seed).normal(size=(5, 8))
        ranking = rank_models(scores_of(values), {clip: clip for clip in range(8)})
        overall = permutation_test(values, np.arange(8), list(combinations(range(5), 2)))
        assert min(pair.p or 0.0 for pair in ranking.pairs) >= overall
