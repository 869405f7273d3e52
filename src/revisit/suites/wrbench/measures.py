"""Scores under the names of the measures of WRBench's table."""

from __future__ import annotations

from revisit.core import Case, Record, Rejected
from revisit.results import Results
from revisit.results.stand_ins import is_stand_in
from revisit.suites.wrbench.metrics import COLUMNS, STAND_INS

ODOMETRY, NETWORK = "odometry", "network"  # ends of the names of stand-ins: who made them


def metric_id_of_measure(measure: str) -> str:
    """The metric that a measure or a stand-in is read from."""
    return STAND_INS[measure][1] if measure in STAND_INS else COLUMNS[measure]


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
        return next((name for name, (_, of) in STAND_INS.items() if of == metric_id and name.endswith(kind)), None)
    if metric_id == "visual_integrity_lite":
        return "integrity_lite"
    return next((name for name, of in COLUMNS.items() if of == metric_id), None)
