"""What the rules of WorldMark's evaluator come to on real clips, one difference at a time (docs/worldmark.md).

python benchmarks/worldmark_pairs.py --data ../shared/data --run build/pairs   # evaluates the pairs, or resumes
python benchmarks/worldmark_pairs.py --run build/pairs --write                 # writes the tables of the page

The clips are good and bad examples by the benchmark's authors, each pair for one measure. Evidence is that of the set
`small` under `corrected`; every row takes the same evidence under two rules.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from revisit.core import EVIDENCE, METRICS, Case, Clip, Score
from revisit.core.metric import DERIVED
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.suites.worldmark.metrics.memory import (
    FIELD_OF_VIEW,
    find_return_pairs,
    flow_per_degree,
    mean_half_second_flow,
)
from revisit.suites.worldmark.metrics.signal import Signal, make_signal

HERE = Path(__file__).parent
NUMBERS, PAGE = HERE / "worldmark_pairs.json", HERE.parent / "docs/worldmark.md"
# Pair -> the keys, the measure it is shown for, and the models of the good and of the bad clip.
PAIRS = {
    "m1": ("WS", "001_006", "worldmark_direction_translation", "MatrixGame3.0", "Yume"),
    "m4": ("WS", "004_006", "worldmark_latency_translation", "MatrixGame2.0", "SANA-WM-streaming"),
    "m5": ("W", "005_001", "worldmark_local_small", "HY-GameCraft", "LingBotWorld-Fast"),
    "m6": ("LR", "006_007", "worldmark_revisit_small", "Lyra-2", "MatrixGame2.0"),
}


def lay_out(data: Path, folder: Path) -> Path:
    """The pairs as a delivery."""
    for pair, (_, name, _, *models) in PAIRS.items():
        for model, which in zip(models, ("good", "bad"), strict=True):
            place = folder / "delivery/real/first" / model / f"{name}.mp4"
            if not place.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(data / f"worldmark/pairs/{pair}_{which}.mp4", place)
    return folder / "delivery"


class Evidence:
    """What a run observed of its clips, by the name of the clip and the model."""

    def __init__(self, run: Path) -> None:
        ids = [f"first/real/{name}@{model}" for _, name, _, *models in PAIRS.values() for model in models]
        cases = {case["id"]: case for case in json.loads((run / "plan.json").read_text())["cases"]}
        self.cases = {id: cases[id] for id in ids}
        self.cache = EvidenceCache(cache_root())

    def of(self, id: str, kind: str) -> Any:
        """One kind of evidence of a clip."""
        record = self.cache.load(EVIDENCE[kind], self.cases[id]["evidence"][kind])
        if record is None:
            raise SystemExit(f"{id}: its {kind} is not in the cache; run the evaluation again")
        return record

    def signal(self, id: str, rule: str) -> Signal:
        return make_signal(self.cases[id]["condition"], self.of(id, "frame_facts"), self.of(id, "key_flow"), rule)

    def score(self, id: str, metric: str, rule: str, **params: Any) -> float | None:
        """The score of a clip under a rule, or None."""
        entry = self.cases[id]
        case = Case(id, "worldmark", entry["model"], entry["sample"], Clip(Path("a.mp4")), condition=entry["condition"])
        arguments: list[Any] = []
        for kind in METRICS[metric].needs:
            name = str(getattr(kind, "evidence_id", ""))
            if kind is Case:
                arguments.append(case)
            elif name in DERIVED:
                inputs = [self.of(id, str(getattr(one, "evidence_id", ""))) for one in DERIVED[name].optional]
                arguments.append(DERIVED[name].fn(*inputs))
            else:
                arguments.append(self.of(id, name))
        answer = METRICS[metric](*arguments, rule=rule, **params)
        return answer.value if isinstance(answer, Score) else None


def measure(run: Path) -> dict[str, Any]:
    """All numbers of the page."""
    seen = Evidence(run)
    steps = {id: mean_half_second_flow(seen.signal(id, "upstream")) for id in seen.cases}
    folder = statistics.median(steps.values())
    numbers: dict[str, Any] = {"pairs": {}, "clips": {}, "folder_step": folder}
    for pair, (_, name, metric, *models) in PAIRS.items():
        ids = [f"first/real/{name}@{model}" for model in models]
        local = {"step": folder} if "_local" in metric else {}
        numbers["pairs"][pair] = {
            "metric": metric, "models": models,
            "corrected": [seen.score(id, metric, "corrected") for id in ids],
            "upstream": [seen.score(id, metric, "upstream", **local) for id in ids],
        }  # fmt: skip
    for id in seen.cases:
        numbers["clips"][id] = clip_numbers(seen, id, steps, folder)
    return numbers


def clip_numbers(seen: Evidence, id: str, steps: dict[str, float], folder: float) -> dict[str, Any]:
    """What every difference does to one clip."""
    facts, signal = seen.of(id, "frame_facts"), seen.signal(id, "corrected")
    family = signal.keys[0].family
    row: dict[str, Any] = {"fps": facts.fps, "width": facts.width, "seconds": len(facts.index) / facts.fps}
    for part in ("direction", "purity", "stability", "latency"):
        metric = f"worldmark_{part}_{family}"
        if part == "latency" and len(signal.keys) == 1:
            continue
        row[part] = [seen.score(id, metric, rule) for rule in ("corrected", "upstream")]
    others = [step for other, step in steps.items() if seen.cases[other]["model"] != seen.cases[id]["model"]]
    ways = {"own": None, "folder": folder, "others": statistics.median(others)}
    row["local"] = {
        name: seen.score(id, "worldmark_local_small", "upstream" if step else "corrected", step=step)
        for name, step in ways.items()
    }
    if len(signal.keys) > 1 and family == "rotation":
        half = len(signal.time) // len(signal.keys)
        way = float(abs(signal.horizontal[:half]).sum()) / 2
        row["turned"] = way / flow_per_degree(facts.width, None, "corrected")
        row["gate"] = 15 * facts.width / FIELD_OF_VIEW / 2 / flow_per_degree(facts.width, None, "corrected")
        for rule in ("corrected", "upstream"):
            made = seen.signal(id, rule)
            row[f"pairs_{rule}"] = len(find_return_pairs(made, flow_per_degree(facts.width, None, rule), rule).pairs)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with worldmark/pairs")
    parser.add_argument("--run", type=Path, required=True, help="where the clips and the run lie")
    parser.add_argument("--write", action="store_true", help="write the numbers, and the tables of the page")
    options = parser.parse_args()
    if options.data is not None:
        source = lay_out(options.data, options.run)
        command = ["-m", "revisit", "eval", str(source), "--suite", "worldmark", "--set", "small"]
        subprocess.run([sys.executable, *command, "--out", str(options.run / "run")], check=False)
    numbers = measure(options.run / "run" if (options.run / "run").is_dir() else options.run)
    if options.write:
        NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), numbers), encoding="utf-8")
    print("\n\n".join(tables(numbers).values()))


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """The tables of the page, by the name of their place."""
    pairs = ["| shown for | good | bad | corrected | upstream |", "|---|---|---|---|---|"]
    for row in numbers["pairs"].values():
        cells = (f"{_shown(row[rule][0])} > {_shown(row[rule][1])}" for rule in ("corrected", "upstream"))
        pairs.append(f"| {METRICS[row['metric']].title} | {' | '.join([*row['models'], *cells])} |")
    clips = [
        "| clip | fps | direction | purity | stability | latency | local by own / folder's / others' step |",
        "|---|---|---|---|---|---|---|",
    ]
    for id, row in numbers["clips"].items():
        name = id.removeprefix("first/real/")
        both = (" → ".join(map(_shown, row[part])) if part in row else "" for part in
                ("direction", "purity", "stability", "latency"))  # fmt: skip
        local = " / ".join(_shown(row["local"][part]) for part in ("own", "folder", "others"))
        clips.append(f"| {name} | {row['fps']:g} | {' | '.join(both)} | {local} |")
    turns = ["| clip | width | turned, degrees | upstream's gate of 15, degrees | pairs, corrected | pairs, upstream |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for id, row in numbers["clips"].items():
        if "turned" in row:
            name = id.removeprefix("first/real/")
            found = f"{row['turned']:.0f} | {row['gate']:.1f} | {row['pairs_corrected']} | {row['pairs_upstream']}"
            turns.append(f"| {name} | {row['width']} | {found} |")
    return {"pairs": "\n".join(pairs), "clips": "\n".join(clips), "turns": "\n".join(turns)}


def with_tables(page: str, numbers: dict[str, Any]) -> str:
    """The page with these tables between their marks."""
    for name, text in tables(numbers).items():
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        if not start or not end:
            raise SystemExit(f"{PAGE.name} has no place for the table {name}")
        page = f"{before}{start}{text}\n{end}{after}"
    return page


def _shown(value: float | None) -> str:
    return "not scored" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main()
