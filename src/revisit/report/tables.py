"""The table by model and the funnel, from summary.json, as the page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import Record
from revisit.report import plots
from revisit.report.words import ORDER, count, number

COVERAGE_MAY_DIFFER = 0.2
BEST_RULE = (
    "A value is marked as best where there is a direction, at least two models have an interval, the value lies "
    "outside the interval of every other model and theirs outside its own, and the shares of clips scored differ "
    "by at most 20 points. Otherwise the column names no best."
)
INTERVALS = "95 % interval of the mean: cluster-robust over samples, Student's t; none for a single sample."
STATES = ("open", "closed", "unsure", "unscored", "failed")


def table(summary: Mapping[str, Any], cards: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Column groups, columns and rows; every cell with its text, its plot and the reasons for what is missing."""
    models = {model: facts for model, facts in summary.get("models", {}).items() if "scores" in facts}
    columns = summary.get("metrics", {})
    ids = sorted(columns, key=lambda id: ORDER.index(cards[id]["group"]))
    groups = Counter(cards[id]["group"] for id in ids)
    rows = [{"model": model, "cases": facts["cases"], "cells": []} for model, facts in models.items()]
    for id in ids:
        cells = {model: facts["scores"][id] for model, facts in models.items()}
        low, high = _scale(columns[id]["range"], cells.values())
        marked = best(cells, columns[id]["higher_is_better"])
        for row in rows:
            row["cells"].append(_cell(cells[row["model"]], cards[id]["bounded"], low, high, row["model"] == marked))
    heads = [{**cards[id], "id": id, "first": _opens_group(k, ids, cards)} for k, id in enumerate(ids)]
    for row in rows:
        for cell, head in zip(row["cells"], heads, strict=True):
            cell["first"] = head["first"]
    return {
        "groups": [{"name": name, "n": groups[name]} for name in ORDER if groups[name]],
        "heads": heads,
        "rows": rows,
        "rule": BEST_RULE,
        "intervals": summary.get("interval_method", INTERVALS),
    }


def plain_table(extra: Mapping[str, Any]) -> dict[str, Any]:
    """A table that a suite made of other numbers than its metrics' scores, with a plot per column; or one of texts."""
    if any(isinstance(cell, str) for row in extra["rows"] for cell in row["cells"]):
        return {**extra, "texts": True, "rows": [{"detail": False, **row} for row in extra["rows"]]}
    columns = list(zip(*(row["cells"] for row in extra["rows"]), strict=True))
    scales = [_scale((None, None), column) for column in columns]
    rows = [
        {
            "name": row["name"],
            "detail": False,
            "cells": [_cell(c, False, *scale, False) for c, scale in zip(row["cells"], scales, strict=True)],
        }
        for row in extra["rows"]
    ]
    return {**extra, "texts": False, "rows": rows}


def diagnosis_table(diagnosis: Mapping[str, Any]) -> dict[str, Any]:
    """Kinds of failure across, models down: in how many clips each was found; kinds never found are left out."""
    models = diagnosis.get("models", {})
    kinds = list(dict.fromkeys(title for entry in models.values() for title in entry["findings"]))
    rows = [
        {"model": model, "clips": entry["clips"], "cells": [entry["findings"].get(title, 0) for title in kinds]}
        for model, entry in models.items()
    ]
    return {"kinds": kinds, "rows": rows, "fitted": diagnosis.get("fitted", "")}


def best(cells: Mapping[str, Mapping[str, Any]], higher_is_better: bool | None) -> str | None:
    """The model whose value can be called best under BEST_RULE, or None."""
    scored = {model: cell for model, cell in cells.items() if "mean" in cell}
    if higher_is_better is None or len(scored) < 2 or not all(cell.get("interval") for cell in scored.values()):
        return None
    top = (max if higher_is_better else min)(scored, key=lambda model: scored[model]["mean"])
    mine = scored[top]
    for model, other in scored.items():
        if model == top:
            continue
        apart = not _within(mine["mean"], other["interval"]) and not _within(other["mean"], mine["interval"])
        alike = abs(mine["n"] / mine["of"] - other["n"] / other["of"]) <= COVERAGE_MAY_DIFFER
        if not (apart and alike):
            return None
    return top


def funnel(stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Stages with a bar each, as shares of the first stage."""
    total = stages[0]["n"] if stages else 0
    return [
        {
            "stage": stage["stage"],
            "n": stage["n"],
            "share": f"{100 * stage['n'] / total:.0f} %" if total else "–",
            "kind": _branch(stage["stage"]),
            "bar": plots.bar(stage["n"] / total if total else 0, _branch(stage["stage"])),
        }
        for stage in stages
    ]


def in_words(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the funnel says, in sentences."""
    n = {stage["stage"]: stage["n"] for stage in stages}
    said = []
    if {"all clips", "readable", "camera moved"} <= n.keys():
        said.append(
            f"Of {count(n['all clips'], 'clip')}, {n['readable']} could be read, and in {n['camera moved']} of these "
            "the camera moved."
        )
    if {"view left", "view returned"} <= n.keys():
        said.append(
            f"The first view left the frame in {n['view left']} and came back in {n['view returned']}: "
            "only a clip that looks away and back asks the model to remember."
        )
    if {"target given", "target hidden", "target returned"} <= n.keys():
        said.append(
            f"A target was given for {n['target given']}; it was hidden in {n['target hidden']} and came back in "
            f"{n['target returned']}."
        )
    if {"memory scored", "all clips"} <= n.keys():
        said.append(f"Memory could be scored in {n['memory scored']} of {n['all clips']}.")
    return said


def findings(records: Sequence[Record], gates: Mapping[str, str]) -> list[dict[str, Any]]:
    """How often each gate came to each finding, over all clips; a gate that was never asked is left out."""
    found = []
    for id, title in gates.items():
        labels: Counter[tuple[str, str]] = Counter()
        for record in records:
            if record.get("gate") == id:
                labels[record["status"], _finding(record)] += 1
        if not {state for state, _ in labels} & {"open", "closed", "unsure"}:
            continue
        ranked = sorted(labels.items(), key=lambda item: (STATES.index(item[0][0]), -item[1], item[0][1]))
        found.append(
            {
                "title": title,
                "parts": [{"state": state, "label": label, "n": n} for (state, label), n in ranked],
                "bar": plots.stacked([(state, n) for (state, _), n in ranked]),
            }
        )
    return found


def _finding(record: Record) -> str:
    if record["status"] == "failed":
        return "could not be read"
    return str(record.get("label") or record["reason"].partition(":")[0])


def _cell(cell: Mapping[str, Any], bounded: bool, low: float, high: float, is_best: bool) -> dict[str, Any]:
    missing = [f"{n} × {reason}" for reason, n in cell.get("unscored", {}).items()]
    if cell.get("failed"):
        missing.append(f"{cell['failed']} × failed, see below")
    shown: dict[str, Any] = {"n": cell["n"], "of": cell["of"], "missing": missing, "best": is_best, "mean": None}
    if "mean" in cell:
        interval = cell.get("interval")
        shown |= {
            "mean": cell["mean"],
            "text": cell.get("text") or number(cell["mean"], bounded),
            "interval": f"{number(interval[0], bounded)} to {number(interval[1], bounded)}" if interval else "",
            "plot": plots.whisker(cell["mean"], interval, low, high),
        }
    return shown


def _scale(limits: Sequence[float | None], cells: Any) -> tuple[float, float]:
    """The range of the metric, or what the column spans where the range has no end."""
    values = [0.0]
    for cell in cells:
        values += [cell["mean"]] if "mean" in cell else []
        values += cell.get("interval") or []
    low = min(values) if limits[0] is None else limits[0]
    high = max(values) if limits[1] is None else limits[1]
    return low, high


def _opens_group(k: int, ids: Sequence[str], cards: Mapping[str, Mapping[str, Any]]) -> bool:
    return k > 0 and cards[ids[k]]["group"] != cards[ids[k - 1]]["group"]


def _within(value: float, interval: Sequence[float]) -> bool:
    return bool(interval[0] <= value <= interval[1])


def _branch(stage: str) -> str:
    """Which colour a stage has: the clip itself, its view, its target, or the result."""
    for start, kind in (("view", "view"), ("target", "target"), ("memory", "scored")):
        if stage.startswith(start):
            return kind
    return "base"
