"""Drift of models: the curve of distance against growing gaps, a mean over clips with its interval at each gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from revisit.core import Record
from revisit.results.cells import CellEntry, make_mean_cell
from revisit.results.display import score_title
from revisit.results.results import Results
from revisit.results.tables import Table, make_table

CURVES = ("drift_look", "drift_similarity", "drift_place")


# The curve of one kind of drift, as summary.json has it: `metric`, `gap_seconds`, `models` with a cell per gap, and the
# cells of the `truth`, empty where none is long enough.
DriftEntry = dict[str, Any]


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
