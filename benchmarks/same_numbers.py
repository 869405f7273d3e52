"""Do two versions give the same numbers? Both run the same sources, side by side on one machine.

python benchmarks/same_numbers.py --before OLD/src --after NEW/src [--set small] [source[=suite[,option...]] ...]
python benchmarks/same_numbers.py --before OLD/src --after NEW/src --clips shared/data/memobench/videos

Without sources or clips, small sets are rendered with the new version, in the layouts of folders and of the benchmarks.
`--clips` is a folder of `<scene>_<model>.mp4`, where `<scene>_gt.mp4` is the reference, or of films without references;
`targets.json` in it holds their targets.

Compared are all answers of metrics and gates: status, score, raw value, label and number of units, bit by bit. The key
of an answer is a digest of all that it depends on: the clip, the versions and parameters of the metric, its gates and
its observers. An answer that differs under the same key is a change that no version tells of: the script ends with 1.
Answers that differ under another key are counted, and all versions that changed are listed. `--out` takes all of it as
JSON; with `--work` an interrupted comparison goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

RENDERED = {
    "folder": "folder/manifest.jsonl",
    "memobench": "memobench/output=memobench,gt={root}/memobench/data,targets={root}/memobench/targets.json",
    "wrbench": "wrbench",
    "mind": "mind/predictions=mind,gt={root}/mind/MIND-Data",
    "mbench": "mbench",
    "mbench-t": "mbench-t",
}
COMPARED = ("status", "score", "raw", "label", "n_units")


def revisit(code: Path, *arguments: object, cache: Path) -> str:
    """What the command of one version prints; 0 and 1 are its exit codes of a finished evaluation."""
    path = os.pathsep.join([str(code), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "revisit", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": path, "REVISIT_CACHE": str(cache)}
    process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {process.stderr[-2000:]}")
    return process.stdout


def render(code: Path, root: Path) -> list[str]:
    """Small sets in every layout, with models that fail in known ways."""
    suites = [word for suite in RENDERED for word in ("--suite", suite)]
    flags = ("--seeds", 2, "--size", "96x168", "--failures", "perfect,frozen_camera,state_reset,vanish")
    if not (root / "mbench-t").exists():
        revisit(code, "world", "render", *suites, "--out", root, *flags, cache=root / "cache")
    return [str(root / path.format(root=root)) for path in RENDERED.values()]


def manifests(clips: Path, folder: Path) -> list[str]:
    """One manifest for each scene of a folder of clips, so that scenes run side by side; a film is a scene."""
    names = sorted(path.stem for path in clips.glob("*.mp4"))
    truths = [name.removesuffix("_gt") for name in names if name.endswith("_gt")]
    targets = json.loads((clips / "targets.json").read_text()) if (clips / "targets.json").exists() else {}
    scenes: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        scene = next((truth for truth in truths if name.startswith(f"{truth}_")), name)
        if name == f"{scene}_gt":
            continue
        line: dict[str, Any] = {"id": scene, "video": str((clips / f"{name}.mp4").resolve())}
        line["model"] = name.removeprefix(f"{scene}_") if scene in truths else "film"
        if scene in truths:
            line["reference"] = str((clips / f"{scene}_gt.mp4").resolve())
        if name in targets:
            line["target"] = {"name": targets[name].get("target", "target"), "box": targets[name]["box"]}
        scenes.setdefault(scene, []).append(line)
    for scene, lines in scenes.items():
        (folder / scene).mkdir(parents=True, exist_ok=True)
        (folder / scene / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [str(folder / scene / "manifest.jsonl") for scene in scenes]


def evaluate(code: Path, source: str, out: Path, cache: Path, flags: tuple[object, ...]) -> None:
    path, _, rest = source.partition("=")
    suite, *options = rest.split(",") if rest else ["auto"]
    words = [word for option in options for word in ("--option", option)]
    revisit(code, "eval", path, "--out", out, "--suite", suite, *words, *flags, "--no-report", "--quiet", cache=cache)


def answers(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest line of each case and check."""
    lines = (json.loads(line) for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines())
    return {(line["case"], line.get("metric") or line["gate"]): line for line in lines}


def versions(code: Path, cache: Path) -> dict[str, int]:
    """The versions of all metrics, gates and observers."""
    tables = (
        json.loads(revisit(code, "list", kind, "--json", cache=cache)) for kind in ("metrics", "gates", "observers")
    )
    return {row["id"]: row["v"] for rows in tables for row in rows}


class Comparison:
    """Counts of answers by check: the same, differing under another key, and differing under the same key."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.own_versions: dict[str, list[int]] = {}
        self.unexplained: list[str] = []

    def add(self, before: Path, after: Path) -> Counter[str]:
        """Compare two runs of one source."""
        total: Counter[str] = Counter()
        old, new = answers(before), answers(after)
        if not old or not new:
            raise SystemExit(f"{before} or {after} has no answers; see what plan.json in it says was rejected")
        for case, check in sorted(old.keys() | new.keys()):
            first, second = old.get((case, check)), new.get((case, check))
            if first is None or second is None:
                outcome = "only after" if first is None else "only before"
            else:
                self.own_versions[check] = [first["version"], second["version"]]
                outcome = "same"
                changed = [name for name in COMPARED if first.get(name) != second.get(name)]
                if changed:
                    outcome = "differ, same key" if first["key"] == second["key"] else "differ, another key"
                if outcome == "differ, same key":
                    pairs = (f"{name} was {first.get(name)!r} and is {second.get(name)!r}" for name in changed)
                    self.unexplained.append(f"{case}: {check}: {', '.join(pairs)}")
            self.counts.setdefault(check, Counter())[outcome] += 1
            total[outcome] += 1
        return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="source folder of the old version")
    parser.add_argument("--after", type=Path, required=True, help="source folder of the new version")
    parser.add_argument("--set", default="lite")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="evaluations at the same time")
    parser.add_argument("--workers", type=int, default=2, help="processes of each evaluation")
    parser.add_argument("--clips", type=Path, action="append", default=[], help="folder of clips; may be repeated")
    parser.add_argument("--only", default="", help="only scenes of these folders whose names begin so, by commas")
    parser.add_argument("--work", type=Path, help="folder of the runs; kept, so that the same command goes on")
    parser.add_argument("--out", type=Path, help="JSON file of the comparison")
    parser.add_argument("sources", nargs="*")
    options = parser.parse_args()
    code = {"before": options.before.resolve(), "after": options.after.resolve()}
    with tempfile.TemporaryDirectory() as temporary:
        root = (options.work or Path(temporary)).resolve()
        sources = list(options.sources)
        for number, clips in enumerate(options.clips):
            scenes = manifests(clips, root / f"clips-{number}")
            starts = tuple(options.only.split(","))
            sources += [scene for scene in scenes if Path(scene).parent.name.startswith(starts)]
        sources = sources or render(code["after"], root / "worlds")
        flags: tuple[object, ...] = ("--set", options.set, "--workers", options.workers, "--device", options.device)
        flags += tuple(word for clips in options.clips for word in ("--root", clips.resolve()))
        with ThreadPoolExecutor(options.jobs) as pool:
            jobs = [
                pool.submit(
                    partial(evaluate, code[version], source, root / f"{version}-{number}", root / f"cache-{version}"),
                    flags,
                )
                for number, source in enumerate(sources)
                for version in code
            ]
            for job in jobs:
                job.result()
        comparison = Comparison()
        totals = {}
        for number, source in enumerate(sources):
            path = Path(source.partition("=")[0])
            name = path.parent.name if path.suffix else path.name
            totals[name] = comparison.add(root / f"before-{number}", root / f"after-{number}")
            print(f"{name}: {', '.join(f'{outcome} {count}' for outcome, count in sorted(totals[name].items()))}")
        old, new = (versions(folder, root / "cache-versions") for folder in code.values())
    moved = {
        name: [old.get(name), new.get(name)]
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }
    print("\nchecks with answers that differ under another key:")
    for check, counts in sorted(comparison.counts.items()):
        if counts["differ, another key"]:
            first, second = comparison.own_versions[check]
            print(f"  {check} {first} -> {second}: {counts['differ, another key']} of {counts.total()}")
    raised = (f"{name} {first} -> {second}" for name, (first, second) in moved.items() if first is not None)
    print("\nversions that changed:", ", ".join(raised))
    print(f"\n{len(comparison.unexplained)} answers differ under the same key")
    for line in comparison.unexplained[:40]:
        print(f"  {line}")
    if options.out:
        text = {
            "set": options.set,
            "sources": totals,
            "checks": {
                check: {**counts, "versions": comparison.own_versions.get(check)}
                for check, counts in sorted(comparison.counts.items())
            },
            "versions": moved,
            "unexplained": comparison.unexplained,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(text, indent=1) + "\n")
    return 1 if comparison.unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
