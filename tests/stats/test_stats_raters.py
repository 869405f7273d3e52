"""Agreement of many raters: the published example with gaps, independent packages, closed forms, and intervals."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.stats.agreement import (
    agreement_with_jackknife_interval,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    light_kappa,
    most_frequent_vote,
)

# Four raters, twelve units, with gaps: Krippendorff's example, which irrCAC ships, too.
FOUR = [
    [1, 1, None, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [None, 5, 5, 5], [None, None, 1, 1], [None, 3, None, None],
]  # fmt: skip


def known(value: Any) -> Any:
    """A value that must be there."""
    assert value is not None
    return value


def simulated(units: int, raters: int, right: float, seed: int, categories: int = 3) -> list[list[int | None]]:
    """Raters who say the truth with a chance, and any category otherwise; a tenth of the ratings is missing."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(categories, units, p=[0.6, 0.3, 0.1][:categories])
    said = np.where(rng.random((units, raters)) < right, truth[:, None], rng.integers(0, categories, (units, raters)))
    gaps = rng.random((units, raters)) < 0.1
    return [
        [None if gap else int(v) + 1 for v, gap in zip(row, out, strict=True)]
        for row, out in zip(said, gaps, strict=True)
    ]


def test_the_published_example_with_gaps():
    assert gwet_ac(FOUR) == pytest.approx(0.77544, abs=5e-6)
    assert fleiss_kappa(FOUR) == pytest.approx(0.76117, abs=5e-6)
    assert krippendorff_alpha(FOUR) == pytest.approx(0.74342, abs=5e-6)
    assert krippendorff_alpha(FOUR, "ordinal") == pytest.approx(0.81539, abs=5e-6)


def test_the_oracle(shared):
    oracle = json.loads((shared / "golden/stats_oracle.json").read_text())
    raters = json.loads((shared / "golden/agree2.json").read_text())
    for weights, expected in oracle["kappa"].items():
        assert cohen_kappa(raters["a"], raters["b"], weights) == pytest.approx(expected, abs=1e-12)
    rows = list(zip(raters["a"], raters["b"], strict=True))
    assert light_kappa(rows) == pytest.approx(oracle["kappa"]["nominal"], abs=1e-12)
    # The table of Fleiss' kappa in most textbooks: 10 things, 14 raters, 5 categories.
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    filled = [[k for k, n in enumerate(counts) for _ in range(n)] for counts in table]
    assert fleiss_kappa(filled) == pytest.approx(oracle["fleiss_wiki_10x14x5"], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_as_the_package_krippendorff(seed):
    krippendorff = pytest.importorskip("krippendorff", reason="needs the package krippendorff")
    rows = simulated(40, 5, 0.6, seed)
    data = np.array([[np.nan if v is None else v for v in row] for row in rows]).T
    for scale in ("nominal", "ordinal"):
        expected = krippendorff.alpha(reliability_data=data, level_of_measurement=scale)
        assert krippendorff_alpha(rows, scale) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_as_the_package_irrcac(seed):
    raw = pytest.importorskip("irrCAC.raw", reason="needs the package irrCAC (pip install --no-deps irrCAC)")
    pandas = pytest.importorskip("pandas")
    rows = simulated(60, 4, 0.6, seed)
    frame = pandas.DataFrame([[np.nan if v is None else v for v in row] for row in rows])
    for scale, weights in (("nominal", "identity"), ("ordinal", "ordinal")):
        told = raw.CAC(frame, weights=weights, categories=[1, 2, 3])
        gwet = told.gwet()["est"]
        assert gwet_ac(rows, scale) == pytest.approx(gwet["coefficient_value"], abs=2e-5)
        # Its intervals are linearised, ours leave one thing out: about as wide.
        low, high = known(agreement_with_jackknife_interval(partial(gwet_ac, scale=scale), rows).interval)
        theirs = gwet["confidence_interval"]
        assert (high - low) == pytest.approx(float(theirs[1]) - float(theirs[0]), rel=0.12)
    fleiss = raw.CAC(frame, categories=[1, 2, 3]).fleiss()["est"]["coefficient_value"]
    assert fleiss_kappa(rows) == pytest.approx(fleiss, abs=2e-5)
    nominal = agreement_with_jackknife_interval(krippendorff_alpha, rows).interval
    theirs = raw.CAC(frame, categories=[1, 2, 3]).krippendorff()["est"]["confidence_interval"]
    assert nominal[1] - nominal[0] == pytest.approx(float(theirs[1]) - float(theirs[0]), rel=0.12)


def test_as_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    rows = [row for row in simulated(80, 2, 0.7, 3) if None not in row]
    one, other = zip(*rows, strict=True)
    assert cohen_kappa(one, other) == pytest.approx(metrics.cohen_kappa_score(one, other), abs=1e-12)
    for weights in ("linear", "quadratic"):
        expected = metrics.cohen_kappa_score(one, other, weights=weights)
        assert cohen_kappa(one, other, weights) == pytest.approx(expected, abs=1e-12)


def test_ac1_survives_where_kappa_does_not():
    # 95 of 100 things are rated alike by both, nearly all the same way: kappa falls to about 0, AC1 does not.
    rows = [["yes", "yes"]] * 95 + [["yes", "no"]] * 3 + [["no", "yes"]] * 2
    assert known(fleiss_kappa(rows)) < 0
    share = 1 - 5 / 200
    assert gwet_ac(rows) == pytest.approx((0.95 - 2 * share * (1 - share)) / (1 - 2 * share * (1 - share)))


def test_categories_that_nobody_chose_count_in_chance():
    rows = [["a", "a"], ["b", "b"], ["a", "b"]]
    assert known(gwet_ac(rows, categories=["a", "b", "c"])) > known(gwet_ac(rows))
    with pytest.raises(UsageError, match="the categories are"):
        gwet_ac(rows, categories=["a", "c"])


def test_what_is_not_defined_is_none():
    assert gwet_ac([[1, None], [None, 2]]) is None
    assert fleiss_kappa([]) is None and krippendorff_alpha([]) is None and light_kappa([]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None  # nothing varies: no coefficient can say anything
    perfect = agreement_with_jackknife_interval(gwet_ac, [[1, 1], [2, 2], [1, 1], [2, 2]])
    assert perfect.value == 1 and perfect.interval is None  # no thing tells how far it may be from 1


def test_intervals_cover_what_was_planted():
    """AC1 of raters with known noise: the interval covers the value of a very large sample about 95 times in 100."""
    truth = known(gwet_ac(simulated(60_000, 3, 0.7, 99)))
    covered = 0
    for seed in range(150):
        low, high = known(agreement_with_jackknife_interval(gwet_ac, simulated(30, 3, 0.7, seed)).interval)
        covered += low <= truth <= high
    assert 0.90 <= covered / 150 <= 0.99


def test_clusters_widen_intervals():
    rows, scenes = [], []
    rng = np.random.default_rng(5)
    for scene in range(8):
        noisy = rng.random() < 0.5
        for unit in simulated(10, 3, 0.35 if noisy else 0.97, scene):
            rows.append(unit)
            scenes.append(scene)
    alone, together = (
        agreement_with_jackknife_interval(gwet_ac, rows),
        agreement_with_jackknife_interval(gwet_ac, rows, scenes),
    )
    assert alone.value == together.value
    assert together.interval[1] - together.interval[0] > alone.interval[1] - alone.interval[0]


def test_majority_leaves_full_ties_out():
    assert most_frequent_vote(["a", "a", "tie"]) == "a"
    assert most_frequent_vote(["a", "b", "tie"]) is None
    assert most_frequent_vote(["a", "b"]) is None and most_frequent_vote([]) is None
