"""WRBench's tables for the console, the report and the published rows.

A table is a title, a note, columns, and rows of texts. Rows marked `detail` are left to the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from revisit.results import Cell
from revisit.results.tables import Table, make_table
from revisit.suites.wrbench.metrics import STAND_INS, TITLES
from revisit.suites.wrbench.tables import (
    ALL,
    CONDITIONS,
    MEASURES,
    ModelRow,
    names_of_present_measures,
    pool_model_rows,
)

BEFORE_SUPPORT = ("precision", "alignment", "hold", "integrity")  # the published table has support in the middle
DAGGER = "†"
SPARSE_NOTE = f"{DAGGER} returned scores based on fewer than 10 clips or less than a tenth of them"
NONE = "–"


def published_columns_table(
    rows: Sequence[ModelRow],
    title: str,
    *,
    counts: bool = True,
    remarks: Sequence[str] = (),
    extra_rows: Sequence[ModelRow] = (),
) -> Table:
    """The published columns, one row per model, by viewpoint condition: D1 to D6, support and Avg.

    `counts` puts n behind means that are not over all clips of a model, and adds a row of all clips; `remarks` stand in
    the note; `extra_rows` are rows outside the contest, which come last.
    """
    after = [measure for measure in MEASURES if measure not in BEFORE_SUPPORT]
    columns = ["viewpoint", "clips", *_measure_titles(BEFORE_SUPPORT), "support", *_measure_titles(after), "Avg"]

    def row_cells(row: ModelRow) -> list[str]:
        texts = [(row.condition.replace("_", " ") or "unknown") if row.model else "", str(row.outputs)]
        texts += [*_measure_texts(row, BEFORE_SUPPORT, counts), f"{row.support:.1%}" if row.judged else NONE]
        average = format_mean_cell(Cell(0, 0, row.average)) if row.model else ""
        return [*texts, *_measure_texts(row, after, counts), average]

    note = "; ".join(filter(None, [SPARSE_NOTE, "(n) where a mean is not over all clips" if counts else "", *remarks]))
    return make_table(title, note, columns, _titled_cells_by_condition(rows, row_cells, extra_rows, counts))


def stand_in_measures_table(
    rows: Sequence[ModelRow], pixels: Mapping[str, str], extra_rows: Sequence[ModelRow] = ()
) -> Table:
    """What was measured in another way than the published columns, and an Avg that holds it.

    `pixels` is each model's support by the pixel gates; `extra_rows` are rows outside the contest, which come last.
    """
    names = [name for name in names_of_present_measures([*rows, *extra_rows]) if name in STAND_INS]
    averages = {}
    for row in (*rows, *extra_rows):
        if (mixed := row.average_with_stand_ins) is not None:
            averages[row.model] = f"{mixed[0]:.3f} with {' and '.join(TITLES[name] for name in mixed[1])}"
    further = {"support by pixels": pixels, "Avg with stand-ins": averages}
    further = {head: texts for head, texts in further.items() if texts}

    def row_cells(row: ModelRow) -> list[str]:
        return [*_measure_texts(row, names), *(texts.get(row.model, "") for texts in further.values())]

    columns = [*_measure_titles(names), *further]
    note = (
        "substitutes for the published measures: odometry for poses, other descriptors for DINOv2, pixels for the judge"
    )
    lines = _titled_cells_by_condition(rows, row_cells, extra_rows, True) if columns else []
    return make_table("Stand-ins", note, columns, lines)


def _titled_cells_by_condition(
    rows: Sequence[ModelRow], cells: Callable[[ModelRow], list[str]], extra_rows: Sequence[ModelRow], total: bool
) -> list[tuple[str, list[str]]]:
    """Rows by viewpoint condition and, with `total`, all clips at the end where there are several models."""
    ordered = sorted(rows, key=lambda row: (_condition_rank(row.condition), row.title.lower()))
    if total and len(rows) > 1:
        ordered.append(replace(pool_model_rows("all clips", rows), model=""))
    return [(row.title, cells(row)) for row in (*ordered, *extra_rows)]


def _measure_titles(measures: Iterable[str]) -> list[str]:
    return [TITLES.get(name, name) for name in measures]


def _measure_texts(row: ModelRow, measures: Sequence[str], counts: bool = True) -> list[str]:
    texts = []
    for measure in measures:
        mark = DAGGER if measure.startswith("returned") and row.has_few_returns and row.model else ""
        texts.append(format_mean_cell(row.cells.get(measure, Cell(0, 0)), row.outputs if counts else None, mark))
    return texts


def slice_table(values: Mapping[str, Mapping[str, ModelRow]], title: str, note: str = SPARSE_NOTE) -> Table:
    """A row per value of a slice over all models, and one per model below it."""
    rows: list[dict[str, object]] = []
    pooled = {value: pool_model_rows(value, members.values()) for value, members in values.items()}
    names = names_of_present_measures(pooled.values())
    for value, members in values.items():
        rows.append({"name": value, "cells": _slice_row_texts(pooled[value], names)})
        below = members if len(members) > 1 else {}
        rows += [{"name": one, "cells": _slice_row_texts(row, names), "detail": True} for one, row in below.items()]
    return {"title": title, "note": note, "columns": ["clips", "support", *_measure_titles(names)], "rows": rows}


def support_by_direction_table(directions: Mapping[str, Mapping[str, Any]]) -> Table:
    """Support by where the camera turns first, and the retention between the two."""
    rows = []
    for model, supports in directions.items():
        cells = []
        for gate in ("judged", "pixels"):
            ratio = supports[f"retention_{gate}"]
            parts = [(supports[side] or {}).get(gate) for side in ("LR", "RL")]
            cells += [f"{part['open']}/{part['of']} {part['share']:.1%}" if part else NONE for part in parts]
            cells.append(NONE if ratio is None else f"{ratio:.2f}")
        if supports["LR"] or supports["RL"]:
            rows.append((model, cells))
    columns = []
    for gate in ("judge", "pixels"):
        columns += [f"left first, {gate}", f"right first, {gate}", "retention"]
    note = (
        "support by where the camera turns first; retention is left first over right first. Read it beside that of a "
        "geometric baseline: the layouts put the subject on the left"
    )
    return make_table("Support by direction", note, columns, rows)


def best_models_table(best: Mapping[str, Mapping[str, tuple[str, float]]]) -> Table:
    """The best model of each viewpoint condition in each measure."""
    names = [name for name in (*ALL, "support") if any(name in leaders for leaders in best.values())]
    rows = []
    for condition, leaders in sorted(best.items(), key=lambda item: _condition_rank(item[0])):
        cells = [f"{leaders[name][0]} {leaders[name][1]:.3f}" if name in leaders else NONE for name in names]
        rows.append((condition.replace("_", " ") or "unknown", cells))
    note = "the best model of each viewpoint condition; sparse rows cannot lead in returned measures"
    return make_table("Frontier", note, _measure_titles(names), rows)


def event_effects_table(contrasts: Sequence[Mapping[str, Any]]) -> Table:
    """What moving and changing the subject do to each measure, over models."""
    rows = []
    for one in contrasts:
        p_values = [NONE if p is None else f"{p:.2g}" for p in (one["p"], one["p_holm"])]
        cells = [f"{one['mean']:+.3f}", str(one["models"]), *p_values]
        rows.append((f"{one['factor']}: {TITLES[one['measure']]}", cells))
    note = "effect of the factor, mean over models; Wilcoxon signed-rank test with Holm's correction over all rows"
    return make_table("What the event does", note, ["mean", "models", "p", "p, Holm"], rows)


def model_series_table(series: Mapping[str, Sequence[ModelRow]], totals: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Means over all clips of each series of models, with its members."""
    names = [name for name in ALL if any(cells[name].mean is not None for cells in totals.values())]
    rows = []
    for name, members in series.items():
        outputs = sum(row.outputs for row in members)
        cells = [", ".join(row.model for row in members), str(outputs)]
        rows.append((name, cells + [format_mean_cell(totals[name][measure], outputs) for measure in names]))
    columns = ["models", "clips", *_measure_titles(names)]
    return make_table("By series of models", "means over all clips of a series", columns, rows)


def patch_mean_sensitivity_table(sensitivities: Mapping[str, Mapping[str, float]]) -> Table:
    """How far integrity depends on which descriptor of a whole frame is taken."""
    rows = []
    for model, facts in sensitivities.items():
        numbers = [f"{facts[name]:.3f}" for name in ("integrity", "patch_mean", "largest_change")]
        rows.append((model, [str(facts["n"]), *numbers]))
    note = "a check, not the measure: the mean of a frame's patches instead of its own token, first frame to last"
    columns = ["clips", "integrity", "with patch mean", "largest change of a clip"]
    return make_table("Integrity with the mean of the patches", note, columns, rows)


def preference_pair_counts_table(counts: Mapping[str, Mapping[str, int]], left_out: Mapping[str, int]) -> Table:
    """How many preference pairs were exported, rule by rule."""
    rows = []
    for rule, preferences in counts.items():
        numbers = [sum(preferences.values()), *(preferences.get(side, 0) for side in ("a", "b", "tie"))]
        rows.append((TITLES.get(rule, rule), [str(number) for number in numbers]))
    out = ", ".join(f"{n} {why}" for why, n in left_out.items() if n) or "none"
    note = f"in preference_pairs.jsonl; pairs of clips of one record left out: {out}"
    return make_table("Preference pairs", note, ["pairs", "first", "second", "ties"], rows)


def format_mean_cell(cell: Cell, outputs: int | None = None, mark: str = "") -> str:
    """`0.764 (400)`: a mean and, where it is not over all clips, how many it rests on; a dash without one."""
    if cell.mean is None:
        return NONE
    return f"{cell.mean:.3f}{mark}" + (f" ({cell.n})" if outputs is not None and cell.n != outputs else "")


def _slice_row_texts(row: ModelRow, names: Sequence[str]) -> list[str]:
    return [str(row.outputs), f"{row.support:.1%}" if row.judged else NONE, *_measure_texts(row, names)]


def _condition_rank(condition: str) -> int:
    return CONDITIONS.index(condition) if condition in CONDITIONS else len(CONDITIONS)
