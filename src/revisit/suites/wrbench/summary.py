"""Results → tables: per model the diagnosis from camera to return, and slices by event, direction and condition.

Support stands beside every mean that rests on it. Two gates tell of support, apart from each other: the judge's
(`wr_reobservation`) and the pixels' (`target_return` where a target was given and the camera looked away, else
`view_return`). Clips whose
controls may have shown the answer are left out of the returned measures and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from revisit.core import Case, Record, Rejected
from revisit.core.cases import CEILING, FLOOR
from revisit.core.grouping import group_items
from revisit.core.text import join_names
from revisit.results import Cell, Results
from revisit.results.file_types import Stage
from revisit.results.funnel import TARGET, VIEW, cases_passing_gate, make_stage
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.wrbench import display
from revisit.suites.wrbench.metrics import COLUMNS
from revisit.suites.wrbench.preference_pairs import count_preference_pairs
from revisit.suites.wrbench.records import record_id_of_case
from revisit.suites.wrbench.situations import JUDGED, SITUATIONS, classify_situation
from revisit.suites.wrbench.slices import DIRECTIONS, SLICES, split_results_by_slice
from revisit.suites.wrbench.tables import (
    ALL,
    FACTORS,
    ModelRow,
    best_models_by_condition,
    event_factor_contrasts,
    inputs_may_show_return,
    left_to_right_support_ratio,
    measure_cells_json,
    measure_correlations,
    output_weighted_means,
    published_model_rows,
    rename_scores_by_measure,
)

RETURNED = (COLUMNS["returned_spatial"], COLUMNS["returned_state"])
MOVED, IN_PLACE = ("spatial", "full"), ("state_only",)  # events that a matched support compares
MATCHED = "At matched support: events that move the subject and events in place, direction by direction"
MAKERS = {"poses_from": "poses by", "described_by": "descriptors by", "judge": "judged by"}  # fact -> how it is told
OTHERS = "another protocol: other poses, features and judges"
ByModel = Mapping[str, Results]


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    measured = rename_scores_by_measure(results)
    models, by_model = _results_by_model(results), _results_by_model(measured)
    everybody = [
        replace(row, title=f"{row.title} ({FLOOR})") if row.model in results.floors else row
        for row in (_model_row(model, mine) for model, mine in by_model.items())
    ]
    rows = [row for row in everybody if row.model in results.ranked.models]
    truth = _model_row(results.truth_name, rename_scores_by_measure(results.truth)) if results.truths else None
    extra_rows = [row for row in everybody if row not in rows]
    extra_rows += [replace(truth, title=f"{truth.model} ({CEILING})")] if truth else []
    slices = {
        name: {v: _rows_by_model(part) for v, part in parts.items()}
        for name, parts in split_results_by_slice(measured).items()
    }
    directions = {model: _support_by_direction(mine) for model, mine in models.items()}
    events = _event_effects(by_model)
    tested = [contrast for contrast in events if contrast["models"] > 1]
    series = _rows_by_series(rows, models)
    sums = {name: output_weighted_means(members) for name, members in series.items()}
    matched = _rows_by_direction_and_event(measured)
    sensitivity = {model: facts for model, mine in models.items() if (facts := _patch_mean_sensitivity(mine))}
    situations = {model: _count_situations(mine) for model, mine in models.items()}
    pairs, left_out = count_preference_pairs(measured)
    shown = {model: sum(map(inputs_may_show_return, mine.cases)) for model, mine in models.items()}
    overall, best = output_weighted_means(rows), best_models_by_condition(rows)
    pixels = {model: _pixel_gate_support(mine) for model, mine in models.items()}
    if truth:
        pixels[truth.model] = _pixel_gate_support(results.truth)
    shares = {model: f"{support['share']:.1%}" for model, support in pixels.items() if support}
    remarks = [_evidence_makers_text(measured), _lacking_clips_note(by_model)]
    headline = [
        display.published_columns_table(rows, "WRBench", remarks=remarks, extra_rows=extra_rows),
        display.stand_in_measures_table(rows, shares, extra_rows),
    ]
    tables: list[Table] = [
        _situation_shares_table(situations),
        display.support_by_direction_table(directions),
        *(display.slice_table(values, f"By {name}: {SLICES[name]}") for name, values in slices.items()),
        display.slice_table(matched, MATCHED),
        *_common_returns_tables(by_model),
        display.event_effects_table(tested if len(rows) > 1 else ()),
        display.best_models_table(best if len(rows) > 1 else {}),
        display.patch_mean_sensitivity_table(sensitivity),
        display.model_series_table(series, sums),
        display.preference_pair_counts_table(pairs, left_out),
    ]
    return {
        **standard_summary(results, cell=_cell_without_shown_returns, funnel=_return_funnel_stages),
        "headline": [one for one in headline if one["rows"]],
        "tables": [one for one in tables if one["rows"]],
        "wrbench": {
            "rows": [
                _model_row_json(row, models[row.model], FLOOR if row.model in results.floors else "")
                for row in everybody
            ],
            "truth": None if truth is None else _model_row_json(truth, results.truth, CEILING),
            "totals": measure_cells_json(overall),
            "correlations": measure_correlations(rows) if len(rows) > 2 else None,
            "frontiers": best,
            "events": events,
            "slices": _slice_rows_json({**slices, "matched support": matched}),
            "series": {
                name: {"models": [row.model for row in members], **measure_cells_json(sums[name])}
                for name, members in series.items()
            },
            "directions": directions,
            "patch_mean": sensitivity,
            "situations": situations,
            "pairs": {"counts": pairs, "left_out": left_out},
            "left_out": {model: count for model, count in shown.items() if count},
            "published": {"source": published_model_rows()[0], "note": OTHERS},
        },
    }


def _slice_rows_json(slices: Mapping[str, Mapping[str, Mapping[str, ModelRow]]]) -> dict[str, object]:
    """Slice -> value -> model -> its cells."""

    def cells_json(rows: Mapping[str, ModelRow]) -> dict[str, object]:
        return {row.model: {"clips": row.outputs, **measure_cells_json(row.cells)} for row in rows.values()}

    return {name: {value: cells_json(rows) for value, rows in values.items()} for name, values in slices.items()}


def _results_by_model(results: Results) -> dict[str, Results]:
    """The clips of each model that has any."""
    return {model: mine for model, mine in results.groups("model").items() if mine.cases}


def _cell_without_shown_returns(part: Results, metric_id: str) -> Cell:
    """Clips whose inputs may have shown the return do not count for it."""
    counted = part.only(lambda entry: not inputs_may_show_return(entry)) if metric_id in RETURNED else part
    return counted.cell(metric_id)


def _patch_mean_sensitivity(mine: Results) -> dict[str, float]:
    """A model's integrity, and what it would be with the mean of the patches in the place of the frame's token."""
    records = [record for record in mine.scores(COLUMNS["integrity"]) if "with_patch_mean" in record.facts]
    pairs = [(record.value or 0.0, float(record.facts["with_patch_mean"])) for record in records]
    if not pairs:
        return {}
    means = [sum(values) / len(pairs) for values in zip(*pairs, strict=True)]
    changed = max(abs(one - other) for one, other in pairs)
    return {"integrity": means[0], "patch_mean": means[1], "largest_change": changed, "n": len(pairs)}


def _evidence_makers_text(measured: Results) -> str:
    """Whose poses, descriptors and answers the published columns rest on, in words."""
    published = [record.facts for record in measured.records if record.question in COLUMNS]
    names = {what: {str(facts[fact]) for facts in published if facts.get(fact)} for fact, what in MAKERS.items()}
    return "; ".join(f"{what} {', '.join(sorted(who))}" for what, who in names.items() if who)


def _rows_by_model(part: Results) -> dict[str, ModelRow]:
    """A row per model of these clips."""
    return {model: _model_row(model, mine) for model, mine in _results_by_model(part).items()}


def _rows_by_direction_and_event(measured: Results) -> dict[str, dict[str, ModelRow]]:
    """Direction and kind of event -> a row per model: where support is alike, what is seen can be compared."""
    matched = {}
    for side, words in DIRECTIONS.items():
        for name, factors in (("moves", MOVED), ("in place", IN_PLACE)):
            mine = _filter_by_camera_suffix(measured, f"_{side}").where(subset=factors)
            if mine.cases:
                matched[f"{words}, {name}"] = _rows_by_model(mine)
    return matched


def _filter_by_camera_suffix(results: Results, ending: str) -> Results:
    """The clips under cameras whose names end so."""
    return results.only(lambda entry: entry.condition.endswith(ending))


def _lacking_clips_note(by_model: ByModel) -> str:
    """Who lacks clips that others have; empty where nobody does."""
    records = {model: {record_id_of_case(case) for case in mine.readable.cases} for model, mine in by_model.items()}
    everything = set().union(*records.values())
    lacks = {model: len(everything) - len(own) for model, own in records.items()}
    who = join_names([f"{model} {count}" for model, count in lacks.items() if count])
    return f"models lack clips that others have ({who}), and each mean is over a model's own clips" if who else ""


def _common_returns_tables(by_model: ByModel) -> list[Table]:
    """The models on the records whose return can be judged in all of their clips."""
    opened = [
        {record_id_of_case(case) for case in cases_passing_gate(mine, mine.cases, JUDGED)} for mine in by_model.values()
    ]
    records = set.intersection(*opened) if len(opened) > 1 else set()
    if not records:
        return []
    rows = {}
    for model, mine in by_model.items():
        common = mine.only(lambda entry: isinstance(entry, Case) and record_id_of_case(entry) in records)
        rows[model] = {model: _model_row(model, common)}
    note = f"the {len(records)} records whose return can be judged for every model; {display.SPARSE_NOTE}"
    return [display.slice_table(rows, "Returns that all models have", note)]


def _model_row(model: str, mine: Results) -> ModelRow:
    conditions = Counter(str(case.annotations.get("viewpoint_condition") or "") for case in mine.cases)
    condition = conditions.most_common(1)[0][0] if conditions else ""
    judged = _gate_support(mine, JUDGED) is not None
    return ModelRow(model, model, condition, len(mine.cases), {name: _mean_cell(mine, name) for name in ALL}, judged)


def _mean_cell(mine: Results, measure: str) -> Cell:
    """A mean without its interval, which these tables do not show."""
    values = [record.value or 0.0 for record in mine.scores(measure)] if measure in mine.metrics else []
    return Cell(len(values), len(mine.cases), sum(values) / len(values) if values else None)


def _model_row_json(row: ModelRow, mine: Results, role: str) -> dict[str, object]:
    made_with = (_joined_annotation_values(mine, name) for name in ("input", "checkpoint"))
    support = {"judged": _gate_support(mine, JUDGED), "pixels": _pixel_gate_support(mine)}
    return row.to_json(support, *made_with) | {"role": role}


def _joined_annotation_values(mine: Results, name: str) -> str:
    """What the clips of a model have in an annotation; several values are all named."""
    return ", ".join(sorted({str(case.annotations[name]) for case in mine.cases if case.annotations.get(name)}))


def _gate_support(part: Results, gate: str) -> dict[str, Any] | None:
    """How many clips a gate lets through; None where it could be asked of none."""
    states = Counter(_gate_status(part, record) for record in part.records_for(gate))
    if not states.keys() & {"open", "closed", "unsure"}:
        return None
    opened, of = states["open"], len(part.cases)
    return {"open": opened, "of": of, "share": opened / of, "unsure": states["unsure"]}


def _gate_status(part: Results, record: Record) -> str:
    """What a gate says of a clip; a target that was hidden from a camera that did not look away supports nothing."""
    away = part.answer(record.case, "look_away") if record.question == "target_return" else None
    return away.status if away is not None and record.status == "open" else record.status


def _pixel_gate_support(part: Results) -> dict[str, Any] | None:
    """By the gate on the target where there are targets, else by the gate on the first view."""
    targets = part.only(_has_target)
    gate = "target_return" if targets.cases else "view_return"
    support = _gate_support(targets if targets.cases else part, gate)
    return None if support is None else {**support, "gate": gate}


def _has_target(entry: Case | Rejected) -> bool:
    return isinstance(entry, Case) and entry.target is not None


def _return_funnel_stages(part: Results) -> list[Stage]:
    """From all clips to those whose return was judged; the stages are WRBench's six situations."""
    readable = part.readable.only(lambda entry: bool(part.of(entry.id)))
    stages = [make_stage("all clips", part.cases), make_stage("readable", readable.cases)]
    remaining: Sequence[Case] = readable.cases
    path = (VIEW[0], *TARGET) if any(map(_has_target, remaining)) else VIEW
    for name, gate, labels in path:
        if part.was_asked(gate):
            remaining = cases_passing_gate(part, remaining, gate, labels)
            stages.append(make_stage(name, remaining))
    if any(record.status != "unscored" for record in readable.records_for(JUDGED)):
        stages.append(make_stage("return judgeable", cases_passing_gate(part, readable.cases, JUDGED)))
    return stages


def _count_situations(mine: Results) -> dict[str, int]:
    """How many clips landed in each row, in the order of the rows."""
    counts = Counter(classify_situation(answers) for case in mine.readable.cases if (answers := mine.of(case)))
    return {name: counts[name] for name in SITUATIONS if counts[name]}


def _situation_shares_table(counts: Mapping[str, Mapping[str, int]]) -> Table:
    """The rows in which each model's clips end, as a table for people: shares, with how many clips they are."""
    names = [name for name in SITUATIONS if any(name in model_counts for model_counts in counts.values())]
    rows = []
    for model, model_counts in counts.items():
        clips = sum(model_counts.values())
        shares = [Cell(n, clips, n / clips if clips else None) for n in (model_counts.get(name, 0) for name in names)]
        rows.append((model, shares))
    note = "shares; from the diagnosis if there is a reference, otherwise from the judge"
    return make_table("Where clips end", note, names, rows if names else [])


def _event_effects(by_model: ByModel) -> list[dict[str, Any]]:
    """What moving and changing the subject do to each measure, over models, with Holm's correction."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    for model, mine in by_model.items():
        for factor in FACTORS:
            part = mine.where(subset=factor)
            cells = {measure: _mean_cell(part, measure).mean for measure in ALL}
            means.setdefault(model, {})[factor] = {name: value for name, value in cells.items() if value is not None}
    return event_factor_contrasts(means, ALL)


def _rows_by_series(rows: Sequence[ModelRow], models: ByModel) -> dict[str, list[ModelRow]]:
    """Series of models -> the rows of its models, in the order of their names."""
    members = group_items(rows, lambda row: str(models[row.model].cases[0].annotations.get("series") or ""))
    return {name: members[name] for name in sorted(members) if name}


def _support_by_direction(mine: Results) -> dict[str, Any]:
    """Support by the side the camera turns to first, by the judge and by pixels, and the retention between them."""
    sides: dict[str, dict[str, Any]] = {}
    for side in DIRECTIONS:
        part = _filter_by_camera_suffix(mine, side)
        sides[side] = {"judged": _gate_support(part, JUDGED), "pixels": _pixel_gate_support(part)} if part.cases else {}
    ratios = {}
    for gate in ("judged", "pixels"):
        left, right = ((sides[side].get(gate) or {}).get("share") for side in DIRECTIONS)
        ratios[f"retention_{gate}"] = left_to_right_support_ratio(left, right)
    return {**{side: supports or None for side, supports in sides.items()}, **ratios}
