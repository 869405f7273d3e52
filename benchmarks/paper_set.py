"""What the set `paper` takes on a GPU: seconds for a clip and memory of each of its networks, and of a judge beside it.

Every observer of the set that has a network looks at the frames that it would choose of a clip of 81 frames at 480p
(832 x 480, in memory, so that nothing is decoded). Architectures have their full size and random weights, which take
the same time as the published ones. Observers of single frames are given batches of 64, as a GPU gets them from
several clips; those that follow a clip are given one clip. The first pass, which loads, is left out; of three more the
median counts. Then a vision-language model of a stated size answers questions about eight frames of a clip through an
OpenAI-compatible server on the same GPU: alone, and while networks work beside it.

    python benchmarks/paper_set.py [--judge 7B] [--only paper.depth,paper.masks] [--out benchmarks/paper_set.json]
    python benchmarks/paper_set.py --page         # the stored figures as the tables of docs/scale.md
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revisit.core import Observer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "throughput")]
FILE = Path(__file__).with_suffix(".json")
PAGE, MARK = Path(__file__).parents[1] / "docs" / "scale.md", "<!-- benchmarks/paper_set.py --page -->"
WIDTH, HEIGHT, FPS, BATCH, REPEATS = 832, 480, 16.0, 64, 3
LONG = 10.0  # seconds of measured calls after which no further one is made
PORT = 8137
# Benchmark -> its suite, and clips and frames of one model as published; frames of MemoBench and MIND are assumed.
SIZES = {
    "WRBench": ("wrbench", 500, 81),
    "MemoBench": ("memobench", 360, 81),
    "MIND": ("mind", 250, 97),
    "MBench-A": ("mbench", 547, 401),
}


def input_values() -> dict[str, Any]:
    """What a case would tell the observers, by the name of the input."""
    from revisit.core import Target

    target = Target("cup", (0.4, 0.4, 0.6, 0.7))
    return {
        "phases": (27, 54), "target": target, "target_or_name": "cup", "annotations": {"segments": ["a cup"]},
        "prompt": "a cup on a table", "condition": "A,D", "model": "model",
    }  # fmt: skip


def observers_of_set() -> list[Observer]:
    """Observers of the set that have networks, each once."""
    from revisit.observers.sets import load_roles

    by_id = {observer.id: observer for observer in load_roles("paper").values()}
    return [by_id[id] for id in sorted(by_id) if by_id[id].weights]


def median_seconds(call: Callable[[], object]) -> float:
    """Of several calls, after one that loads and one that warms up; of long ones fewer."""
    import torch

    def synchronize() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    call()
    call()
    spent: list[float] = []
    while len(spent) < REPEATS and sum(spent) < LONG:
        synchronize()
        started = time.perf_counter()
        call()
        synchronize()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)


def measure(observer: Observer, clip: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Frames that an observer looks at, seconds for a clip, and the largest memory on the device, in GB."""
    import torch

    values = input_values()
    inputs = [values.get(name.removesuffix("?")) for name in observer.inputs]
    numbers = observer.wanted_frame_numbers(len(clip), FPS, inputs, observer.params)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    if observer.kind == "frame":
        call = batch_call(observer, clip, truth, numbers, tuple(inputs))
        seconds = median_seconds(call) / BATCH * len(numbers)
    else:
        named = {
            name.removesuffix("?").rpartition(".")[2].removesuffix("_or_name"): value
            for name, value in zip(observer.inputs, inputs, strict=True)
            if value is not None
        }
        reference = {"reference": truth} if observer.pairs else {}
        seconds = median_seconds(lambda: observer(clip, fps=FPS, **reference, **named))
    peak = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
    return {"frames": len(numbers), "seconds": seconds, "gigabytes": peak, "batched": observer.kind == "frame"}


def batch_call(
    observer: Observer, clip: np.ndarray, truth: np.ndarray, numbers: np.ndarray, inputs: tuple[Any, ...]
) -> Callable[[], object]:
    """A call of an observer of single frames with a full batch that lies on the device."""
    import torch

    from revisit.core import Batch, Frame
    from revisit.core.evidence import allow_rows_of_several_clips
    from revisit.core.observer import prepare_frame
    from revisit.networks import runtime

    rows = []
    for number in numbers[np.arange(BATCH) % len(numbers)]:
        frame, other = (Frame(int(number), number / FPS, rgb[number], "") for rgb in (clip, truth))
        rows.append(prepare_frame(observer, observer.params, frame, other if observer.pairs else None))

    def on_device(pictures: list[np.ndarray]) -> Any:
        return torch.from_numpy(np.stack(pictures)).to(runtime.device())

    index = np.array([row.index for row in rows])
    others = [row.reference for row in rows if row.reference is not None]
    batch = Batch(
        index, index / FPS, on_device([row.rgb for row in rows]), on_device(others) if others else (),
        index if others else np.zeros(0, np.int64), [inputs] * BATCH,
    )  # fmt: skip

    def call() -> object:
        with allow_rows_of_several_clips():
            return observer.fn(batch, **observer.params)

    return call


def ask(jpegs: list[bytes]) -> dict[str, Any]:
    """One question about some pictures, as a judge asks it."""
    pictures = [
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()}}
        for jpeg in jpegs
    ]
    words = {"type": "text", "text": "Is the object on the table at the end the one that was there at the start? " * 3}
    body = {"model": "random", "max_tokens": 16, "messages": [{"role": "user", "content": [*pictures, words]}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return dict(json.load(reply)["usage"])


def questions_a_second(jpegs: list[bytes], seconds: float) -> tuple[float, dict[str, Any]]:
    """How many questions the server answers, two asked at a time, and the tokens of one."""
    until, counts, usage = time.perf_counter() + seconds, [0, 0], {}

    def keep_asking(which: int) -> None:
        while time.perf_counter() < until:
            usage.update(ask(jpegs))
            counts[which] += 1

    started = time.perf_counter()
    threads = [threading.Thread(target=keep_asking, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started), usage


def judge_beside_networks(size: str, call: Callable[[], object], jpegs: list[bytes], seconds: float) -> dict[str, Any]:
    """Rates of a judge and of a network, each alone and both at once."""
    import torch

    server = Path(__file__).parent / "throughput" / "vision_language_server.py"
    command = [sys.executable, str(server), "--size", size, "--port", str(PORT)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = process.stdout.readline().strip()
        if not told:
            raise SystemExit("the server did not start")
        ask(jpegs)
        alone, usage = questions_a_second(jpegs, seconds)
        batches, stop = [0], threading.Event()

        def keep_working() -> None:
            while not stop.is_set():
                call()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                batches[0] += 1

        network_alone = BATCH / median_seconds(call)
        worker = threading.Thread(target=keep_working)
        worker.start()
        started = time.perf_counter()
        beside, _ = questions_a_second(jpegs, seconds)
        rate = batches[0] * BATCH / (time.perf_counter() - started)
        stop.set()
        worker.join()
    finally:
        process.kill()
        process.wait()
    return {
        "size": size, "server": told, "questions_a_second": alone, "questions_a_second_beside": beside,
        "frames_a_second": network_alone, "frames_a_second_beside": rate, **usage,
    }  # fmt: skip


def jpegs_of(clip: np.ndarray, count: int = 8) -> list[bytes]:
    """Some frames as JPEG files."""
    import cv2

    numbers = np.linspace(0, len(clip) - 1, count).round().astype(int)
    return [cv2.imencode(".jpg", clip[number][..., ::-1])[1].tobytes() for number in numbers]


def run(chosen: argparse.Namespace, weights: Path) -> dict[str, Any]:
    """All measurements; what cannot run is stored with the reason."""
    from full_size import CHECKPOINTS, write_checkpoints
    from monitor_overhead import look_away_and_back

    chosen_observers = [one for one in observers_of_set() if not chosen.only or one.id in chosen.only]
    needed = {weight for one in chosen_observers for weight in one.weights}
    write_checkpoints(weights, sorted(needed & CHECKPOINTS.keys()))
    clip, truth = (look_away_and_back(seed, chosen.frames, WIDTH, HEIGHT) for seed in (0, 1))
    rows: dict[str, Any] = {}
    for observer in chosen_observers:
        row: dict[str, Any] = {"weights": list(observer.weights)}
        try:
            row |= measure(observer, clip, truth)
            print(
                f"{observer.id:24} {row['seconds']:8.3f} s {row['frames']:4} frames {row['gigabytes']:6.1f} GB",
                flush=True,
            )
        except Exception as error:  # of networks without a checkpoint here, and of libraries that are not installed
            row["left_out"] = " ".join(str(error).split())[:160] or type(error).__name__
            print(f"{observer.id:24} left out: {row['left_out']}", flush=True)
        rows[observer.id] = row
        release_networks()
    figures = {"device": device_name(), "frames": chosen.frames, "size": [WIDTH, HEIGHT], "observers": rows}
    if chosen.judge:
        by_id = {one.id: one for one in observers_of_set()}
        depth = by_id["paper.depth"]
        write_checkpoints(weights, depth.weights)
        call = batch_call(depth, clip, truth, np.arange(len(clip)), ((27, 54),))
        figures["judge"] = judge_beside_networks(chosen.judge, call, jpegs_of(clip), chosen.seconds)
        print(json.dumps(figures["judge"]), flush=True)
    return figures


def suite_seconds(suite: str, frames: int, figures: dict[str, Any]) -> dict[str, float]:
    """Seconds for one clip of so many frames, by observer, of those that the metrics of a suite need."""
    from revisit.core import METRICS, SUITES
    from revisit.engine.dependencies import ObserverSet, observed_kinds_needed_by
    from revisit.observers.sets import load_roles

    observers = ObserverSet("paper", load_roles("paper"))
    kinds = {kind for metric in SUITES[suite].metrics() for kind in observed_kinds_needed_by(METRICS[metric])}
    makers = {maker.id: maker for maker in map(observers.maker, kinds) if maker is not None and maker.weights}
    values, seconds = input_values(), {}
    for id, maker in sorted(makers.items()):
        row = figures["observers"].get(id, {})
        if not row.get("frames"):
            continue
        inputs = [values.get(name.removesuffix("?")) for name in maker.inputs]
        wanted = len(maker.wanted_frame_numbers(frames, FPS, inputs, maker.params))
        seconds[id] = row["seconds"] / row["frames"] * wanted
    return seconds


def tables(figures: dict[str, Any]) -> str:
    """What docs/scale.md shows of the stored figures."""
    rows = {id: row for id, row in figures["observers"].items() if row.get("frames")}
    whole = sum(row["seconds"] for row in rows.values())
    lines = ["| observer | networks | frames of 81 | s a clip | share | GB |", "|---|---|--:|--:|--:|--:|"]
    for id, row in sorted(rows.items(), key=lambda item: -item[1]["seconds"]):
        weights = ", ".join(row["weights"])
        lines.append(
            f"| `{id}` | {weights} | {row['frames']} | {row['seconds']:.3f} | {row['seconds'] / whole:.1%} | "
            f"{row['gigabytes']:.1f} |"
        )
    lines += [
        "",
        "| benchmark, one model | clips | frames each | s a clip | hours, one GPU | hours, eight | most of it |",
    ]
    lines += ["|---|--:|--:|--:|--:|--:|---|"]
    for name, (suite, clips, frames) in SIZES.items():
        seconds = suite_seconds(suite, frames, figures)
        total = sum(seconds.values())
        most = max(seconds, key=lambda id: seconds[id])
        hours = clips * total / 3600
        lines.append(f"| {name} | {clips} | {frames} | {total:.1f} | {hours:.2f} | {hours / 8:.2f} | `{most}` |")
    if judge := figures.get("judge"):
        lines += ["", (
            f"A vision-language model of {judge['size']} ({judge['server'].partition(' weights')[0]} weights) behind "
            f"an OpenAI-compatible server on the same GPU, {judge['prompt_tokens']:,} tokens in and "
            f"{judge['completion_tokens']} out for a question about eight frames: "
            f"{judge['questions_a_second']:.2f} questions a second alone, {judge['questions_a_second_beside']:.2f} "
            f"while Depth Anything works beside it, which then manages {judge['frames_a_second_beside']:.0f} in the "
            f"place of {judge['frames_a_second']:.0f} frames a second."
        )]  # fmt: skip
    return "\n".join(lines)


def write_page() -> None:
    """Put the tables into docs/scale.md."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    tail = rest.partition(MARK)[2]
    figures = json.loads(FILE.read_text(encoding="utf-8"))
    PAGE.write_text(f"{head}{MARK}\n{tables(figures)}\n{MARK}{tail}", encoding="utf-8")


def release_networks() -> None:
    """Forget the networks, so that the memory of the next is its own."""
    import gc

    import torch

    from revisit.networks import runtime

    runtime.forget_cached_networks()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def device_name() -> str:
    """The GPU, or that there is none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=81)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--judge", choices=("7B", "3B", "tiny"))
    parser.add_argument("--seconds", type=float, default=12.0, help="for which questions are asked, each time")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--page", action="store_true", help="only write the stored figures into docs/scale.md")
    chosen = parser.parse_args()
    if chosen.page:
        write_page()
        return
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["REVISIT_WEIGHTS"] = scratch
        figures = run(chosen, Path(scratch))
    chosen.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
