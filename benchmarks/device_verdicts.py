"""Do a GPU and its compiled networks say of real clips what a CPU says?

    python benchmarks/device_verdicts.py CLIPS --group NAME [--out benchmarks/device_verdicts.json]

CLIPS holds `<scene>_<model>.mp4`, and where there are any, `<scene>_gt.mp4` as the reference of a scene, and `eye.json`
with the boxes of targets. They are evaluated on the CPU and on the GPU, and the outcome is stored under the group:

- the set `small` with its published weights, all questions. Compared are the verdict, the counts of look-aways, the
  diagnoses (all that is said, without numbers that are no counts), the label of every gate, and every score.
- DINOv2-B and Depth Anything V2 S of the set `paper` with random weights of full size (no published ones were at hand),
  and only the scores that rest on them; a third time with networks compiled as soon as possible. None of `small` is.

A score must be within the tolerance on its card: that of the set's networks, or that of two kinds of processor where no
network takes part. What no card promises (degrees of odometry) is listed without a bound. The script ends with 1 where
a statement, a label or a score is off. Cards count the groups of CARDS, so that only the others can show whether a
tolerance holds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "throughput"))

FILE = Path(__file__).with_suffix(".json")
DEVICES: dict[str, dict[str, str]] = {
    "CPU": {"REVISIT_DEVICE": "cpu"},
    "GPU": {"REVISIT_DEVICE": "cuda", "REVISIT_COMPILE": "off"},
    # Networks are compiled after 40 full batches: small ones, so that so few clips have enough of them.
    "GPU, compiled": {"REVISIT_DEVICE": "cuda", "REVISIT_COMPILE": "on", "REVISIT_BATCH": "2"},
}
RANDOM = ("dinov2-base", "depth-anything-v2-small")
OF_RANDOM = ("memo_identity", "memo_geo3d", "wr_integrity")
PHASES = (27, 54)  # thirds of 81 frames, as MemoBench's questions need them
CARDS = ("Real_024 and ZenGarden_001", "Real_007, Barnyard_001 and HongKong_001")
STATEMENTS = ("verdict", "look_away", "diagnosis", "funnel")


def write_manifest(clips: Path, path: Path, **more: object) -> Path:
    """All clips of a folder with their references and targets, and what else cases with references are given."""
    boxes = json.loads((clips / "eye.json").read_text(encoding="utf-8")) if (clips / "eye.json").is_file() else {}
    lines = []
    for clip in sorted(clips.glob("*.mp4")):
        scene, _, model = clip.stem.rpartition("_")
        if model == "gt":
            continue
        line: dict[str, object] = {"id": scene, "model": model, "video": str(clip)}
        if (clips / f"{scene}_gt.mp4").is_file():
            line |= {"reference": str(clips / f"{scene}_gt.mp4"), **more}
        label = boxes.get(f"{scene}/{model}", {})
        if "box" in label:
            line["target"] = {"name": label["name"], "box": label["box"]}
        lines.append(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def evaluate(manifest: Path, run: Path, variables: dict[str, str], workers: int, *flags: str) -> dict[str, Any]:
    """The summary of a run on one device, and its records by case and question."""
    command = [sys.executable, "-m", "revisit", "eval", str(manifest), "--root", "/", "--out", str(run), "--quiet"]
    cache, kernels = run.parent / f"cache-{run.name}", run.parent / f"kernels-{run.name}"
    env = {**os.environ, **variables, "REVISIT_CACHE": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(kernels)}
    done = subprocess.run(
        [*command, "--workers", str(workers), *flags], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not (run / "summary.json").is_file():
        sys.exit(f"{run.name}: {done.stderr[-3000:]}")
    if variables.get("REVISIT_COMPILE") == "on" and not any(kernels.rglob("*.py")):
        sys.exit(f"{run.name}: no network was compiled")
    records = map(json.loads, (run / "records.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        "summary": json.loads((run / "summary.json").read_text(encoding="utf-8")),
        "records": {(record["case"], record.get("metric") or record["gate"]): record for record in records},
    }


def statements(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Words, counts and yes or no below a value, with their places; sentences and fractions hold scores."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from statements(item, f"{path}/{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from statements(item, f"{path}/{number}")
    elif not isinstance(value, float):
        yield path, value


def tolerance_of(metric: str, set_name: str) -> float | None:
    """How far a score may move by the metric's card; None where it promises nothing."""
    from revisit.audit import cards
    from revisit.networks import numeric_spread

    spread = numeric_spread.measured_spread_by_set()
    row = spread[set_name]["metrics"].get(metric) if set_name in spread else None
    return numeric_spread.tolerance_of(row) if row else cards.score_tolerance(metric)


def compare(one: dict[str, Any], other: dict[str, Any], set_name: str) -> dict[str, Any]:
    """What differs between the runs of two devices."""
    said = [dict(statements({name: run["summary"].get(name) for name in STATEMENTS})) for run in (one, other)]
    different = [
        f"{place}: {said[0].get(place)!r} and {said[1].get(place)!r}"
        for place in sorted(said[0].keys() | said[1].keys())
        if said[0].get(place) != said[1].get(place)
    ]
    labels, moved = {"asked": 0, "different": 0}, dict[str, dict[str, Any]]()
    for key in one["records"].keys() | other["records"].keys():
        first, second = one["records"].get(key, {}), other["records"].get(key, {})
        answers = [(record.get("status"), record.get("label")) for record in (first, second)]
        labels["asked"] += 1
        labels["different"] += answers[0] != answers[1]
        if answers[0] != answers[1]:
            different.append(f"{key}: {answers[0]} and {answers[1]}")
        elif first.get("score") is not None and "metric" in first:
            row = moved.setdefault(
                key[1],
                {"clips": 0, "difference": 0.0, "from": first["score"], "to": first["score"],
                 "tolerance": tolerance_of(key[1], set_name)},
            )  # fmt: skip
            row["clips"] += 1
            row["from"], row["to"] = min(row["from"], first["score"]), max(row["to"], first["score"])
            row["difference"] = max(row["difference"], abs(first["score"] - second["score"]))
    off = [
        metric for metric, row in moved.items() if row["tolerance"] is not None and row["difference"] > row["tolerance"]
    ]
    return {"answers": labels, "said": len(said[0]), "different": different, "off": sorted(off), "scores": moved}


def compare_devices(manifest: Path, root: Path, set_name: str, devices: list[str], flags: list[str]) -> dict[str, Any]:
    """Both GPU runs of a set against the CPU's."""
    workers = max(1, (os.cpu_count() or 2) - 2)
    runs = {}
    for name in devices:
        folder = root / f"{set_name}-{name.replace(', ', '-')}"
        runs[name] = evaluate(manifest, folder, DEVICES[name], workers, "--set", set_name, *flags)
        print(f"{set_name}, {name}: {len(runs[name]['records'])} answers", flush=True)
    compared = {name: compare(runs[devices[0]], runs[name], set_name) for name in devices[1:]}
    for name, outcome in compared.items():
        print(
            f"{set_name}, {name} against {devices[0]}: {outcome['answers']}, {len(outcome['different'])} statements "
            f"differ, {len(outcome['off'])} of {len(outcome['scores'])} scores out of tolerance {outcome['off']}"
        )
        for line in outcome["different"]:
            print(f"  {line}")
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", type=Path)
    parser.add_argument("--group", required=True, help="what these clips are called in the outcome")
    parser.add_argument("--devices", nargs="+", default=list(DEVICES), choices=list(DEVICES))
    parser.add_argument("--sets", nargs="+", default=["small", "paper"], choices=["small", "paper"])
    parser.add_argument("--work", type=Path, help="keep the runs here")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    stored: dict[str, Any] = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
    outcome = stored.setdefault(options.group, {})
    outcome["clips"] = sorted(path.stem for path in options.clips.glob("*.mp4"))
    with tempfile.TemporaryDirectory() as scratch:
        root = options.work or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        for set_name in options.sets:
            manifest = write_manifest(options.clips.resolve(), root / f"{set_name}.jsonl")
            flags: list[str] = []
            if set_name == "paper":
                from full_size import write_checkpoints

                write_checkpoints(root / "weights", RANDOM)
                os.environ["REVISIT_WEIGHTS"] = str(root / "weights")
                flags = ["--metric", ",".join(OF_RANDOM)]
                manifest = write_manifest(options.clips.resolve(), root / "paper.jsonl", phases=PHASES)
            devices = options.devices if set_name == "paper" else [name for name in options.devices if "," not in name]
            outcome[set_name] = compare_devices(manifest, root, set_name, devices, flags)
            options.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if any(row["different"] or row["off"] for name in options.sets for row in outcome[name].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
