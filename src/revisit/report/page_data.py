"""What the page says besides the clips: header, tables, trouble, protocol; all from the run directory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from revisit.core import SUITES
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, parse_json
from revisit.media import file_digest
from revisit.report import tables
from revisit.report.pages import RunPages
from revisit.report.plots import line_plot
from revisit.report.verdict import verdict_content
from revisit.results import Cell
from revisit.results.display import observed_by_or_set, score_title
from revisit.results.file_types import Details
from revisit.results.model_facts import cost_table, load_model_facts
from revisit.web.templates import Context


def page_content(pages: RunPages, by: Mapping[str, Mapping[str, Any]]) -> Context:
    """Everything the template shows."""
    facts, summary, results, cards, gates = pages.facts, pages.summary, pages.results, pages.cards, pages.gates
    models = summary.get("models", {})
    costs = filter(None, [cost_table(load_model_facts([pages.run.path]), list(models))])
    return {
        "header": _header_content(facts, summary, len(results.cases), len(pages.scenes)),
        "verdict": verdict_content(pages.verdict, summary, pages.floor_models),
        "moments": pages.worst_moment_contents(),
        "stages": tables.funnel_rows(summary.get("funnel", [])),
        "sentences": tables.funnel_sentences(summary.get("funnel", [])),
        "by_model": [
            {**entry, "model": model, "stages": tables.funnel_rows(entry["funnel"])}
            for model, entry in models.items()
            if entry.get("funnel")
        ],
        "findings": tables.gate_finding_rows(results, gates),
        "headline": [tables.suite_table(extra) for extra in summary.get("headline", [])],
        "table": tables.model_table(summary, cards),
        "parts_of_table": _part_tables(summary, summary.get("parts", {}), cards),
        "said": summary.get("sentences", []),
        "tables": [tables.suite_table(extra) for extra in [*summary.get("tables", []), *costs]],
        "drift": [_drift_figure_content(entry) for entry in summary.get("drift", [])],
        "by": {expression: _part_tables(summary, groups, cards) for expression, groups in by.items()},
        "people": _people_section(pages.run.path),
        "diagnosis": tables.diagnosis_table(summary.get("diagnosis") or {}),
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
        "tables": [{**tables.suite_table(extra), "texts": True} for extra in content["tables"] if extra["rows"]],
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
        named.append({"name": name, "table": tables.model_table({"models": part["models"], "metrics": heads}, cards)})
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
