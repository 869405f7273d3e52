"""FVD itself, by `revisit.fvd` with the real I3D, on more scenes than it needs; needs a GPU.

    python benchmarks/fvd_painted.py [--scenes 1632] [--workers 16]

Scenes are painted walls along which a view slides, each with colours, grain and speed of its own: they cost nothing to
draw. Features of all clips are stored in build/fvd_features, so that a run that was stopped goes on. Figures:

- *call*: `revisit.fvd` of blurred clips to sharp ones of other scenes, beside the Fréchet distance of the stored
  features by scipy's matrix root, extrapolated in the same way from fresh halves;
- *growth*: FVD at four strengths of blur and of fading colours, and Spearman's correlation with the strength;
- *halves*: how often two halves of the sharp clips are called different.

They go to benchmarks/distances/fvd_painted.json, which a test reads.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import cv2
import numpy as np
from distance_failures import rank_correlation
from distances import THREADS, code_digest

import revisit
from revisit.core import load_all
from revisit.stats.distribution_distance import frechet_distance, least_scenes

SIDE, FRAMES = 112, 16
STRENGTHS = (0.0, 1 / 3, 2 / 3, 1.0)
HERE = Path(__file__).parent
STORE, FIGURES = HERE.parent / "build" / "fvd_features", HERE / "distances" / "fvd_painted.json"


def sharp(seed: int) -> np.ndarray:
    """A view that slides along a painted wall: (16, 112, 112, 3) bytes."""
    rng = np.random.default_rng([9, seed])
    width = 3 * SIDE
    wall = np.zeros((SIDE, width, 3), np.float32)
    tint = rng.uniform(0.3, 1, 3)
    for cell in (3, 9, 27):
        grain = rng.uniform(0, 1, (SIDE // cell + 2, width // cell + 2, 3)) ** rng.uniform(0.5, 2)
        wall += cv2.resize(grain.astype(np.float32), (width, SIDE), interpolation=cv2.INTER_CUBIC) * rng.uniform(0.2, 1)
    for _ in range(rng.integers(2, 9)):
        centre = int(rng.integers(width)), int(rng.integers(SIDE))
        cv2.circle(wall, centre, int(rng.integers(5, 30)), rng.uniform(0, 2, 3).tolist(), -1, cv2.LINE_AA)
    wall = np.clip(wall / 2 * tint, 0, 1)
    far = rng.uniform(0.3, 2) * SIDE
    turns = np.abs(np.sin(np.linspace(0, np.pi * rng.uniform(0.5, 1.5), FRAMES)))
    return np.stack([wall[:, int(x) : int(x) + SIDE] * 255 for x in far * turns]).astype(np.uint8)


def blur(frames: np.ndarray, strength: float) -> np.ndarray:
    """Out of focus, by up to 3 pixels."""
    return np.stack([cv2.GaussianBlur(frame, (0, 0), max(3 * strength, 1e-3)) for frame in frames])


def fade(frames: np.ndarray, strength: float) -> np.ndarray:
    """Colours that fade to grey over the clip."""
    grey = frames.mean(axis=-1, keepdims=True)
    share = strength * np.linspace(0, 1, len(frames))[:, None, None, None]
    return np.round(frames + share * (grey - frames)).astype(np.uint8)


FAILURES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"blur": blur, "fade": fade}


class Clips(Sequence[np.ndarray]):
    """Clips that are drawn when they are asked for."""

    def __init__(self, seeds: range, kind: str = "", strength: float = 0.0) -> None:
        self.seeds, self.kind, self.strength = seeds, kind, strength

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, number: int) -> np.ndarray:
        if number >= len(self):
            raise IndexError(number)
        frames = sharp(self.seeds[number])
        return FAILURES[self.kind](frames, self.strength) if self.strength else frames


Block = tuple[int, int, str, float]  # first scene, scenes, failure, strength


def blocks(scenes: int, kind: str, strength: float) -> list[Block]:
    """Some clips each."""
    return [(first, min(48, scenes - first), kind, strength) for first in range(0, scenes, 48)]


def path_of(block: Block) -> Path:
    """Of the features of some clips."""
    first, count, kind, strength = block
    return STORE / f"{kind}{strength:.3g}-{first:05d}-{count}.npy"


def write_features(block: Block) -> None:
    """Compute and store the features of some clips that are not there yet."""
    from revisit.set_distances import _video_features

    path = path_of(block)
    if path.is_file():
        return
    load_all()
    first, count, kind, strength = block
    extract = _video_features(FRAMES)
    rows = [extract(clip).units["feature"] for clip in Clips(range(first, first + count), kind, strength)]
    STORE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.npy")
    np.save(part, np.stack(rows))
    part.replace(path)


def features(scenes: int, kind: str, strength: float) -> np.ndarray:
    """Stored features of all clips of a kind."""
    return np.concatenate([np.load(path_of(block)) for block in blocks(scenes, kind, strength)]).astype(np.float64)


def call(scenes: int) -> revisit.DistanceEstimate:
    """What a user calls: blurred clips, and sharp ones of other scenes."""
    load_all()
    return revisit.fvd(Clips(range(scenes), "blur", STRENGTHS[1]), Clips(range(scenes, 2 * scenes)))


def scipy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Squared Fréchet distance by scipy's matrix root."""
    from scipy.linalg import sqrtm

    apart = a.mean(axis=0) - b.mean(axis=0)
    first, second = np.cov(a.T), np.cov(b.T)
    return float(apart @ apart + np.trace(first + second - 2 * sqrtm(first @ second).real))


def extrapolated(a: np.ndarray, b: np.ndarray) -> float:
    """2 D(n) - D(n / 2), with halves drawn anew."""
    halves = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        one, other = (rng.permutation(len(rows)) for rows in (a, b))
        half = len(a) // 2
        halves += [scipy_distance(a[one[:half]], b[other[:half]]), scipy_distance(a[one[half:]], b[other[half:]])]
    return 2 * scipy_distance(a, b) - float(np.mean(halves))


def halves_differ(task: tuple[int, int, int]) -> int:
    """In how many draws two halves of the sharp clips are called different."""
    scenes, first, draws = task
    rows, called = features(2 * scenes, "", 0.0), 0
    for number in range(first, first + draws):
        order = np.random.default_rng([3, number]).permutation(len(rows))
        called += frechet_distance(rows[order[:scenes]], rows[order[scenes:]]).interval[0] > 0
    return int(called)


def growth(task: tuple[int, str]) -> list[float]:
    """FVD of a failure to the sharp clips of the same scenes, at every strength."""
    scenes, kind = task
    truth, names = features(2 * scenes, "", 0.0)[:scenes], range(scenes)
    sets = [truth if not strength else features(scenes, kind, strength) for strength in STRENGTHS]
    return [frechet_distance(clips, truth, names, names).value for clips in sets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=least_scenes(400))
    parser.add_argument("--draws", type=int, default=400, help="of halves")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    scenes = given.scenes
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    failures = [(kind, strength) for kind in FAILURES for strength in STRENGTHS[1:]]
    todo = [*blocks(2 * scenes, "", 0.0), *(block for one in failures for block in blocks(scenes, *one))]
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        answering = pool.apply_async(call, [scenes])
        for number, _ in enumerate(pool.imap_unordered(write_features, todo), 1):
            if number % 50 == 0:
                print(f"{number} of {len(todo)} blocks", flush=True)
        curves = dict(zip(FAILURES, pool.imap(growth, [(scenes, kind) for kind in FAILURES]), strict=True))
        steps = [(scenes, first, min(5, given.draws - first)) for first in range(0, given.draws, 5)]
        share = sum(pool.imap_unordered(halves_differ, steps)) / given.draws
        answer = answering.get()
    sharp_clips, blurred = features(2 * scenes, "", 0.0)[scenes:], features(scenes, "blur", STRENGTHS[1])
    stored = {
        "code": code_digest(), "scenes": scenes, "strengths": STRENGTHS,
        "call": {**asdict(answer), "scipy": extrapolated(blurred, sharp_clips)},
        "growth": {
            kind: {"distance": [round(value, 4) for value in curve], "spearman": rank_correlation(STRENGTHS, curve)}
            for kind, curve in curves.items()
        },
        "halves": {
            "draws": given.draws, "called_different": share,
            "se": round(math.sqrt(share * (1 - share) / given.draws), 4),
        },
    }  # fmt: skip
    FIGURES.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(stored), flush=True)


if __name__ == "__main__":
    main()
