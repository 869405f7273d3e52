"""Milliseconds per frame of every lite observer, at 480p and 1080p, on one thread.

    python benchmarks/observers.py [frames]

Each observer gets fresh frames, so that the cost of scaling them down is part of its own row; in a run
the observers share the scaled frames, and the sum is lower.
"""

from __future__ import annotations

import sys
import time

import cv2
import numpy as np

from revisit.core import OBSERVERS, Frame, Observer

SIZES = {"480p": (854, 480), "1080p": (1920, 1080)}
FPS = 24.0


def pictures(width: int, height: int, count: int) -> list[np.ndarray]:
    """A window that slides over a wall with large and small structure."""
    rng = np.random.default_rng(0)
    wide = (width + 8 * count, height)
    total = np.zeros((height, wide[0], 3), np.float32)
    for cell, weight in ((128, 0.5), (24, 0.3), (4, 0.2)):
        coarse = rng.uniform(0, 255, (height // cell + 2, wide[0] // cell + 2, 3)).astype(np.float32)
        total += weight * cv2.resize(coarse, wide, interpolation=cv2.INTER_CUBIC)
    scene = np.clip(total, 0, 255).astype(np.uint8)
    return [np.ascontiguousarray(scene[:, 8 * k : 8 * k + width]) for k in range(count)]


def seconds(observer: Observer, scenes: list[np.ndarray]) -> float:
    """Processor time that one observer takes for all frames."""
    frames = [Frame(k, k / FPS, rgb, "0" * 32) for k, rgb in enumerate(scenes)]
    other = [Frame(k, k / FPS, rgb, "0" * 32) for k, rgb in enumerate(scenes)]
    start = time.process_time()
    observer(frames, reference=other, fps=FPS)
    return time.process_time() - start


def main(count: int) -> None:
    cv2.setNumThreads(1)
    lite = [o for o in OBSERVERS.values() if o.id.startswith("lite.") and o.kind != "clip" and not o.inputs]
    print(f"{'ms per frame':20}" + "".join(f"{name:>10}" for name in SIZES))
    scenes = {name: pictures(*size, count) for name, size in SIZES.items()}
    for observer in lite:
        row = [1000 * seconds(observer, scenes[name]) / count for name in SIZES]
        print(f"{observer.id:20}" + "".join(f"{value:10.2f}" for value in row))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
