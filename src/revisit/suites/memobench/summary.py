"""Results → tables: the standard ones, over both splits and in each; fidelity by phase with its drop; the camera.

Notes tell which of several places a clip was taken from, and where files of the dataset disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from revisit.core import METRICS
from revisit.results import Results
from revisit.results.results import Limits, cell_of
from revisit.results.tables import Table, standard_summary, table
from revisit.suites.memobench.answers import answered_tables
from revisit.suites.memobench.exports import SCORE, Place, value_at
from revisit.suites.memobench.metrics import FIDELITY, is_sign
from revisit.suites.memobench.sentences import sentences
from revisit.suites.memobench.sheets import SHEETS
from revisit.suites.memobench.strata import ors_tables, trajectory_table

Columns = Mapping[str, tuple[Place, Limits]]  # name -> where a record has the number, and its limits
RETURNED = ("mean", "returned")
PHASES = {
    "visible": ("mean", "visible"),
    "hidden": ("mean", "hidden"),
    "returned": RETURNED,
    "whole clip": ("mean", "all"),
}
CAMERA = "memo_camera"
CAMERA_COLUMNS: Columns = {
    "score": (SCORE, (0, 100)),
    "resting": (("static_score",), (0, 100)),
    "by distance turned": (("path_score",), (0, 100)),
    "resting, by distance turned": (("static_path_score",), (0, 100)),
    "error removed": (("better_than_static",), (None, 1)),
}


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    shown = [id for id in results.metrics if not is_sign(id)]
    parts = {subset: results.where(subset=subset) for subset in SHEETS}
    return standard_summary(results, metrics=shown, parts=parts) | {
        "notes": [f"{case.id}: {note}" for case in results.cases for note in case.annotations.get("notes", ())],
        "sentences": sentences(results),
        "tables": [
            *(one for id in FIDELITY for one in _phase_table(results, id)),
            *_camera_table(results),
            *answered_tables(results),
            *trajectory_table(results),
            *ors_tables(results),
        ],
        "layouts": {
            model: dict(sorted(Counter(str(case.annotations.get("layout")) for case in mine.cases).items()))
            for model, mine in results.groups().items()
        },
    }


def _phase_table(results: Results, id: str) -> list[Table]:
    """Fidelity by phase: what is lost from before the object leaves to after it returned."""
    metric = METRICS[id]
    note = f"{metric.unit}; drop: how much worse the returned phase is than the visible one"
    columns: Columns = {name: (place, metric.range) for name, place in PHASES.items()}
    columns = {**columns, "drop": (("drop",), (None, None))}
    return _table(results, id, f"{metric.title}, by phase", note, columns, RETURNED)


def _camera_table(results: Results) -> list[Table]:
    """The camera score beside what a camera that never moves would get on the same paths."""
    note = (
        "percent; resting: a camera that never moves, on the same paths; error removed: the share of the resting "
        "camera's error that is gone, 1 is perfect, 0 no better than resting"
    )
    return _table(
        results, CAMERA, f"{METRICS[CAMERA].title}, compared with a resting camera", note, CAMERA_COLUMNS, SCORE
    )


def _table(results: Results, id: str, title: str, note: str, columns: Columns, having: Place) -> list[Table]:
    """A row per model with numbers of its records, of those that have one of them; none without any row."""
    rows = []
    for model, mine in results.groups().items():
        found = [record for record in mine.scores(id) if value_at(record, having) is not None]
        cells = []
        for place, limits in columns.values():
            values = [(value, r.case.sample) for r in found if (value := value_at(r, place)) is not None]
            cells.append(cell_of(values, mine.expected(id), limits))
        if found:
            rows.append((model, cells))
    return [table(title, note, columns, rows)] if rows else []
