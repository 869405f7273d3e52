"""What `Monitor.update` takes beside its networks, for tensors that lie on a GPU, as a sampler leaves them.

Clips of (T, 3, H, W) in -1 to 1 with a reference in bytes. For each set of metrics, in one run:

- networks alone: the same observers with networks on frames that are in memory already, called directly;
- `update`: everything, parted into turning floats into bytes, networks, other observers (on the CPU), and the rest
  (plan, digests, scores), each also as a share of the networks' own time.

Needs a GPU and the weights efficientnet-lite0 and lpips_alex (`revisit weights pull --set small`; on a machine without
network set REVISIT_WEIGHTS to a folder that holds the two).
Run: python benchmarks/monitor_overhead.py [--clips 8] [--frames 81] [--size 832x480]
Figures go to benchmarks/monitor_overhead.json; `--page` puts those that are there into docs/training.md and
benchmarks/README.md, and a test compares them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revisit import Monitor

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

HERE = Path(__file__).parent
STORE = Path(__file__).with_suffix(".json")
PAGES = (HERE.parent / "docs" / "training.md", HERE / "README.md")
MARK = "<!-- benchmarks/monitor_overhead.py --page -->"
SETS = {
    "networks only": ["lpips"],
    "memory": ["return_features", "motion_amount", "look_away"],
}


def look_away_and_back(seed: int, frames: int, width: int, height: int) -> np.ndarray:
    """A window that slides over a painted wall and back: bytes."""
    import cv2

    rng = np.random.default_rng(seed)
    wall = np.zeros((height, 3 * width, 3), np.float32)
    for scale in (4, 16, 64):
        grain = rng.random((height // scale + 1, 3 * width // scale + 1, 3), dtype=np.float32)
        wall += cv2.resize(grain, (3 * width, height), interpolation=cv2.INTER_CUBIC) * scale**0.5
    wall = ((wall - wall.min()) / np.ptp(wall) * 255).astype(np.uint8)
    offsets = np.abs(np.sin(np.linspace(0, np.pi, frames))) * 1.5 * width
    return np.stack([wall[:, int(x) : int(x) + width] for x in offsets])


def sync() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def networks_alone(monitor: Monitor, clip: np.ndarray, truth: np.ndarray) -> float:
    """Seconds of the observers with networks, by themselves, on one clip."""
    from revisit.core import OBSERVERS, Case, Clip
    from revisit.core.cases import IN_MEMORY, InMemory
    from revisit.engine.cache import MemoryCache
    from revisit.engine.jobs import make_observing_jobs
    from revisit.engine.observe import observe_job
    from revisit.media import Limits

    mine, other = (
        Clip(Path(IN_MEMORY) / name, 24.0, frames=InMemory(rgb)) for name, rgb in (("a", clip), ("b", truth))
    )
    plan = monitor._scorer.plan_for_cases(Case("a@model", "folder", "model", "a", mine, reference=other))
    keys = [key for key, (_, _, task) in plan.tasks.items() if OBSERVERS[task.observer].weights]
    sync()
    spent = 0.0
    for job in make_observing_jobs(keys, plan.tasks, plan.clips):
        for _, outcome in observe_job(job, MemoryCache(), Limits()):
            if outcome.failed or outcome.broken:
                sys.exit(f"failed: {outcome.failed or outcome.broken}")
            spent += sum(outcome.made.values())
    sync()
    return spent


def measure(metrics: list[str], clips: int, frames: int, width: int, height: int, device: str) -> dict[str, float]:
    """Milliseconds a clip: of networks alone, of update, and of its parts."""
    import torch

    import revisit
    from revisit.monitor.layouts import frames_to_uint8

    monitor = revisit.Monitor(
        layout="TCHW", value_range=(-1, 1), metrics=metrics, set="small", memory="return_features"
    )
    alone, converting, total, networks, others = [], [], [], [], []
    for number in range(clips + 1):
        truth = look_away_and_back(number, frames, width, height)
        noise = np.random.default_rng(number).integers(-6, 7, truth.shape)
        clip = np.clip(truth + noise, 0, 255).astype(np.uint8)
        tensor = (torch.from_numpy(clip).to(device).permute(0, 3, 1, 2).float() / 127.5 - 1).to(torch.bfloat16)
        seconds = networks_alone(monitor, clip, truth)
        sync()
        started = time.perf_counter()
        frames_to_uint8(tensor, "TCHW", (-1, 1))
        converted = time.perf_counter() - started
        started = time.perf_counter()
        monitor.update(tensor, name=str(number), reference=truth)
        spent, part = time.perf_counter() - started, monitor._part.clips[str(number)].spent
        if number:  # the first one loads the networks
            alone.append(seconds)
            converting.append(converted)
            total.append(spent)
            networks.append(part.networks)
            others.append(part.observers)
    middle = {
        "networks alone": alone, "update": total, "floats to bytes": converting, "networks": networks,
        "other observers": others,
    }  # fmt: skip
    figures = {name: 1000 * float(np.median(values)) for name, values in middle.items()}
    figures["rest"] = figures["update"] - figures["floats to bytes"] - figures["networks"] - figures["other observers"]
    return figures


def overhead(figures: dict[str, float]) -> float:
    """What `update` takes beside all observers, as a share of the networks' own time."""
    return (figures["update"] - figures["networks"] - figures["other observers"]) / figures["networks alone"]


def sentence(stored: dict[str, Any]) -> str:
    """What the stored figures say."""
    parts = []
    for name, figures in stored["milliseconds"].items():
        seconds = {part: f"{value / 1000:.2f} s" for part, value in figures.items()}
        parts.append(
            f"{name}: {seconds['update']} a clip, of which networks {seconds['networks']}, observers without networks "
            f"{seconds['other observers']}, floats to bytes {seconds['floats to bytes']}, and plan, digests and scores "
            f"{seconds['rest']}; beside all observers that is **{overhead(figures):.1f} times** the networks' own time"
        )
    clips = f"{stored['clips']} clips of {stored['frames']} frames at {stored['size']}"
    return (
        f"On one {stored['device']}, medians of {clips}. "
        + ". ".join(part[0].upper() + part[1:] for part in parts)
        + "."
    )


def write_pages() -> None:
    """Put the stored figures into the pages."""
    text = sentence(json.loads(STORE.read_text(encoding="utf-8")))
    for page in PAGES:
        head, _, rest = page.read_text(encoding="utf-8").partition(MARK)
        page.write_text(f"{head}{MARK}{text}{MARK}{rest.partition(MARK)[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--frames", type=int, default=81)
    parser.add_argument("--size", default="832x480")
    parser.add_argument("--out", type=Path, default=STORE, help="where the figures go")
    parser.add_argument("--anyway", action="store_true", help="also without a GPU")
    parser.add_argument("--page", action="store_true", help="only write the stored figures into the pages")
    given = parser.parse_args()
    if given.page:
        write_pages()
        return
    import torch

    if not torch.cuda.is_available() and not given.anyway:
        print("left out: this needs a GPU (--anyway --out FILE for a few frames on the CPU)")
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width, height = map(int, given.size.split("x"))
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    stored: dict[str, Any] = {
        "device": where, "clips": given.clips, "frames": given.frames, "size": given.size, "milliseconds": {},
    }  # fmt: skip
    for name, metrics in SETS.items():
        figures = measure(metrics, given.clips, given.frames, width, height, device)
        stored["milliseconds"][name] = {part: round(value, 2) for part, value in figures.items()}
        print(f"{name} ({', '.join(metrics)}), ms a clip")
        for part, value in figures.items():
            print(f"  {part:16} {value:9.1f}   {100 * value / figures['networks alone']:7.1f} % of networks alone")
        print(f"  overhead: {overhead(figures):.1%} (all but networks and other observers)", flush=True)
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
