"""How busy the GPU is: frames a second from clips to evidence, against what decoding and the networks manage alone.

Four full-size networks (DINOv2-B, CLIP ViT-B/32, Depth Anything V2 small, LPIPS on AlexNet; random weights, saved and
loaded as published ones are) look at every frame of 480p clips; LPIPS compares each clip with a reference. In one run:

- decoding alone: the same workers, no network;
- forward passes alone: batches that already lie on the device;
- everything together, through the engine;
- a loop as the benchmarks' own code has it: for each network again, decode, and frame by frame resize on the CPU,
  float32, batch 1.

Everything together is started several times, each with new processes and an empty evidence cache, and told as the
worst, the median and the best start: the first one compiles networks that later ones find in torch's cache.
Steady rates leave out the start of processes and the loading of networks, which is told by itself.
Run on a machine with a GPU, where Python has stored the byte code of torch and transformers (without it every process
compiles them at every start):

    python benchmarks/network_throughput.py [--starts 5] [--jobs 14] [--each 8] [--frames 81] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revisit.core import Observer
    from revisit.engine.jobs import ObservingJob

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "throughput")]

WIDTH, HEIGHT = 832, 480


def make_clip(path: Path, seed: int, count: int) -> Path:
    """A window that drifts over a photograph-like texture, with noise, so that the encoder has something to keep."""
    import cv2

    from revisit.media import encode_mp4

    rng = np.random.default_rng(seed)
    wall = np.zeros((HEIGHT + 64, WIDTH + 256, 3), np.float32)
    for scale in (4, 16, 64):
        grain = rng.random((wall.shape[0] // scale + 1, wall.shape[1] // scale + 1, 3), dtype=np.float32)
        wall += cv2.resize(grain, wall.shape[1::-1], interpolation=cv2.INTER_CUBIC) * scale**0.5
    wall = ((wall - wall.min()) / np.ptp(wall) * 235).astype(np.uint8)
    offsets = 100 + 90 * np.sin(np.linspace(0, np.pi, count))
    noise = rng.integers(0, 12, (8, HEIGHT, WIDTH, 3), dtype=np.uint8)
    frames = [wall[20 : 20 + HEIGHT, int(x) : int(x) + WIDTH] + noise[n % 8] for n, x in enumerate(offsets)]
    encode_mp4(path, frames, fps=16)
    return path


def make_jobs(clips: list[list[Path]], observers: tuple[str, ...]) -> list[ObservingJob]:
    """A job for each group of clips: the first one is the reference of the others."""
    from four_networks import OBSERVERS  # registers them

    from revisit.core import OBSERVERS as KNOWN
    from revisit.core import Clip
    from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
    from revisit.media import clip_digest

    assert OBSERVERS

    def tasks(path: Path, reference: str | None) -> Iterator[ObserverTask]:
        for id in observers:
            known = KNOWN[id]
            if known.pairs and reference is None:
                continue
            inputs = {"align": "index"} if known.pairs else {}
            yield ObserverTask(
                f"{id}-{path.stem}".replace(".", "_"), id, "four_networks", known.params, inputs,
                reference if known.pairs else None,
            )  # fmt: skip

    jobs = []
    for group in clips:
        digests = [clip_digest(Clip(path)) for path in group]
        members = tuple(
            ClipTask(digest, Clip(path), tuple(tasks(path, digests[0] if digest != digests[0] else None)))
            for path, digest in zip(group, digests, strict=True)
        )
        pairs = any(KNOWN[id].pairs for id in observers)
        jobs.append(ObservingJob(members, frozenset({digests[0]} if pairs else ())))
    return jobs


def through_the_engine(clips: list[list[Path]], observers: tuple[str, ...], workers: int) -> dict[str, float]:
    """Frames a second from the first finished clips to the last, and with everything."""
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.worker_processes import Local, one_network_task_per_observer
    from revisit.media import Limits

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        seen: list[tuple[float, int]] = []
        jobs, cache = make_jobs(clips, observers), EvidenceCache(Path(folder))
        for _, outcome in Local(workers)(iter(jobs), cache, Limits(), networks=one_network_task_per_observer(jobs)):
            if outcome.failed or outcome.broken:
                sys.exit(f"failed: {outcome.failed or outcome.broken}")
            seen.append((time.perf_counter(), outcome.frames))
    total = sum(frames for _, frames in seen)
    # The last clips come while the workers run out of work: they are left out, like the first ones, during which
    # networks are compiled.
    first, last = len(seen) // 2, len(seen) - len(seen) // 8
    steady = sum(frames for _, frames in seen[first + 1 : last]) / (seen[last - 1][0] - seen[first][0])
    return {
        "frames": total,
        "whole": total / (seen[-1][0] - started),
        "steady": steady,
        "first_clip_after": seen[0][0] - started,
    }


def forward_alone(frames: np.ndarray, batch: int, share_of_pairs: float, repeats: int = 16) -> dict[str, float]:
    """Milliseconds a frame of each network on batches that lie on the device, and frames a second of all together.

    As many batches are under way as in an evaluation: while the numbers of one are fetched, the next runs.
    """
    import torch
    from four_networks import OBSERVERS

    from revisit.core import OBSERVERS as KNOWN
    from revisit.core import Batch
    from revisit.engine.inference_host import AHEAD, resize_batch_on_gpu
    from revisit.networks import compiled, runtime, settings

    if torch.cuda.is_available() and settings.compile_mode() != "off":
        compiled.enable_compilation(batch, full_batches_before=1)

    def sync() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def on_device(pictures: np.ndarray) -> Any:
        return torch.from_numpy(np.ascontiguousarray(pictures)).to(runtime.device())

    def compute(observer: Observer, made: Batch) -> None:
        observer.fn(resize_batch_on_gpu(observer, observer.params, made), **observer.params)

    def in_turn(observer: Observer, made: Batch) -> None:
        with runtime.torch_turn_among_threads():
            compute(observer, made)

    each: dict[str, float] = {}
    for id in OBSERVERS:
        known = KNOWN[id]
        shown = frames[np.arange(batch) % len(frames)]
        mine, other = on_device(shown), on_device(shown[:, ::-1]) if known.pairs else ()
        index = np.arange(batch)
        made = Batch(index, index / 16.0, mine, other, index)
        for _ in range(3):
            compute(known, made)

        with ThreadPoolExecutor(AHEAD) as threads:
            list(threads.map(in_turn, [known] * 2 * AHEAD, [made] * 2 * AHEAD))
            sync()
            started = time.perf_counter()
            list(threads.map(in_turn, [known] * repeats, [made] * repeats))
        sync()
        each[id] = (time.perf_counter() - started) / repeats / batch
    spent = sum(seconds * (share_of_pairs if KNOWN[id].pairs else 1) for id, seconds in each.items())
    return {**{f"{id} ms": 1000 * seconds for id, seconds in each.items()}, "together": 1 / spent}


def loop_of_one(paths: list[Path], reference: Path) -> float:
    """Frames a second of a plain loop: each network decodes for itself and takes single frames in float32."""
    import cv2
    import torch
    from PIL import Image

    from revisit.networks import clip, depth_anything, dino, lpips, preprocessing, runtime

    os.environ["REVISIT_PRECISION"] = "float32"
    where = runtime.device()
    features, embedding = dino.network("dinov2-base"), clip.network("clip-vit-b-32-openai")
    depth = runtime.network("depth-anything-v2-small", depth_anything.build)
    distance = runtime.network("lpips_alex", lpips.lpips_alex)

    def decoded(path: Path) -> Iterator[np.ndarray]:
        video = cv2.VideoCapture(str(path))
        while True:
            good, bgr = video.read()
            if not good:
                return
            yield cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)

    def squared(rgb: np.ndarray, short: int, crop: int) -> torch.Tensor:
        image = Image.fromarray(rgb)
        scale = short / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BICUBIC)
        left, top = (image.width - crop) // 2, (image.height - crop) // 2
        return torch.from_numpy(np.array(image.crop((left, top, left + crop, top + crop))))

    def to_device(levels: torch.Tensor) -> Any:
        return levels.permute(2, 0, 1)[None].to(where)

    def one(name: str, rgb: np.ndarray, other: np.ndarray | None) -> Any:
        if name == "dino":
            return features(preprocessing.normalise_by_channel(to_device(squared(rgb, 256, 224))))[0].cpu()
        if name == "clip":
            pixels = preprocessing.normalise_by_channel(
                to_device(squared(rgb, 224, 224)), preprocessing.CLIP_MEAN, preprocessing.CLIP_STD
            )
            return embedding.embed_preprocessed(pixels).cpu()
        if name == "depth":
            height, width = depth_anything.network_input_size((HEIGHT, WIDTH))
            image = Image.fromarray(rgb).resize((width, height), Image.Resampling.BICUBIC)
            pixels = preprocessing.normalise_by_channel(to_device(torch.from_numpy(np.array(image))))
            return depth.inverse_depth_of_preprocessed(pixels).cpu()
        size = (640, round(640 * HEIGHT / WIDTH))
        small = [cv2.resize(picture, size, interpolation=cv2.INTER_AREA) for picture in (rgb, other)]
        return distance(*(to_device(torch.from_numpy(picture)) for picture in small)).cpu()

    def all_of(path: Path) -> int:
        count = 0
        for name in ("dino", "clip", "depth", "lpips"):
            others = decoded(reference) if name == "lpips" else None
            for rgb in decoded(path):
                one(name, rgb, next(others) if others is not None else None)
                count += name == "dino"
        return count

    with torch.inference_mode():
        all_of(paths[0])
        started = time.perf_counter()
        frames = sum(all_of(path) for path in paths)
        rate = frames / (time.perf_counter() - started)
    os.environ["REVISIT_PRECISION"] = "float16"
    return rate


def add_run(path: Path, figures: dict[str, Any]) -> None:
    """Put the figures of this machine behind those of others in a file."""
    import torch

    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"runs": []}
    machine = {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU",
        "cores": os.cpu_count(),
        "byte_code": not sys.dont_write_bytecode,
    }
    stored["runs"].append({**machine, **figures})
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument(
        "--jobs", type=int, help="groups of clips with one reference; two for each worker, so that none is without"
    )
    asked.add_argument("--each", type=int, default=8, help="clips of a group, the reference among them")
    asked.add_argument("--frames", type=int, default=81)
    asked.add_argument("--batch", type=int, default=64)
    asked.add_argument(
        "--workers", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="as an evaluation has them"
    )
    asked.add_argument("--starts", type=int, default=5, help="how often everything together is started")
    asked.add_argument("--no-loop", action="store_true", help="without the loop of single frames")
    asked.add_argument(
        "--out",
        type=Path,
        help="add the figures to this JSON file; benchmarks/network_throughput.json is that of docs/observers.md",
    )
    asked.add_argument("--anyway", action="store_true", help="also without a GPU")
    chosen = asked.parse_args()
    chosen.jobs = chosen.jobs or 2 * chosen.workers
    import torch

    if not torch.cuda.is_available() and not chosen.anyway:
        print("left out: this needs a GPU (--anyway for a few frames on the CPU)")
        return
    os.environ.setdefault("REVISIT_COMPILE", "on")
    os.environ.setdefault("REVISIT_PRECISION", "float16")  # LPIPS, too, which is float32 unless somebody asks
    with tempfile.TemporaryDirectory() as scratch:
        from full_size import write_checkpoints

        os.environ["REVISIT_WEIGHTS"] = str(Path(scratch) / "weights")
        write_checkpoints(Path(scratch) / "weights")
        names = [[Path(scratch) / f"{job}-{n}.mp4" for n in range(chosen.each)] for job in range(chosen.jobs)]
        with ProcessPoolExecutor(chosen.workers) as pool:
            flat = [path for group in names for path in group]
            list(pool.map(make_clip, flat, range(len(flat)), [chosen.frames] * len(flat)))
        print(f"{len(flat)} clips of {chosen.frames} frames, {WIDTH} x {HEIGHT}; {chosen.workers} workers", flush=True)

        import cv2
        from four_networks import OBSERVERS

        decode = through_the_engine(names, ("bench.seen",), chosen.workers)
        print(f"decoding alone        {decode['steady']:7.0f} frames/s", flush=True)
        together = []
        for number in range(1, chosen.starts + 1):
            together.append(one := through_the_engine(names, OBSERVERS, chosen.workers))
            print(
                f"together, start {number}     {one['steady']:7.0f} frames/s ({one['whole']:.0f} with the start of "
                f"{one['first_clip_after']:.1f} s until the first clip)",
                flush=True,
            )
        video = cv2.VideoCapture(str(names[0][0]))
        frames = np.stack([cv2.cvtColor(video.read()[1], cv2.COLOR_BGR2RGB) for _ in range(min(32, chosen.frames))])
        forward = forward_alone(frames, chosen.batch, (chosen.each - 1) / chosen.each)
        print(f"forward passes alone  {forward['together']:7.0f} frames/s", flush=True)
        for id in OBSERVERS:
            print(f"  {id:18s}  {forward[id + ' ms']:7.3f} ms a frame", flush=True)
        slower = min(decode["steady"], forward["together"])
        rates = sorted(one["steady"] for one in together)
        rates = [rates[0], rates[len(rates) // 2], rates[-1]]
        words = ", ".join(f"{rate:.0f} ({rate / slower:.2f})" for rate in rates)
        print(f"together, worst, median, best (share of the slower of decoding and forward)  {words}", flush=True)
        figures: dict[str, Any] = {"decode": decode, "together": together, "forward": forward}
        if not chosen.no_loop:
            figures["loop"] = loop = loop_of_one(names[0][1:3], names[0][0])
            print(f"loop of single frames {loop:7.1f} frames/s")
            print(f"together, median / loop of single frames   {rates[1] / loop:.1f}")
        if chosen.out:
            add_run(chosen.out, figures)


if __name__ == "__main__":
    main()
