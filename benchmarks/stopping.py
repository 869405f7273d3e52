"""How often the rule of `revisit trend` finds an improvement where there is none, over 20 looks.

    python benchmarks/stopping.py [--trainings 5000] [--workers 16]

Trainings whose checkpoints are all equally good, of 8 to 40 scenes, with normal, skewed and two-valued scores: the
share in which any look calls a checkpoint better, by the rule (alpha spending) and by testing every look at 5 %. Then
how often a true gain is found. Every training has a seed of its own, and nothing was chosen on these seeds. Results go
to benchmarks/distances/stopping.json, which a test reads; it fails where the code has changed since.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np
from distances import THREADS, digest_of

from revisit.stats import intervals, paired, sequential
from revisit.stats.paired import paired_test
from revisit.stats.sequential import compare_with_best_so_far

LOOKS = 20
KINDS, SCENES = ("skewed", "normal", "two-valued"), (40, 16, 8)
SEED = 20261117
BLOCK = 100  # trainings that a worker simulates at a time
STORE = Path(__file__).with_name("distances") / "stopping.json"


def code_digest() -> str:
    """Of the code that decides."""
    return digest_of(sequential, paired, intervals)


def scores(rng: np.random.Generator, kind: str, scenes: int, gain: float = 0.0) -> list[dict[Hashable, float]]:
    """21 checkpoints on the same scenes; from the tenth on they may gain."""
    level = rng.normal(0.6, 0.15, scenes)
    points: list[dict[Hashable, float]] = []
    for k in range(LOOKS + 1):
        here = level + (gain if k >= 10 else 0.0)
        if kind == "normal":
            values = here + rng.normal(0, 0.1, scenes)
        elif kind == "skewed":  # most clips are alike, few fail altogether
            values = np.where(rng.random(scenes) < 0.15, 0.1, 0.8 + gain * (k >= 10) + rng.normal(0, 0.02, scenes))
        else:
            values = (rng.random(scenes) < np.clip(here, 0.02, 0.98)).astype(float)
        points.append(dict(enumerate(values.tolist())))
    return points


def any_look_better(points: list[dict[Hashable, float]], scenes: Mapping[Hashable, Hashable]) -> bool:
    """Whether any of the looks is better than the first point at 5 %: peeking."""
    for point in points[1:]:
        test = paired_test(list(points[0].values()), list(point.values()), list(scenes))
        if test is not None and test.p is not None and test.difference > 0 and test.p / 2 <= 0.05:
            return True
    return False


def simulate(task: tuple[str, int, int, int]) -> tuple[int, int, int]:
    """How many of some trainings have a false improvement, one by peeking, and a gain that is found."""
    kind, scenes, first, trainings = task
    names: dict[Hashable, Hashable] = {k: k for k in range(scenes)}
    false = peeking = gains = 0
    for number in range(first, first + trainings):
        rng = np.random.default_rng([SEED, KINDS.index(kind), scenes, number])
        points = scores(rng, kind, scenes)
        false += compare_with_best_so_far(points, names).incumbent > 0
        peeking += any_look_better(points, names)
        gains += compare_with_best_so_far(scores(rng, kind, scenes, 0.15), names).incumbent >= 10
    return false, peeking, gains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=STORE, help="where the figures go")
    given = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    rows, total = [], given.trainings
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for kind in KINDS:
            for scenes in SCENES:
                tasks = [(kind, scenes, first, min(BLOCK, total - first)) for first in range(0, total, BLOCK)]
                false, peeking, gains = (sum(counts) for counts in zip(*pool.imap(simulate, tasks), strict=True))
                share = false / total
                rows.append({
                    "scores": kind, "scenes": scenes, "trainings": total, "looks": LOOKS, "false_better": share,
                    "false_better_se": round(math.sqrt(share * (1 - share) / total), 5),
                    "false_better_when_peeking": peeking / total, "gain_of_0.15_found": gains / total,
                    "code": code_digest(),
                })  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
    given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
