"""Do two versions give the same numbers? Both run the same sources, side by side on one machine.

Run: python benchmarks/same_numbers.py --before OLD/src --after NEW/src [--set small] [source[=suite[,option...]] ...]

Without sources, small sets are rendered with the new version, in the layouts of folders and of the four benchmarks.
Compared are all records: status, score and raw value bit by bit, findings of gates; and reasons: every sentence of the
old version must have become one kind. The kinds of the new version are shown with how many answers they have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
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
FACTS = ("status", "score", "raw", "label", "n_units")


def revisit(source: Path, *arguments: object, cache: Path, check: bool = True) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "revisit", *map(str, arguments)]
    done = subprocess.run(
        command, env={**env, "REVISIT_CACHE": str(cache)}, capture_output=True, text=True, check=False
    )
    if check and done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")


def render(source: Path, root: Path) -> list[str]:
    """Small sets in every layout, with models that fail in known ways."""
    suites = [word for suite in RENDERED for word in ("--suite", suite)]
    flags = ("--seeds", 2, "--size", "96x168", "--failures", "perfect,frozen_camera,state_reset,vanish")
    revisit(source, "world", "render", *suites, "--out", root, *flags, cache=root / "cache")
    return [str(root / path.format(root=root)) for path in RENDERED.values()]


def answers(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest line of each question."""
    lines = (json.loads(line) for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines())
    return {(line["case"], line.get("metric") or line["gate"]): line for line in lines}


def compare(before: Path, after: Path, kinds: dict[str, set[str]]) -> tuple[int, list[str]]:
    """How many answers there are, and what differs; `kinds` collects what became of each sentence."""
    old, new = answers(before), answers(after)
    differing = [f"{key}: only in one of them" for key in sorted(old.keys() ^ new.keys())]
    for key in sorted(old.keys() & new.keys()):
        mine, other = old[key], new[key]
        for fact in FACTS:
            if mine.get(fact) != other.get(fact):
                differing.append(f"{key}: {fact} was {mine.get(fact)!r} and is {other.get(fact)!r}")
        if mine.get("reason"):
            kinds[str(mine["reason"])].add((other.get("reason") or {}).get("kind", "none"))
    return len(old), differing


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", type=Path, required=True)
    options.add_argument("--after", type=Path, required=True)
    options.add_argument("--set", default="lite")
    options.add_argument("--jobs", type=int, default=1, help="evaluations at the same time")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("sources", nargs="*")
    given = options.parse_args()
    versions = {"before": given.before.resolve(), "after": given.after.resolve()}
    kinds: dict[str, set[str]] = defaultdict(set)
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sources = given.sources or render(versions["after"], root / "worlds")

        def evaluate(job: tuple[int, str, str]) -> None:
            number, text, version = job
            source, _, rest = text.partition("=")
            suite, *more = rest.split(",") if rest else ["auto"]
            flags = [word for option in more for word in ("--option", option)]
            out = root / f"{version}-{number}"
            where = ("--out", out, "--set", given.set, "--suite", suite, "--workers", given.workers, *flags)
            revisit(
                versions[version], "eval", source, *where, "--no-report", "--quiet", cache=root / f"cache-{version}"
            )

        jobs = [(k, source, version) for k, source in enumerate(sources) for version in versions]
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(evaluate, jobs))
        for k, source in enumerate(sources):
            count, differing = compare(root / f"before-{k}", root / f"after-{k}", kinds)
            found += len(differing)
            print(f"{Path(source.partition('=')[0]).name}: {count} answers, {len(differing)} differ")
            for line in differing[:20]:
                print(f"  {line}")
        several = {sentence: sorted(became) for sentence, became in kinds.items() if len(became) > 1}
        print(f"{len(kinds)} sentences became {len(set().union(*kinds.values()) if kinds else ())} kinds")
        for sentence, became in several.items():
            print(f"  of two kinds: {sentence!r}: {', '.join(became)}")
        told = Counter(
            (line.get("reason") or {}).get("kind")
            for k in range(len(sources))
            for line in answers(root / f"after-{k}").values()
            if line.get("reason")
        )
        print(", ".join(f"{kind} {n}" for kind, n in told.most_common()))
    return 1 if found or several else 0


if __name__ == "__main__":
    raise SystemExit(main())
