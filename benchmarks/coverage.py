"""How often intervals hold the true mean, in simulation: ours beside a percentile bootstrap. Prints a markdown table.

python benchmarks/coverage.py
"""

from __future__ import annotations

from functools import cache

import numpy as np

from revisit.stats.intervals import estimate
from revisit.stats.student import t_quantile

REPEATS, RESAMPLES = 4000, 500
KINDS = {
    "normal": (lambda rng, n: rng.standard_normal(n), 0.0),
    "heavy tails (t, 4 df)": (lambda rng, n: rng.standard_t(4, n), 0.0),
    "near a ceiling (beta 4, 1)": (lambda rng, n: rng.beta(4, 1, n), 0.8),
    "very skewed (exponential)": (lambda rng, n: rng.exponential(1, n), 1.0),
}


@cache
def quantile(freedom: float) -> float:
    return t_quantile(0.975, freedom)


def main() -> None:
    print("| values | clusters of | 6 | 10 | 20 | 40 | percentile bootstrap at 10 |\n|---|---|---|---|---|---|---|")
    for kind, (draw, truth) in KINDS.items():
        for uneven in (False, True):
            cells, plain = [], 0
            for clusters in (6, 10, 20, 40):
                rng = np.random.default_rng([clusters, uneven])
                held = 0
                for repeat in range(REPEATS):
                    sizes = 1 + rng.geometric(0.3, clusters).clip(max=12) if uneven else np.full(clusters, 3)
                    names = np.repeat(np.arange(clusters), sizes)
                    values = 0.7 * draw(rng, clusters)[names] + 0.3 * draw(rng, len(names))
                    made = estimate(values.tolist(), names.tolist())
                    assert made is not None
                    held += abs(made.mean - truth) <= quantile(round(made.freedom, 1)) * made.error
                    if clusters == 10 and repeat < 1000:
                        sums, drawn = np.bincount(names, values), rng.integers(0, 10, (RESAMPLES, 10))
                        low, high = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975])
                        plain += low <= truth <= high
                cells.append(f"{100 * held / REPEATS:.1f}")
            size = "2 to 13 clips" if uneven else "3 clips"
            print(f"| {kind} | {size} | {' | '.join(cells)} | {plain / 10:.1f} |", flush=True)


if __name__ == "__main__":
    main()
