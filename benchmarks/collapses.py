"""How often the gate of `revisit compare` fails for collapses: two checkpoints that are alike, and one that got worse.

python benchmarks/collapses.py

Every clip collapses by itself with a given chance, one clip a scene. Beside the test stands what a count of collapses
would do (more than before). The table is that of docs/statistics.md.
"""

from __future__ import annotations

import numpy as np

from revisit.stats.paired import ALPHA, one_sided_sign_test

DRAWS = 2000
SCENES = (6, 12, 40)
SHARES = ((0.1, 0.1), (0.3, 0.3), (0.5, 0.5), (0.1, 0.8))


def failure_rates(before: float, after: float, scenes: int, seed: int = 52) -> tuple[float, float]:
    """Shares of comparisons that fail, by the test and by a count."""
    rng = np.random.default_rng(seed)
    first, second = (rng.random((DRAWS, scenes)) < share for share in (before, after))
    more, fewer = (second & ~first).sum(axis=1), (first & ~second).sum(axis=1)
    significant = [one_sided_sign_test(int(up), int(down)) <= ALPHA for up, down in zip(more, fewer, strict=True)]
    return float(np.mean(significant)), float(np.mean(more > fewer))


if __name__ == "__main__":
    print("| collapses before, after | " + " | ".join(f"{n} scenes" for n in SCENES) + " |")
    print("|---|" + "---|" * len(SCENES))
    for before, after in SHARES:
        rates = [failure_rates(before, after, scenes) for scenes in SCENES]
        cells = " | ".join(f"{100 * tested:.1f} % ({100 * counted:.0f} %)" for tested, counted in rates)
        print(f"| {before:.0%}, {after:.0%} | {cells} |")
