"""The memory of a model while it trains: from tensors to TensorBoard, without videos.

Run: python examples/training_loop.py [folder for the log]
"""

from __future__ import annotations

import sys

import numpy as np
from torch.utils.tensorboard import SummaryWriter

import revisit

METRICS = ["psnr", "return_consistency", "motion_amount", "look_away"]


def generate(step: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a model makes and what is true: a view that turns away and back, and less is invented from step to step."""
    rng = np.random.default_rng(seed)
    walls = np.kron(rng.integers(0, 256, (2, 12, 40, 3), dtype=np.uint8), np.ones((1, 8, 8, 1), np.uint8))
    offsets = (*range(0, 160, 16), *range(160, -1, -16))
    truth, invented = (np.stack([wall[:64, x : x + 96] for x in offsets]) for wall in walls)
    clip = truth.astype(np.float32)
    clip[10:] += (invented[10:] - clip[10:]) / (1 + step)  # on the way back
    return clip.round().astype(np.uint8), truth


def main(folder: str, count: int = 8) -> None:
    monitor = revisit.Monitor(metrics=METRICS)  # layout="TCHW", value_range=(-1, 1) for what samplers usually return
    with SummaryWriter(folder) as log:
        for step in range(3):
            for seed in range(count):
                clip, truth = generate(step, seed)  # torch tensors do as well, on any device
                monitor.update(clip, reference=truth, name=f"scene-{seed}")
            checkpoint = monitor.compute()
            checkpoint.log(log, step)
            monitor.reset()
            print(step, checkpoint.sentence)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "log")
