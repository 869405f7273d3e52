"""How far scores move between two kinds of processor: the same clips, evaluated on one machine and on the other.

    revisit eval CLIPS --out arm      (on one machine)
    revisit eval CLIPS --out x86      (on the other)
    python benchmarks/machine_spread.py arm x86 [more pairs] --out src/revisit/audit/results/machines.json

Prints, and with --out keeps for the cards, the largest difference of each metric over all clips that both scored, how
many clips only one of them scored, and how many verdicts of a gate differ. Both runs must hold the same cases.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def answers(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The records of a run by case and question."""
    lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = (json.loads(line) for line in lines)
    return {(r["case"], r.get("metric") or r["gate"]): r for r in records}


PROCESSORS = {"aarch64": "ARM64", "arm64": "ARM64", "x86_64": "x86-64"}


def processor(run: Path) -> str:
    platform = json.loads((run / "run.json").read_text(encoding="utf-8"))["environment"]["platform"]
    return next(name for word, name in PROCESSORS.items() if word in platform)


def compare(pairs: list[tuple[Path, Path]]) -> dict[str, Any]:
    """What machines.json holds."""
    metrics: dict[str, dict[str, Any]] = {}
    gates: dict[str, dict[str, int]] = {}
    for first, second in pairs:
        one, other = answers(first), answers(second)
        if one.keys() != other.keys():
            raise SystemExit(f"{first} and {second} hold different cases or metrics; evaluate the same clips twice")
        for (_, question), here in one.items():
            there = other[_, question]
            if "gate" in here:
                verdicts = gates.setdefault(question, {"cases": 0, "differ": 0})
                verdicts["cases"] += 1
                verdicts["differ"] += here.get("label") != there.get("label")
                continue
            scored = here["status"] == "scored", there["status"] == "scored"
            if not any(scored):
                continue
            found = metrics.setdefault(question, {"cases": 0, "difference": 0.0, "from": [], "to": [], "one_only": 0})
            if not all(scored):
                found["one_only"] += 1
                continue
            values = [here["score"], there["score"]]
            found["cases"] += 1
            found["difference"] = max(found["difference"], abs(values[0] - values[1]))
            found["from"], found["to"] = found["from"] + values, found["to"] + values
    kept = {}
    for id, row in sorted(metrics.items()):
        if row["cases"]:
            kept[id] = {**row, "from": min(row["from"]), "to": max(row["to"])}
    return {"metrics": kept, "gates": gates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    pairs = list(zip(given.runs[::2], given.runs[1::2], strict=True))
    names = [processor(run) for run in pairs[0]]
    found = {"machines": " and ".join(names), **compare(pairs)}
    for id, row in found["metrics"].items():
        print(f"{id:32} {row['cases']:4} clips  {row['from']:.4g} to {row['to']:.4g}  up to {row['difference']:.1e}")
    print(json.dumps(found["gates"]))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
