"""Models that lack clips: how often pair by pair claims too much, and how much it decides, beside common clips alone.

python benchmarks/gaps.py --draws 2000 --jobs 2 --out benchmarks/claims/gaps.json
python benchmarks/gaps.py --show benchmarks/claims/gaps.json   # the table of docs/statistics.md

Scores are those of `benchmarks/claims.py`; a part of them is then taken away. *Pair by pair* is `rank_models` as
verdict, places and marks call it. *Common clips* is the same with the clips that all models have, without models that
have fewer than half the clips of another: what the verdict did before. Of equal models every decided pair is false.
With one better model a pair is true if that model beats another, and every other decided pair is false.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Hashable, Mapping
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from claims import SHARED, draw

Setting = tuple[str, int, int, int, str, float]  # kind, models, scenes, clips a scene, gaps, shift
Scores = dict[str, dict[Hashable, float]]
KINDS = ("continuous", "3 levels", SHARED)
MODELS, SHAPES = (3, 5), ((6, 1), (20, 1), (10, 3))  # shapes: scenes, and clips a scene
SHARE = {"a fifth at random": 0.2, "half at random": 0.5}
ONE, HARD, NONE = "60 % of one model", "hard scenes of half the models", "none"
GAPS = (NONE, *SHARE, ONE, HARD)
HALF = 0.5
OUT = Path(__file__).parents[1] / "build" / "gaps.json"  # what is kept is claims/gaps.json


def take_away(rng: np.random.Generator, values: np.ndarray, gaps: str) -> np.ndarray:
    """Scores (models, scenes, clips) with nan for what is missing; scenes of one clip lack it, others lack clips."""
    models, scenes, clips = values.shape
    made = values.astype(float)
    if gaps in SHARE:
        made[rng.random(values.shape) < SHARE[gaps]] = np.nan
    elif gaps == ONE:
        made[-1][rng.random((scenes, clips)) < 0.6] = np.nan
    elif gaps == HARD:  # what is hard for all on average is what these models do not deliver
        hard = values.mean(axis=(0, 2)) < np.median(values.mean(axis=(0, 2)))
        made[models // 2 :, hard] = np.nan
    return made


def scores_of(values: np.ndarray) -> Scores:
    return {
        f"m{model}": {(s, c): float(v) for (s, c), v in np.ndenumerate(mine) if np.isfinite(v)}
        for model, mine in enumerate(values)
    }


def pair_by_pair(scores: Scores) -> Scores:
    """What the verdict compares: all models but those with very few clips."""
    from revisit.stats.pairwise import models_with_few_clips

    rare = models_with_few_clips({model: len(mine) for model, mine in scores.items()})
    return {model: mine for model, mine in scores.items() if model not in rare}


def common_clips(scores: Scores) -> Scores:
    """What the verdict compared before."""
    most = max(map(len, scores.values()))
    kept = {model: mine for model, mine in scores.items() if mine and len(mine) >= HALF * most}
    shared = set.intersection(*(set(mine) for mine in kept.values())) if kept else set()
    return {model: {clip: mine[clip] for clip in mine if clip in shared} for model, mine in kept.items()}


def simulate(setting: Setting, draws: int, seed: int) -> dict[str, int]:
    """How many draws have a false claim, and how many true pairs are decided, by each of both ways."""
    from revisit.stats.pairwise import rank_models

    kind, models, scenes, clips, gaps, shift = setting
    rng = np.random.default_rng([seed, KINDS.index(kind), models, scenes, clips, GAPS.index(gaps), round(10 * shift)])
    scene_of: Mapping[Hashable, Hashable] = {(s, c): s for s in range(scenes) for c in range(clips)}
    span = 1.0 if kind == SHARED else None
    count = dict.fromkeys(("false, pairs", "false, common", "true, pairs", "true, common", "cycles"), 0)
    for _ in range(draws):
        scores = scores_of(take_away(rng, draw(rng, kind, models, scenes, clips, shift), gaps))
        ways = {"pairs": pair_by_pair(scores), "common": common_clips(scores)}
        for name, chosen in ways.items():
            decided = [pair for pair in rank_models(chosen, scene_of, True, span).pairs if pair.decided]
            true = [pair for pair in decided if shift and pair.ahead == "m0"]
            count[f"true, {name}"] += len(true)
            count[f"false, {name}"] += len(decided) > len(true)
            count["cycles"] += name == "pairs" and _has_cycle({(pair.ahead, pair.behind) for pair in decided})
    return count


def _has_cycle(beats: set[tuple[str, str]]) -> bool:
    while beats:
        behind = {other for _, other in beats}
        first = {one for one, _ in beats} - behind
        if not first:
            return True
        beats = {pair for pair in beats if pair[0] not in first}
    return False


def settings() -> list[Setting]:
    cells = [(k, m, s, c) for k in KINDS for m in MODELS for s, c in SHAPES]
    equal: list[Setting] = [(*cell, gaps, 0.0) for cell in cells for gaps in GAPS if gaps != NONE]
    better: list[Setting] = [(*cell, gaps, 1.0) for cell in cells for gaps in GAPS]
    return sorted([*equal, *better], key=lambda cell: -cell[1] * cell[2] * cell[3])


def _work(job: tuple[Setting, int, int]) -> tuple[Setting, int, dict[str, int]]:
    setting, draws, seed = job
    return setting, draws, simulate(setting, draws, seed)


def table(total: Mapping[Setting, Mapping[str, int]]) -> str:
    """For each kind of scores and gaps: the worst share of false claims, and true pairs decided by both ways."""
    lines = [
        "| scores | missing | false claims, worst setting | true pairs decided, pair by pair | on common clips |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for gaps in GAPS:
            mine = {key: value for key, value in total.items() if (key[0], key[4]) == (kind, gaps)}
            if not mine:
                continue
            false = max(value["false, pairs"] / value["draws"] for value in mine.values())
            better = {key: value for key, value in mine.items() if key[5]}
            possible = sum((key[1] - 1) * value["draws"] for key, value in better.items())
            shares = [100 * sum(v[f"true, {way}"] for v in better.values()) / possible for way in ("pairs", "common")]
            lines.append(f"| {kind} | {gaps} | {100 * false:.1f} % | {shares[0]:.0f} % | {shares[1]:.0f} % |")
    return "\n".join(lines)


def load(path: Path) -> dict[Setting, dict[str, int]]:
    return {tuple(key): value for key, value in json.loads(path.read_text())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", type=Path, help="print the table of this file, and work out nothing")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--chunk", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    if asked.show:
        print(table(load(asked.show)))
        return
    jobs = [(cell, asked.chunk, part) for part in range(asked.draws // asked.chunk) for cell in settings()]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    total: dict[Setting, dict[str, int]] = {}
    begun = time.perf_counter()
    with Pool(asked.jobs) as pool:
        for done, (setting, draws, made) in enumerate(pool.imap_unordered(_work, jobs), start=1):
            mine = total.setdefault(setting, {"draws": 0})
            for name, value in (*made.items(), ("draws", draws)):
                mine[name] = mine.get(name, 0) + value
            if done % 50 == 0 or done == len(jobs):
                print(f"{done} of {len(jobs)} parts, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
                lines = [json.dumps([list(key), value]) for key, value in sorted(total.items())]
                asked.out.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(table(total))


if __name__ == "__main__":
    main()
