"""Write the measured parts of speed.md and of the benchmarks' README from what lite_speed.py and demo_seeds.py stored.

    make docs    # or python docs/make_speed.py

Parts stand between `<!-- figures: NAME -->` and `<!-- end -->`; a test fails where they differ from the files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
PAGES = (DOCS / "speed.md", BENCHMARKS / "README.md")
PART = re.compile(r"(?s)(<!-- figures: ([\w-]+) -->\n?).*?(<!-- end -->)")
BEFORE, NOW = "before", "this version"
OBSERVING = ("decoding", "observers", "packing evidence")
PARTS = {  # of shares.py -> as the page calls them
    "observers": "observers",
    "decoding": "decoding",
    "packing evidence": "writing evidence",
    "metrics": "metrics and gates",
    "reading evidence": "reading evidence",
    "values behind scores": "writing values per frame",
    "start": "start of the command",
    "start of workers": "start of two workers",
    "plan": "plan",
    "summary": "summary",
    "page": "report",
    "rest": "all else: the run's files, processes",
}


def parts() -> dict[str, str]:
    """Name of a part -> what pages show there."""
    speed = json.loads((BENCHMARKS / "lite_speed.json").read_text(encoding="utf-8"))
    seeds = json.loads((BENCHMARKS / "demo_seeds.json").read_text(encoding="utf-8"))
    return {
        "whole-command": whole_command(speed),
        "command-shares": command_shares(speed),
        "demo-seeds": f"{demo_sentence(seeds)}\n",
        "demo-seeds-row": demo_sentence(seeds),
    }


def whole_command(speed: Mapping[str, Any]) -> str:
    """Seconds of both versions in each round, and their ratio."""
    seconds = speed["seconds"]
    rows = [["", *(f"round {k + 1}" for k in range(len(seconds[NOW])))], ["---", *["---:"] * len(seconds[NOW])]]
    rows += [[name, *(f"{value:.1f}" for value in seconds[name])] for name in (BEFORE, NOW)]
    ratios = [before / now for before, now in zip(seconds[BEFORE], seconds[NOW], strict=True)]
    rows.append(["before / this version", *(f"{ratio:.2f}" for ratio in ratios)])
    clips = sum(map(len, speed["six"].values()))
    names = "; ".join(f"{scene} by {' and '.join(models)}" for scene, models in speed["six"].items())
    return (
        f"{clips} real clips of MemoBench ({names}), {speed['machine']}, two workers, seconds of the processor of all "
        f"processes:\n\n{_table(rows)}\nRatio: worst **{min(ratios):.2f}**, median **{median(ratios):.2f}**, best "
        f"{max(ratios):.2f}.\n"
    )


def command_shares(speed: Mapping[str, Any]) -> str:
    """What each part of a run takes."""
    shares = speed["shares"]
    total = shares["all"]
    rows = [["part", "s", "share"], ["---", "---:", "---:"]]
    ordered = sorted(PARTS, key=lambda name: (name not in OBSERVING, -shares.get(name, 0.0)))
    rows += [
        [PARTS[name], f"{shares.get(name, 0.0):.1f}", f"{100 * shares.get(name, 0.0) / total:.1f} %"]
        for name in ordered
    ]
    around = 1 - sum(shares[name] for name in OBSERVING) / total
    clips = sum(map(len, speed["eight"].values()))
    return (
        f"{clips} real clips of 81 frames with reference and target, and {len(speed['eight'])} truths, "
        f"{total:.0f} s of the processor:\n\n{_table(rows)}\n"
        f"Everything around observing takes **{100 * around:.1f} %**.\n"
    )


def demo_sentence(seeds: Mapping[str, Any]) -> str:
    """How many other seeds hold, and how long the demo takes."""
    sys.path.insert(0, str(BENCHMARKS))
    from demo_seeds import sentence

    return str(sentence(seeds))


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def written(text: str, made: Mapping[str, str]) -> str:
    """A page with its parts written anew."""
    return PART.sub(lambda found: found[1] + made.get(found[2], "") + found[3], text)


if __name__ == "__main__":
    fresh = parts()
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), fresh), encoding="utf-8")
