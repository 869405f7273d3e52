"""WRBench's tables: one row per model, support beside conditional means, and never a single score without its parts.

Returned measures are means over the outputs whose return can be judged, and sparse where these are few. Avg is the
plain mean of `AVERAGED`; where a stand-in has to serve, that is another Avg, which says so (docs/wrbench.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from revisit.core import Case, Record, Rejected
from revisit.core.text import join_names, read_package_yaml
from revisit.results import Cell, Results
from revisit.results.stand_ins import is_stand_in
from revisit.stats.correlation import pearson_matrix
from revisit.stats.paired import holm_corrected_p, wilcoxon_signed_rank
from revisit.suites.wrbench.metrics import COLUMNS, METRIC_OF, STAND_INS

MEASURES = tuple(COLUMNS)
ALL = (*MEASURES, *STAND_INS)
CONDITIONS = ("source_video", "geometry_cache", "model_inferred", "prompt_only")  # in the order of the table
AVERAGED = ("alignment", "integrity", "visible_spatial", "visible_state", "returned_spatial", "returned_state")
SPARSE_COUNT, SPARSE_SHARE = 10, 0.10
FACTORS = ("none", "spatial", "state_only", "full")  # of events: does the subject move, does its state change, or both
ODOMETRY, NETWORK = "odometry", "network"  # ends of the names of stand-ins: who made them
SummaryRow = Mapping[str, Any]  # of summary.json: facts of a model, and a value and n under the name of each measure


def rename_scores_by_measure(results: Results) -> Results:
    """The scores under the name of their measure or stand-in, and the gates as they are.

    Clips whose inputs may have shown the return have no returned measures.
    """

    def rename_record(record: Record) -> Record | None:
        name = measure_of_record(record) if record.scored else None
        if name is None or (name.startswith("returned") and inputs_may_show_return(record.case)):
            return record if record.is_gate else None
        return record.with_changed_fields(question=name)

    return results.mapped(rename_record)


def inputs_may_show_return(entry: Case | Rejected) -> bool:
    """Whether the inputs of a clip may have shown what comes back."""
    return isinstance(entry, Case) and bool(entry.annotations.get("leaks"))


def measure_of_record(record: Record) -> str | None:
    """The measure or stand-in that a score belongs to, by its metric and by who made its evidence."""
    metric_id = record.question
    if is_stand_in(record):
        kind = ODOMETRY if record.facts.get("poses_from") == ODOMETRY else NETWORK
        return next((name for name in STAND_INS if METRIC_OF[name] == metric_id and name.endswith(kind)), None)
    return next((name for name, of in METRIC_OF.items() if of == metric_id), None)


@dataclass(frozen=True)
class ModelRow:
    """One model's measures."""

    model: str
    title: str
    condition: str  # viewpoint condition: source_video, geometry_cache, model_inferred, prompt_only
    outputs: int
    cells: Mapping[str, Cell] = field(default_factory=dict)
    judged: bool = True  # whether anybody was asked for the support
    group: str = ""  # of the published table
    printed_average: float | None = None  # of the paper, where it is not the mean of the published numbers

    def mean_of_measure(self, measure: str) -> float | None:
        return self.cells[measure].mean if measure in self.cells else None

    @property
    def judgeable_count(self) -> int:
        """How many outputs have a return that can be judged."""
        return self.cells["returned_spatial"].n if "returned_spatial" in self.cells else 0

    @property
    def support(self) -> float:
        """Share of outputs whose return can be judged."""
        return self.judgeable_count / self.outputs if self.outputs else 0.0

    @property
    def has_few_returns(self) -> bool:
        """Whether too few outputs came back for their mean to be read."""
        return self.judgeable_count < SPARSE_COUNT or self.support < SPARSE_SHARE

    @property
    def average(self) -> float | None:
        """Mean of the six averaged measures; None where one of them is missing."""
        values = [self.mean_of_measure(measure) for measure in AVERAGED]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if len(present) == len(AVERAGED) else None

    @property
    def average_with_stand_ins(self) -> tuple[float, tuple[str, ...]] | None:
        """The same mean with stand-ins where a measure is missing, and which they are; None where one is still missing,
        or where none was needed."""
        values, used = [], []
        for measure in AVERAGED:
            names = [measure, *(name for name, of in STAND_INS.items() if of == measure)]
            source = next((name for name in names if self.mean_of_measure(name) is not None), None)
            if source is None:
                return None
            values.append(self.mean_of_measure(source) or 0.0)
            used += [source] if source != measure else []
        return (sum(values) / len(values), tuple(used)) if used else None

    def to_json(self, support: SummaryRow, input: str = "", checkpoint: str = "") -> dict[str, Any]:
        """The row as summary.json has it, with support by the judge's gate and by that of the pixels."""
        mixed = self.average_with_stand_ins
        return {
            "model": self.model,
            "condition": self.condition,
            "input": input,
            "checkpoint": checkpoint,
            "outputs": self.outputs,
            "clips": self.outputs,
            **measure_cells_json(self.cells),
            "support": support,
            "sparse": self.has_few_returns,
            "average": self.average,
            "average_with_stand_ins": None if mixed is None else {"value": mixed[0], "stand_ins": list(mixed[1])},
        }


def measure_cells_json(cells: Mapping[str, Cell]) -> dict[str, Any]:
    """Mean and n of each measure and stand-in."""
    every = {measure: cells.get(measure, Cell(0, 0)) for measure in ALL}
    return {measure: {"value": cell.mean, "n": cell.n} for measure, cell in every.items()}


def output_weighted_means(rows: Collection[ModelRow]) -> dict[str, Cell]:
    """Means over all outputs of all models, each model counting by its n."""
    cells = {}
    for measure in ALL:
        parts = [row.cells[measure] for row in rows if measure in row.cells]
        scored = [(cell.mean, cell.n) for cell in parts if cell.mean is not None and cell.n]
        n = sum(count for _, count in scored)
        mean = sum(value * count for value, count in scored) / n if n else None
        cells[measure] = Cell(n, sum(cell.of for cell in parts), mean)
    return cells


def pool_model_rows(title: str, rows: Collection[ModelRow]) -> ModelRow:
    """One row over the outputs of all these models."""
    outputs, judged = sum(row.outputs for row in rows), any(row.judged for row in rows)
    return ModelRow(title, title, "", outputs, output_weighted_means(rows), judged)


def names_of_present_measures(rows: Collection[ModelRow]) -> list[str]:
    """The measures and stand-ins that any of the rows has."""
    return [name for name in ALL if any(row.mean_of_measure(name) is not None for row in rows)]


def measure_correlations(rows: Sequence[ModelRow]) -> dict[str, dict[str, float | None]]:
    """Pearson's correlation between the measures, and support, over models."""
    columns = {
        measure: [row.mean_of_measure(measure) for row in rows]
        for measure in (*MEASURES, *names_of_present_measures(rows))
    }
    return pearson_matrix({**columns, "support": [row.support for row in rows]})


def best_models_by_condition(rows: Iterable[ModelRow]) -> dict[str, dict[str, tuple[str, float]]]:
    """Per viewpoint condition and measure the best model and its value; sparse rows do not lead returned measures."""
    best_by_condition: dict[str, dict[str, tuple[str, float]]] = {}
    for row in rows:
        for measure in (*ALL, "support"):
            value = row.support if measure == "support" else row.mean_of_measure(measure)
            if value is None or (measure.startswith("returned") and row.has_few_returns):
                continue
            best = best_by_condition.setdefault(row.condition, {}).get(measure)
            if best is None or value > best[1]:
                best_by_condition[row.condition][measure] = (row.title, value)
    return best_by_condition


def left_to_right_support_ratio(left_first: float | None, right_first: float | None) -> float | None:
    """Support when turning left first over support when turning right first; None where nothing came back.

    Layouts put the subject on the left, so even exact geometry loses it less often one way than the other: read a
    model's retention beside that of a geometric baseline on the same scenes.
    """
    return left_first / right_first if left_first is not None and right_first else None


def event_factor_contrasts(
    by_model: Mapping[str, Mapping[str, Mapping[str, float]]], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """The 2 x 2 design per measure: model -> factor cell -> measure -> mean; models that lack a cell are left out.

    `moves` is the mean of (spatial - none) and (full - state_only), `changes` of (state_only - none) and (full -
    spatial), `interaction` their difference of differences: `mean` over the `models`, with `p`, and with `p_holm` by
    Holm's correction over everything asked here.
    """
    rows: list[dict[str, Any]] = []
    for measure in measures:
        cells = [
            [by_model[model][factor][measure] for factor in FACTORS]
            for model in sorted(by_model)
            if all(measure in by_model[model].get(factor, {}) for factor in FACTORS)
        ]
        effects = {
            "moves": [((s - o) + (f - t)) / 2 for o, s, t, f in cells],
            "changes": [((t - o) + (f - s)) / 2 for o, s, t, f in cells],
            "interaction": [(f - t) - (s - o) for o, s, t, f in cells],
        }
        for factor, values in effects.items() if cells else ():
            test = wilcoxon_signed_rank([0.0] * len(values), values)
            effect = {"factor": factor, "measure": measure, "mean": sum(values) / len(values), "models": len(values)}
            rows.append({**effect, "p": None if test is None else test.p})
    corrected = iter(holm_corrected_p([row["p"] for row in rows if row["p"] is not None]))
    return [{**row, "p_holm": None if row["p"] is None else next(corrected)} for row in rows]


@cache
def published_model_rows() -> tuple[str, tuple[ModelRow, ...]]:
    """(source, rows) of the paper's table."""
    content = read_package_yaml(__package__, "published.yaml")
    rows = []
    for row in content["rows"]:
        cells = {name: Cell(n, row["outputs"], mean) for name in MEASURES for mean, n in [row[name]]}
        facts = {name: row.get(name) for name in ("model", "title", "condition", "outputs", "group", "printed_average")}
        rows.append(ModelRow(cells=cells, **facts))
    return content["source"], tuple(rows)


def published_row_of_model(model: str) -> ModelRow | None:
    """The row of a model in the paper's table, whatever its name is written like; None where it has none."""
    name = re.sub(r"[^a-z0-9]+", "_", model.lower())
    return next((row for row in published_model_rows()[1] if row.model == name), None)


def printed_averages_note() -> str:
    """Which averages the paper prints otherwise than its numbers give them."""
    rows = [row for row in published_model_rows()[1] if row.printed_average is not None]
    names = join_names([f"{row.printed_average:.3f} for {row.title}" for row in rows])
    return f"Avg is the mean of the published numbers; the paper prints {names}"


T2V_MEASURES = ("alignment", "visible_spatial", "visible_state")


@cache
def published_text_to_video_rows() -> tuple[str, tuple[SummaryRow, ...]]:
    """(source, rows) of the addendum for generators that get only text: a row per camera, and one over all of them."""
    content = read_package_yaml(__package__, "published.yaml")["t2v"]
    return content["source"], tuple(content["rows"])


def published_groups_of_model(model: str, condition: str) -> tuple[str, str]:
    """`paper_group` and `source_group` of a model, as the published table has them; NA where nobody gave it one."""
    row, in_words = published_row_of_model(model), condition == "prompt_only"
    group = (row.group if row else "") or ("API prompt-camera" if in_words else "NA")
    return group, "api_prompt_camera" if in_words else "local_deployed"
