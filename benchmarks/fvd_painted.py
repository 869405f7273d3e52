"""FVD itself, by `revisit.fvd` with the real I3D, on as many scenes as it needs; made for a GPU.

    python benchmarks/fvd_painted.py [--scenes 1632] [--workers 16] [--seconds 150]

Rendering 1,632 worlds takes hours. Scenes here are painted walls along which a camera turns, away and back, each with
colours, grain and speed of its own; failures are those of `revisit world render` that need no more than the frames and
the camera. Features of all clips are stored in build/fvd_features, so that a run that was stopped goes on. Figures:

- *call*: `revisit.fvd` of blurred clips to the truth of other scenes, beside the Fréchet distance of the stored
  features by scipy's matrix root, extrapolated in the same way from fresh halves;
- *growth*: FVD at four strengths of each failure, and Spearman's correlation with the strength;
- *halves*: how often two halves of the truths are called different.

They go to benchmarks/distances/fvd_painted.json, which a test reads.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import cv2
import numpy as np
from distance_failures import rank_correlation
from distances import THREADS, code_digest

import revisit
from revisit.core import Frame, import_registering_modules
from revisit.stats.frechet_distance import frechet_distance, least_scenes_of_frechet
from revisit.worlds.failures import FAILURES, generate
from revisit.worlds.film import Film

SIDE, FRAMES, BLOCK, BATCH = 112, 16, 48, 16
KINDS = ("blur", "collapse", "flicker", "style", "lighting")
STRENGTHS = (0.0, 1 / 3, 2 / 3, 1.0)
HERE = Path(__file__).parent
STORE, FIGURES = HERE.parent / "build" / "fvd_features", HERE / "distances" / "fvd_painted.json"
Kind = tuple[str, float]  # failure and strength
TRUTH, PERFECT = ("truth", 0.0), ("perfect", 0.0)  # they differ by noise alone


@dataclass(frozen=True)
class PaintedFilm:
    """A camera that turns along a painted wall and back: what failures ask of a film."""

    frames: np.ndarray
    poses: np.ndarray
    world: SimpleNamespace
    phases: tuple[int, int] = (5, 11)

    @property
    def K(self) -> np.ndarray:
        """Of a camera that sees as far to each side as the wall is away."""
        return np.array([[SIDE / 2, 0, SIDE / 2], [0, SIDE / 2, SIDE / 2], [0, 0, 1]])

    def __len__(self) -> int:
        return len(self.frames)

    def truth(self, frame: int) -> SimpleNamespace:
        """The picture of a frame; nothing stands in front of the wall."""
        return SimpleNamespace(rgb=self.frames[frame], mask=np.zeros((SIDE, SIDE), np.uint8))


def painted(seed: int) -> Film:
    """The film of a scene: 16 frames of 112 pixels."""
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
    offsets = rng.uniform(0.3, 2) * SIDE * np.abs(np.sin(np.linspace(0, np.pi * rng.uniform(0.5, 1.5), FRAMES)))
    frames = np.stack([wall[:, int(x) : int(x) + SIDE] * 255 for x in offsets]).astype(np.uint8)
    poses = np.tile(np.eye(4), (FRAMES, 1, 1))
    for pose, angle in zip(poses, np.arctan(offsets / SIDE), strict=True):
        pose[:3, :3] = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    return cast(Film, PaintedFilm(frames, poses, SimpleNamespace(seed=seed)))


def clip(seed: int, kind: Kind) -> np.ndarray:
    """The frames of a scene as a model with this failure makes them."""
    name, strength = kind
    model = "perfect" if kind == TRUTH else name
    return np.stack(list(generate(model, painted(seed), strength, seed=int(kind != TRUTH))))


class Clips(Sequence[np.ndarray]):
    """Clips that are drawn when they are asked for."""

    def __init__(self, seeds: range, kind: Kind) -> None:
        self.seeds, self.kind = seeds, kind

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError(number)
        return clip(self.seeds[number], self.kind)


# Features, a file for some clips


@dataclass(frozen=True)
class Block:
    """Some clips of a kind."""

    first: int
    count: int
    kind: Kind

    @property
    def path(self) -> Path:
        """Of their features."""
        return STORE / f"{self.kind[0]}@{self.kind[1]:.3g}-{self.first:05d}-{self.count}.npy"


def blocks(scenes: int, kind: Kind) -> list[Block]:
    """All clips of a kind."""
    return [Block(first, min(BLOCK, scenes - first), kind) for first in range(0, scenes, BLOCK)]


def logits(clips: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """What `small.video` observes of each clip, several at a time."""
    import torch

    from revisit.networks import i3d, runtime
    from revisit.observers.video import middle_square_at_224

    for some in runtime.split_into_batches(clips, BATCH):
        pixels = np.stack(
            [[middle_square_at_224(Frame(k, 0.0, rgb)) for k, rgb in enumerate(frames)] for frames in some]
        )
        with runtime.inference():
            levels = torch.from_numpy(pixels).to(runtime.device()).float() / 127.5 - 1  # (B, T, H, W, 3)
            yield from runtime.to_numpy(runtime.network(i3d.ID, i3d.build)(levels.permute(0, 4, 1, 2, 3)))


def write_features(block: Block) -> bool:
    """Compute and store the features of some clips that are not there yet; False when time is up."""
    if block.path.is_file():
        return True
    if time.time() > _deadline:
        return False
    import_registering_modules()
    cv2.setNumThreads(1)
    rows = np.stack(list(logits([clip(seed, block.kind) for seed in range(block.first, block.first + block.count)])))
    STORE.mkdir(parents=True, exist_ok=True)
    part = block.path.with_suffix(f".{os.getpid()}.npy")
    np.save(part, rows)
    part.replace(block.path)
    return True


@cache
def features(scenes: int, kind: Kind) -> np.ndarray:
    """Stored features of all clips of a kind."""
    return np.concatenate([np.load(block.path) for block in blocks(scenes, kind)]).astype(np.float64)


def batch_error(scenes: int) -> float:
    """Largest difference between stored features and what `revisit.observe` gives, as a share of their spread."""
    stored = features(2 * scenes, TRUTH)
    rows = [revisit.observe(clip(seed, TRUTH), "small.video", taken=FRAMES).logits[0] for seed in range(4)]
    return float(np.abs(stored[:4] - rows).max() / stored.std())


# Figures


def call(scenes: int) -> revisit.DistanceEstimate:
    """What a user calls: blurred clips, and the truth of other scenes."""
    import_registering_modules()
    return revisit.fvd(Clips(range(scenes), ("blur", STRENGTHS[1])), Clips(range(scenes, 2 * scenes), TRUTH))


def scipy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Squared Fréchet distance by scipy's matrix root."""
    from scipy.linalg import sqrtm

    apart = a.mean(axis=0) - b.mean(axis=0)
    first, second = np.cov(a.T), np.cov(b.T)
    return float(apart @ apart + np.trace(first + second - 2 * sqrtm(first @ second).real))


def extrapolated(task: tuple[np.ndarray, np.ndarray]) -> float:
    """2 D(n) - D(n / 2), with halves drawn anew."""
    a, b = task
    halves = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        one, other = (rng.permutation(len(rows)) for rows in (a, b))
        half = len(a) // 2
        halves += [scipy_distance(a[one[:half]], b[other[:half]]), scipy_distance(a[one[half:]], b[other[half:]])]
    return 2 * scipy_distance(a, b) - float(np.mean(halves))


def halves_differ(task: tuple[int, int, int]) -> int:
    """In how many draws two halves of the truths are called different."""
    scenes, first, draws = task
    rows, called = features(2 * scenes, TRUTH), 0
    for number in range(first, first + draws):
        order = np.random.default_rng([3, number]).permutation(len(rows))
        called += frechet_distance(rows[order[:scenes]], rows[order[scenes:]]).interval[0] > 0
    return int(called)


def distance_to_truth(task: tuple[int, Kind]) -> dict[str, Any]:
    """FVD of a failure to the truth of the same scenes."""
    scenes, kind = task
    found = frechet_distance(features(scenes, kind), features(2 * scenes, TRUTH)[:scenes], range(scenes), range(scenes))
    return {"value": round(found.value, 4), "interval": [round(end, 4) for end in found.interval]}


_deadline = math.inf


def _until(deadline: float) -> None:
    global _deadline
    _deadline = deadline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=least_scenes_of_frechet(400))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--draws", type=int, default=400, help="of halves")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="compute no further features after so long")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the figures go")
    given = parser.parse_args()
    scenes, kinds = given.scenes, given.kinds.split(",")
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    models = [PERFECT, *((kind, strength) for kind in kinds for strength in STRENGTHS[1:])]
    todo = [*blocks(2 * scenes, TRUTH), *(block for model in models for block in blocks(scenes, model))]
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(given.workers, _until, (time.time() + given.seconds,)) as pool:
        answering = pool.apply_async(call, [scenes])
        complete = list(pool.imap(write_features, todo))
        print(f"features: {sum(complete)} of {len(todo)} blocks, {time.monotonic() - started:.0f} s", flush=True)
        left = {block.kind for block, done in zip(todo, complete, strict=True) if not done}
        if left & {TRUTH, PERFECT, ("blur", STRENGTHS[1])}:
            raise SystemExit("stopped by --seconds before the truths were complete; the same command goes on")
        kinds = [kind for kind in kinds if not any((kind, strength) in left for strength in STRENGTHS)]
        tasks = [(scenes, (kind, strength) if strength else PERFECT) for kind in kinds for strength in STRENGTHS]
        curves = pool.map_async(distance_to_truth, tasks, chunksize=1)
        steps = [(scenes, first, min(5, given.draws - first)) for first in range(0, given.draws, 5)]
        counts = pool.map_async(halves_differ, steps, chunksize=1)
        by_scipy = pool.map_async(
            extrapolated, [(features(scenes, ("blur", STRENGTHS[1])), features(2 * scenes, TRUTH)[scenes:])]
        )
        rows, share, answer = curves.get(), sum(counts.get()) / given.draws, answering.get()
        growth = {}
        for place, kind in enumerate(kinds):
            some = rows[place * len(STRENGTHS) : (place + 1) * len(STRENGTHS)]
            growth[kind] = {
                "title": FAILURES[kind].title, "distance": [row["value"] for row in some],
                "interval": [row["interval"] for row in some],
                "spearman": rank_correlation(STRENGTHS, [row["value"] for row in some]),
            }  # fmt: skip
        stored = {
            "code": code_digest("frechet"), "scenes": scenes, "strengths": STRENGTHS,
            "call": {**asdict(answer), "scipy": by_scipy.get()[0]}, "growth": growth,
            "halves": {
                "draws": given.draws, "called_different": share,
                "se": round(math.sqrt(share * (1 - share) / given.draws), 4),
            },
            "batch_error": batch_error(scenes),
        }  # fmt: skip
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(f"{time.monotonic() - started:.0f} s", json.dumps(stored), flush=True)


if __name__ == "__main__":
    main()
