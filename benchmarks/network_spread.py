"""How far a score moves with the device, the batch size and the precision: the same clips, scored again and again.

    python benchmarks/network_spread.py score WORLDS --set small --settings cpu --out scores.json
    python benchmarks/network_spread.py score WORLDS --set small --settings gpu --out scores.json
    python benchmarks/network_spread.py cards scores.json ... --out src/revisit/networks/numeric_spread.json
    python benchmarks/network_spread.py real benchmarks/device_verdicts.json src/revisit/networks/numeric_spread.json

WORLDS was written by `revisit world render --suite all`; beside the others may stand real clips, a folder `films` of
them and a folder `people` in MBench's layout, because nothing rendered has shots or faces. Rendered mirror tests of
MIND repeat exactly on the way back, and would all score 0: `drift WORLDS` spoils them, once, before any scoring.

Every metric that rests on a network is scored on the CPU and on the GPU, frame by frame and in batches of 64, in
float32 and in the default precision (on a CPU both are the same), each time with an evidence cache of its own. The
scores of two machines may lie in one file or in several; `cards` puts them together, refuses those of different
weights, and keeps for every metric the largest difference of a clip's score to that on the CPU, frame by frame. `real`
adds the real clips that benchmarks/device_verdicts.py scored on both devices.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revisit.core import Suite
    from revisit.engine.dependencies import ObserverSet

FRAME_BY_FRAME, BATCHES = {"REVISIT_BATCH": "1"}, {"REVISIT_BATCH": "64"}
CPU = {"REVISIT_DEVICE": "cpu", "REVISIT_NETWORKS": "host"}
GPU = {"REVISIT_DEVICE": "cuda", "REVISIT_NETWORKS": "host"}
EXACT = {"REVISIT_PRECISION": "float32"}
SETTINGS: dict[str, dict[str, str]] = {
    "cpu float32 batch 1": CPU | FRAME_BY_FRAME,
    "cpu float32 batch 16": {"REVISIT_DEVICE": "cpu", "REVISIT_NETWORKS": "workers"},  # as a CPU runs by default
    "cpu float32 batch 64": CPU | BATCHES,
    "gpu float32 batch 1": GPU | EXACT | FRAME_BY_FRAME,
    "gpu float32 batch 64": GPU | EXACT | BATCHES,
    "gpu default batch 1": GPU | FRAME_BY_FRAME,
    "gpu default batch 64": GPU | BATCHES,
}
BASE = "cpu float32 batch 1"
REAL = "gpu default"  # and the name of a group of real clips
DATASETS: dict[str, tuple[str, str, dict[str, str]]] = {
    "folder": ("folder", "folder", {}),
    "films": ("films", "folder", {}),
    "memobench": ("memobench/output", "memobench", {"gt": "memobench/data", "targets": "memobench/targets.json"}),
    "wrbench": (
        "wrbench/manifest.json", "wrbench", {"poses": "wrbench/poses", "targets": "wrbench/targets.json"},
    ),
    "mbench": ("mbench", "mbench", {}),
    "mbench-t": ("mbench-t", "mbench", {}),
    "people": ("people", "mbench", {}),
    "mind": ("mind/predictions", "mind", {"gt": "mind/MIND-Data"}),
}  # fmt: skip


def with_networks(suite: Suite, observers: ObserverSet) -> list[str]:
    """Metrics of a suite that rest on evidence which a network of the set makes."""
    from revisit.core import METRICS
    from revisit.engine.dependencies import observed_kinds_needed_by

    chosen = []
    for id in suite.metrics():
        makers = [observers.maker(kind) for kind in observed_kinds_needed_by(METRICS[id])]
        if any(maker is not None and maker.weights for maker in makers):
            chosen.append(id)
    return chosen


def score(asked: argparse.Namespace) -> None:
    """Score all datasets in each of the settings, and write after each, so that a run cut short leaves something."""
    known = json.loads(asked.out.read_text()) if asked.out.is_file() else {"set": asked.set, "weights": asked.weights}
    if (known["set"], known["weights"]) != (asked.set, asked.weights):
        raise SystemExit(f"{asked.out} holds scores of the set {known['set']} with {known['weights']} weights")
    for name, variables in SETTINGS.items():
        if name not in asked.settings and not any(word in name for word in set(asked.settings) - SETTINGS.keys()):
            continue
        os.environ.update(variables)
        print(f"{name}:", flush=True)
        found = known.setdefault("settings", {}).setdefault(name, {"scores": {}, "protocols": {}})
        found["device"] = device_name(variables["REVISIT_DEVICE"])
        with tempfile.TemporaryDirectory() as scratch:
            for dataset in DATASETS:
                if (asked.worlds / DATASETS[dataset][0]).exists() and (not asked.datasets or dataset in asked.datasets):
                    score_dataset(asked, dataset, Path(scratch), found)
                    asked.out.write_text(json.dumps(known, indent=1) + "\n")
        for variable in variables:
            del os.environ[variable]


def score_dataset(asked: argparse.Namespace, name: str, scratch: Path, found: dict[str, Any]) -> None:
    """Score the clips of one dataset in the setting that the environment says."""
    from revisit.core import SUITES
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.dependencies import ObserverSet
    from revisit.engine.plan import make_plan
    from revisit.engine.run import evaluate
    from revisit.observers.sets import load_roles

    source, suite, options = DATASETS[name]
    observers = ObserverSet(asked.set, load_roles(asked.set))
    metrics = [id for id in with_networks(SUITES[suite], observers) if id not in asked.skip]
    metrics = [id for id in metrics if not asked.metrics or id in asked.metrics]
    if not metrics:
        return
    paths = {key: str(asked.worlds / value) for key, value in options.items()}
    plan = make_plan(
        SUITES[suite], asked.worlds / source, observers, metrics=metrics, options=paths, limit=asked.limit
    )  # fmt: skip
    started = time.perf_counter()
    run = evaluate(plan, scratch / name, cache=EvidenceCache(scratch / "cache"))
    scored = dict.fromkeys(metrics, 0)
    why: dict[str, str] = {}
    for record in run.results.records:
        if record.is_gate:
            continue
        id, case = record.question, f"{name}:{record.case.id}"
        if record.scored:
            found["scores"].setdefault(id, {})[case] = record.value
            found["protocols"][id] = record.protocol  # stands for the weights, too
            scored[id] += 1
        else:
            why.setdefault(id, record.sentence)
    told = ", ".join(f"{id} {count}" for id, count in scored.items())
    print(f"  {name}: {len(plan.cases)} clips, {time.perf_counter() - started:.0f} s; scored: {told}", flush=True)
    for id, reason in why.items():
        if not scored[id]:
            print(f"    {id}: {reason[:300]}", flush=True)


def drift(asked: argparse.Namespace) -> None:
    """Make the mirror tests of MIND darker, noisier and shifted from frame to frame, in four strengths."""
    import numpy as np

    from revisit.core import Clip
    from revisit.media import encode_mp4, open_clip

    rng = np.random.default_rng(0)
    for number, path in enumerate(sorted((asked.worlds / "mind/predictions").rglob("path-*.mp4"))):
        much = 1 + number % 4
        with open_clip(Clip(path)) as stream:
            fps, frames = stream.info.fps, [frame.rgb for frame in stream]
        for k, rgb in enumerate(frames):
            moved = np.roll(rgb, much * k // 4, axis=1) * (1 - 0.01 * much * k)
            frames[k] = np.clip(moved + rng.normal(0, 2 * much, rgb.shape), 0, 255).astype(np.uint8)
        encode_mp4(path, frames, fps=fps)
        print(path)


def cards(asked: argparse.Namespace) -> None:
    """Write what the cards show: the largest difference of each setting to the first one, by set and metric."""
    files = [json.loads(path.read_text()) for path in asked.scores]
    made: dict[str, Any] = {}
    for set in dict.fromkeys(file["set"] for file in files):
        own = [file for file in files if file["set"] == set]
        found = [setting for file in own for name, setting in file["settings"].items() if name.startswith("gpu")]
        made[set] = {"device": found[0]["device"], "weights": own[0]["weights"], "metrics": compared(own)}
        for metric, row in made[set]["metrics"].items():
            told = ", ".join(f"{name} {value:.2g}" for name, value in row["differences"].items())
            print(f"{set} {metric:24s} {row['cases']:3d} clips, {row['from']:.4g} to {row['to']:.4g}: {told}")
    if asked.out:
        asked.out.write_text(json.dumps(made, indent=1) + "\n")


def compared(files: Sequence[Any]) -> dict[str, Any]:
    """Metric → how many clips, their lowest and highest score, and the largest difference in each other setting.

    Only scores of one protocol are compared, whose hash stands for weights and parameters, too. Where two files hold
    the same clip in the same setting, the later one counts.
    """
    scores: dict[tuple[str, str], dict[str, dict[str, float]]] = {}  # metric and protocol → setting → clip → score
    for file in files:
        for name, setting in file["settings"].items():
            for metric, cases in setting["scores"].items():
                place = scores.setdefault((metric, setting["protocols"][metric]), {})
                place.setdefault(name, {}).update(cases)
    found: dict[str, Any] = {}
    for (metric, protocol), settings in sorted(scores.items()):
        if BASE not in settings:
            raise SystemExit(f"{metric} ({protocol}): never scored in the setting {BASE} with these weights")
        base = settings[BASE]
        if len(settings) == 1:
            continue  # nothing to compare it with
        row = found.setdefault(metric, {"cases": 0, "from": math.inf, "to": -math.inf, "differences": {}})
        row["cases"] = max(row["cases"], len(base))
        row["from"], row["to"] = min(row["from"], *base.values()), max(row["to"], *base.values())
        for name in SETTINGS:
            if name == BASE or name not in settings:
                continue
            if settings[name].keys() != base.keys():
                raise SystemExit(f"{metric} ({protocol}): {name} and {BASE} scored different clips")
            moved = max(abs(score - base[case]) for case, score in settings[name].items())
            row["differences"][name] = max(moved, row["differences"].get(name, 0.0))
    return found


def add_real(asked: argparse.Namespace) -> None:
    """Add the largest difference on each group of real clips to what the cards show; twice changes nothing."""
    from device_verdicts import CARDS

    verdicts, spread = (json.loads(path.read_text()) for path in (asked.verdicts, asked.spread))
    for set in spread:
        metrics = spread[set]["metrics"]
        for group in CARDS:
            setting, clips = f"{REAL}, {group}", dict[str, int]()
            for outcome in verdicts[group].get(set, {}).values():
                for metric, row in outcome["scores"].items():
                    if metric not in metrics and row["difference"] == 0:
                        continue  # rests on no network of the set
                    known = metrics.setdefault(
                        metric, {"cases": 0, "from": math.inf, "to": -math.inf, "differences": {}}
                    )
                    clips.setdefault(metric, 0 if setting in known["differences"] else row["clips"])
                    known["from"], known["to"] = min(known["from"], row["from"]), max(known["to"], row["to"])
                    known["differences"][setting] = max(row["difference"], known["differences"].get(setting, 0.0))
            for metric, count in clips.items():
                metrics[metric]["cases"] += count
        spread[set]["metrics"] = dict(sorted(metrics.items()))
    asked.spread.write_text(json.dumps(spread, indent=1) + "\n")


def device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.set_defaults(run=None)
    commands = asked.add_subparsers()
    scoring = commands.add_parser("score", help="score the clips, in one setting after the other")
    scoring.set_defaults(run=score)
    scoring.add_argument("worlds", type=Path)
    scoring.add_argument("--set", default="small")
    scoring.add_argument("--weights", default="published", help="what they are, in a word: published or random")
    scoring.add_argument("--out", type=Path, required=True, help="file that the scores are added to")
    scoring.add_argument("--limit", type=int, help="clips of each dataset")
    scoring.add_argument("--metrics", nargs="*", default=[], help="only these")
    scoring.add_argument("--skip", nargs="*", default=[], help="metrics to leave out")
    scoring.add_argument("--datasets", nargs="*", default=[], help="only these")
    scoring.add_argument("--settings", nargs="*", default=["cpu", "gpu"], help="names or words of them; all by default")
    spoiling = commands.add_parser("drift", help="spoil MIND's mirror tests, in place")
    spoiling.set_defaults(run=drift)
    spoiling.add_argument("worlds", type=Path)
    writing = commands.add_parser("cards", help="what the cards of the metrics show")
    writing.set_defaults(run=cards)
    writing.add_argument("scores", type=Path, nargs="+")
    writing.add_argument("--out", type=Path, help="src/revisit/networks/numeric_spread.json, which the cards read")
    adding = commands.add_parser("real", help="add real clips to what the cards show")
    adding.set_defaults(run=add_real)
    adding.add_argument("verdicts", type=Path, help="benchmarks/device_verdicts.json")
    adding.add_argument("spread", type=Path, help="src/revisit/networks/numeric_spread.json")
    chosen = asked.parse_args()
    if chosen.run is None:
        print("left out: this needs a GPU and rendered worlds; see the first lines of this file")
        return
    chosen.run(chosen)


if __name__ == "__main__":
    main()
