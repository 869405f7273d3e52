"""Records → tables: per model and metric a mean with its interval, n and coverage; and the funnel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import METRICS, Case
from revisit.results import Results
from revisit.suites.tables import (
    ByCase,
    Record,
    absent,
    by_case,
    cell,
    column,
    failures,
    metric_ids,
    unreadable,
    was_asked,
)

FUNNEL = (
    # stage, gate, labels that pass
    ("camera moved", "camera_moved", None),
    ("view left", "view_return", ("left, returned", "left, not returned")),
    ("view returned", "view_return", ("left, returned",)),
)
MEMORY = ("target_return", "returning", "outcome")  # families that judge memory by their own rules
TARGET_FUNNEL = (
    ("target hidden", "target_return", ("hidden, returned", "hidden, not returned")),
    ("target returned", "target_return", ("hidden, returned",)),
)


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the folder suite."""
    cases, rejected, records = results.cases, results.rejected, results.records
    answers = by_case(records)
    metrics = metric_ids(records)
    models = sorted({case.model for case in cases})
    lacking = {id: reason for id in metrics if (reason := absent(id, records))}
    asked = [id for id in metrics if id not in lacking]
    return {
        "cases": len(cases),
        "rejected": [{"id": entry.id, "reason": entry.reason} for entry in rejected],
        "failed": failures(records),
        "metrics": {id: column(id, records) for id in asked},
        "not_asked": lacking,
        "models": {
            model: {
                "cases": sum(case.model == model for case in cases),
                "funnel": funnel([case for case in cases if case.model == model], answers),
                "labels": labels([case for case in cases if case.model == model], answers),
                "scores": {id: cell(id, [case for case in cases if case.model == model], answers) for id in asked},
            }
            for model in models
        },
        "funnel": funnel(cases, answers),
    }


def funnel(cases: Sequence[Case], answers: ByCase) -> list[dict[str, Any]]:
    """How many cases get as far as posing the question: all → moved → left → returned → scored."""
    readable = [case for case in cases if not unreadable(answers[case.id])]
    stages = [{"stage": "all clips", "n": len(cases)}, {"stage": "readable", "n": len(readable)}]
    left = readable
    asked = {gate for _, gate, _ in (*FUNNEL, *TARGET_FUNNEL) if was_asked([gate], answers, readable)}
    for stage, gate, labels in FUNNEL:
        if gate not in asked:
            continue
        left = [case for case in left if _passes(answers[case.id].get(gate), labels)]
        stages.append({"stage": stage, "n": len(left)})
    with_target = [case for case in readable if case.target is not None]
    if with_target and "target_return" in asked:
        stages.append({"stage": "target given", "n": len(with_target)})
        left_target = with_target
        for stage, gate, labels in TARGET_FUNNEL:
            left_target = [case for case in left_target if _passes(answers[case.id].get(gate), labels)]
            stages.append({"stage": stage, "n": len(left_target)})
    memory = {id for case in cases for id in answers[case.id] if id in METRICS and is_memory(id)}
    if was_asked(memory, answers, cases):
        scored = [c for c in readable if any(answers[c.id].get(id, {}).get("status") == "scored" for id in memory)]
        stages.append({"stage": "memory scored", "n": len(scored)})
    return stages


def labels(cases: Sequence[Case], answers: ByCase) -> dict[str, dict[str, int]]:
    """How often each gate came to each finding."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        for record in answers[case.id].values():
            if "gate" in record and record["status"] in ("open", "closed", "unsure"):
                found[record["gate"]][record["label"]] += 1
    return {gate: dict(sorted(labels.items())) for gate, labels in sorted(found.items())}


def _passes(record: Record | None, labels: tuple[str, ...] | None) -> bool:
    if record is None:
        return False
    return record["status"] == "open" if labels is None else record.get("label") in labels


def is_memory(id: str) -> bool:
    """Whether only a clip which looked away and back can get a score of this metric."""
    metric = METRICS[id]
    return metric.family in MEMORY or bool(set(metric.gates) & {"view_return", "target_return"})
