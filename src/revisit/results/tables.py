"""What the summaries of all suites share: the standard tables of a run, as summary.json has them.

Where clips are long enough, they have curves of drift, too: the distance of frames against growing gaps, as a mean over
clips with its interval at each gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from revisit.core import METRICS, Record, Rejected
from revisit.core.cases import CATEGORY
from revisit.core.grouping import group_items
from revisit.core.text import join_names
from revisit.results.ceilings import count_low_truth_scores, metrics_changed_by_truth
from revisit.results.cells import Cell, CellEntry, make_mean_cell
from revisit.results.display import name_of_significantly_best, score_title, some_look_beats_truth
from revisit.results.file_types import Stage
from revisit.results.funnel import count_funnel_stages
from revisit.results.results import Results
from revisit.results.score_names import add_held_suffix
from revisit.results.stand_ins import stand_in_makers_by_metric

NAMED = 6  # missing clips named in a sentence
CURVES = ("drift_look", "drift_similarity", "drift_place")
Table = dict[str, Any]  # title, note, columns, and rows of a name and cells
# The curve of one kind of drift, as summary.json has it: `metric`, `gap_seconds`, `models` with a cell per gap, and the
# cells of the `truth`, empty where none is long enough.
DriftEntry = dict[str, Any]


def make_table(title: str, note: str, columns: Iterable[str], rows: Iterable[tuple[str, Sequence[Any]]]) -> Table:
    """A table of a suite: rows with a name, whose cells are texts, scores, or scores as summary.json has them."""
    return {
        "title": title,
        "note": note,
        "columns": list(columns),
        "rows": [
            {"name": name, "cells": [cell.as_json() if isinstance(cell, Cell) else cell for cell in cells]}
            for name, cells in rows
        ],
    }


def standard_summary(
    results: Results,
    *,
    metrics: Sequence[str] | None = None,
    cell: Callable[[Results, str], Cell] = Results.cell,
    funnel: Callable[[Results], Sequence[Stage]] = count_funnel_stages,
    parts: Mapping[str, Results] | None = None,
    noun: str = "clip",
    places: Sequence[str] = ("subset",),
) -> dict[str, Any]:
    """Summarise results: clips, what went wrong, and per model the funnel, labels of gates, scores and coverage.

    Parameters
    ----------
    results
        All answers of a run.
    metrics
        Those with a column; all by default.
    cell
        Function (results, metric) that makes a cell of some clips.
    funnel
        Function of results that counts the clips at each stage.
    parts
        Parts of the dataset with tables of their own, by name.
    noun
        What a clip is called.
    places
        Facts by which missing clips are listed.

    Returns
    -------
    dict
        The content of summary.json.

    Examples
    --------
    >>> revisit.standard_summary(results)["cases"]
    2
    """
    columns = results.metrics if metrics is None else metrics
    lacking = {id: reason.sentence for id in columns if (reason := results.lacking(id)) is not None}
    scored = [id for id in columns if id not in lacking]
    groups = results.groups("model")
    models = {model: groups[model] for model in results.models}
    cells = {model: {id: cell(own, id) for id in scored} for model, own in models.items()}
    ranked = [model for model in models if model not in results.floors]
    held = [id for id in scored if id in metrics_changed_by_truth(results)]
    truths = {id: cell(results.truth, id) for id in scored if results.truth.records_for(id)} if results.truths else {}
    makers = stand_in_makers_by_metric(results)
    summary = {
        "cases": len(results.cases),
        "rejected": rejection_rows(results.rejected, noun, places),
        "failed": [{"case": record.case.id, "reason": record.sentence} for record in results.failures],
        "metrics": {
            id: {
                **metric_column_head(id, results),
                **({"stand_in": makers[id]} if id in makers else {}),
                "best": _best_of(id, {m: own[id] for m, own in cells.items()}, ranked, truths.get(id)),
            }
            for id in scored
        },
        "not_asked": lacking,
        "models": {
            model: {
                "cases": len(own.cases),
                "funnel": funnel(own),
                "labels": own.labels(),
                "scores": {id: one.as_json() for id, one in cells[model].items()},
                **_held_scores(own, held),
                **_common_category(own),
            }
            for model, own in models.items()
        },
        "funnel": funnel(results),
    }
    if results.truths:
        truth = results.truth
        summary["truth"] = {
            "name": results.truth_name,
            "cases": len(truth.cases),
            "labels": truth.labels(),
            "scores": {id: one.as_json() for id, one in truths.items()},
            **_held_scores(truth, held),
            "low": count_low_truth_scores(results),
        }
    return summary if parts is None else summary | _tables_and_coverage_by_part(parts, scored, cell, list(models))


def _best_of(metric: str, cells: Mapping[str, Cell], ranked: Iterable[str], truth: Cell | None) -> str | None:
    """The model that can be called best in a metric; none where an unchanged look would be."""
    if some_look_beats_truth(metric, (cell.mean for cell in cells.values()), None if truth is None else truth.mean):
        return None
    return name_of_significantly_best({model: cells[model] for model in ranked}, METRICS[metric].higher_is_better)


def _tables_and_coverage_by_part(
    parts: Mapping[str, Results],
    metrics: Sequence[str],
    cell: Callable[[Results, str], Cell],
    models: Sequence[str],
) -> dict[str, Any]:
    """A table for each of several parts of the dataset, and how many of its clips each model has."""
    filled = {name: part for name, part in parts.items() if part.entries}
    tables = {}
    for name, part in filled.items() if len(filled) > 1 else ():
        if ids := [id for id in metrics if any(part.asks(id, entry) for entry in part.entries)]:
            tables[name] = summarise_part(part, ids, cell)
    coverages = {
        model: coverage_by_part({name: part.where(model=model) for name, part in filled.items()}) for model in models
    }
    return {"parts": tables, "coverage": coverages}


def _held_scores(mine: Results, held: Iterable[str]) -> dict[str, dict[str, CellEntry]]:
    """Scores held to the truth, of the metrics in which these are other numbers; nothing where there are none."""
    cells = {id: mine.cell(add_held_suffix(id)).as_json() for id in held}
    return {"held": cells} if cells else {}


def _common_category(mine: Results) -> dict[str, str]:
    """What all clips of a model say that they are, such as floor; nothing for a model."""
    categories = {case.category for case in mine.cases}
    return {CATEGORY: categories.pop()} if len(categories) == 1 and "" not in categories else {}


def summarise_part(
    part: Results, metrics: Sequence[str], cell: Callable[[Results, str], Cell] = Results.cell
) -> dict[str, Any]:
    """The table of a part of the clips."""
    return {
        "metrics": list(metrics),
        "models": {
            model: {"cases": len(own.cases), "scores": {id: cell(own, id).as_json() for id in metrics}}
            for model, own in ((model, part.where(model=model)) for model in part.models)
        },
    }


def metric_column_head(id: str, results: Results) -> dict[str, Any]:
    """What the head of a column says."""
    metric = METRICS[id]
    return {
        "title": metric.title,
        "unit": metric.unit,
        "range": list(metric.range),
        "higher_is_better": metric.higher_is_better,
        "version": metric.version,
        "protocol": sorted({record.protocol for record in results.records_for(id)}),
    }


def coverage_by_part(parts: Mapping[str, Results]) -> dict[str, dict[str, int]]:
    """Per part of the dataset: clips that it expects, those found, and those missing or refused."""
    counts_by_part = {}
    for name, part in parts.items():
        if part.entries:
            missing = sum(entry.missing for entry in part.rejected)
            counts_by_part[name] = {
                "expected": len(part.entries),
                "found": len(part.cases),
                "missing": missing,
                "refused": len(part.rejected) - missing,
            }
    return counts_by_part


def rejection_rows(rejected: Sequence[Rejected], noun: str, place_fields: Sequence[str]) -> list[dict[str, object]]:
    """What was refused, one by one; what is missing, in one sentence per model and place, which names a few."""
    rows: list[dict[str, object]] = [{"id": one.id, "reason": one.reason} for one in rejected if not one.missing]
    missing = [entry for entry in rejected if entry.missing]
    by_place = group_items(
        missing, lambda entry: (entry.model, "/".join(getattr(entry, name) for name in place_fields))
    )
    for (model, place), entries in by_place.items():
        ids = (entry.id.removesuffix("#0").removesuffix(f"@{model}") for entry in entries)
        names = [id.removeprefix(f"{place}/") for id in ids]
        count = f"1 {noun} is missing" if len(names) == 1 else f"{len(names)} {noun}s are missing"
        id = f"{place}@{model}" if place else model
        rows.append({"id": id, "reason": f"{count}: {join_names(names, NAMED)}", "missing": True})
    return rows


def drift_curves(results: Results) -> list[DriftEntry]:
    """A curve per kind of drift and model; empty where no clip is long enough."""
    entries: list[DriftEntry] = []
    for metric in CURVES:
        scores = results.scores(metric) if metric in results.metrics else []
        gaps = sorted({gap for record in scores for gap in record.facts.get("gap_seconds", ())})
        if gaps:
            models = {
                model: _drift_cells_by_gap(part.records_for(metric), gaps)
                for model, part in results.groups("model").items()
            }
            truth = _drift_cells_by_gap(results.truth.records_for(metric), gaps) if results.truths else []
            entries.append({"metric": metric, "gap_seconds": gaps, "models": models, "truth": truth})
    return entries


def _drift_cells_by_gap(records: Sequence[Record], gaps: Sequence[float]) -> list[CellEntry]:
    """The mean distance of frames so far apart, over the clips that are long enough, for each gap."""
    curves = [
        (record.case.scene, dict(zip(record.facts["gap_seconds"], record.facts["gap_distance"], strict=True)))
        for record in records
        if record.scored
    ]
    return [
        make_mean_cell(
            [(float(curve[gap]), scene) for scene, curve in curves if gap in curve], len(records), (0.0, None)
        ).as_json()
        for gap in gaps
    ]


def drift_table(entry: DriftEntry) -> Table:
    """Models down, gaps across; the truth last."""
    rows = [*entry["models"].items(), *([("truth", entry["truth"])] if entry["truth"] else [])]
    return make_table(
        f"{score_title(entry['metric'])}: distance of frames so many seconds apart",
        "The mean over clips with its 95 % interval over scenes. What grows drifts; where the camera moves on, compare "
        "with the truth.",
        [f"{gap:g} s" for gap in entry["gap_seconds"]],
        rows,
    )
