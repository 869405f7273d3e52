"""The table by model and the funnel, from summary.json, as the page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from revisit.core import Record
from revisit.core.records import GATE_STATES
from revisit.core.text import count_and_noun, read_package_yaml
from revisit.results import Cell, Results
from revisit.results.display import BEST_RULE, HEADINGS, reason_title
from revisit.results.file_types import Details
from revisit.results.funnel import LOOKED_AWAY
from revisit.web.templates import Context

SENTENCES = read_package_yaml("revisit.report", "funnel.yaml")
STATES = (*GATE_STATES, "unscored", "failed")


def model_table(summary: Mapping[str, Any], cards: Mapping[str, Details]) -> Context:
    """Column groups, columns and rows; every cell with its text, its scale and the reasons for what is missing."""
    models = {model: facts for model, facts in summary.get("models", {}).items() if "scores" in facts}
    ids = sorted(summary.get("metrics", {}), key=lambda metric: HEADINGS.index(cards[metric]["group"]))
    groups = Counter(cards[metric]["group"] for metric in ids)
    opens = {metric for before, metric in pairwise(ids) if cards[before]["group"] != cards[metric]["group"]}
    truth = summary.get("truth")
    entries = [*models.items(), *([(truth.get("name", "truth"), truth)] if truth and models else [])]
    rows: list[dict[str, Any]] = [
        {"model": model, "cases": entry["cases"], "truth": entry is truth, "cells": []} for model, entry in entries
    ]
    for metric in ids:
        column = [entry["scores"].get(metric, {"n": 0, "of": 0}) for _, entry in entries]
        marked = summary["metrics"][metric].get("best")
        scale = _column_scale(map(Cell.from_json, column), cards[metric]["range"])
        for row, score in zip(rows, column, strict=True):
            best = row["model"] == marked and not row["truth"]
            row["cells"].append({**_cell_with_plot(score, scale), "best": best, "first": metric in opens})
    return {
        "groups": [{"name": name, "n": groups[name]} for name in HEADINGS if groups[name]],
        "heads": [{**cards[metric], "first": metric in opens} for metric in ids],
        "rows": rows,
        "rule": BEST_RULE,
        "intervals": summary.get("interval_method"),
    }


def suite_table(extra: Mapping[str, Any]) -> Context:
    """A table that a suite made of other numbers than its metrics' scores, with a plot per column; or one of texts."""
    if any(isinstance(cell, str) for row in extra["rows"] for cell in row["cells"]):
        return {**extra, "texts": True, "rows": [{"detail": False, **row} for row in extra["rows"]]}
    columns = zip(*(row["cells"] for row in extra["rows"]), strict=True)
    scales = [_column_scale(map(Cell.from_json, column)) for column in columns]
    rows = [
        {"name": row["name"], "detail": False, "cells": list(map(_cell_with_plot, row["cells"], scales))}
        for row in extra["rows"]
    ]
    return {**extra, "texts": False, "rows": rows}


WITHOUT_FINDING = (("sound", "no failure found"), ("unknown", "not enough to tell"), ("unreadable", "not read"))


def diagnosis_table(diagnosis: Mapping[str, Any]) -> Context:
    """Kinds of failure across, models down: in how many clips each was found; kinds never found are left out."""
    models = diagnosis.get("models", {})
    kinds = list(dict.fromkeys(title for entry in models.values() for title in entry["findings"]))
    further = [(key, title) for key, title in WITHOUT_FINDING if any(entry.get(key) for entry in models.values())]
    rows = []
    for model, entry in models.items():
        counts = [entry["findings"].get(title, 0) for title in kinds] + [entry.get(key, 0) for key, _ in further]
        rows.append({"model": model, "clips": entry["clips"] + entry["unreadable"], "cells": counts})
    return {
        "kinds": kinds,
        "further": [title for _, title in further],
        "rows": rows,
        "fitted": diagnosis.get("fitted", ""),
    }


def funnel_rows(stages: Sequence[Mapping[str, Any]]) -> list[Context]:
    """Stages with a bar each, as shares of the first stage."""
    total = stages[0]["n"] if stages else 0
    rows = []
    for stage in stages:
        kind, share = _stage_colour_class(stage["stage"]), stage["n"] / total if total else 0
        text = f"{100 * stage['n'] / total:.0f} %" if total else "–"
        rows.append({**stage, "share": text, "kind": kind, "of_first": share})
    return rows


def funnel_sentences(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the funnel says, in sentences."""
    n = {stage["stage"]: stage["n"] for stage in stages}
    looked = f"; the camera looked away in {n[LOOKED_AWAY]} of these" if LOOKED_AWAY in n else ""
    clips = count_and_noun(n.get("all clips", 0), "clip")
    return [one["text"].format(n=n, clips=clips, looked=looked) for one in SENTENCES if {*one["stages"]} <= n.keys()]


def gate_finding_rows(results: Results, gates: Mapping[str, str]) -> list[Context]:
    """How often each gate came to each finding, over all clips; a gate that was never asked is left out."""
    rows: list[Context] = []
    for gate, name in gates.items():
        labels = Counter((record.status, finding_text(record)) for record in results.records_for(gate))
        if not {state for state, _ in labels} & set(GATE_STATES):
            continue
        ranked = sorted(labels.items(), key=lambda item: (STATES.index(item[0][0]), -item[1], item[0][1]))
        parts = [{"state": state, "label": label, "n": n} for (state, label), n in ranked]
        rows.append({"title": name, "parts": parts, "bar": [(state, n) for (state, _), n in ranked]})
    return rows


def finding_text(record: Record) -> str:
    """What a gate found, or the kind of reason why it found nothing."""
    return record.label or (reason_title(record.reason.kind) if record.reason else "")


def _cell_with_plot(entry: Mapping[str, Any], scale: tuple[float, float]) -> Context:
    """A cell of summary.json with the scale it is drawn on, and the text that a suite has for it."""
    return {"cell": Cell.from_json(entry), "text": entry.get("text", ""), "scale": scale, "best": False}


def _column_scale(cells: Iterable[Cell], limits: Sequence[float | None] = (None, None)) -> tuple[float, float]:
    """The range of the metric, or what the column spans where the range has no end."""
    values = [0.0, *(value for cell in cells if cell.mean is not None for value in (cell.mean, *(cell.interval or ())))]
    low, high = limits
    return min(values) if low is None else low, max(values) if high is None else high


def _stage_colour_class(stage: str) -> str:
    """Which colour a stage has: the clip itself, its view, its target, or the result."""
    kinds = {"view": "view", "target": "target", LOOKED_AWAY: "target", "memory": "scored"}
    return next((kind for start, kind in kinds.items() if stage.startswith(start)), "base")
