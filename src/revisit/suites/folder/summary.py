"""Records → tables: per model and metric a mean with its interval, n and coverage; and the funnel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from revisit.core import METRICS, Case, Rejected
from revisit.stats.intervals import mean_interval

Record = dict[str, Any]
NOT_GIVEN = ("no reference video was given for this case", "no target was given for this case")

FUNNEL = (
    # stage, gate, labels that pass
    ("camera moved", "camera_moved", None),
    ("view left", "view_return", ("left, returned", "left, not returned")),
    ("view returned", "view_return", ("left, returned",)),
)
TARGET_FUNNEL = (
    ("target hidden", "target_return", ("hidden, returned", "hidden, not returned")),
    ("target returned", "target_return", ("hidden, returned",)),
)


def summarise(cases: Sequence[Case], rejected: Sequence[Rejected], records: Sequence[Record]) -> dict[str, Any]:
    """The tables of the folder suite."""
    by_case: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:
        by_case[record["case"]][record.get("metric") or record["gate"]] = record
    metrics = list(dict.fromkeys(record["metric"] for record in records if "metric" in record))
    models = sorted({case.model for case in cases})
    asked = [id for id in metrics if not _never_given(id, records)]
    return {
        "cases": len(cases),
        "rejected": [{"id": entry.id, "reason": entry.reason} for entry in rejected],
        "failed": _failures(records),
        "metrics": {id: _column(id, records) for id in asked},
        "not_asked": {id: _never_given(id, records) for id in metrics if id not in asked},
        "models": {
            model: {
                "cases": sum(case.model == model for case in cases),
                "funnel": _funnel([case for case in cases if case.model == model], by_case),
                "labels": _labels([case for case in cases if case.model == model], by_case),
                "scores": {id: _cell(id, [case for case in cases if case.model == model], by_case) for id in asked},
            }
            for model in models
        },
        "funnel": _funnel(cases, by_case),
    }


def _column(id: str, records: Iterable[Record]) -> dict[str, Any]:
    metric = METRICS[id]
    tags = sorted({record["protocol"] for record in records if record.get("metric") == id})
    return {
        "title": metric.title,
        "unit": metric.unit,
        "range": list(metric.range),
        "higher_is_better": metric.higher_is_better,
        "version": metric.version,
        "protocol": tags,
    }


def _cell(id: str, cases: Sequence[Case], by_case: dict[str, dict[str, Record]]) -> dict[str, Any]:
    """Mean over scored cases; everything unscored is counted by reason, never averaged in."""
    metric = METRICS[id]
    scored: list[tuple[float, str]] = []
    reasons: Counter[str] = Counter()
    failed = 0
    for case in cases:
        record = by_case[case.id].get(id)
        if record is None:
            continue
        if record["status"] == "scored":
            scored.append((record["score"], case.sample))
        elif record["status"] == "failed":
            failed += 1
        else:
            reasons[_kind_of(record["reason"])] += 1
    cell: dict[str, Any] = {"n": len(scored), "of": len(cases), "failed": failed}
    if scored:
        values = [value for value, _ in scored]
        cell["mean"] = sum(values) / len(values)
        interval = mean_interval(values, [sample for _, sample in scored])
        cell["interval"] = None if interval is None else _clip(interval, metric.range)
    if reasons:
        cell["unscored"] = dict(sorted(reasons.items()))
    return cell


def _clip(interval: tuple[float, float], range: tuple[float | None, float | None]) -> list[float]:
    low, high = interval
    return [low if range[0] is None else max(low, range[0]), high if range[1] is None else min(high, range[1])]


def _kind_of(reason: str) -> str:
    """The part of a reason before its first colon: what clips have in common."""
    return reason.partition(":")[0]


def _never_given(id: str, records: Iterable[Record]) -> str | None:
    """Why a metric was not asked at all: nobody gave it a reference or a target."""
    reasons = {record.get("reason", "") for record in records if record.get("metric") == id}
    return next(iter(reasons)) if len(reasons) == 1 and reasons <= set(NOT_GIVEN) else None


def _funnel(cases: Sequence[Case], by_case: dict[str, dict[str, Record]]) -> list[dict[str, Any]]:
    """How many cases get as far as posing the question: all → moved → left → returned → scored."""
    readable = [case for case in cases if not _unreadable(by_case[case.id])]
    stages = [{"stage": "all clips", "n": len(cases)}, {"stage": "readable", "n": len(readable)}]
    left = readable
    asked = {id for case in readable for id in by_case[case.id]}
    for stage, gate, labels in FUNNEL:
        if gate not in asked:
            continue
        left = [case for case in left if _passes(by_case[case.id].get(gate), labels)]
        stages.append({"stage": stage, "n": len(left)})
    with_target = [case for case in readable if case.target is not None]
    if with_target and "target_return" in asked:
        stages.append({"stage": "target given", "n": len(with_target)})
        left_target = with_target
        for stage, gate, labels in TARGET_FUNNEL:
            left_target = [case for case in left_target if _passes(by_case[case.id].get(gate), labels)]
            stages.append({"stage": stage, "n": len(left_target)})
    scored = [case for case in readable if any(_is_memory(record) for record in by_case[case.id].values())]
    stages.append({"stage": "memory scored", "n": len(scored)})
    return stages


def _labels(cases: Sequence[Case], by_case: dict[str, dict[str, Record]]) -> dict[str, dict[str, int]]:
    """How often each gate came to each finding."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        for record in by_case[case.id].values():
            if "gate" in record and record["status"] in ("open", "closed", "unsure"):
                found[record["gate"]][record["label"]] += 1
    return {gate: dict(sorted(labels.items())) for gate, labels in sorted(found.items())}


def _passes(record: Record | None, labels: tuple[str, ...] | None) -> bool:
    if record is None:
        return False
    return record["status"] == "open" if labels is None else record.get("label") in labels


def _is_memory(record: Record) -> bool:
    """A score that only a clip which looked away and back can get."""
    return record["status"] == "scored" and bool(
        set(METRICS[record["metric"]].gates) & {"view_return", "target_return"}
    )


def _unreadable(records: dict[str, Record]) -> bool:
    return bool(records) and all(record["status"] == "failed" for record in records.values())


def _failures(records: Iterable[Record]) -> list[dict[str, str]]:
    """One line per case and distinct sentence."""
    found = dict.fromkeys((record["case"], record["reason"]) for record in records if record["status"] == "failed")
    return [{"case": case, "reason": reason} for case, reason in found]
