"""Write the figures of target-gate.md from those of the last fit, and what the gate costs from the last measurement.

Run `make docs` after either, or a test fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "target-gate.md"
FIGURES = HERE.parent / "benchmarks" / "target" / "figures.json"
COST = FIGURES.with_name("cost.json")
DEVICES = {"cpu": "a core", "cuda": "a GPU and a core"}
SETS = {"layout": "lite", "looks": "small"}
LABELS = ("never hidden", "hidden, returned", "hidden, not returned", "cannot tell")


def page(text: str, figures: Mapping[str, Any], cost: Mapping[str, Any]) -> str:
    """The page with the figures and the cost in their places."""
    for name, content in (("figures", section(figures)), ("cost", cost_section(cost))):
        start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{content}\n{end}{after}"
    return text


def cost_section(cost: Mapping[str, Any]) -> str:
    """Tables of what each observer costs per clip, and of the whole command beside an older version."""
    rows, commands = [], []
    for device, outcome in cost.items():
        for observer, row in outcome["observers"].items():
            seconds = f"{row['processor']:.1f}", f"{row['clock']:.1f}"
            where = f"{DEVICES[device]} ({outcome['by']}, {outcome['machine']})"
            rows.append([f"`{observer}` {row['version']}", where, str(row["looks"]), *seconds])
        for chosen_set, versions in outcome.get("command", {}).items():
            before, now = (min(versions[name]) for name in ("before", "now"))
            rounds = str(len(versions["now"]))
            commands.append([chosen_set, DEVICES[device], rounds, f"{before:.1f}", f"{now:.1f}", f"{now / before:.2f}"])
    parts = [_table(("observer", "on", "looks", "processor, s", "clock, s"), rows)]
    if commands:
        parts.append(
            "The whole of `revisit eval` on that clip, the version of 17 November 2026 (835f79c) and this one in turn:"
        )
        head = ("set", "on", "rounds", "processor before, s", "now, s", "ratio")
        parts.append(_table(head, commands))
    return "\n\n".join(parts)


def section(figures: Mapping[str, Any]) -> str:
    """All tables."""
    counts = ", ".join(
        f"{name}: {figures[kind]['real']} real and {figures[kind]['simulated']} simulated clips"
        for kind, name in SETS.items()
    )
    parts = [f"Fitted on, and each clip judged by a fit without its scene or source ({counts}):", _outcomes(figures)]
    parts += ["By label, real clips, scenes left out:", _labels(figures)]
    parts += ["By source, real clips, scenes left out:", _sources(figures)]
    parts += ["Confidence, on scenes left out:", _calibration(figures)]
    for kind, name in SETS.items():
        wrong = [row for row in figures[kind]["scenes_left_out"]["not_right"] if row["decided"]]
        words = "; ".join(f"`{row['clip']}` ({row['label']}, said to be {_said(row)})" for row in wrong) or "none"
        parts.append(f"Wrong with {name}, scenes left out: {words}.")
    return "\n\n".join(parts)


def _said(row: Mapping[str, Any]) -> str:
    return max(LABELS[:3], key=lambda label: row[label])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(entry: Mapping[str, Any]) -> str:
    if entry["share"] is None:
        return "–"
    low, high = entry["interval"]
    return f"{entry['share']:.2f} ({low:.2f} to {high:.2f})"


def _outcomes(figures: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in SETS.items():
        for what, title in (("scenes_left_out", "scene"), ("sources_left_out", "source")):
            real = figures[kind][what]["real"]
            rows.append([
                name, f"real, each {title} left out", str(real["n"]), str(real["decided"]),
                _share(real["right_of_decided"]), f"{real['hides_right']} of {real['hides']}",
                _share(real["hides_right_share"]), _share(real["most_probable_right"]),
            ])  # fmt: skip
        simulated = figures[kind]["scenes_left_out"].get("simulated")
        if simulated:
            rows.append([
                name, "simulated, other worlds", str(simulated["n"]), str(simulated["decided"]),
                _share(simulated["right_of_decided"]), f"{simulated['hides_right']} of {simulated['hides']}",
                _share(simulated["hides_right_share"]), _share(simulated["most_probable_right"]),
            ])  # fmt: skip
        exam = figures.get("exam", {}).get(kind)
        if exam:
            row = exam["outcomes"]
            rows.append([
                name, f"exam, {exam['scenes']} worlds", str(row["n"]), str(row["decided"]),
                _share(row["right_of_decided"]), f"{row['hides_right']} of {row['hides']}",
                _share(row["hides_right_share"]), _share(row["most_probable_right"]),
            ])  # fmt: skip
    head = (
        "set",
        "clips",
        "n",
        "decided",
        "right of decided",
        "right of those that hide",
        "share",
        "most probable label right",
    )
    return _table(head, rows)


def _labels(figures: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in SETS.items():
        for label, row in figures[kind]["scenes_left_out"]["real"]["labels"].items():
            rows.append([name, f"{label} ({row['n']})", *(str(row[said]) for said in LABELS)])
    return _table(("set", "people say", *LABELS), rows)


def _sources(figures: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in SETS.items():
        for source, row in figures[kind]["scenes_left_out"]["by_source"].items():
            right, hides = f"{row['right']} of {row['decided']}", f"{row['hides_right']} of {row['hides']}"
            rows.append([name, source, str(row["n"]), right, hides])
    return _table(("set", "source", "n", "right of decided", "right of those that hide"), rows)


def _calibration(figures: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in SETS.items():
        for what, title in (
            ("real_calibration", "real"),
            ("simulated_calibration", "simulated"),
            ("exam", "exam"),
        ):
            exam = figures.get("exam", {}).get(kind, {}).get("calibration")
            row = exam if what == "exam" else figures[kind]["scenes_left_out"].get(what)
            if row:
                auc = "–" if row["auc"] is None else f"{row['auc']:.2f}"
                curve = [f"{step['confidence']:.2f}: {step['share']:.2f} of {step['n']}" for step in row["curve"]]
                near = f"{_share(row['at_0.9'])}, n {row['at_0.9']['n']}"
                rows.append([name, title, str(row["n"]), auc, f"{row['brier']:.2f}", near, "; ".join(curve)])
    head = (
        "set",
        "clips",
        "n",
        "AUC, right against wrong",
        "Brier score",
        "right at 0.85 to 0.95",
        "confidence: share right",
    )
    return _table(head, rows)


def main() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    cost = json.loads(COST.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), figures, cost), encoding="utf-8")


if __name__ == "__main__":
    main()
