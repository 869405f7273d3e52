"""Whether KVD and KID grow with the strength of rendered failures, and call halves of the same worlds different.

    python benchmarks/distance_failures.py [--scenes 20] [--failing 10] [--kinds blur,collapse]

Renders scenes, each with its truth, and some of them with failures at three strengths, takes the features of the
set small (no file is written), and prints Spearman's correlation of the distance with the strength, per failure; and
how often two random halves of the truth are called different. Results go to
benchmarks/distances/failures.json, which a test reads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import revisit
from revisit.audit.grid import story
from revisit.core import Score, load_all
from revisit.metrics.distribution import frame_variety, video_action
from revisit.stats.distribution_distance import kernel_distance
from revisit.worlds import make_world, play
from revisit.worlds.failures import generate
from revisit.worlds.film import Film

STRENGTHS = (0.0, 1 / 3, 2 / 3, 1.0)
KINDS = ("blur", "collapse", "style", "lighting", "flicker", "frozen_camera", "background", "vanish")
SIZE, FRAMES = (96, 168), 17
STORE = Path(__file__).with_name("distances") / "failures.json"


def film(seed: int) -> Film:
    """A short film of the story that the audit has for this seed."""
    told = story(seed)
    return play(make_world(seed, told.place, told.kind), told.script, told.event, size=SIZE, frames=FRAMES)


def features(frames: np.ndarray) -> dict[str, np.ndarray]:
    """By distance: the features of a clip, a row per clip or per frame."""
    found = {}
    for name, answer in (
        ("kvd", video_action(revisit.observe(frames, "small.video", fps=8))),
        ("kid", frame_variety(revisit.observe(frames, "small.integrity", fps=8))),
    ):
        assert isinstance(answer, Score) and answer.units is not None, answer
        found[name] = np.atleast_2d(answer.units["feature"])
    return found


def distance(name: str, clips: list[dict], truths: list[dict], scenes: list[int], others: list[int]) -> object:
    rows = [np.concatenate([clip[name] for clip in side]) for side in (clips, truths)]
    names = [
        [scene for scene, clip in zip(of, side, strict=True) for _ in clip[name]]
        for of, side in ((scenes, clips), (others, truths))
    ]
    return kernel_distance(*rows, *names)


def halves(truths: list[dict], draws: int = 400) -> dict[str, float]:
    """Share of random halves whose interval leaves out 0 from below, by distance."""
    rng, called = np.random.default_rng(0), dict.fromkeys(("kvd", "kid"), 0)
    for _ in range(draws):
        order = rng.permutation(len(truths))
        parts = order[: len(order) // 2], order[len(order) // 2 :]
        for name in called:
            found = distance(name, *([truths[k] for k in part] for part in parts), *(part.tolist() for part in parts))
            called[name] += found.interval[0] > 0
    return {name: count / draws for name, count in called.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=20)
    parser.add_argument("--failing", type=int, default=10)
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    load_all()
    films = [film(seed) for seed in range(given.scenes)]
    truths = [features(np.stack(list(generate("perfect", one)))) for one in films]
    print("truth rendered", flush=True)
    scenes = list(range(given.failing))
    stored = json.loads(STORE.read_text()) if STORE.is_file() else {"failures": {}}
    stored |= {"scenes": given.scenes, "failing": given.failing, "halves_called_different": halves(truths)}
    print(stored, flush=True)
    for kind in given.kinds.split(","):
        curves: dict[str, list[float]] = {"kvd": [], "kid": []}
        for strength in STRENGTHS:
            made = truths[: given.failing]
            if strength:
                some = films[: given.failing]
                made = [features(np.stack(list(generate(kind, one, strength=strength)))) for one in some]
            for name, curve in curves.items():
                curve.append(distance(name, made, truths[: given.failing], scenes, scenes).value)
        stored["failures"][kind] = {
            name: {"distance": curve, "spearman": float(spearmanr(STRENGTHS, curve).statistic)}
            for name, curve in curves.items()
        }
        print(kind, {name: round(one["spearman"], 3) for name, one in stored["failures"][kind].items()}, flush=True)
        STORE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
