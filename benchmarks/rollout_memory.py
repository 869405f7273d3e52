"""Whether memory grows with the length of a rollout: peak resident memory of `revisit eval` on ever longer clips.

    python benchmarks/rollout_memory.py [--frames 500 1500 5000]

A view slides back and forth along a painted wall that slowly darkens, encoded as mp4. `revisit eval` runs on each clip
by itself, with the drift metrics and with all metrics that need no network; what all its processes hold resident is
added up twenty times a second. Figures go to benchmarks/rollout_memory.json, which a test reads; it fails where the
code that reads clips has changed since.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import psutil
from distances import THREADS, digest_of

from revisit.media import encode_mp4

HEIGHT, WIDTH, FPS = 96, 160, 24.0
HOLD_FRAMES = (
    "core.observer", "engine.observe", "media.decode", "observers.pictures", "observers.patches", "observers.views",
)  # fmt: skip
REQUESTS = {"drift": ["-m", "drift"], "all": []}
STORE = Path(__file__).with_suffix(".json")


def code_digest() -> str:
    """Of the code that holds frames."""
    return digest_of(*(importlib.import_module(f"revisit.{name}") for name in HOLD_FRAMES))


def rollout(count: int) -> Iterator[np.ndarray]:
    """Frames of a view that slides back and forth, ever darker; never more than one in memory."""
    rng = np.random.default_rng(count)
    wall = cv2.resize(rng.integers(0, 256, (HEIGHT // 6, 6 * WIDTH // 6, 3), dtype=np.uint8), (6 * WIDTH, HEIGHT))
    for k in range(count):
        left = int((1 - np.cos(2 * np.pi * k / 400)) / 2 * 5 * WIDTH)
        yield np.round(wall[:, left : left + WIDTH] * np.exp(-0.3 * k / count)).astype(np.uint8)


def peak_memory(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Megabytes that a command and all its processes hold at most, and the seconds that it takes."""
    started, most = time.monotonic(), 0
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    root = psutil.Process(process.pid)
    while process.poll() is None:
        held = 0
        for one in (root, *_children(root)):
            try:
                held += one.memory_info().rss
            except psutil.Error:  # it has just ended
                continue
        most = max(most, held)
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return most / 2**20, time.monotonic() - started


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[500, 1500, 5000])
    parser.add_argument("--requests", default=",".join(REQUESTS))
    parser.add_argument("--out", type=Path, default=STORE)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "REVISIT_CACHE": f"{folder}/cache"}
        for count in given.frames:
            clip = Path(folder, str(count), "long.mp4")
            encode_mp4(clip, rollout(count), FPS)
            for request in given.requests.split(","):
                out = Path(folder, f"run-{count}-{request}")
                command = [sys.executable, "-m", "revisit", "eval", str(clip.parent), "--out", str(out)]
                command += [*REQUESTS[request], "--workers", "1"]
                most, seconds = peak_memory(command, environment)
                rows.append(
                    {"frames": count, "metrics": request, "megabytes": round(most), "seconds": round(seconds, 1)}
                )
                print(json.dumps(rows[-1]), flush=True)
    stored = {"code": code_digest(), "size": f"{WIDTH}x{HEIGHT}", "rows": rows}
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
