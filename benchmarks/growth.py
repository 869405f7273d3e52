"""How a run grows with clips, frames, metrics and models, and what 1 to N workers gain.

`python benchmarks/growth.py [--plot docs/growth.png]` evaluates made-up 480p clips with the lite set, one thing varied
at a time, each with an empty cache. It prints seconds, those of the processor, and both as multiples of the first row.
Models are compared with one reference for each scene. A plot needs matplotlib.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import processor_time
from scale import OURS, make_clip

from revisit.core.concurrency import cores

SIZE = 480, 832
CLIPS, FRAMES = 8, 33
REFERENCES = "truth"
SOME_METRICS = ("view_return", "motion_amount", "lighting_consistency", "camera_path", "flicker", "return_consistency")
Measured = tuple[float, float]  # seconds, and of the processor


def evaluated(videos: Path, workers: int, metrics: tuple[str, ...] = ()) -> Measured:
    """What the command takes with an empty cache."""
    asked = [word for id in metrics for word in ("-m", id)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "revisit", "eval", str(videos), "--out", f"{folder}/run", "--quiet"]
        paths = os.pathsep.join([OURS, os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "PYTHONPATH": paths, "REVISIT_CACHE": f"{folder}/cache"}
        started = time.perf_counter()
        spent, done = processor_time.of_command([*command, "--workers", str(workers), *asked], env)
    if done.returncode:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    return time.perf_counter() - started, spent


def films(folder: Path, clips: int = CLIPS, frames: int = FRAMES) -> Path:
    """So many clips, without references."""
    for k in range(clips):
        make_clip(folder, k, frames, SIZE)
    return folder


def models(folder: Path, count: int, scenes: int = 2) -> Path:
    """So many models' clips of a few scenes, and the truth of each scene."""
    for number, name in enumerate([REFERENCES, *(f"model{k}" for k in range(count))]):
        for scene in range(scenes):
            made = folder / "made"
            make_clip(made, 40 * scene + number, FRAMES, SIZE)
            (path,) = made.rglob("*.mp4")
            (folder / "videos" / name).mkdir(parents=True, exist_ok=True)
            path.rename(folder / "videos" / name / f"scene{scene}.mp4")
    return folder / "videos"


def measured() -> dict[str, dict[int, Measured]]:
    """By what is varied, then by how much of it there is."""
    most = cores()
    found: dict[str, dict[int, Measured]] = {"clips": {}, "frames": {}, "metrics": {}, "models": {}, "workers": {}}

    def told(what: str, count: int, took: Measured) -> None:
        found[what][count] = took
        first = next(iter(found[what].values()))
        ratios = f"{took[0] / first[0]:6.2f} {took[1] / first[1]:6.2f}"
        print(f"{what:8} {count:4} {took[0]:8.1f} s {took[1]:8.1f} s of the processor   x {ratios}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        usual = films(root / "usual")
        evaluated(films(root / "warm", 1, 9), 1)  # compiles the package
        for clips in (4, 8, 16):
            told("clips", clips, evaluated(films(root / f"clips{clips}", clips), most))
        for frames in (17, 33, 65):
            told("frames", frames, evaluated(films(root / f"frames{frames}", 4, frames), most))
        for metrics in (SOME_METRICS[:1], SOME_METRICS[:3], SOME_METRICS):
            told("metrics", len(metrics), evaluated(usual, most, metrics))
        for count in (1, 2, 4, 8):
            told("models", count, evaluated(models(root / f"models{count}", count), most))
        many = films(root / "many", 4 * most, 81)  # enough to keep all busy, as long as those of the benchmarks
        for workers in sorted({*(2**k for k in range(7) if 2**k <= most), most}):
            told("workers", workers, evaluated(many, workers))
    return found


def plot(found: dict[str, dict[int, Measured]], path: Path) -> None:
    """A panel for each thing that was varied: seconds, and seconds of the processor."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 2.6), layout="constrained")
    panels: Any = figure.subplots(1, len(found))
    for panel, (what, rows) in zip(panels, found.items(), strict=True):
        for part, name in enumerate(("seconds", "of the processor")):
            panel.plot(list(rows), [took[part] for took in rows.values()], "o-", label=name)
        panel.set(xlabel=what, xticks=list(rows), ylim=(0, None))
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    found = measured()
    if chosen.plot:
        plot(found, chosen.plot)


if __name__ == "__main__":
    main()
