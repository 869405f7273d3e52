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
FIRST = FIGURES.with_name("by_eye.json")  # the gate that had seen none of the clips labelled since
DEVICES = {"cpu": "a core", "cuda": "a GPU and a core"}
SETS = {"layout": "lite", "looks": "small"}
LABELS = ("never hidden", "hidden, returned", "hidden, not returned", "cannot tell")


def page(text: str, figures: Mapping[str, Any], cost: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """The page with the figures and the cost in their places."""
    sections = {
        "trust": trust_section(figures), "by eye": by_eye_section(first, figures), "figures": section(figures),
        "cost": cost_section(cost),
    }  # fmt: skip
    for name, content in sections.items():
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


def trust_section(figures: Mapping[str, Any]) -> str:
    """How often the gate is right on clips of scenes that took no part in its fit."""
    worlds = figures["exam"]["layout"]["outcomes"]
    rows = [
        [name, _right(figures["by_eye"][kind]["outcomes"]), _right(figures[kind]["scenes_left_out"]["real"]),
         _right(worlds) if kind == "layout" else "not run"]
        for kind, name in SETS.items()
    ]  # fmt: skip
    scenes = figures["by_eye"]["layout"]["scenes"]
    head = (
        "set", f"targets of {scenes} real scenes kept out of everything",
        "real clips, each by a fit without its scene", "rendered worlds kept out",
    )  # fmt: skip
    return _table(head, rows)


def _right(row: Mapping[str, Any]) -> str:
    return f"{row['right']} right of {row['decided']} decided, of {row['n']}"


def by_eye_section(first: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """Tables of the targets labelled by eye: by the gate that was there before them, and by the one fitted since."""
    old, new = first["provenance"]["gate"], figures["provenance"]["gate"]
    n, scenes = (first["all"]["layout"]["outcomes"]["n"], first["all"]["layout"]["scenes"])
    views = {
        f"all, version {old} as it was": first["all"],
        f"exam half, version {old} as it was": first["exam"],
        f"exam half, version {new}": figures["by_eye"],
    }
    rows = []
    for kind, name in SETS.items():
        for title, view in views.items():
            entry = view[kind]
            row, sure = entry["outcomes"], entry["calibration"]
            decided = {"share": row["right_of_decided"]["share"], "interval": entry["right_of_decided_over_scenes"]}
            hides = {"share": row["hides_right_share"]["share"], "interval": entry["hides_right_over_scenes"]}
            auc = {"share": sure["auc"], "interval": entry["auc_over_scenes"]}
            rows.append([
                name, title, str(row["n"]), f"{row['right']} of {row['decided']}", _share(decided),
                f"{row['hides_right']} of {row['hides']}", _share(hides), _share(auc), f"{sure['brier']:.2f}",
                f"{_share(sure['at_0.9'])}, n {sure['at_0.9']['n']}",
            ])  # fmt: skip
    head = (
        "set", "targets", "n", "right of decided", "share", "right of those that hide", "share",
        "AUC of confidence", "Brier score", "right at 0.85 to 0.95",
    )  # fmt: skip
    parts = [f"{n} targets of {scenes} scenes, intervals over scenes:", _table(head, rows)]
    without = (
        (f"all, version {old}", first["all_without_scene"]),
        (f"exam half, version {new}", figures["by_eye_without_scene"]),
    )
    words = [
        f"{title}: {name} {_counts(view[kind]['outcomes'])[0]}"
        for title, view in without
        for kind, name in SETS.items()
    ]
    parts.append(f"Right of decided by fits without any simulated clip that shows the scene: {'; '.join(words)}.")
    parts += [f"By label, all of them, version {old} as it was:", _labels_of(first["all"])]
    parts += [f"By label, exam half, version {new}:", _labels_of(figures["by_eye"])]
    for group, title in (("by_owner", "whose clips"), ("by_kind", "kind of target")):
        rows = []
        for value, row in first["all"]["layout"][group].items():
            cells = [first["all"][kind][group].get(value) for kind in SETS]
            rows.append([value, str(row["n"]), *(text for cell in cells for text in _counts(cell))])
        columns = [f"{name}: {what}" for name in SETS.values() for what in ("right of decided", "of those that hide")]
        parts += [f"By {title}, all of them, version {old} as it was:", _table((title, "n", *columns), rows)]
    for title, view in ((f"all, version {old}", first["all"]), (f"exam half, version {new}", figures["by_eye"])):
        for kind, name in SETS.items():
            wrong = [row for row in view[kind]["not_right"] if row["decided"]]
            clips = "; ".join(f"{row['clip']} ({row['label']}, said to be {_said(row)})" for row in wrong) or "none"
            parts.append(f"Wrong with {name}, {title}: {clips}.")
    return "\n\n".join(parts)


def _counts(row: Mapping[str, Any] | None) -> tuple[str, str]:
    if row is None:
        return "–", "–"
    return f"{row['right']} of {row['decided']}", f"{row['hides_right']} of {row['hides']}"


def _labels_of(view: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in SETS.items():
        for label, row in view[kind]["outcomes"]["labels"].items():
            rows.append([name, f"{label} ({row['n']})", *(str(row[said]) for said in LABELS)])
    return _table(("set", "people say", *LABELS), rows)


def _said(row: Mapping[str, Any]) -> str:
    return max(LABELS[:3], key=lambda label: row[label])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(entry: Mapping[str, Any]) -> str:
    if entry["share"] is None:
        return "–"
    if entry["interval"] is None:
        return f"{entry['share']:.2f}"
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
                name, f"exam of worlds, {exam['scenes']} of them", str(row["n"]), str(row["decided"]),
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
            ("exam", "exam of worlds"),
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
    first = json.loads(FIRST.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), figures, cost, first), encoding="utf-8")


if __name__ == "__main__":
    main()
