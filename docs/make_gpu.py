"""Write what was measured on GPUs into observers.md and scale.md, from the figures that benchmarks/ stored.

    make docs    # or python docs/make_gpu.py

Parts stand between `<!-- figures: NAME -->` and `<!-- end -->`; a test fails where they differ from the files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
PAGES = (DOCS / "observers.md", DOCS / "scale.md")
SMALL_SECONDS = 0.21  # that `small` adds on a CPU for a 480p frame, as scale.md says
CLIP_FRAMES = 81  # of each clip that lite_speed.py measures
ASSUMED = ("MemoBench", "MIND")  # whose papers do not say how long clips are


def parts() -> dict[str, str]:
    """Name of a part -> what pages show there."""
    runs = _stored("network_throughput")["runs"]
    growth = _stored("device_growth")
    return {
        "gpu-starts": gpu_starts(runs),
        "gpu-growth": gpu_growth(growth["gpu"]),
        "device-sharing": device_sharing(growth["scheduler"]),
        "evaluation-hours": evaluation_hours(runs),
        "device-verdicts": device_verdicts(_stored("device_verdicts")),
    }


def gpu_starts(runs: Sequence[Mapping[str, Any]]) -> str:
    """Every start on every machine."""
    columns: list[list[str]] = []
    for run in runs:
        slower = min(run["decode"]["steady"], run["forward"]["together"])
        rates = [start["steady"] for start in run["together"]]
        columns.append([
            f"{run['gpu']}, {run['cores']} cores, {'with' if run['byte_code'] else 'without'} stored byte code",
            "---:",
            f"{run['decode']['steady']:.0f}",
            f"{run['forward']['together']:.0f}",
            ", ".join(f"{rate:.0f}" for rate in rates),
            f"**{min(rates):.0f}** ({min(rates) / slower:.2f}), {median(rates):.0f} ({median(rates) / slower:.2f}), "
            f"{max(rates):.0f} ({max(rates) / slower:.2f})",
            ", ".join(f"{start['first_clip_after']:.0f}" for start in run["together"]),
            ", ".join(f"{start['whole']:.0f}" for start in run["together"]),
        ])  # fmt: skip
    names = [
        "frames a second",
        "---",
        "decoding alone",
        "forward passes alone",
        "together, each start",
        "worst, median, best (share of the slower part)",
        "seconds until the first clip, each start",
        "the whole run of 112 clips, start and compiling included",
    ]
    return _table([[name, *(column[row] for column in columns)] for row, name in enumerate(names)])


def gpu_growth(rows: Sequence[Mapping[str, Any]]) -> str:
    """Seconds of runs of different sizes."""
    lines = [["clips", "frames each", "frames", "s", "frames a second"], ["--:"] * 5]
    for row in sorted(rows, key=lambda row: (row["frames"] != 81, row["clips"], row["frames"])):
        frames = row["clips"] * row["frames"]
        lines.append([
            f"{row['clips']:,}", f"{row['frames']:,}", f"{frames:,}", f"{row['seconds']:.0f}", f"{row['rate']:.0f}"
        ])  # fmt: skip
    return _table(lines)


def device_sharing(rows: Sequence[Mapping[str, Any]]) -> str:
    """How evenly devices that only wait share clips out."""
    lines = [
        ["devices", "from the first clip to the last", "if shared out evenly", "busiest device, of its even share"],
        ["--:"] * 4,
    ]
    for row in rows:
        lines.append([
            str(row["devices"]), f"{row['seconds']:.1f} s", f"{row['waiting']:.1f} s", f"{row['busiest']:.2f}"
        ])  # fmt: skip
    return _table(lines)


def evaluation_hours(runs: Sequence[Mapping[str, Any]]) -> str:
    """Hours of the benchmarks' published sizes, from the worst start of all."""
    sys.path.insert(0, str(BENCHMARKS))
    from paper_set import SIZES

    worst = min(start["steady"] for run in runs for start in run["together"])
    lite = lite_seconds()
    lines = [
        ["benchmark, one model", "clips", "frames each", "frames", "`lite`, core hours", "`small` on a CPU, core hours",
         "four networks, one GPU"],
        ["---", *["--:"] * 6],
    ]  # fmt: skip
    for name, (_, clips, length) in SIZES.items():
        frames = clips * length
        note = " (assumed)" if name in ASSUMED else ""
        hours = [f"{frames * seconds / 3600:.2g}" for seconds in (lite, lite + SMALL_SECONDS)]
        lines.append([name, str(clips), f"{length}{note}", f"{frames:,}", *hours, f"{frames / worst / 60:.1f} minutes"])
    starts = sum(len(run["together"]) for run in runs)
    return (
        f"{_table(lines)}\n"
        f"`lite` takes {lite:.3f} s of a core per frame, the whole command with references and targets. "
        f"Minutes on a GPU are those of the worst of {starts} starts, {worst:.0f} frames a second.\n"
    )


def lite_seconds() -> float:
    """Seconds of a core for a frame of a real clip with reference and target, by the whole command."""
    stored = _stored("lite_speed")
    clips = sum(len(models) for models in stored["six"].values())
    return median(stored["seconds"]["this version"]) / (clips * CLIP_FRAMES)


def device_verdicts(stored: Mapping[str, Any]) -> str:
    """Whether a GPU says of real clips what a CPU says, and how far scores move."""
    sys.path.insert(0, str(BENCHMARKS))
    from device_verdicts import CARDS

    lines = [
        ["clips", "set, device against a CPU", "answers", "other answers", "said differently", "scores that moved"],
        ["---", "---", "--:", "--:", "--:", "---"],
    ]
    for group, sets in sorted(stored.items(), key=lambda item: (item[0] not in CARDS, item[0])):
        for set_name in ("small", "paper"):
            for device, outcome in sets[set_name].items():
                moved = [
                    f"`{metric}` {row['difference']:.1g} ({row['from']:.3g} to {row['to']:.3g})"
                    for metric, row in sorted(outcome["scores"].items())
                    if row["difference"] > 0
                ]
                lines.append([
                    group if group in CARDS else f"{group}, not in the cards",
                    f"`{set_name}`, {device}", f"{outcome['answers']['asked']:,}", str(outcome["answers"]["different"]),
                    f"{len(outcome['different'])} of {outcome['said']:,}",
                    ", ".join(moved),
                ])  # fmt: skip
    return _table(lines)


def _stored(name: str) -> Any:
    return json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS))
    from make_speed import written

    fresh = parts()
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), fresh), encoding="utf-8")
