"""Records → tables: per model, over both splits and in each; fidelity by phase with its drop; coverage; the funnel.

A cell counts the clips that the dataset expects, missing ones included. Notes tell which of several places a clip was
taken from, and where files of the dataset disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import METRICS, Case, Rejected
from revisit.results import Results
from revisit.stats.intervals import mean_interval
from revisit.suites.folder.summary import funnel, labels
from revisit.suites.memobench.answers import answered_tables
from revisit.suites.memobench.metrics import FIDELITY, is_sign
from revisit.suites.memobench.sentences import sentences
from revisit.suites.memobench.sheets import SHEETS
from revisit.suites.memobench.strata import ors_tables, trajectory_table
from revisit.suites.tables import (
    ByCase,
    Range,
    by_case,
    cell,
    clip,
    column,
    failures,
    in_sentences,
    metric_ids,
    never_asked,
)

PHASES = ("visible", "hidden", "returned", "all")
CAMERA = "memo_camera"
CAMERA_COLUMNS: Mapping[str, tuple[str, Range]] = {  # column -> fact, and its limits
    "score": ("score", (0, 100)),
    "resting": ("static_score", (0, 100)),
    "by the way turned": ("path_score", (0, 100)),
    "resting, by the way": ("static_path_score", (0, 100)),
    "error removed": ("better_than_static", (None, 1)),
}


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    cases, rejected, records = results.cases, results.rejected, results.records
    answers = by_case(records)
    reasons = {id: never_asked(id, records) for id in metric_ids(records) if not is_sign(id)}
    asked = [id for id, reason in reasons.items() if reason is None]
    models = sorted({case.model for case in cases} | {entry.model for entry in rejected})

    def of(model: str, subset: str | None = None) -> tuple[list[Case], list[Rejected]]:
        """The cases of a model, and what it lacks."""
        return (
            [case for case in cases if case.model == model and subset in (None, case.subset)],
            [entry for entry in rejected if entry.model == model and subset in (None, entry.subset)],
        )

    def scores(mine: Sequence[Case], lacking: Sequence[Rejected]) -> dict[str, Any]:
        return {id: cell(id, mine, answers, len(lacking)) for id in asked}

    parts = {}
    for subset in SHEETS:
        present = {model: of(model, subset) for model in models}
        shown = {
            model: {"cases": len(mine), "scores": scores(mine, lacking)}
            for model, (mine, lacking) in present.items()
            if mine or lacking
        }
        if shown:
            parts[subset] = {"metrics": asked, "models": shown}
    return {
        "cases": len(cases),
        "rejected": in_sentences(rejected),
        "failed": failures(records),
        "notes": [f"{case.id}: {note}" for case in cases for note in case.annotations.get("notes", ())],
        "metrics": {id: column(id, records) for id in asked},
        "not_asked": {id: reason for id, reason in reasons.items() if reason is not None},
        "models": {
            model: {
                "cases": len(of(model)[0]),
                "funnel": funnel(of(model)[0], answers),
                "labels": labels(of(model)[0], answers),
                "scores": scores(*of(model)),
            }
            for model in models
        },
        "funnel": funnel(cases, answers),
        "parts": parts if len(parts) > 1 else {},
        "sentences": sentences(cases, answers, models, [id for id in FIDELITY if id in asked]),
        "tables": [
            *_tables(cases, answers, models),
            *_camera_table(cases, answers, models),
            *answered_tables(cases, answers, models),
            *trajectory_table(cases, answers),
            *ors_tables(cases, answers, models),
        ],
        "coverage": {model: coverage(*of(model)) for model in models},
        "layouts": {
            model: dict(sorted(Counter(str(case.annotations.get("layout")) for case in of(model)[0]).items()))
            for model in models
        },
    }


def coverage(cases: Sequence[Case], rejected: Sequence[Rejected]) -> dict[str, dict[str, int]]:
    """Per split: clips that the dataset expects, those found, and those missing or refused."""
    made = {}
    for subset in SHEETS:
        lacking = [entry for entry in rejected if entry.subset == subset]
        found = sum(case.subset == subset for case in cases)
        if found or lacking:
            missing = sum(entry.missing for entry in lacking)
            made[subset] = {
                "expected": found + len(lacking),
                "found": found,
                "missing": missing,
                "refused": len(lacking) - missing,
            }
    return made


def _tables(cases: Sequence[Case], answers: ByCase, models: Sequence[str]) -> list[dict[str, Any]]:
    """Fidelity by phase, a table per metric: what is lost from before the object leaves to after it returned."""
    tables = []
    for id in FIDELITY:
        rows = []
        for model in models:
            found = [
                (case.sample, record["facts"])
                for case in cases
                if case.model == model
                and (record := answers.get(case.id, {}).get(id, {})).get("status") == "scored"
                and (record["facts"].get("mean") or {}).get("returned") is not None
            ]
            count = sum(case.model == model for case in cases)
            values = {phase: [(facts["mean"].get(phase), sample) for sample, facts in found] for phase in PHASES}
            values["drop"] = [(facts.get("drop"), sample) for sample, facts in found]
            if found:
                cells = [_mean(values[phase], count, METRICS[id].range) for phase in PHASES]
                rows.append({"name": model, "cells": [*cells, _mean(values["drop"], count, (None, None))]})
        if rows:
            metric = METRICS[id]
            tables.append(
                {
                    "title": f"{metric.title}, by phase",
                    "note": f"{metric.unit}; the drop is by how much the returned phase is worse than the visible one",
                    "columns": ["visible", "hidden", "returned", "whole clip", "drop"],
                    "rows": rows,
                }
            )
    return tables


def _camera_table(cases: Sequence[Case], answers: ByCase, models: Sequence[str]) -> list[dict[str, Any]]:
    """The camera score beside what a camera that never moves would get on the same paths."""
    rows = []
    for model in models:
        found = [
            (case.sample, {**record["facts"], "score": record["score"]})
            for case in cases
            if case.model == model and (record := answers.get(case.id, {}).get(CAMERA, {})).get("status") == "scored"
        ]
        count = sum(case.model == model for case in cases)
        if found:
            cells = [
                _mean([(facts.get(name), sample) for sample, facts in found], count, limits)
                for name, limits in CAMERA_COLUMNS.values()
            ]
            rows.append({"name": model, "cells": cells})
    if not rows:
        return []
    note = (
        "percent; resting: a camera that never moves, on the same paths; error removed: the share of its error that is "
        "gone, 1 perfect, 0 no better than resting"
    )
    title = f"{METRICS[CAMERA].title}, beside a resting camera"
    return [{"title": title, "note": note, "columns": list(CAMERA_COLUMNS), "rows": rows}]


def _mean(values: Sequence[tuple[float | None, str]], count: int, limits: Range) -> dict[str, Any]:
    """A cell of numbers that are not themselves scores."""
    known = [(float(value), sample) for value, sample in values if value is not None]
    made: dict[str, Any] = {"n": len(known), "of": count}
    if known:
        numbers = [value for value, _ in known]
        interval = mean_interval(numbers, [sample for _, sample in known])
        made |= {"mean": sum(numbers) / len(numbers), "interval": None if interval is None else clip(interval, limits)}
    return made
