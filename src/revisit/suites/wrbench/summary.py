"""Records → tables: per model the diagnosis from camera to return, and slices by event, direction and condition.

Support stands beside every mean that rests on it. Two gates tell of support, apart from each other: the judge's
(`wr_reobservation`) and the pixels' (`target_return` where a target was given, else `view_return`). Clips whose
controls may have shown the answer are left out of the returned measures and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import Case, Rejected
from revisit.suites.tables import (
    ByCase,
    Record,
    absent,
    by_case,
    cell,
    column,
    failures,
    in_sentences,
    metric_ids,
    unreadable,
    was_asked,
)
from revisit.suites.wrbench.metrics import COLUMNS
from revisit.suites.wrbench.situations import SITUATIONS, situation
from revisit.suites.wrbench.tables import (
    FACTORS,
    MEASURES,
    Cell,
    ModelRow,
    correlations,
    event_contrasts,
    frontiers,
    published,
    retention,
    totals,
)

RETURNED = (*COLUMNS["returned_spatial"], *COLUMNS["returned_state"])
JUDGED = "wr_reobservation"


def summarise(cases: Sequence[Case], rejected: Sequence[Rejected], records: Sequence[Record]) -> dict[str, Any]:
    """The tables of the suite."""
    answers = by_case(records)
    models = sorted({case.model for case in cases} | {entry.model for entry in rejected if entry.model})
    reasons = {id: absent(id, records) for id in metric_ids(records)}
    asked = [id for id, reason in reasons.items() if reason is None]
    groups = {model: [case for case in cases if case.model == model] for model in models}
    lacking = Counter(entry.model for entry in rejected if entry.missing)
    rows = [_row(model, groups[model], answers) for model in models if groups[model]]
    return {
        "cases": len(cases),
        "rejected": in_sentences(rejected),
        "failed": failures(records),
        "metrics": {id: column(id, records) for id in asked},
        "not_asked": {id: reason for id, reason in reasons.items() if reason is not None},
        "models": {
            model: {
                "cases": len(groups[model]),
                "funnel": _funnel(groups[model], answers),
                "labels": _labels(groups[model], answers),
                "scores": {id: cell(id, _counting(id, groups[model]), answers, lacking[model]) for id in asked},
            }
            for model in models
        },
        "funnel": _funnel(cases, answers),
        "parts": _parts(cases, answers, asked),
        "tables": _situation_tables(groups, answers),
        "wrbench": {
            "rows": [_row_json(row, groups[row.model], answers) for row in rows],
            "totals": {measure: _cell_json(made) for measure, made in totals(rows).items()},
            "correlations": correlations(rows) if len(rows) > 2 else None,
            "frontiers": frontiers(rows),
            "events": _events(groups, answers),
            "series": _series(rows, groups),
            "directions": {model: _directions(groups[model], answers) for model in models if groups[model]},
            "situations": {model: _situations(groups[model], answers) for model in models if groups[model]},
            "left_out": {
                model: count for model in models if (count := sum(_leaks(case) for case in groups[model])) > 0
            },
            "published": {"source": published()[0], "note": "another protocol: other poses, features and judges"},
        },
    }


def _row(model: str, cases: Sequence[Case], answers: ByCase) -> ModelRow:
    conditions = Counter(str(case.annotations.get("viewpoint_condition") or "unknown") for case in cases)
    cells = {measure: _measure(measure, cases, answers) for measure in MEASURES}
    return ModelRow(model, model, conditions.most_common(1)[0][0], len(cases), cells)


def _measure(measure: str, cases: Sequence[Case], answers: ByCase) -> Cell:
    """Mean over the clips that have the measure, by the first of its metrics that scored any."""
    for id in COLUMNS[measure]:
        scores = [
            record["score"]
            for case in _counting(id, cases)
            if (record := answers.get(case.id, {}).get(id)) is not None and record["status"] == "scored"
        ]
        if scores:
            return Cell(sum(scores) / len(scores), len(scores))
    return Cell(None, 0)


def _counting(id: str, cases: Sequence[Case]) -> list[Case]:
    """Clips that a metric may count: not those whose inputs may have shown the return."""
    return [case for case in cases if id not in RETURNED or not _leaks(case)]


def _leaks(case: Case) -> bool:
    return bool(case.annotations.get("leaks"))


def _row_json(row: ModelRow, cases: Sequence[Case], answers: ByCase) -> dict[str, Any]:
    return {
        "model": row.model,
        "condition": row.condition,
        "outputs": row.outputs,
        **{measure: _cell_json(row.cells[measure]) for measure in MEASURES},
        "support": {"judged": _support(cases, answers, JUDGED), "pixels": _pixel_support(cases, answers)},
        "sparse": row.sparse,
        "average": row.average,
    }


def _cell_json(made: Cell) -> dict[str, Any]:
    return {"value": made.value, "n": made.n}


def _support(cases: Sequence[Case], answers: ByCase, gate: str) -> dict[str, Any] | None:
    """How many clips a gate lets through, of those it could decide; None where it was asked of none."""
    states = [answers.get(case.id, {}).get(gate, {}).get("status") for case in cases]
    decided = [state for state in states if state in ("open", "closed")]
    if not decided and "unsure" not in states:
        return None
    opened = sum(state == "open" for state in states)
    return {"open": opened, "of": len(cases), "share": opened / len(cases), "unsure": states.count("unsure")}


def _pixel_support(cases: Sequence[Case], answers: ByCase) -> dict[str, Any] | None:
    """By the gate on the target where there are targets, else by the gate on the first view."""
    with_target = [case for case in cases if case.target is not None]
    gate = "target_return" if with_target else "view_return"
    made = _support(with_target or cases, answers, gate)
    return None if made is None else {**made, "gate": gate}


def _funnel(cases: Sequence[Case], answers: ByCase) -> list[dict[str, Any]]:
    """From all clips to those whose return was judged; the stages are WRBench's six situations."""
    readable = [case for case in cases if answers.get(case.id) and not unreadable(answers[case.id])]
    stages = [{"stage": "all clips", "n": len(cases)}, {"stage": "readable", "n": len(readable)}]

    def passing(gate: str, labels: tuple[str, ...] | None, among: Sequence[Case]) -> list[Case]:
        found = []
        for case in among:
            record = answers[case.id].get(gate, {})
            if record.get("status") == "open" if labels is None else record.get("label") in labels:
                found.append(case)
        return found

    moved = readable
    if was_asked(["camera_moved"], answers, cases):
        moved = passing("camera_moved", None, readable)
        stages.append({"stage": "camera moved", "n": len(moved)})
    if any(case.target is not None for case in readable):
        gate, labels = "target_return", ("hidden, returned", "hidden, not returned")
        names = ("target hidden", "target returned")
    else:
        gate, labels = "view_return", ("left, returned", "left, not returned")
        names = ("view left", "view returned")
    if was_asked([gate], answers, cases):
        hidden = passing(gate, labels, moved)
        returned = passing(gate, labels[:1], hidden)
        stages += [{"stage": names[0], "n": len(hidden)}, {"stage": names[1], "n": len(returned)}]
    if any(JUDGED in answers[case.id] and answers[case.id][JUDGED]["status"] != "unscored" for case in readable):
        stages.append({"stage": "return judgeable", "n": len(passing(JUDGED, None, readable))})
    return stages


def _situations(cases: Sequence[Case], answers: ByCase) -> dict[str, int]:
    """How many clips landed in each row, in the order of the rows."""
    found = Counter(
        situation(list(answers[case.id].values()))
        for case in cases
        if answers.get(case.id) and not unreadable(answers[case.id])
    )
    return {name: found[name] for name in SITUATIONS if found[name]}


def _situation_tables(groups: dict[str, list[Case]], answers: ByCase) -> list[dict[str, Any]]:
    """The rows in which each model's clips end, as a table for people: shares, with how many clips they are."""
    counts = {model: _situations(cases, answers) for model, cases in groups.items() if cases}
    shown = [name for name in SITUATIONS if any(name in found for found in counts.values())]
    if not shown:
        return []
    rows = []
    for model, found in counts.items():
        whole = sum(found.values())
        cells = [
            {"n": found.get(name, 0), "of": whole, "failed": 0, "mean": found.get(name, 0) / whole} for name in shown
        ]
        rows.append({"name": model, "cells": cells})
    note = "shares; by the diagnosis where a reference shows the truth, else by the judge"
    return [{"title": "Where clips end", "note": note, "columns": shown, "rows": rows}]


def _labels(cases: Sequence[Case], answers: ByCase) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        for record in answers.get(case.id, {}).values():
            if "gate" in record and record["status"] in ("open", "closed", "unsure"):
                found[record["gate"]][record["label"]] += 1
    return {gate: dict(sorted(labels.items())) for gate, labels in sorted(found.items())}


def _parts(cases: Sequence[Case], answers: ByCase, asked: Sequence[str]) -> dict[str, Any]:
    """A table per event factor and per camera."""
    tables = {}
    slices = [(f"event: {factor}", "subset", factor) for factor in FACTORS]
    slices += [
        (f"camera: {name}", "condition", name) for name in sorted({case.condition for case in cases if case.condition})
    ]
    for title, field, value in slices:
        mine = [case for case in cases if getattr(case, field) == value]
        if not mine:
            continue
        tables[title] = {
            "metrics": list(asked),
            "models": {
                model: {
                    "cases": sum(case.model == model for case in mine),
                    "scores": {
                        id: cell(id, _counting(id, [case for case in mine if case.model == model]), answers)
                        for id in asked
                    },
                }
                for model in sorted({case.model for case in mine})
            },
        }
    return tables


def _events(groups: dict[str, list[Case]], answers: ByCase) -> list[dict[str, Any]]:
    """What moving and changing the subject do to each measure, over models, with Holm's correction."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    for model, cases in groups.items():
        for factor in FACTORS:
            mine = [case for case in cases if case.subset == factor]
            cells = {measure: _measure(measure, mine, answers) for measure in MEASURES}
            known = {measure: made.value for measure, made in cells.items() if made.value is not None}
            means.setdefault(model, {})[factor] = known
    return [
        {
            "factor": made.factor, "measure": made.measure, "mean": made.mean, "models": made.n,
            "p": None if made.test is None else made.test.p, "p_holm": made.p_holm,
        }
        for made in event_contrasts(means, MEASURES)
    ]  # fmt: skip


def _series(rows: Sequence[ModelRow], groups: dict[str, list[Case]]) -> dict[str, dict[str, Any]]:
    """Per series of models, in the order of their names: its models, and the means over all their outputs."""
    found: dict[str, list[ModelRow]] = defaultdict(list)
    for row in rows:
        name = groups[row.model][0].annotations.get("series")
        if name:
            found[str(name)].append(row)
    return {
        name: {
            "models": [row.model for row in members],
            **{measure: _cell_json(made) for measure, made in totals(members).items()},
        }
        for name, members in sorted(found.items())
    }


def _directions(cases: Sequence[Case], answers: ByCase) -> dict[str, Any]:
    """Support by the side the camera turns to first, and the retention between them."""
    made: dict[str, Any] = {}
    for way in ("LR", "RL"):
        mine = [case for case in cases if case.condition.endswith(way)]
        made[way] = (
            {"judged": _support(mine, answers, JUDGED), "pixels": _pixel_support(mine, answers)} if mine else None
        )
    for gate in ("judged", "pixels"):
        sides = [made[way] and made[way][gate] for way in ("LR", "RL")]
        made[f"retention_{gate}"] = retention(*(None if side is None else side["share"] for side in sides))
    return made
