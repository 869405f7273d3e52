"""How far a score moves with the device, the batch size and the precision: the same clips, scored again and again.

Run on a machine with a GPU: python benchmarks/network_spread.py WORLDS --set small --out spread.json, where WORLDS was
written by `revisit world render --suite all`. Every metric that rests on a network is scored

- on the CPU, in float32,
- on the GPU frame by frame and in batches of 64, in float32,
- on the GPU in the default precision, frame by frame and in batches of 64,

each with an evidence cache of its own. For every metric the largest difference of a clip's score to the CPU's is told.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETTINGS: dict[str, dict[str, str]] = {
    "cpu": {"REVISIT_DEVICE": "cpu", "REVISIT_NETWORKS": "workers"},
    "gpu float32 batch 1": {"REVISIT_DEVICE": "cuda", "REVISIT_PRECISION": "float32", "REVISIT_BATCH": "1"},
    "gpu float32 batch 64": {"REVISIT_DEVICE": "cuda", "REVISIT_PRECISION": "float32", "REVISIT_BATCH": "64"},
    "gpu default batch 1": {"REVISIT_DEVICE": "cuda", "REVISIT_BATCH": "1"},
    "gpu default batch 64": {"REVISIT_DEVICE": "cuda", "REVISIT_BATCH": "64"},
}
DATASETS: dict[str, tuple[str, str, dict[str, str]]] = {
    "folder": ("folder", "folder", {}),
    "memobench": ("memobench/output", "memobench", {"gt": "memobench/data", "targets": "memobench/targets.json"}),
    "wrbench": (
        "wrbench/manifest.json", "wrbench", {"poses": "wrbench/poses", "targets": "wrbench/targets.json"},
    ),
    "mbench": ("mbench", "mbench", {}),
    "mbench-t": ("mbench-t", "mbench", {}),
    "mind": ("mind/predictions", "mind", {"gt": "mind/MIND-Data"}),
}  # fmt: skip


def with_networks(suite: Any, observers: Any) -> list[str]:
    """Metrics of a suite that rest on evidence which a network of the set makes."""
    from revisit.core import METRICS
    from revisit.engine.needs import observed_kinds

    chosen = []
    for id in suite.metrics():
        makers = [observers.maker(kind) for kind in observed_kinds(METRICS[id])]
        if any(maker is not None and maker.weights for maker in makers):
            chosen.append(id)
    return chosen


def scores(
    worlds: Path, set: str, settings: dict[str, str], limit: int | None, skip: list[str], only: list[str]
) -> dict[str, dict[str, float]]:
    """Metric → case → score, over all datasets."""
    from revisit.core import SUITES
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.needs import ObserverSet
    from revisit.engine.plan import make_plan
    from revisit.engine.run import evaluate
    from revisit.observers.sets import load_roles

    os.environ.update(settings)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, (source, suite, options) in DATASETS.items():
            if not (worlds / source).exists() or (only and name not in only):
                continue
            observers = ObserverSet(set, load_roles(set))
            metrics = [id for id in with_networks(SUITES[suite], observers) if id not in skip]
            paths = {key: str(worlds / value) for key, value in options.items()}
            plan = make_plan(SUITES[suite], worlds / source, observers, metrics=metrics, options=paths, limit=limit)
            started = time.perf_counter()
            run = evaluate(plan, Path(scratch) / name, cache=EvidenceCache(Path(scratch) / "cache"))
            print(f"  {name}: {len(plan.cases)} clips, {time.perf_counter() - started:.0f} s", flush=True)
            for record in run.records:
                if "metric" not in record:
                    continue
                if record["status"] == "scored":
                    found.setdefault(record["metric"], {})[f"{name}:{record['case']}"] = record["score"]
                elif "needs" not in record["reason"] and "missing" not in record["reason"]:
                    print(f"  {name} {record['metric']}: {record['reason'][:150]}", file=sys.stderr)
    for key in settings:
        del os.environ[key]
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("worlds", type=Path)
    asked.add_argument("--set", default="small")
    asked.add_argument("--weights", default="published", help="what they are, in a word: published or random")
    asked.add_argument("--out", type=Path, help="src/revisit/networks/spread.json, which the cards read")
    asked.add_argument("--limit", type=int, help="clips of each dataset")
    asked.add_argument("--skip", nargs="*", default=[], help="metrics to leave out")
    asked.add_argument("--datasets", nargs="*", default=[], help="only these")
    asked.add_argument("--settings", nargs="*", default=list(SETTINGS))
    chosen = asked.parse_args()
    made: dict[str, dict[str, dict[str, float]]] = {}
    for name in chosen.settings:
        made[name] = scores(chosen.worlds, chosen.set, dict(SETTINGS[name]), chosen.limit, chosen.skip, chosen.datasets)
        print(f"{name}: {sum(map(len, made[name].values()))} scores of {len(made[name])} metrics", flush=True)
        if chosen.out:  # after each setting, so that a run that is cut short leaves something
            known = json.loads(chosen.out.read_text()) if chosen.out.is_file() else {}
            known[chosen.set] = {"device": device_name(), "weights": chosen.weights, "metrics": compared(made)}
            chosen.out.write_text(json.dumps(known, indent=1) + "\n")
    for metric, row in compared(made).items():
        told = ", ".join(f"{name} {value:.2g}" for name, value in row["differences"].items())
        print(f"{metric:32s} {row['cases']:3d} clips: {told}")


def compared(made: dict[str, dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Metric → clips, and the largest difference of each setting to the first one."""
    (_, base), *others = made.items()
    found: dict[str, Any] = {}
    for metric, cases in sorted(base.items()):
        differences = {}
        for name, scored in others:
            other = scored.get(metric, {})
            if other.keys() != cases.keys():
                print(f"{metric}: {name} scored {len(other)} clips, the first {len(cases)}", file=sys.stderr)
            common = other.keys() & cases.keys()
            if common:
                differences[name] = max(abs(other[case] - cases[case]) for case in common)
        found[metric] = {"cases": len(cases), "differences": differences}
    return found


def device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


if __name__ == "__main__":
    main()
