"""How often the rule of `revisit trend` finds an improvement where there is none, over 20 looks.

    python benchmarks/stopping.py [--trainings 2000]

Trainings whose checkpoints are all equally good, of 8 to 40 scenes, with normal, skewed and two-valued scores: the
share in which any look calls a checkpoint better, by the rule (alpha spending) and by testing every look at 5 %. Then
how often a true gain is found. Results go to benchmarks/distances/stopping.json, which a test reads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from revisit.stats.paired import paired_test
from revisit.stats.sequential import look_at

LOOKS = 20
STORE = Path(__file__).with_name("distances") / "stopping.json"


def scores(rng: np.random.Generator, kind: str, scenes: int, gain: float = 0.0) -> list[dict]:
    """21 checkpoints on the same scenes; from the tenth on they may gain."""
    level = rng.normal(0.6, 0.15, scenes)
    points = []
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


def naive(points: list[dict], scenes: dict) -> bool:
    """Whether any of the looks is better at 5 %, beside the first."""
    for point in points[1:]:
        test = paired_test(list(points[0].values()), list(point.values()), list(scenes))
        if test is not None and test.p is not None and test.difference > 0 and test.p / 2 <= 0.05:
            return True
    return False


def simulate(kind: str, scenes: int, trainings: int) -> dict:
    rng = np.random.default_rng([len(kind), scenes])
    names = {k: k for k in range(scenes)}
    false = peeking = found = 0
    for _ in range(trainings):
        points = scores(rng, kind, scenes)
        false += look_at(points, names).incumbent > 0
        peeking += naive(points, names)
        found += look_at(scores(rng, kind, scenes, 0.15), names).incumbent >= 10
    return {
        "scores": kind, "scenes": scenes, "trainings": trainings, "looks": LOOKS, "false_better": false / trainings,
        "false_better_when_peeking": peeking / trainings, "gain_of_0.15_found": found / trainings,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=2000)
    given = parser.parse_args()
    rows = []
    for kind in ("skewed", "normal", "two-valued"):
        for scenes in (40, 16, 8):
            rows.append(simulate(kind, scenes, given.trainings))
            print(json.dumps(rows[-1]), flush=True)
            STORE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
