"""Scores of generated clips in a training loop: from tensors to TensorBoard, without files.

Run: python examples/training_loop.py [folder for the log]
"""

from __future__ import annotations

import sys

import numpy as np
from tensorboard.summary import Writer

import revisit

METRICS = ["psnr", "ssim", "return_consistency", "motion_amount"]


def generate(step: int, count: int = 16) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What a model makes and what is true: a view that turns away and back, with noise that training takes out."""
    rng = np.random.default_rng(7)
    clips, truths = [], []
    for _ in range(count):
        wall = np.kron(rng.integers(0, 256, (12, 40, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
        truth = np.stack([wall[:64, x : x + 96] for x in (*range(0, 160, 16), *range(160, -1, -16))])
        noise = rng.normal(0, 40 / (1 + step), truth.shape)
        clips.append(np.clip(truth + noise, 0, 255).astype(np.uint8))
        truths.append(truth)
    return clips, truths


def main(folder: str) -> None:
    log = Writer(folder)
    for step in range(3):
        clips, truths = generate(step)  # torch tensors (frames, height, width, 3) of uint8 do as well, on any device
        results = revisit.score(clips, reference=truths, metrics=METRICS)
        for name, value in results.scalars().items():
            log.add_scalar(name, value, step)
        print(step, {name: round(value, 3) for name, value in results.scalars().items()})
    log.flush()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "log")
