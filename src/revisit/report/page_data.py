"""What the page says besides the clips: header, tables, trouble, protocol; all from the run directory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from revisit.core import SUITES
from revisit.core.grouping import group_items
from revisit.core.records import GATE_STATES
from revisit.core.text import count_and_noun, parse_json, read_package_yaml
from revisit.media import file_digest
from revisit.report.clips import finding_text
from revisit.report.pages import RunPages
from revisit.report.plots import line_plot
from revisit.report.verdict import verdict_content
from revisit.results import Cell, Results
from revisit.results.display import BEST_RULE, HEADINGS, observed_by_or_set, score_title
from revisit.results.file_types import Details
from revisit.results.funnel import LOOKED_AWAY
from revisit.results.model_facts import cost_table, load_model_facts
from revisit.web.templates import Context

SENTENCES = read_package_yaml("revisit.report", "funnel.yaml")
STATES = (*GATE_STATES, "unscored", "failed")


def page_content(pages: RunPages, by: Mapping[str, Mapping[str, Any]]) -> Context:
    """Everything the template shows."""
    facts, summary, results, cards, gates = pages.facts, pages.summary, pages.results, pages.cards, pages.gates
    models = summary.get("models", {})
    costs = filter(None, [cost_table(load_model_facts([pages.run.path]), list(models))])
    return {
        "header": _header_content(facts, summary, len(results.cases), len(pages.scenes)),
        "verdict": verdict_content(pages.verdict, summary, pages.floor_models),
        "moments": pages.worst_moment_contents(),
        "stages": funnel_rows(summary.get("funnel", [])),
        "sentences": funnel_sentences(summary.get("funnel", [])),
        "by_model": [
            {**entry, "model": model, "stages": funnel_rows(entry["funnel"])}
            for model, entry in models.items()
            if entry.get("funnel")
        ],
        "findings": gate_finding_rows(results, gates),
        "headline": [suite_table(extra) for extra in summary.get("headline", [])],
        "table": model_table(summary, cards),
        "parts_of_table": _part_tables(summary, summary.get("parts", {}), cards),
        "said": summary.get("sentences", []),
        "tables": [suite_table(extra) for extra in [*summary.get("tables", []), *costs]],
        "drift": [_drift_figure_content(entry) for entry in summary.get("drift", [])],
        "by": {expression: _part_tables(summary, groups, cards) for expression, groups in by.items()},
        "people": _people_section(pages.run.path),
        "diagnosis": diagnosis_table(summary.get("diagnosis") or {}),
        "cards": list(cards.values()),
        "trouble": _trouble_lists(summary),
        "not_asked": group_items(summary.get("not_asked", {}).items(), lambda one: one[1]),
        "run": facts,
        "tag": summary["protocol"],
        "titles": {**gates, **{id: card["title"] for id, card in cards.items()}},
    }


def _drift_figure_content(entry: Mapping[str, Any]) -> Context:
    """The curves of all models against growing gaps with their bands, and what each colour is."""
    ticks = [(math.log(gap), f"{gap:g}") for gap in entry["gap_seconds"]]
    models = {model: list(map(Cell.from_json, cells)) for model, cells in entry["models"].items()}
    truth = list(map(Cell.from_json, entry.get("truth") or ()))
    plot = line_plot(models, ticks, "seconds between two frames", truth, lowest=0.0)
    return {"title": score_title(entry["metric"]), **plot}


STALE = "The run has been scored again since; `revisit align` brings this up to date."


def _people_section(run: Path) -> Context | None:
    """What people say of the run (`revisit align`): tables of texts, and figures from numbers."""
    path = run / "people.json"
    if not path.is_file():
        return None
    content = parse_json(path.read_text(encoding="utf-8"))
    figures = content["figures"]
    return {
        "tables": [{**suite_table(extra), "texts": True} for extra in content["tables"] if extra["rows"]],
        "notes": content["notes"] + ([STALE] if content["records"] != file_digest(run / "records.jsonl") else []),
        "heat": figures["heat"],
        "ratios": [{**one, "points": _points_with_names(one["points"])} for one in figures["ratios"]],
    }


def _points_with_names(points: Sequence[Sequence[Any]]) -> list[tuple[str, float, float]]:
    """Points (name, share, share) of several models, those in one place together with all their names."""
    together = group_items(points, lambda point: (round(float(point[1]), 3), round(float(point[2]), 3)))
    return [(", ".join(str(name) for name, *_ in some), *place) for place, some in together.items()]


def _part_tables(summary: Details, parts: Mapping[str, Details], cards: Mapping[str, Details]) -> list[Context]:
    """Tables of parts of the clips, each with its models and the metrics that are asked of it; without marks.

    What is best among all clips need not be so in a part of them.
    """
    named: list[Context] = []
    for name, part in parts.items():
        heads = {metric: {**summary["metrics"][metric], "best": None} for metric in part["metrics"]}
        named.append({"name": name, "table": model_table({"models": part["models"], "metrics": heads}, cards)})
    return named


def _header_content(facts: Mapping[str, Any], summary: Mapping[str, Any], cases: int, scenes: int) -> Context:
    suite = SUITES[facts["suite"]].title if facts["suite"] in SUITES else facts["suite"]
    request = facts.get("request") or {}
    source = request.get("source") or "not recorded"
    badges = []
    if summary.get("partial"):
        badges.append(f"Partial: {cases} of {summary['total_cases']} clips (--limit {summary['partial']})")
    if facts["invocations"] and not facts["invocations"][-1]["finished"]:
        badges.append("Unfinished: this is of the clips scored so far")
    return {
        "suite": suite,
        "badges": badges,
        "source": source,
        "place": _last_two_names_of_path(source),
        "facts": [
            count_and_noun(cases, "clip"),
            count_and_noun(scenes, "scene"),
            count_and_noun(len(summary.get("models", {})), "model"),
            f"observers: {observed_by_or_set(facts)}",
            _last_run_date(facts),
        ],
    }


def _last_two_names_of_path(source: str) -> str:
    """The last two names of a path from the root, which tell it apart; anything else as it is."""
    path = PurePath(source)
    return "/".join(path.parts[-2:]) if path.is_absolute() and len(path.parts) > 2 else source


def _last_run_date(facts: Mapping[str, Any]) -> str:
    """When the run was last worked on; read from the run, so that the same run gives the same page."""
    stamps = [entry["finished"] or entry["started"] for entry in facts["invocations"]]
    return f"{datetime.fromisoformat(stamps[-1]):%Y-%m-%d %H:%M} UTC" if stamps else "not recorded"


def _trouble_lists(summary: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What failed, what was noted, and the clips that are missing or were rejected."""
    rejected = summary.get("rejected", [])
    return {
        **{name: summary.get(name, []) for name in ("failed", "notes")},
        "missing": [entry for entry in rejected if entry.get("missing")],
        "rejected": [entry for entry in rejected if not entry.get("missing")],
    }


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
