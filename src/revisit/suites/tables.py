"""What the tables of all suites are made of: a column per metric, a cell per model and metric, and what went wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from revisit.core import METRICS, Case, Rejected
from revisit.stats.intervals import mean_interval

Record = dict[str, Any]
NAMED = 5  # missing clips named in a sentence
Range = tuple[float | None, float | None]
ByCase = Mapping[str, Mapping[str, Record]]  # case id -> metric or gate id -> record


def by_case(records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    """Records by case, then by metric or gate."""
    found: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:
        found[record["case"]][record.get("metric") or record["gate"]] = record
    return found


def metric_ids(records: Iterable[Record]) -> list[str]:
    """The metrics that were asked, in the order of the records."""
    return list(dict.fromkeys(record["metric"] for record in records if "metric" in record))


def column(id: str, records: Iterable[Record]) -> dict[str, Any]:
    """What the head of a column says."""
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


def cell(id: str, cases: Sequence[Case], answers: ByCase, missing: int = 0) -> dict[str, Any]:
    """Mean over scored cases; everything unscored is counted by reason, never averaged in.

    `missing` are cases that the dataset expects and nobody made: they count in `of`.
    """
    metric = METRICS[id]
    scored: list[tuple[float, str]] = []
    reasons: Counter[str] = Counter()
    failed = 0
    for case in cases:
        record = answers.get(case.id, {}).get(id)
        if record is None:
            continue
        if record["status"] == "scored":
            scored.append((record["score"], case.sample))
        elif record["status"] == "failed":
            failed += 1
        else:
            reasons[kind_of(record["reason"])] += 1
    if missing:
        reasons["missing"] += missing
    made: dict[str, Any] = {"n": len(scored), "of": len(cases) + missing, "failed": failed}
    if scored:
        values = [value for value, _ in scored]
        made["mean"] = sum(values) / len(values)
        interval = mean_interval(values, [sample for _, sample in scored])
        made["interval"] = None if interval is None else clip(interval, metric.range)
    if reasons:
        made["unscored"] = dict(sorted(reasons.items()))
    return made


def kind_of(reason: str) -> str:
    """The part of a reason before its first colon: what clips have in common."""
    return reason.partition(":")[0]


def unreadable(records: Mapping[str, Record]) -> bool:
    """Whether nothing at all could be answered of a case: all failed, but for what nobody could be asked anyway."""
    failed = [record["status"] == "failed" for record in records.values()]
    return any(failed) and all(
        record["status"] == "failed" or (record["status"] == "unscored" and not record.get("facts"))
        for record in records.values()
    )


def failures(records: Iterable[Record]) -> list[dict[str, str]]:
    """One line per case and distinct sentence."""
    found = dict.fromkeys((record["case"], record["reason"]) for record in records if record["status"] == "failed")
    return [{"case": case, "reason": reason} for case, reason in found]


def clip(interval: tuple[float, float], range: Range) -> list[float]:
    """The interval within the range of its metric."""
    low, high = interval
    return [low if range[0] is None else max(low, range[0]), high if range[1] is None else min(high, range[1])]


def in_sentences(
    rejected: Iterable[Rejected], noun: str = "clip", place: Callable[[Rejected], str] = lambda entry: entry.subset
) -> list[dict[str, str]]:
    """What was refused, one by one; what is missing, in one sentence per model and place, which names a few."""
    told: list[dict[str, str]] = []
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in rejected:
        if entry.missing:
            name = entry.id.removesuffix(f"@{entry.model}").removeprefix(f"{place(entry)}/")
            missing[entry.model, place(entry)].append(name)
        else:
            told.append({"id": entry.id, "reason": entry.reason})
    for (model, where), names in missing.items():
        shown = ", ".join(names[:NAMED]) + (" and others" if len(names) > NAMED else "")
        said = f"1 {noun} is missing" if len(names) == 1 else f"{len(names)} {noun}s are missing"
        told.append({"id": f"{where}@{model}" if where else model, "reason": f"{said}: {shown}"})
    return told


ABSENT = (
    "needs ",
    "no reference video was given",
    "no file of ",
    "no judge",
    "no target was given",
    "no target or name was given",
    "no camera was given",
    "weights of ",
)
TO_BRING_IT = ("revisit weights pull", "pip install")  # commands in a reason that lies with the machine


def absent(id: str, records: Iterable[Record]) -> str | None:
    """What all clips lack for this metric: something that was not given, or that this set or machine has not."""
    answers = [record for record in records if record.get("metric") == id and record["status"] != "failed"]
    reasons = {record.get("reason", "") for record in answers}
    reason = next(iter(reasons)) if len(reasons) == 1 else ""
    return reason if reason.startswith(ABSENT) or any(command in reason for command in TO_BRING_IT) else None


def was_asked(ids: Iterable[str], answers: ByCase, cases: Sequence[Case]) -> bool:
    """Whether some of these metrics and gates were asked of some of the clips, and something could be asked at all."""
    for id in ids:
        found = [record for case in cases if (record := answers.get(case.id, {}).get(id)) is not None]
        if found and never_asked(id, found) is None:
            return True
    return False


# Stages of a funnel that every clip can reach, whether anybody asked about memory or not.
BEFORE = ("expected clips", "all clips", "readable", "scored")


def posed(funnel: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """How many clips posed the test, and of how many; None where nobody was asked."""
    stages = {stage["stage"]: int(stage["n"]) for stage in funnel}
    told = [name for name in ("test posed", "memory scored") if name in stages]
    told += [name for name in reversed(stages) if name not in BEFORE]
    return (stages[told[0]], stages["all clips"]) if told and "all clips" in stages else None


def never_asked(id: str, records: Iterable[Record]) -> str | None:
    """Why nobody could be asked: one reason for all clips, and no clip looked at."""
    mine = [record for record in records if id in (record.get("metric"), record.get("gate"))]
    reasons = {
        record["reason"] if record["status"] == "unscored" and not record.get("facts") else None for record in mine
    }
    return next(iter(reasons)) if len(reasons) == 1 else None
