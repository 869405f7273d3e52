"""Records → tables: per model the diagnosis from camera to return, and slices by event, direction and condition.

Support stands beside every mean that rests on it. Two gates tell of support, apart from each other: the judge's
(`wr_reobservation`) and the pixels' (`target_return` where a target was given, else `view_return`). Clips whose
controls may have shown the answer are left out of the returned measures and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import Case
from revisit.results import Results
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
from revisit.suites.wrbench import shown
from revisit.suites.wrbench.metrics import COLUMNS, measure_of, metric_of
from revisit.suites.wrbench.pairs import count_pairs
from revisit.suites.wrbench.records import record_of
from revisit.suites.wrbench.situations import SITUATIONS, situation
from revisit.suites.wrbench.slices import DIRECTIONS, sliced
from revisit.suites.wrbench.tables import (
    ALL,
    FACTORS,
    Cell,
    ModelRow,
    correlations,
    event_contrasts,
    frontiers,
    published,
    retention,
    totals,
)

RETURNED = (COLUMNS["returned_spatial"], COLUMNS["returned_state"])
JUDGED = "wr_reobservation"
MOVED, IN_PLACE = ("spatial", "full"), ("state_only",)  # events that a matched support compares
Groups = dict[str, list[Case]]
MAKERS = {"poses_from": "poses by", "described_by": "descriptors by", "judge": "judged by"}  # fact -> how it is told


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    cases, rejected, records = results.cases, results.rejected, results.records
    answers = by_case(records)
    models = sorted({case.model for case in cases} | {entry.model for entry in rejected if entry.model})
    reasons = {id: absent(id, records) for id in metric_ids(records)}
    asked = [id for id, reason in reasons.items() if reason is None]
    groups = {model: [case for case in cases if case.model == model] for model in models}
    made = {model: mine for model, mine in groups.items() if mine}
    lacking = Counter(entry.model for entry in rejected if entry.missing)
    rows = [_row(model, mine, answers) for model, mine in made.items()]
    slices = {
        name: {value: _rows_of(mine, answers) for value, mine in values.items()}
        for name, values in sliced(cases).items()
    }
    directions = {model: _directions(mine, answers) for model, mine in made.items()}
    events = _events(made, answers)
    series = _series(rows, groups)
    matched = _matched(cases, answers)
    pairs, left_out = count_pairs(cases, answers)
    whole = totals(rows)
    headline = [
        shown.main_table(rows, "WRBench", total=whole, made_by=_made_by(records)),
        shown.stand_in_table(rows, whole, _pixels(made, answers)),
    ]
    tables: list[dict[str, Any]] = [
        *_situation_tables(made, answers),
        shown.direction_table(directions),
        *(shown.slice_table(name, values, _pooled(values)) for name, values in slices.items()),
        shown.slice_table("event", matched, _pooled(matched), MATCHED),
        *_common(made, answers),
        *(
            [shown.event_tests([made for made in events if made["models"] > 1]), shown.frontier_table(frontiers(rows))]
            if len(rows) > 1
            else []
        ),
        shown.sensitivity_table(_sensitivity(made, answers)),
        shown.series_table(series, {name: totals(members) for name, members in series.items()}),
        shown.pair_table(pairs, left_out),
    ]
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
        "headline": [table for table in headline if table["rows"]],
        "tables": [table for table in tables if table["rows"]],
        "wrbench": {
            "rows": [_row_json(row, groups[row.model], answers) for row in rows],
            "totals": {measure: _cell_json(made) for measure, made in whole.items()},
            "correlations": correlations(rows) if len(rows) > 2 else None,
            "frontiers": frontiers(rows),
            "events": events,
            "slices": {
                name: {
                    value: {row.model: _cells_json(row) for row in found.values()} for value, found in values.items()
                }
                for name, values in {**slices, "matched support": matched}.items()
            },
            "series": {
                name: {
                    "models": [row.model for row in members],
                    **{measure: _cell_json(made) for measure, made in totals(members).items()},
                }
                for name, members in series.items()
            },
            "directions": directions,
            "patch_mean": _sensitivity(made, answers),
            "situations": {model: _situations(mine, answers) for model, mine in made.items()},
            "pairs": {"counts": pairs, "left_out": left_out},
            "left_out": {model: count for model, mine in made.items() if (count := sum(map(_leaks, mine))) > 0},
            "published": {"source": published()[0], "note": "another protocol: other poses, features and judges"},
        },
    }


MATCHED = "At matched support: events that move the subject and events in place, direction by direction"


def _sensitivity(groups: Groups, answers: ByCase) -> dict[str, dict[str, Any]]:
    """Model -> its integrity, and what it would be with the mean of the patches in the place of the frame's token."""
    found = {}
    for model, cases in groups.items():
        records = [answers.get(case.id, {}).get(COLUMNS["integrity"], {}) for case in cases]
        pairs = [
            (float(record["score"]), float(record["facts"]["with_patch_mean"]))
            for record in records
            if record.get("status") == "scored" and "with_patch_mean" in (record.get("facts") or {})
        ]
        if pairs:
            means = [sum(values) / len(pairs) for values in zip(*pairs, strict=True)]
            changed = max(abs(one - other) for one, other in pairs)
            found[model] = {"integrity": means[0], "patch_mean": means[1], "largest_change": changed, "n": len(pairs)}
    return found


def _made_by(records: Sequence[Record]) -> str:
    """Whose poses, descriptors and answers the published columns rest on, in words."""
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record["status"] == "scored" and measure_of(record) in COLUMNS:
            for fact, what in MAKERS.items():
                if name := (record.get("facts") or {}).get(fact):
                    found[what].add(str(name))
    return "; ".join(f"{what} {', '.join(sorted(found[what]))}" for what in MAKERS.values() if what in found)


def _pixels(groups: Groups, answers: ByCase) -> dict[str, str]:
    """Each model's support by the pixel gates, as a text."""
    found = {model: _pixel_support(cases, answers) for model, cases in groups.items()}
    return {model: f"{made['share']:.1%}" for model, made in found.items() if made is not None}


def _rows_of(cases: Sequence[Case], answers: ByCase) -> dict[str, ModelRow]:
    """A row per model of these clips."""
    models = sorted({case.model for case in cases})
    return {model: _row(model, [case for case in cases if case.model == model], answers) for model in models}


def _pooled(values: dict[str, dict[str, ModelRow]]) -> dict[str, ModelRow]:
    """A row per value, over the clips of all models."""
    return {
        value: ModelRow(
            value, value, "", sum(row.outputs for row in rows.values()), totals(rows.values()),
            any(row.judged for row in rows.values()),
        )
        for value, rows in values.items()
    }  # fmt: skip


def _matched(cases: Sequence[Case], answers: ByCase) -> dict[str, dict[str, ModelRow]]:
    """Direction and kind of event -> a row per model: where support is alike, what is seen can be compared."""
    found = {}
    for way, words in DIRECTIONS.items():
        for name, factors in (("moves", MOVED), ("in place", IN_PLACE)):
            mine = [case for case in cases if case.condition.endswith(f"_{way}") and case.subset in factors]
            if mine:
                found[f"{words}, {name}"] = _rows_of(mine, answers)
    return found


def _common(groups: Groups, answers: ByCase) -> list[dict[str, Any]]:
    """The models on the records whose return can be judged in all of their clips."""
    if len(groups) < 2:
        return []
    opened = [
        {record_of(case) for case in mine if answers.get(case.id, {}).get(JUDGED, {}).get("status") == "open"}
        for mine in groups.values()
    ]
    records = set.intersection(*opened)
    rows = {
        model: _row(model, [case for case in mine if record_of(case) in records], answers)
        for model, mine in groups.items()
    }
    if not records:
        return []
    note = f"the {len(records)} records whose return can be judged in the clips of every model; {shown.SPARSE_NOTE}"
    return [{**shown.slice_table("event", {m: {} for m in rows}, rows, "Returns that all models have"), "note": note}]


def _row(model: str, cases: Sequence[Case], answers: ByCase) -> ModelRow:
    conditions = Counter(str(case.annotations.get("viewpoint_condition") or "") for case in cases)
    cells = {measure: _measure(measure, cases, answers) for measure in ALL}
    judged = _support(cases, answers, JUDGED) is not None
    return ModelRow(model, model, conditions.most_common(1)[0][0] if conditions else "", len(cases), cells, judged)


def _measure(measure: str, cases: Sequence[Case], answers: ByCase) -> Cell:
    """Mean over the clips that have the measure itself; a stand-in is another measure."""
    id = metric_of(measure)
    scores = [
        record["score"]
        for case in _counting(id, cases)
        if (record := answers.get(case.id, {}).get(id)) is not None
        and record["status"] == "scored"
        and measure_of(record) == measure
    ]
    return Cell(sum(scores) / len(scores), len(scores)) if scores else Cell(None, 0)


def _counting(id: str, cases: Sequence[Case]) -> list[Case]:
    """Clips that a metric may count: not those whose inputs may have shown the return."""
    return [case for case in cases if id not in RETURNED or not _leaks(case)]


def _leaks(case: Case) -> bool:
    return bool(case.annotations.get("leaks"))


def _row_json(row: ModelRow, cases: Sequence[Case], answers: ByCase) -> dict[str, Any]:
    return {
        "model": row.model,
        "condition": row.condition,
        "input": _common_note(cases, "input"),
        "checkpoint": _common_note(cases, "checkpoint"),
        "outputs": row.outputs,
        **_cells_json(row),
        "support": {"judged": _support(cases, answers, JUDGED), "pixels": _pixel_support(cases, answers)},
        "sparse": row.sparse,
        "average": row.average,
        "average_with_stand_ins": _mixed_json(row),
    }


def _common_note(cases: Sequence[Case], name: str) -> str:
    """What the clips of a model have in an annotation; several values are all named."""
    return ", ".join(sorted({str(case.annotations[name]) for case in cases if case.annotations.get(name)}))


def _mixed_json(row: ModelRow) -> dict[str, Any] | None:
    made = row.average_with_stand_ins
    return None if made is None else {"value": made[0], "stand_ins": list(made[1])}


def _cells_json(row: ModelRow) -> dict[str, Any]:
    return {"clips": row.outputs, **{measure: _cell_json(row.cells[measure]) for measure in ALL}}


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


def _events(groups: dict[str, list[Case]], answers: ByCase) -> list[dict[str, Any]]:
    """What moving and changing the subject do to each measure, over models, with Holm's correction."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    for model, cases in groups.items():
        for factor in FACTORS:
            mine = [case for case in cases if case.subset == factor]
            cells = {measure: _measure(measure, mine, answers) for measure in ALL}
            known = {measure: made.value for measure, made in cells.items() if made.value is not None}
            means.setdefault(model, {})[factor] = known
    return [
        {
            "factor": made.factor, "measure": made.measure, "mean": made.mean, "models": made.n,
            "p": None if made.test is None else made.test.p, "p_holm": made.p_holm,
        }
        for made in event_contrasts(means, ALL)
    ]  # fmt: skip


def _series(rows: Sequence[ModelRow], groups: Groups) -> dict[str, list[ModelRow]]:
    """Series of models -> the rows of its models, in the order of their names."""
    found: dict[str, list[ModelRow]] = defaultdict(list)
    for row in rows:
        name = groups[row.model][0].annotations.get("series")
        if name:
            found[str(name)].append(row)
    return dict(sorted(found.items()))


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
