"""How often intervals hold the true mean, and how wide they are, in simulation: ours beside the usual ones.

python benchmarks/coverage.py

Prints two markdown tables: of scores on a scale, and of yes and no.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from revisit.stats.intervals import Estimate, estimate_mean, interval_of_two_valued_mean, t_quantile

REPEATS, RESAMPLES = 3000, 300
CLUSTERS = (6, 10, 20, 40)
Draw = Callable[[np.random.Generator, int], np.ndarray]


def some_fail(rng: np.random.Generator, n: int) -> np.ndarray:
    """Most near 1, one of five far below: how scores of a model that sometimes forgets look."""
    return np.where(rng.random(n) < 0.2, rng.uniform(0, 0.5, n), rng.beta(20, 1, n))


KINDS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy tails (t, 4 df)": lambda rng, n: rng.standard_t(4, n),
    "even (uniform)": lambda rng, n: rng.random(n),
    "at both ends (beta ½, ½)": lambda rng, n: rng.beta(0.5, 0.5, n),
    "near a ceiling (beta 4, 1)": lambda rng, n: rng.beta(4, 1, n),
    "cut off at a ceiling": lambda rng, n: np.minimum(1, rng.normal(0.85, 0.2, n)),
    "skewed (gamma 2)": lambda rng, n: rng.gamma(2, 1, n),
    "very skewed (exponential)": lambda rng, n: rng.exponential(1, n),
    "very skewed (lognormal 0.8)": lambda rng, n: rng.lognormal(0, 0.8, n),
    "one of five fails": some_fail,
}
SHAPES = ("1 clip", "3 clips", "2 to 13 clips")


def sizes_of(shape: str, rng: np.random.Generator, clusters: int) -> np.ndarray:
    if shape == "2 to 13 clips":
        return np.asarray(1 + rng.geometric(0.3, clusters).clip(max=12))
    return np.full(clusters, int(shape[0]))


@cache
def quantile(freedom: float) -> float:
    return t_quantile(0.975, freedom)


def ends(made: Estimate, skewed: bool = True) -> tuple[float, float]:
    """`Estimate.interval`, with quantiles looked up; without the skew, the plain interval by Student's t."""
    far = quantile(round(made.freedom, 1))
    down, up = made.interval_reach_in_errors(far) if skewed else (far, far)
    return made.mean - made.error * down, made.mean + made.error * up


def of_scale() -> None:
    print(
        "| values | scenes of | 6 | 10 | 20 | 40 | width at 10, against t | t at 10 | percentile bootstrap at 10 |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for kind, draw in KINDS.items():
        truth = float(np.mean([draw(np.random.default_rng(seed), 10**6).mean() for seed in range(8)]))
        for shape in SHAPES:
            cells, wide, plain_t, plain = [], [], 0, 0
            for clusters in CLUSTERS:
                rng = np.random.default_rng([clusters, SHAPES.index(shape)])
                held = 0
                for repeat in range(REPEATS):
                    sizes = sizes_of(shape, rng, clusters)
                    names = np.repeat(np.arange(clusters), sizes)
                    own = 0.0 if shape == "1 clip" else 0.3  # the share of a clip's own in what differs
                    values = (1 - own) * draw(rng, clusters)[names] + own * draw(rng, len(names))
                    made = estimate_mean(values.tolist(), names.tolist())
                    assert made is not None
                    low, high = ends(made)
                    held += low <= truth <= high
                    if clusters == 10:
                        lower, upper = ends(made, skewed=False)
                        plain_t += lower <= truth <= upper
                        wide.append((high - low) / (upper - lower))
                        if repeat < 1000:
                            sums, drawn = np.bincount(names, values), rng.integers(0, 10, (RESAMPLES, 10))
                            some = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975])
                            plain += some[0] <= truth <= some[1]
                cells.append(f"{100 * held / REPEATS:.1f}")
            beside = f"{np.mean(wide):.2f} | {100 * plain_t / REPEATS:.1f} | {plain / 10:.1f}"
            print(f"| {kind} | {shape} | {' | '.join(cells)} | {beside} |", flush=True)


def of_yes_and_no() -> None:
    """Whether it came back: of one clip a scene, or of three whose chances are alike."""
    print("\n| share of yes | scenes of | 6 | 10 | 20 | 40 | width at 10 |\n|---|---|---|---|---|---|---|")
    for share in (0.5, 0.8, 0.9, 0.95):
        for shape in ("1 clip", "3 clips"):
            cells, wide = [], []
            for clusters in CLUSTERS:
                rng = np.random.default_rng([clusters, int(100 * share)])
                held = 0
                for _ in range(REPEATS):
                    sizes = sizes_of(shape, rng, clusters)
                    names = np.repeat(np.arange(clusters), sizes)
                    chance = np.full(clusters, share) if shape == "1 clip" else rng.beta(share, 1 - share, clusters)
                    values = (rng.random(len(names)) < chance[names]).astype(float)
                    made = interval_of_two_valued_mean(values.tolist(), names.tolist(), (0.0, 1.0))
                    assert made is not None
                    low, high = made
                    held += low <= share <= high
                    if clusters == 10:
                        wide.append(high - low)
                cells.append(f"{100 * held / REPEATS:.1f}")
            print(f"| {share} | {shape} | {' | '.join(cells)} | {np.mean(wide):.2f} |", flush=True)


if __name__ == "__main__":
    of_scale()
    of_yes_and_no()
