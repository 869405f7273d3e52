"""Distances between sets: against scipy, closed forms, double loops, and the simulation behind the least numbers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from revisit.stats.distribution_distance import (
    frechet_distance,
    gaussian_distance,
    kernel_distance,
    least_scenes,
    least_scenes_of_kernel,
)

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "distances"
RNG = np.random.default_rng(0)


def simulation():
    spec = importlib.util.spec_from_file_location("distances", ROOT / "benchmarks" / "distances.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(distance: str) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(STORED.glob(f"{distance}-*.json"))]


def test_the_distance_of_two_normal_distributions_is_that_of_scipys_root() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    for dimensions in (1, 5, 40):
        a, b = (RNG.normal(size=(60, dimensions)) @ RNG.normal(size=(dimensions, dimensions)) for _ in range(2))
        means, covs = [x.mean(axis=0) + 1 for x in (a, b)], [np.cov(x.T).reshape(dimensions, -1) for x in (a, b)]
        root = linalg.sqrtm(covs[0] @ covs[1]).real
        expected = ((means[0] - means[1]) ** 2).sum() + np.trace(covs[0] + covs[1] - 2 * root)
        assert gaussian_distance(means[0], covs[0], means[1], covs[1]) == pytest.approx(expected, rel=1e-6)
    plain = frechet_distance(a, b).plain
    assert plain == pytest.approx(expected, rel=1e-6)


def test_samples_of_known_distance_are_found_without_bias_and_covered() -> None:
    found = list(simulation().simulate(False, 16, least_scenes(16), "paired", 40))[-1]
    assert found["plain_bias"] > 0.3 and abs(found["bias"]) < 0.1 and found["coverage"] >= 0.85
    found = list(simulation().simulate(True, 64, least_scenes_of_kernel(64), "even", 100))[-1]
    assert abs(found["bias"]) < 0.15 and found["coverage"] >= 0.88


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
    apart = far.minus(near)
    assert apart.interval()[0] > 0 and apart.error < far.error + near.error
    with pytest.raises(ValueError, match="as many features"):
        kernel_distance(truth, truth[:, :4])


def test_the_stored_simulation_is_of_this_code() -> None:
    stale = {row["code"] for row in (*rows("frechet"), *rows("kernel"))} - {simulation().code_digest()}
    assert not stale, "run benchmarks/distances.py again"


def test_at_the_least_number_of_scenes_and_above_bias_and_coverage_hold() -> None:
    """A coverage of 95 % is seen as 93 to 97 % in a thousand draws, and as somewhat less or more in fewer."""
    for row in (*rows("frechet"), *rows("kernel")):
        least = least_scenes if row["distance"] == "frechet" else least_scenes_of_kernel
        if row["n"] >= least(row["dimensions"]):
            chance = 2 * np.sqrt(0.05 * 0.95 / row["draws"])
            assert abs(row["bias"]) < 0.05 + 2 * row["sd"] / row["true"] / np.sqrt(row["draws"]) * (
                row["distance"] == "kernel"
            ), row
            assert 0.93 - chance <= row["coverage"] <= 0.97 + chance, row
    sizes = {(row["dimensions"], row["n"]) for row in rows("frechet")}
    assert {(d, least_scenes(d)) for d in (16, 64, 400)} <= sizes


def test_rendered_failures_have_distances_that_grow_and_halves_of_one_world_do_not_differ() -> None:
    stored = json.loads((STORED / "failures.json").read_text())
    from revisit.set_distances import RESPONDS_TO

    assert max(stored["halves_called_different"].values()) <= 0.05
    for kind in RESPONDS_TO:
        assert stored["failures"][kind]["kvd"]["spearman"] >= 0.9, kind


def test_the_page_shows_the_stored_figures() -> None:
    made = simulation()
    assert made.tables() in made.PAGE.read_text(encoding="utf-8"), "run benchmarks/distances.py --page"
