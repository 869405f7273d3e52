"""Distances between sets: against scipy, closed forms, double loops, and the simulation behind the least numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from revisit.results.distances import KINDS
from revisit.stats.distance_formulas import FRECHET, KERNEL, DistanceFormula
from revisit.stats.frechet_distance import (
    _optimal_transport_factors,
    frechet_distance,
    least_scenes_of_frechet,
    squared_frechet_of_gaussians,
)
from revisit.stats.kernel_distance import kernel_distance, least_scenes_of_kernel
from tests.benchmark_scripts import FOLDER, script

STORED = FOLDER / "distances"
RNG = np.random.default_rng(0)
DRAWS = 400  # of every cell, at least: a coverage of 95 % has then a standard error of 1.1 %
LEAST = {"frechet": least_scenes_of_frechet, "kernel": least_scenes_of_kernel}


def rows(distance: str) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(STORED.glob(f"{distance}-*.json"))]


def test_the_distance_of_two_normal_distributions_is_that_of_scipys_root() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    for dimensions in (1, 5, 40):
        a, b = (RNG.normal(size=(60, dimensions)) @ RNG.normal(size=(dimensions, dimensions)) for _ in range(2))
        means, covs = [x.mean(axis=0) + 1 for x in (a, b)], [np.cov(x.T).reshape(dimensions, -1) for x in (a, b)]
        root = linalg.sqrtm(covs[0] @ covs[1]).real
        expected = ((means[0] - means[1]) ** 2).sum() + np.trace(covs[0] + covs[1] - 2 * root)
        assert squared_frechet_of_gaussians(means[0], covs[0], means[1], covs[1]) == pytest.approx(expected, rel=1e-6)
    plain = frechet_distance(a, b).plain
    assert plain == pytest.approx(expected, rel=1e-6)


def test_samples_of_known_distance_are_found_without_bias_and_covered() -> None:
    made = script("distances")
    for cell, bias, coverage in (
        (made.Cell("frechet", 16, least_scenes_of_frechet(16), "paired"), 0.1, 0.85),
        (made.Cell("kernel", 64, least_scenes_of_kernel(64), "even"), 0.15, 0.85),
    ):
        found = made.summary(cell, made.simulate(cell, 0, 40))
        assert abs(found["bias"]) < bias and found["coverage"] >= coverage
        assert 0.7 < found["error"] / found["sd"] < 1.4
        assert cell.distance == "kernel" or found["plain_bias"] > 0.3


def test_draws_do_not_depend_on_who_makes_them() -> None:
    made = script("distances")
    cell = made.Cell("kernel", 64, 20, "even")
    parts = made.simulate(cell, 0, 2).plus(made.simulate(cell, 2, 1))
    assert parts.draws == 3 and parts.value == pytest.approx(made.simulate(cell, 0, 3).value, rel=1e-12)


def test_transport_maps_one_covariance_onto_the_other_and_back() -> None:
    a, b = (np.cov((RNG.normal(size=(50, 6)) @ RNG.normal(size=(6, 6))).T) for _ in range(2))
    out, back, roots = _optimal_transport_factors(a, b)
    out, back = (out * roots) @ out.T, (back / roots) @ back.T
    assert out @ a @ out == pytest.approx(b, rel=1e-6) and back @ b @ back == pytest.approx(a, rel=1e-6)
    flat = np.diag([1.0, 0.0])  # a direction without variance
    assert squared_frechet_of_gaussians(np.zeros(2), flat, np.zeros(2), 4 * flat) == pytest.approx(1.0)


def test_the_kernel_distance_is_the_mean_over_pairs_of_different_scenes() -> None:
    a, b = RNG.normal(size=(7, 3)), RNG.normal(1, 1, size=(6, 3))
    of_a, of_b = [0, 0, 1, 2, 3, 3, 4], [0, 1, 1, 5, 6, 7]

    def mean(x, y, of_x, of_y):
        return np.mean(
            [(p @ q / 3 + 1) ** 3 for p, s in zip(x, of_x, strict=True) for q, t in zip(y, of_y, strict=True) if s != t]
        )

    expected = mean(a, a, of_a, of_a) + mean(b, b, of_b, of_b) - 2 * mean(a, b, of_a, of_b)
    found = kernel_distance(a, b, of_a, of_b)
    assert found.value == pytest.approx(expected) and found.scenes == 5
    keep_a, keep_b = [k for k, s in enumerate(of_a) if s != 3], [k for k, s in enumerate(of_b) if s != 3]
    without = kernel_distance(a[keep_a], b[keep_b], [of_a[k] for k in keep_a], [of_b[k] for k in keep_b]).value
    assert (found.contributions[3] > 0) == (without < found.value)


def test_a_set_is_no_distance_from_itself_and_models_are_compared_scene_by_scene() -> None:
    truth = RNG.normal(size=(64, 8))
    same = frechet_distance(truth, truth, range(64), range(64))
    assert same.value == pytest.approx(0, abs=1e-6) and same.error == pytest.approx(0, abs=1e-6)
    near, far = (kernel_distance(truth + shift, truth, range(64), range(64)) for shift in (0.3, 0.6))
    apart = far.estimate_of_difference(near)
    assert apart.interval()[0] > 0 and apart.error < far.error + near.error
    with pytest.raises(ValueError, match="as many features"):
        kernel_distance(truth, truth[:, :4])


def test_the_stored_simulation_is_of_this_code() -> None:
    made = script("distances")
    for row in (*rows("frechet"), *rows("kernel")):
        cell = made.Cell(row["distance"], row["dimensions"], row["n"], row["shape"])
        assert row["code"] == made.code_digest(cell.distance), f"run benchmarks/distances.py again: {cell}"


@pytest.mark.parametrize("distance", ["frechet", "kernel"])
def test_at_the_least_number_of_scenes_and_above_bias_and_coverage_hold(distance: str) -> None:
    """Of so many draws a coverage of 93 to 97 % is seen within two standard errors more or less."""
    cells = [cell for cell in script("distances").cells() if cell.distance == distance]
    stored = {(row["dimensions"], row["n"], row["shape"]): row for row in rows(distance)}
    assert stored.keys() >= {(cell.dimensions, cell.n, cell.shape) for cell in cells}
    for row in stored.values():
        if row["n"] < LEAST[distance](row["dimensions"]):
            continue
        assert row["draws"] >= DRAWS, row
        assert abs(row["bias"]) < 0.05, row
        chance = 2 * math.sqrt(0.05 * 0.95 / row["draws"])
        assert 0.93 - chance <= row["coverage"] <= 0.97 + chance, row


def test_fifty_or_two_hundred_videos_are_far_too_few_for_400_dimensions() -> None:
    few = {
        row["n"]: row for row in rows("frechet") if row["dimensions"] == 400 and row["n"] < least_scenes_of_frechet(400)
    }
    assert few[50]["bias"] > 5 and few[200]["bias"] > 2  # of a true 50: hundreds, extrapolated or not
    assert least_scenes_of_frechet(400) > 200 and least_scenes_of_kernel(400) <= 50  # KVD is the answer then


def test_claims_are_the_failures_with_which_distances_grew_on_scenes_left_out() -> None:
    stored = json.loads((STORED / "failures.json").read_text())
    assert stored["code"] == script("distances").code_digest("kernel"), "run benchmarks/distance_failures.py again"
    for id in ("kvd", "kid"):
        grew: dict[bool, set[str]] = {True: set(), False: set()}
        for failure in stored["failures"].values():
            ranks = [failure[id][part]["spearman"] for part in ("chosen_on", "left_out")]
            if None not in ranks:  # enough scenes in which it can happen
                grew[min(ranks) >= 0.9].add(failure["title"])
        assert set(KINDS[id].responds_to) == grew[True] and set(KINDS[id].blind_to) == grew[False], id
        assert {"blur", "collapse", "style drifts", "lighting drifts"} <= grew[True]
    assert not KINDS["fid"].responds_to  # it was measured nowhere


def test_fvd_on_as_many_scenes_as_it_needs() -> None:
    """By `revisit.fvd` with the real I3D, beside scipy's matrix root; growth with failures, and halves of truths."""
    stored = json.loads((STORED / "fvd_painted.json").read_text())
    assert stored["code"] == script("distances").code_digest("frechet"), "run benchmarks/fvd_painted.py again"
    call, halves = stored["call"], stored["halves"]
    assert stored["scenes"] == call["scenes"] == least_scenes_of_frechet(400) and stored["batch_error"] < 1e-3
    low, high = call["interval"]
    assert low < call["scipy"] < high and call["value"] == pytest.approx(call["scipy"], rel=0.03)
    grew = {row["title"] for row in stored["growth"].values() if row["spearman"] >= 0.9}
    assert set(KINDS["fvd"].responds_to) == grew and not KINDS["fvd"].blind_to and len(grew) == len(stored["growth"])
    assert halves["draws"] >= 400 and halves["called_different"] + 2 * halves["se"] <= 0.05


def test_halves_of_the_same_worlds_are_not_called_different() -> None:
    halves = json.loads((STORED / "failures.json").read_text())["halves"]
    assert {row["distance"] for row in halves} >= {"kvd", "kid"}
    for row in halves:
        assert row["draws"] >= 1000 and row["called_different"] + 2 * row["se"] <= 0.05, row


@pytest.mark.parametrize(("formula", "dimensions", "draws"), [(FRECHET, 16, 40), (KERNEL, 64, 60)])
def test_sets_of_one_distribution_are_not_called_different(
    formula: DistanceFormula, dimensions: int, draws: int
) -> None:
    """The distribution is known: 5 % are 2 of 40 and 3 of 60, and 7 or more have a chance of half a percent."""
    called = 0
    for number in range(draws):
        rng = np.random.default_rng([17, number])
        one, other = rng.normal(size=(2, formula.least_scenes(dimensions), dimensions))
        called += formula.compute(one, other).interval[0] > 0
    assert called <= 6


def test_scenes_with_several_clips_count_once() -> None:
    """A clip that is there twice changes nothing."""
    a, b = RNG.normal(size=(64, 4)), RNG.normal(0.5, 1, size=(64, 4))
    once = frechet_distance(a, b, range(64), range(64, 128))
    twice = frechet_distance(np.repeat(a, 2, axis=0), b, np.repeat(np.arange(64), 2), range(64, 128))
    assert (twice.value, twice.error) == pytest.approx((once.value, once.error))
    assert twice.scenes == once.scenes == 64


def test_the_page_shows_the_stored_figures() -> None:
    made = script("distances")
    assert made.tables() in made.PAGE.read_text(encoding="utf-8"), "run benchmarks/distances.py --page"


def test_figures_outlive_a_new_name_and_nothing_else() -> None:
    digest = script("distances").digest_of_sources
    code = "import numpy as np\ndef half(total):\n    '''Half.'''\n    return np.sum(total) / 2\n"
    renamed = (
        "import numpy as np\n\ndef halve(\n    values: np.ndarray\n) -> float:\n    return np.sum(values) / 2  # half\n"
    )
    assert digest(code) == digest(renamed)
    for change in ("/ 2", "/ 3"), ("np.sum", "np.max"), ("(total) /", "(half) /"), ("/ 2", "* 2"):
        assert digest(code.replace(*change)) != digest(code)
