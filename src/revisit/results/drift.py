"""Drift of models: the curve of distance against growing gaps, a mean over clips with its interval at each gap."""

from __future__ import annotations

from typing import TypedDict

from revisit.results.cells import Cell, CellEntry, cell_of
from revisit.results.display import metric_title
from revisit.results.results import Results
from revisit.results.tables import Table, table

CURVES = ("drift_look", "drift_similarity", "drift_place")


class DriftEntry(TypedDict):
    """The curve of one kind of drift, as summary.json has it."""

    metric: str
    gap_seconds: list[float]
    models: dict[str, list[CellEntry]]  # a cell per gap


def drift_curves(results: Results) -> list[DriftEntry]:
    """A curve per kind of drift and model; empty where no clip is long enough."""
    entries: list[DriftEntry] = []
    for metric in CURVES:
        scores = results.scores(metric) if metric in results.metrics else []
        gaps = sorted({gap for record in scores for gap in record.facts.get("gap_seconds", ())})
        if gaps:
            groups = results.groups("model")
            models = {model: [_cell(part, metric, gap).as_json() for gap in gaps] for model, part in groups.items()}
            entries.append({"metric": metric, "gap_seconds": gaps, "models": models})
    return entries


def _cell(part: Results, metric: str, gap: float) -> Cell:
    """The mean distance of frames so far apart, over the clips that are long enough."""
    values = []
    for record in part.scores(metric):
        curve = dict(zip(record.facts["gap_seconds"], record.facts["gap_distance"], strict=True))
        if gap in curve:
            values.append((float(curve[gap]), record.case.sample))
    return cell_of(values, len(part.about(metric)), (0.0, None))


def drift_table(entry: DriftEntry) -> Table:
    """Models down, gaps across."""
    return table(
        f"{metric_title(entry['metric'])}: distance of frames so many seconds apart",
        "The mean over clips with its 95 % interval over scenes. What grows drifts; where the camera moves on, compare "
        "with the truth.",
        [f"{gap:g} s" for gap in entry["gap_seconds"]],
        [(model, [Cell.from_json(cell) for cell in cells]) for model, cells in entry["models"].items()],
    )
