"""Whether distances between sets grow with rendered failures, and call halves of the same worlds different.

    python benchmarks/distance_failures.py [--workers 16] [--seconds 240]

Renders small scenes, takes the features of the set small, and keeps them as numbers, a file per scene, in
build/distance_features; a run that was stopped goes on with the next scene. Then

- *failures*: the distance of clips with a failure, at five strengths, to the truth of their scenes, and Spearman's
  correlation with the strength: on the even scenes, on which claims are chosen, and on the odd ones, on which they are
  reported;
- *halves*: how often two random sets of truths, which have no scene in common, are called different.

KVD and KID are asked. FVD needs more scenes than can be rendered here; `fvd_painted.py` asks it on painted ones.

Figures go to benchmarks/distances/failures.json, which a test reads.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
from distances import THREADS, code_digest

from revisit.stats.distance_formulas import KERNEL
from revisit.stats.distribution_distance import SetDistance
from revisit.worlds.failures import FAILURES
from revisit.worlds.film import Film

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
SIZE, FRAMES, FPS = (96, 168), 17, 8.0
HALVES = (20, 60)  # scenes of each
HERE = Path(__file__).parent
STORE, FIGURES = HERE.parent / "build" / "distance_features", HERE / "distances" / "failures.json"
Clip = tuple[str, float]  # failure and strength
TRUTH: Clip = ("truth", 0.0)


MEASURES = {"kvd": "video", "kid": "frame"}  # distance -> the features that it compares: a row per clip, or per frame


# Features, a file per scene


def clips_of(kinds: Sequence[str]) -> list[Clip]:
    """The clips that are wanted of each scene."""
    return [TRUTH, ("perfect", 0.0), *((kind, strength) for kind in kinds for strength in STRENGTHS if strength)]


def write_features(task: tuple[int, list[Clip]]) -> int:
    """Render the clips of a scene that are not there yet, and store their features; how many clips those were."""
    from revisit.core import import_registering_modules
    from revisit.worlds.failures import failure_of_kind, generate

    seed, clips = task
    path = STORE / f"{seed:05d}.npz"
    stored: dict[str, np.ndarray] = dict(np.load(path)) if path.is_file() else {}
    missing = [clip for clip in clips if f"{_name(*clip)}:video" not in stored]
    if not missing or time.time() > _deadline:
        return 0
    import_registering_modules()
    scene = film(seed)
    for kind, strength in missing:
        model = "perfect" if kind == TRUTH[0] else kind
        rows = [np.zeros((0, 1), np.float32)] * 2  # a failure that cannot happen in this scene
        if failure_of_kind(model).applies(scene):  # the noise of models is another than that of the truth
            frames = np.stack(list(generate(model, scene, strength, seed=int(kind != TRUTH[0]))))
            rows = list(features_of(frames))
        stored |= {f"{_name(kind, strength)}:{of}": row for of, row in zip(("video", "frame"), rows, strict=True)}
    STORE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, **stored)  # type: ignore[arg-type]
    part.replace(path)
    return len(missing)


def film(seed: int) -> Film:
    """A short film of the story that the audit has for this seed."""
    from revisit.audit.grid import story
    from revisit.worlds import make_world, play
    from revisit.worlds.events import EVENTS

    story_of_seed = story(seed)
    block = EVENTS[story_of_seed.event].needs_perch
    world = make_world(seed, story_of_seed.place, story_of_seed.kind, block=block)
    return play(world, story_of_seed.script, story_of_seed.event, size=SIZE, frames=FRAMES, fps=FPS)


def features_of(frames: np.ndarray) -> Iterator[np.ndarray]:
    """The features that FVD and KVD compare, a row; and those of FID and KID, a row per frame."""
    import revisit
    from revisit.core import Score
    from revisit.metrics.distribution import frame_variety, video_action

    for answer in (
        video_action(revisit.observe(frames, "small.video", fps=FPS)),
        frame_variety(revisit.observe(frames, "small.integrity", fps=FPS)),
    ):
        assert isinstance(answer, Score) and answer.units is not None, answer
        yield np.atleast_2d(answer.units["feature"]).astype(np.float32)


def _name(kind: str, strength: float) -> str:
    return f"{kind}@{strength:g}"


# Figures


@cache
def stored_features(scenes: int, kind: str, strength: float, of: str) -> Mapping[int, np.ndarray]:
    """Scene -> features of one clip, of the scenes that have it."""
    features = {}
    for seed in range(scenes):
        path = STORE / f"{seed:05d}.npz"
        if path.is_file():
            with np.load(path) as stored:
                name = f"{_name(kind, strength)}:{of}"
                if name in stored and len(stored[name]):
                    features[seed] = stored[name]
    return features


def distance(mine: Mapping[int, np.ndarray], theirs: Mapping[int, np.ndarray]) -> SetDistance:
    """Between two sets of clips, by scene."""
    rows = [np.concatenate(list(clips.values())).astype(np.float64) for clips in (mine, theirs)]
    names = [[scene for scene, clip in clips.items() for _ in clip] for clips in (mine, theirs)]
    return KERNEL.compute(*rows, *names)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's, of values without ties."""
    first, second = (np.argsort(np.argsort(values)) for values in (a, b))
    return round(float(np.corrcoef(first, second)[0, 1]), 3)


def growth(task: tuple[str, str, int, int]) -> dict[str, Any]:
    """Distances of a failure at every strength to the truth of its scenes, and their rank correlation."""
    id, kind, odd, scenes = task
    models = [
        stored_features(scenes, kind if strength else "perfect", strength, MEASURES[id]) for strength in STRENGTHS
    ]
    truth = stored_features(scenes, *TRUTH, MEASURES[id])
    common = sorted(seed for seed in set(truth).intersection(*models) if seed % 2 == odd)
    if not common or len(common) < KERNEL.least_scenes(truth[common[0]].shape[1]):
        return {"scenes": len(common), "spearman": None}
    values = [distance({k: clips[k] for k in common}, {k: truth[k] for k in common}).value for clips in models]
    return {
        "scenes": len(common), "distance": [float(f"{value:.4g}") for value in values],
        "spearman": rank_correlation(STRENGTHS, values),
    }  # fmt: skip


def halves(task: tuple[str, int, int, int, int]) -> int:
    """In how many draws two sets of truths without a common scene are called different."""
    id, size, first, draws, scenes = task
    truth, called = stored_features(scenes, *TRUTH, MEASURES[id]), 0
    for number in range(first, first + draws):
        order = np.random.default_rng([size, number]).permutation(sorted(truth)).tolist()
        one, other = ({seed: truth[seed] for seed in part} for part in (order[:size], order[size : 2 * size]))
        called += distance(one, other).interval[0] > 0
    return int(called)


def all_failures(pool: Pool, scenes: int, kinds: Sequence[str]) -> dict[str, Any]:
    """By failure and distance: the growth on even and on odd scenes."""
    figures: dict[str, dict[str, Any]] = {kind: {"title": FAILURES[kind].title} for kind in kinds}
    tasks = [(id, kind, odd, scenes) for id in MEASURES for kind in kinds for odd in (0, 1)]
    for (id, kind, odd, _), row in zip(tasks, pool.imap(growth, tasks), strict=True):
        figures[kind].setdefault(id, {})["left_out" if odd else "chosen_on"] = row
    return figures


def all_halves(pool: Pool, scenes: int, draws: int) -> list[dict[str, Any]]:
    """By distance and number of scenes: the share of draws in which halves are called different."""
    rows, block = [], 10
    for id, of in MEASURES.items():
        count = len(stored_features(scenes, *TRUTH, of))
        for size in HALVES:
            if 2 * size > count:
                continue
            tasks = [(id, size, first, min(block, draws - first), scenes) for first in range(0, draws, block)]
            share = sum(pool.imap_unordered(halves, tasks)) / draws
            rows.append({
                "distance": id, "scenes": size, "pool": count, "draws": draws, "called_different": share,
                "se": round(math.sqrt(share * (1 - share) / draws), 4),
            })  # fmt: skip
    return rows


_deadline = math.inf


def _until(deadline: float) -> None:
    global _deadline
    _deadline = deadline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--kinds", default=",".join(FAILURES))
    parser.add_argument("--draws", type=int, default=1000, help="of halves")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further scenes after so long")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the figures go")
    given = parser.parse_args()
    kinds, scenes = given.kinds.split(","), given.scenes
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    context = multiprocessing.get_context("spawn")
    started = time.monotonic()
    with context.Pool(given.workers, initializer=_until, initargs=(time.time() + given.seconds,)) as pool:
        tasks = [(seed, clips_of(kinds)) for seed in range(scenes)]
        for number, _ in enumerate(pool.imap_unordered(write_features, tasks), 1):
            if number % 40 == 0:
                print(f"{number} scenes, {time.monotonic() - started:.0f} s", flush=True)
        figures: dict[str, Any] = {
            "code": code_digest("kernel"), "strengths": STRENGTHS, "failures": all_failures(pool, scenes, kinds),
            "halves": all_halves(pool, scenes, given.draws),
        }  # fmt: skip
    given.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures["halves"]))
    for kind, row in figures["failures"].items():
        shown = {id: [part["spearman"] for part in parts.values()] for id, parts in row.items() if id != "title"}
        print(f"{kind:16} {shown}", flush=True)


if __name__ == "__main__":
    main()
