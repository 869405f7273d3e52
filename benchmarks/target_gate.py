"""What the target gate costs per clip: the layout's follower alone, and with the network that looks.

    python benchmarks/target_gate.py [CLIP.mp4 X0 Y0 X1 Y1] [--device cuda] [--times 3] [--before OLD/src]

The box of the target is in fractions of the first frame. Without a clip, one of 81 frames of 832x480 is rendered, in
which the camera looks away from a vase and comes back. Both observers run on the same clip, decoding included. Seconds
are of the processor (one core, if OMP_NUM_THREADS=1) and of the clock, the least of several runs; the first run, which
loads the network, is not counted. With an older version, `revisit eval` of the sets `lite` and `small` runs in both
versions in turn, with an empty cache each time: seconds of the processor of all its processes, the least of the runs.
What is measured goes to benchmarks/target/cost.json, under the name of the device; docs/make_target_gate.py reads it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

Box = tuple[float, float, float, float]
THIS = Path(__file__).resolve().parents[1] / "src"
OUT = Path(__file__).parent / "target" / "cost.json"
SETS = ("lite", "small")


def rendered(folder: Path) -> tuple[Path, Box]:
    """A clip whose target leaves the view and comes back, and the target's box."""
    from revisit.media import encode_mp4
    from revisit.worlds.film import play
    from revisit.worlds.places import make_world
    from revisit.worlds.state import TARGET

    film = play(make_world(7, "room", "vase", block=False), "yaw", "none", (480, 832), frames=81, fps=24)
    shots = [film.truth(frame) for frame in range(len(film))]
    encode_mp4(folder / "rendered.mp4", [shot.rgb for shot in shots], fps=film.fps)
    rows, columns = np.nonzero(shots[0].mask == TARGET)
    height, width = film.size
    left, right = float(columns.min() / width), float((columns.max() + 1) / width)
    top, bottom = float(rows.min() / height), float((rows.max() + 1) / height)
    return folder / "rendered.mp4", (left, top, right, bottom)


def measure(clip: Path, box: Box, times: int) -> dict[str, Any]:
    """Print a line per observer, and return them."""
    import revisit
    from revisit.core import OBSERVERS
    from revisit.networks import runtime

    print(f"{clip.name} on {runtime.describe_device()}")
    print(f"{'observer':<18}{'looks':>7}{'processor, s':>14}{'clock, s':>10}{'ms a look':>11}")
    rows: dict[str, Any] = {}
    for observer in ("lite.target", "small.looks"):
        spent = []
        for _ in range(times + 1):
            processor, clock = time.process_time(), time.perf_counter()
            record = revisit.observe(clip, observer, target=box)
            spent.append((time.process_time() - processor, time.perf_counter() - clock))
        cpu, wall = (min(column) for column in zip(*spent[1:], strict=True))
        count = len(record.index)
        print(f"{observer:<18}{count:>7}{cpu:>14.2f}{wall:>10.2f}{1000 * wall / count:>11.1f}")
        rows[observer] = {
            "version": OBSERVERS[observer].version, "looks": count, "processor": round(cpu, 2), "clock": round(wall, 2)
        }  # fmt: skip
    return {"machine": platform.machine(), "by": runtime.describe_device(), "observers": rows}


def command_seconds(source: Path, chosen_set: str, clip: Path, box: Box) -> float:
    """Seconds of the processor of `revisit eval` of one clip with an empty cache, all processes together."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        line = {"id": "clip", "model": "model", "video": str(clip), "target": {"name": "vase", "box": list(box)}}
        (root / "clip.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        weights = Path(os.environ.get("REVISIT_CACHE") or "~/.cache/revisit").expanduser() / "weights"
        (root / "cache").mkdir()
        (root / "cache" / "weights").symlink_to(weights)
        env = {**os.environ, "PYTHONPATH": str(source), "REVISIT_CACHE": str(root / "cache")}
        command = [sys.executable, "-m", "revisit", "eval", str(root / "clip.jsonl"), "--set", chosen_set]
        options = ["--root", "/", "--quiet", "--workers", "1", "--out", str(root / "run")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, *options], env=env, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not (root / "run/summary.json").is_file():
            raise SystemExit(f"`revisit eval` failed: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_commands(before: Path, clip: Path, box: Box, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Set -> version -> seconds of each round, both versions in turn."""
    seconds: dict[str, dict[str, list[float]]] = {}
    for chosen_set in SETS:
        seconds[chosen_set] = {"before": [], "now": []}
        for turn in range(rounds):
            versions = [("before", before), ("now", THIS)]
            for name, source in versions if turn % 2 == 0 else versions[::-1]:
                seconds[chosen_set][name].append(round(command_seconds(source, chosen_set, clip, box), 2))
            print(f"{chosen_set}, round {turn + 1}: {seconds[chosen_set]}", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?")
    parser.add_argument("box", type=float, nargs="*")
    parser.add_argument("--device", help="cpu or cuda; by default what is there")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--before", type=Path, help="sources of an older version, to be run in turn with this one")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.clip is not None and len(given.box) != 4:
        parser.error("a clip needs the box of its target: X0 Y0 X1 Y1, in fractions of the first frame")
    if given.device:
        os.environ["REVISIT_DEVICE"] = given.device
    with tempfile.TemporaryDirectory() as folder:
        clip, box = (given.clip, tuple(given.box)) if given.clip else rendered(Path(folder))
        outcome = measure(clip, box, given.times)
        if given.before:
            outcome["command"] = compare_commands(given.before.resolve(), clip.resolve(), box, given.times)
    stored = json.loads(given.out.read_text(encoding="utf-8")) if given.out.is_file() else {}
    stored["cuda" if "cuda" in outcome["by"] else "cpu"] = outcome
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
