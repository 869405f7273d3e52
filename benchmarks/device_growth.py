"""How a run with networks grows: with clips and frames on one GPU, and with devices that only wait.

On a GPU: four full-size networks (as in `network_throughput.py`) on 8 to 2,000 clips of 81 frames, and on 8 clips of 81
to 5,000 frames, with seconds and frames a second of the whole, start included.

Anywhere: the scheduler by itself. Each of 1 to 8 devices is a process with an observer that waits a fixed time for a
frame (`throughput/fixed_delay.py`), so that only sharing out is measured: clips of different lengths go to whichever
device is free. It says nothing about how fast several GPUs are.

    python benchmarks/device_growth.py --scheduler [--out FILE.json]
    python benchmarks/device_growth.py --gpu [--seconds 300] [--plot FILE.png] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "throughput")]

from network_throughput import make_clip  # noqa: E402

CLIPS, FRAMES = (8, 32, 125, 500, 2000), (81, 325, 1250, 5000)
DEVICES = (1, 2, 4, 8)
DISTINCT = 56  # clips that are encoded; more are copies under other names


def seconds_of(
    paths: list[Path], module: str, observers: tuple[str, ...], workers: int, cache: Path
) -> tuple[float, float]:
    """Seconds to the first clip, start included, and from there to the last."""
    import importlib

    from revisit.core import OBSERVERS, Clip
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
    from revisit.engine.worker_processes import Local, one_network_task_per_observer
    from revisit.media import Limits, clip_digest

    importlib.import_module(module)  # registers its observers
    jobs = []
    for path in paths:
        tasks = tuple(
            ObserverTask(f"{id}-{path.stem}".replace(".", "_"), id, module, OBSERVERS[id].params, {}, None)
            for id in observers
        )
        jobs.append(ObservingJob((ClipTask(clip_digest(Clip(path)), Clip(path), tasks),), frozenset()))
    times = [time.perf_counter()]
    for _, outcome in Local(workers)(
        iter(jobs), EvidenceCache(cache), Limits(), networks=one_network_task_per_observer(jobs)
    ):
        if outcome.failed or outcome.broken:
            sys.exit(f"failed: {outcome.failed or outcome.broken}")
        times.append(time.perf_counter())
    return times[1] - times[0], times[-1] - times[1]


def clips_of(folder: Path, count: int, frames: int, workers: int) -> list[Path]:
    """So many clips; those beyond `DISTINCT` are copies."""
    folder.mkdir()
    paths = [folder / f"{number}.mp4" for number in range(count)]
    first = paths[:DISTINCT]
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(make_clip, first, range(len(first)), [81] * len(first)))
    for path in first:
        repeat_packets(path, frames)
    for number, path in enumerate(paths[DISTINCT:]):
        shutil.copy(paths[number % DISTINCT], path)
    return paths


def repeat_packets(path: Path, frames: int) -> None:
    """Make a clip so many frames long by writing its packets again and again: encoding would take minutes."""
    import av

    with av.open(str(path)) as source:
        stream = source.streams.video[0]
        packets = [packet for packet in source.demux(stream) if packet.size]
        step, last = min(packet.duration for packet in packets), max(packet.pts for packet in packets)
        longer = path.with_suffix(".longer.mp4")
        with av.open(str(longer), "w") as out:
            copy = out.add_stream_from_template(stream)
            dts = [packet.dts for packet in packets]
            pts = [packet.pts for packet in packets]
            for number in range(frames):
                turn, place = divmod(number, len(packets))
                packet = packets[place]
                packet.dts = dts[place] + turn * (last + step)
                packet.pts = pts[place] + turn * (last + step)
                packet.stream = copy
                out.mux(packet)
    longer.replace(path)


def measure_scheduler(scratch: Path) -> list[dict[str, Any]]:
    """Seconds and speed-up of 1 to 8 devices that only wait."""
    from fixed_delay import DELAY

    lengths = [24 + 16 * (number % 5) for number in range(48)]  # 24 to 88 frames
    paths = [scratch / f"{number}.mp4" for number in range(len(lengths))]
    for path, frames in zip(paths, lengths, strict=True):
        small_clip(path, frames)
    os.environ["REVISIT_NETWORKS"] = "host"
    rows: list[dict[str, Any]] = []
    for devices in DEVICES:
        os.environ["REVISIT_DEVICE"] = ",".join(["cpu"] * devices)
        cache = scratch / f"cache-{devices}"
        start, rest = seconds_of(paths, "fixed_delay", ("bench.delay",), max(2, 2 * devices), cache)
        shares = frames_by_process(cache, paths)
        even = sum(lengths) / devices
        rows.append({"devices": devices, "seconds": rest, "waiting": DELAY * even, "busiest": max(shares) / even})
        print(
            f"{devices} devices: {start:.1f} s to the first clip and {rest:.1f} s more; {DELAY * even:.1f} s if shared "
            f"out evenly; {len(shares)} were at work, the busiest had {max(shares) / even:.2f} of its share",
            flush=True,
        )
    return rows


def frames_by_process(folder: Path, paths: list[Path]) -> list[int]:
    """How many frames each device looked at."""
    from collections import Counter

    from fixed_delay import Delayed

    from revisit.engine.cache import EvidenceCache

    cache, counts = EvidenceCache(folder), Counter[int]()
    for path in paths:
        record = cache.load(Delayed, f"bench_delay-{path.stem}")
        assert isinstance(record, Delayed)
        counts.update(record.process.tolist())
    return sorted(counts.values())


def small_clip(path: Path, frames: int) -> None:
    """A tiny clip, which takes next to no time to decode."""
    import numpy as np

    from revisit.media import encode_mp4

    grain = np.random.default_rng(frames).integers(0, 255, (frames, 48, 64, 3), dtype=np.uint8)
    encode_mp4(path, list(grain), fps=16)


def measure_gpu(scratch: Path, workers: int, limit: float, sizes: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Seconds and frames a second against clips and frames, the smallest first, until the time is up."""
    from four_networks import OBSERVERS
    from full_size import write_checkpoints

    os.environ.setdefault("REVISIT_PRECISION", "float16")
    os.environ["REVISIT_WEIGHTS"] = str(scratch / "weights")
    write_checkpoints(scratch / "weights")
    observers = tuple(id for id in OBSERVERS if id != "bench.lpips")  # which needs references
    ending = time.monotonic() + limit
    for clips, frames in sorted(sizes, key=math.prod):
        if time.monotonic() > ending:
            print(f"left out for lack of time: {clips} clips of {frames} frames", flush=True)
            continue
        folder = scratch / f"{clips}-{frames}"
        paths = clips_of(folder, clips, frames, workers)
        seconds = sum(seconds_of(paths, "four_networks", observers, workers, folder / "cache"))
        shutil.rmtree(folder)
        rate = clips * frames / seconds
        print(f"{clips:5} clips of {frames:5} frames: {seconds:7.1f} s, {rate:6.0f} frames/s", flush=True)
        yield {"clips": clips, "frames": frames, "seconds": seconds, "rate": rate}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds against frames in all, for runs with more clips and with longer ones."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(5, 3), layout="constrained")
    panel = figure.subplots()
    for name, chosen in (("clips of 81 frames", [r for r in rows if r["frames"] == 81]),
                         ("8 clips", [r for r in rows if r["clips"] == 8])):  # fmt: skip
        panel.plot([r["clips"] * r["frames"] for r in chosen], [r["seconds"] for r in chosen], "o-", label=name)
    panel.set(xlabel="frames in all", ylabel="seconds, start included", xscale="log", yscale="log")
    panel.set_yticks([10, 20, 50, 100, 200])
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scheduler", action="store_true", help="devices that only wait")
    parser.add_argument("--gpu", action="store_true", help="clips and frames on one GPU")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    parser.add_argument("--sizes", help="runs on a GPU as clips x frames, such as 8x81,2000x81; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="begin nothing after so long")
    parser.add_argument("--plot", type=Path, help="write a plot of the runs on a GPU; needs matplotlib")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    chosen = parser.parse_args()
    figures: dict[str, Any] = json.loads(chosen.out.read_text()) if chosen.out and chosen.out.is_file() else {}

    def keep(name: str, rows: list[dict[str, Any]]) -> None:
        figures[name] = rows
        if chosen.out:
            chosen.out.write_text(json.dumps(figures, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as scratch:
        if chosen.scheduler:
            keep("scheduler", measure_scheduler(Path(scratch)))
        if chosen.gpu:
            sizes = [*((count, 81) for count in CLIPS), *((8, count) for count in FRAMES[1:])]
            if chosen.sizes:
                sizes = [
                    (int(clips), int(frames))
                    for clips, _, frames in (s.partition("x") for s in chosen.sizes.split(","))
                ]
            rows = {(row["clips"], row["frames"]): row for row in figures.get("gpu", [])}
            for row in measure_gpu(Path(scratch), chosen.workers, chosen.seconds, sizes):
                rows[row["clips"], row["frames"]] = row
                keep("gpu", [rows[size] for size in sorted(rows)])  # of a series that somebody ends, what was done
    if chosen.plot:
        plot(figures["gpu"], chosen.plot)


if __name__ == "__main__":
    main()
