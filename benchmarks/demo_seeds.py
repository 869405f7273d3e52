"""Does the demo decide with other rooms, too? Each seed renders nine rooms of its own, which are then evaluated.

A seed holds if *perfect* is first in every question of memory, tied only with models that do not fail there, every
model that fails in a question is beaten by *perfect* in it, and only *frozen* does not look away and come back.

    python benchmarks/demo_seeds.py --seeds 1-10 --workers 16 --time 3

benchmarks/demo_seeds.json has the outcome of every seed, the rooms and their length, and the versions of metrics and
gates; outcomes of others are dropped when a seed is added, and seeds that have an outcome are not run again. Seconds
are of the processor, rendering and evaluating together; --all asks all metrics and writes the report, as `revisit demo`
does, else only those of the verdict. --time runs `revisit demo` itself, with an empty cache, on two cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import processor_time

from revisit.core import GATES, Gate, Metric, import_registering_modules
from revisit.core import METRICS as METRICS_BY_ID
from revisit.media.files import write_text_atomically
from revisit.worlds.demo import FPS, SCENES, SIZE, DemoScene, render_demo

FILE = Path(__file__).with_suffix(".json")
FAILS = {  # metric that answers a question -> the models that fail in it
    "target_reappearance": ("forgets", "resets"),
    "target_identity": ("drifts", "resets"),
    "return_consistency": ("drifts", "forgets", "resets"),
    "event_outcome": ("drifts", "forgets", "resets"),
    "camera_standstill": ("frozen",),
}
METRICS = [*FAILS]


@dataclass(frozen=True)
class Rooms:
    """The demo's rooms, or with another camera script or size, to try these."""

    script: str = ""
    size: tuple[int, int] = SIZE

    @property
    def scenes(self) -> list[DemoScene]:
        return [replace(scene, script=self.script) if self.script else scene for scene in SCENES]


def description(rooms: Rooms = Rooms()) -> dict[str, Any]:
    """What is rendered for every seed: outcomes of other rooms say nothing about these."""
    return {
        "scenes": {scene.name: scene.script for scene in rooms.scenes},
        "size": list(rooms.size),
        "fps": FPS,
        "fails": {metric: list(models) for metric, models in FAILS.items()},
        "versions": versions(),
    }


def versions() -> dict[str, int]:
    """Version of each metric of the verdict and of each gate before it: outcomes of others say nothing about these."""
    import_registering_modules()
    gates = {gate for metric in METRICS for gate in METRICS_BY_ID[metric].gates}
    checks: list[Metric | Gate] = [*(METRICS_BY_ID[id] for id in METRICS), *(GATES[id] for id in sorted(gates))]
    return {check.id: check.version for check in checks}


def load(path: Path = FILE, rooms: Rooms = Rooms()) -> dict[str, Any]:
    """The outcomes of the present rooms, by seed."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return stored if stored.get("rooms") == description(rooms) else {"rooms": description(rooms), "seeds": {}}


def store(row: Mapping[str, Any], path: Path = FILE, rooms: Rooms = Rooms()) -> None:
    """Add the outcome of a seed to a file."""
    outcomes = load(path, rooms)
    seeds = {**outcomes["seeds"], str(row["seed"]): {key: row[key] for key in row if key != "seed"}}
    outcomes["seeds"] = dict(sorted(seeds.items(), key=lambda item: int(item[0])))
    write_text_atomically(path, json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")


def problems(verdict: Mapping[str, Any]) -> list[str]:
    """What a verdict of the demo lacks, as sentences."""
    found = []
    counts = verdict["look_away"]["models"]
    if (still := [model for model, count in counts.items() if count["returned"] < count["asked"]]) != ["frozen"]:
        found.append(f"not only frozen does not come back: {still}")
    for answer in verdict["answers"]:
        ask, fails = answer["question"]["ask"], FAILS.get(answer["metric"], ())
        if not answer["metric"]:
            if not answer["sentence"].startswith("see “"):
                found.append(f"{ask} {answer['sentence']}")
            continue
        beaten = {pair["behind"] for pair in answer["pairs"] if pair["decided"] and pair["ahead"] == "perfect"}
        ranked = {place["model"] for place in answer["places"]}
        if "perfect" not in answer["best"]:
            found.append(f"{ask} perfect is not first: {answer['sentence']}")
        if missing := [model for model in fails if model in ranked and model not in beaten]:
            found.append(f"{ask} perfect does not beat {', '.join(missing)}: {answer['sentence']}")
        if unscored := [model for model in fails if model not in ranked]:
            found.append(f"{ask} {', '.join(unscored)} cannot be ranked: {answer['sentence']}")
    return found


def wrong(outcomes: Mapping[str, Any]) -> list[str]:
    """Problems of seeds that are more than a model with too few decided clips."""
    return [line for row in outcomes["seeds"].values() for line in row["problems"] if " cannot be ranked: " not in line]


def measure(seed: int, everything: bool, workers: int | None = None, rooms: Rooms = Rooms()) -> dict[str, Any]:
    """Render and evaluate the rooms of a seed: seconds, problems, and what was said."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wall, cpu = time.monotonic(), processor_time.so_far()
        render_demo(folder / "videos", scenes=rooms.scenes, size=rooms.size, seed=seed, workers=workers)
        rendered = processor_time.so_far()
        words = ["eval", folder / "videos", "--suite", "folder", "--set", "lite", "--out", folder / "run"]
        words += [] if workers is None else ["--workers", workers]
        words += [] if everything else ["--no-report", *(word for id in METRICS for word in ("-m", id))]
        done = _revisit(words, folder / "cache")
        if done.returncode:
            return {"seed": seed, "problems": [done.stderr[-400:]]}
        summary = json.loads((folder / "run/summary.json").read_text(encoding="utf-8"))
        verdict = summary["verdict"]
        return {
            "seed": seed,
            "problems": problems(verdict),
            "cpu_seconds": round(processor_time.so_far() - cpu, 1),
            "rendering": round(rendered - cpu, 1),
            "wall_seconds": round(time.monotonic() - wall, 1),
            "sentences": {answer["question"]["ask"]: answer["sentence"] for answer in verdict["answers"]},
            "unscored": _unscored(folder / "run/records.jsonl"),
        }


def time_demo(rounds: int, cores: int) -> dict[str, Any]:
    """Wall and processor seconds of `revisit demo` in an empty folder with an empty cache, on so many cores."""
    rows = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wall, cpu = time.monotonic(), processor_time.so_far()
            done = _revisit(["demo", "--out", folder / "demo"], folder / "cache", cores)
            if done.returncode:
                raise SystemExit(done.stderr)
            rows.append({"wall": round(time.monotonic() - wall, 1), "cpu": round(processor_time.so_far() - cpu, 1)})
    return {"machine": platform.machine(), "cores": cores, "rounds": rows}


def _revisit(words: Sequence[object], cache: Path, cores: int = 0) -> subprocess.CompletedProcess[str]:
    """A finished command with an evidence cache of its own, on so many of the cores that this process may use."""
    own = sorted(os.sched_getaffinity(0))
    if cores:
        os.sched_setaffinity(0, own[:cores])  # commands that this process starts inherit it
    try:
        return subprocess.run(
            [sys.executable, "-m", "revisit", *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "REVISIT_CACHE": str(cache)},
            check=False,
        )
    finally:
        os.sched_setaffinity(0, own)


def _unscored(records: Path) -> dict[str, str]:
    """Clip and metric -> why it has no score, for all models but *frozen*."""
    rows = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    return {
        f"{row['case']} {row['metric']}": (row.get("reason") or {}).get("sentence") or row["status"]
        for row in rows
        if row.get("metric") in METRICS and row["status"] != "scored" and "@frozen" not in row["case"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-2", help="first and last, such as 1-10; 0 is the demo itself; none: ''")
    parser.add_argument("--all", action="store_true", help="all metrics, and the report")
    parser.add_argument("--again", action="store_true", help="also the seeds that have an outcome")
    parser.add_argument("--workers", type=int, default=1, help="cores to use; seeds run side by side")
    parser.add_argument("--time", type=int, default=0, metavar="ROUNDS", help="then time `revisit demo` on two cores")
    parser.add_argument("--out", type=Path, default=FILE, help="file to which outcomes are added")
    parser.add_argument("--script", default="", help="another camera script of all rooms, to try it; needs --out")
    parser.add_argument("--size", default="", help="another size of all clips, such as 108x192; needs --out")
    options = parser.parse_args()
    size = tuple(map(int, options.size.split("x"))) if options.size else SIZE
    rooms = Rooms(options.script, (size[0], size[1]))
    if rooms != Rooms() and options.out == FILE:
        parser.error("--script and --size try other rooms than the demo's: name another file with --out")
    stored = {} if options.again else load(options.out, rooms)["seeds"]
    seeds = [seed for seed in seed_range(options.seeds) if str(seed) not in stored]
    side_by_side = min(options.workers, len(seeds))
    if side_by_side > 1:
        each = max(1, -(-options.workers // side_by_side))
        with ProcessPoolExecutor(side_by_side, multiprocessing.get_context("spawn")) as pool:
            jobs = [pool.submit(measure, seed, options.all, each, rooms) for seed in seeds]
            for done in as_completed(jobs):
                _keep(done.result(), options.out, rooms)
    else:
        for seed in seeds:
            _keep(measure(seed, options.all, rooms=rooms), options.out, rooms)
    if options.time:
        outcomes = load(options.out)
        outcomes["time"] = time_demo(options.time, cores=2)
        write_text_atomically(options.out, json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")
    print(sentence(load(options.out, rooms)))


def seed_range(text: str) -> range:
    """The seeds from the first to the last, such as 1-10."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1) if first else range(0)


def _keep(row: Mapping[str, Any], path: Path, rooms: Rooms) -> None:
    told = "; ".join(row["problems"]) or "holds"
    print(f"seed {row['seed']}: {told} ({row.get('cpu_seconds')} s of the processor)", flush=True)
    store(row, path, rooms)


def sentence(outcomes: Mapping[str, Any]) -> str:
    """How many seeds hold, and the seconds that the demo takes."""
    seeds = [row for seed, row in outcomes["seeds"].items() if seed != "0"]
    text = f"{sum(not row['problems'] for row in seeds)} of {len(seeds)} other seeds hold"
    if any(row["problems"] for row in seeds) and not wrong(outcomes):
        text += "; in the others no statement is wrong, but a model that fails has too few clips that are decided"
    if timed := outcomes.get("time"):
        wall, cpu = (sorted(row[name] for row in timed["rounds"]) for name in ("wall", "cpu"))
        times = (
            f"{wall[0]:.0f} to {wall[-1]:.0f} s, median {median(wall):.0f} s," if len(wall) > 1 else f"{wall[0]:.0f} s"
        )
        text += (
            f"; `revisit demo` takes {times} on {timed['cores']} quiet cores "
            f"({timed['machine']}; {median(cpu):.0f} s of the processor)"
        )
    return text


if __name__ == "__main__":
    main()
