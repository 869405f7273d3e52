"""Does the demo decide with other rooms, too? Each seed renders nine rooms of its own, which are then evaluated.

A seed holds if *perfect* is first in every question of memory, tied only with models that do not fail there, every
model that fails in a question is beaten by *perfect* in it, and only *frozen* does not look away and come back.

    python benchmarks/demo_seeds.py --seeds 1-10

benchmarks/demo_seeds.json has the outcome of every seed, and the rooms and their length; outcomes of other rooms are
dropped when a seed is added. Seconds are of the processor, rendering and evaluating together; --all asks all metrics
and writes the report, as `revisit demo` does, else only those of the verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from revisit.media.files import write_text
from revisit.worlds.demo import FAILS, FPS, SCENES, SIZE, render_demo

FILE = Path(__file__).with_suffix(".json")
METRICS = [*FAILS]


def rooms() -> dict[str, Any]:
    """What is rendered for every seed: outcomes of other rooms say nothing about these."""
    return {
        "scenes": {scene.name: scene.script for scene in SCENES},
        "size": list(SIZE),
        "fps": FPS,
        "fails": {metric: list(models) for metric, models in FAILS.items()},
    }


def load(path: Path = FILE) -> dict[str, Any]:
    """The outcomes of the present rooms, by seed."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return stored if stored.get("rooms") == rooms() else {"rooms": rooms(), "seeds": {}}


def store(row: Mapping[str, Any], path: Path = FILE) -> None:
    """Add the outcome of a seed to a file."""
    outcomes = load(path)
    seeds = {**outcomes["seeds"], str(row["seed"]): {key: row[key] for key in row if key != "seed"}}
    outcomes["seeds"] = dict(sorted(seeds.items(), key=lambda item: int(item[0])))
    write_text(path, json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")


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


def measure(seed: int, folder: Path, everything: bool) -> dict[str, Any]:
    """Render and evaluate the rooms of a seed: seconds and problems."""
    wall, cpu = time.monotonic(), _cpu()
    render_demo(folder / "videos", seed=seed)
    rendered = _cpu()
    fewer = [] if everything else ["--no-report", *(word for id in METRICS for word in ("-m", id))]
    words = ["eval", str(folder / "videos"), "--suite", "folder", "--set", "lite", "--out", str(folder / "run"), *fewer]
    environment = {**os.environ, "REVISIT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [Path(sys.executable).with_name("revisit"), *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        return {"seed": seed, "problems": [done.stderr[-400:]]}
    summary = json.loads((folder / "run/summary.json").read_text(encoding="utf-8"))
    return {
        "seed": seed,
        "problems": problems(summary["verdict"]),
        "cpu_seconds": round(_cpu() - cpu, 1),
        "rendering": round(rendered - cpu, 1),
        "wall_seconds": round(time.monotonic() - wall, 1),
        "sentences": {answer["question"]["ask"]: answer["sentence"] for answer in summary["verdict"]["answers"]},
    }


def _cpu() -> float:
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-2", help="first and last, such as 1-10; 0 is the demo itself")
    parser.add_argument("--all", action="store_true", help="all metrics, and the report")
    parser.add_argument("--out", type=Path, default=FILE, help="file to which outcomes are added")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    rows = []
    for seed in range(int(first), int(last or first) + 1):
        with tempfile.TemporaryDirectory() as folder:
            row = measure(seed, Path(folder), options.all)
        rows.append(row)
        print(
            f"seed {seed}: {'; '.join(row['problems']) or 'holds'} ({row.get('cpu_seconds')} s of the processor)",
            flush=True,
        )
        store(row, options.out)
    seconds = sorted(row["cpu_seconds"] for row in rows if "cpu_seconds" in row)
    print(f"{sum(not row['problems'] for row in rows)} of {len(rows)} seeds hold; seconds of the processor: best "
          f"{seconds[0]}, median {median(seconds)}, worst {seconds[-1]}")  # fmt: skip


if __name__ == "__main__":
    main()
