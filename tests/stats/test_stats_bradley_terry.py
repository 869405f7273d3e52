"""Strengths against choix's (the stored oracle), and their intervals against statsmodels' logistic regression."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.stats.alignment import Preference, fit_bradley_terry, half_preferences_of_tie

COUNTS = {("a", "b"): 7, ("b", "a"): 3, ("b", "c"): 6, ("c", "b"): 4, ("a", "c"): 8, ("c", "a"): 2}


def _answers(raters: int = 0) -> list[Preference]:
    made = [pair for pair, count in COUNTS.items() for _ in range(count)]
    return [Preference(*pair, cluster=number % raters if raters else None) for number, pair in enumerate(made)]


def test_strengths_are_those_of_choix(shared: Path) -> None:
    golden = json.loads((shared / "golden/stats_oracle.json").read_text())["choix_bt"]
    assert golden["data"] == "(0>1)x7,(1>0)x3,(1>2)x6,(2>1)x4,(0>2)x8,(2>0)x2"
    made = fit_bradley_terry(_answers())
    assert [strength["model"] for strength in made.strengths] == ["a", "b", "c"]
    assert [strength["strength"] for strength in made.strengths] == pytest.approx(golden["mm"], abs=1e-6)
    assert [strength["comparisons"] for strength in made.strengths] == [20, 20, 20]


@pytest.mark.parametrize("raters", [0, 7])
def test_intervals_are_those_of_a_logistic_regression(raters: int) -> None:
    models = pytest.importorskip("statsmodels.api")
    answers = _answers(raters)
    # a - b and c - b as unknowns: each answer is a row of signs, and "the first was preferred" always holds.
    names = {"a": 0, "c": 1}
    design = np.zeros((len(answers), 2))
    for row, one in enumerate(answers):
        for name, sign in ((one.winner, 1), (one.loser, -1)):
            if name in names:
                design[row, names[name]] += sign
    flip = np.where(np.arange(len(answers)) % 2 == 0, 1.0, -1.0)  # logit wants both outcomes
    how = {}
    if raters:
        groups = np.array([one.cluster for one in answers])
        how = {"cov_type": "cluster", "cov_kwds": {"groups": groups, "use_correction": False}}
    fit = models.Logit((flip > 0).astype(float), design * flip[:, None]).fit(disp=0, **how)
    made = fit_bradley_terry(answers)
    scale = raters / (raters - 1) if raters else 1.0
    for name, place in names.items():
        position = {strength["model"]: number for number, strength in enumerate(made.strengths)}
        i, j = position[name], position["b"]
        between = made.strengths[i]["strength"] - made.strengths[j]["strength"]
        assert between == pytest.approx(fit.params[place], abs=1e-8)
        variance = made.covariance[i, i] + made.covariance[j, j] - 2 * made.covariance[i, j]
        assert variance == pytest.approx(scale * fit.bse[place] ** 2, rel=1e-6)


def test_intervals_cover() -> None:
    """The true strength lies within its interval in about 95 % of simulated contests."""
    rng = np.random.default_rng(0)
    truth = np.array([0.8, 0.1, -0.2, -0.7])  # they add up to 0, as strengths do
    held = 0
    for _ in range(300):
        i, j = rng.integers(0, 4, (2, 160))
        apart = i != j
        i, j = i[apart], j[apart]
        first = rng.random(len(i)) < 1 / (1 + np.exp(truth[j] - truth[i]))
        answers = [
            Preference(str(a), str(b)) if won else Preference(str(b), str(a))
            for a, b, won in zip(i, j, first, strict=True)
        ]
        found = next(one for one in fit_bradley_terry(answers).strengths if one["model"] == "0")
        held += found["low"] <= truth[0] <= found["high"]
    assert 0.915 <= held / 300 <= 0.98


def test_ties_count_half_each_way() -> None:
    made = fit_bradley_terry([*half_preferences_of_tie("a", "b"), *half_preferences_of_tie("a", "b")])
    assert [strength["strength"] for strength in made.strengths] == pytest.approx([0, 0])
    assert [strength["share"] for strength in made.strengths] == pytest.approx([0.5, 0.5])


def test_who_always_wins_has_no_finite_strength_without_a_prior() -> None:
    answers = [Preference("a", "b"), Preference("a", "b"), Preference("b", "c"), Preference("c", "b")]
    with pytest.raises(UsageError, match="prior"):
        fit_bradley_terry(answers)
    made = fit_bradley_terry(answers, prior=0.5)
    assert made.strengths[0]["model"] == "a"
    # With a against b alone the prior makes it 2.5 against 0.5 preferences.
    alone = fit_bradley_terry(answers[:2], prior=0.5)
    assert alone.strengths[0]["strength"] - alone.strengths[1]["strength"] == pytest.approx(np.log(5))


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="two different"):
        fit_bradley_terry([Preference("a", "a")])
    with pytest.raises(UsageError, match="at least two clusters"):
        fit_bradley_terry([Preference("a", "b", cluster=1), Preference("b", "a", cluster=1)])
