"""Results → tables, boards and result.json: over all tests and per perspective and test; actions by group.

A cell counts the clips of the tests its metric is asked of, missing ones included: a model that leaves out the hard
clips shows it in its coverage.

The table of MIND's paper has seven columns, and is one for each perspective, of a run and as it was printed. Memory,
quality and actions are those of mem_test, scene consistency that of mirror_test, and action space generalization is the
memory error on action_space_test. The paper prints errors as MSE and rates on 0 to 1, as we do.

result.json has the rows that readers of the public evaluator's file expect, and what it leaves out (docs/mind.md). It
is valid JSON: an infinite or missing value is null. It is written anew while clips come in, with the rows of those that
are done; `finished` says whether it is the last.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from revisit.core import METRICS, Case, Record, Rejected
from revisit.core.text import read_package_yaml
from revisit.results import Cell, Results
from revisit.results.clip_answers import Entry
from revisit.results.file_types import Stage
from revisit.results.funnel import dataset_funnel
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    RunFacts,
    as_board_cell,
    protocol_tag,
    truth_digests,
)
from revisit.results.tables import Table, coverage_by_part, make_table, standard_summary
from revisit.stats.intervals import welch_interval
from revisit.suites.board_rows import board_row_of_printed_line, board_rows_of_models
from revisit.suites.mind.metrics import KEYS
from revisit.suites.mind.metrics.selection import MAIN, MIRROR, SHARED, VARIED
from revisit.suites.mind.read import KIND, PERSPECTIVES, TESTS, parse_action_space

MEMORY = (*KEYS["lcm"].values(), *KEYS["gsc"].values())
PERSONS = dict(zip(PERSPECTIVES, ("first person", "third person"), strict=True))
ANOTHER_PROTOCOL = "another protocol: not comparable with runs made here"
NOTE = "mem_test; scene consistency of mirror_test, action space generalization of action_space_test"


@dataclass(frozen=True)
class PaperColumn:
    """A column as the paper prints it, and what it is made of here."""

    key: str
    title: str
    metric: str
    test: str
    higher_is_better: bool = False


PUBLISHED = read_package_yaml(__package__, "published.yaml")
COLUMNS = tuple(PaperColumn(key, **facts) for key, facts in PUBLISHED["columns"].items())
SCHEMA_VERSION = 2  # of result.json
Row = dict[str, Any]  # of result.json; its keys depend on the test and on what was measured


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    standard = standard_summary(
        results,
        funnel=_asked_clips_funnel,
        parts=results_by_perspective_and_test(results),
        noun="prediction",
        places=("subset", "condition"),
    )
    return standard | {
        "headline": paper_tables_by_perspective(results),
        "tables": [
            *action_space_tables(results, list(standard["metrics"])),
            *scene_kind_tables(results, list(standard["metrics"])),
        ],
        "actions": {model: _mean_action_errors(mine) for model, mine in results.groups().items()},
    }


def results_by_perspective_and_test(results: Results) -> dict[str, Results]:
    """The results by perspective and test."""
    return {
        f"{perspective} {test}": results.where(subset=perspective, condition=test)
        for perspective in PERSPECTIVES
        for test in TESTS
    }


def _asked_clips_funnel(results: Results) -> list[Stage]:
    """The stages of the clips of which something was asked; the others pose no test."""
    return dataset_funnel(results.only(lambda entry: any(results.asks(id, entry) for id in results.metrics)), MEMORY)


def _mean_action_errors(results: Results) -> Mapping[str, Mapping[str, float]]:
    """Errors of all steps by group and action: means over steps, whichever clip they are from."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in results.cases:
        for name, metric_id in KEYS["action"].items():
            record = results.answer(case, metric_id)
            for group, values in (record.facts.get("groups", {}) if record else {}).items():
                sums[group][f"{name}_count"] += values["count"]
                sums[group][f"{name}_mean"] += values["count"] * values["mean"]
    return {
        group: {
            name: value / values[name.replace("_mean", "_count")] if name.endswith("_mean") else int(value)
            for name, value in sorted(values.items())
        }
        for group, values in sorted(sums.items())
    }


Space = tuple[bool, float, float]  # varied, speed and angle; the latter inf where the name tells none


def action_space_tables(results: Results, metrics: Sequence[str]) -> list[Table]:
    """Scores by action space, and the gap between shared and varied ones; none where no clip varies it."""
    main = results.where(condition=MAIN)
    metric_ids = [metric_id for metric_id in metrics if main.expected(metric_id)]
    if not metric_ids or not any(case.condition == VARIED for case in main.cases):
        return []
    models = main.groups()
    titles = [METRICS[metric_id].title for metric_id in metric_ids]
    rows = [
        (f"{model}, {_action_space_name(*space)}", [part.cell(metric_id) for metric_id in metric_ids])
        for model, mine in models.items()
        for space, part in mine.groups(_action_space_of_entry).items()  # the shared one first, then by speed and angle
    ]
    gaps = [
        (model, [_varied_minus_shared_cell(mine, metric_id) for metric_id in metric_ids])
        for model, mine in models.items()
    ]
    note = "speed and angle from the names of the recordings; mem_test has the shared action space"
    gap_note = "action_space_test minus mem_test, with Welch's 95 % interval and the numbers of clips"
    return [
        make_table("Scores by action space", note, titles, rows),
        make_table("Varied minus shared action spaces", gap_note, titles, gaps),
    ]


def scene_kind_tables(results: Results, metrics: Sequence[str]) -> list[Table]:
    """Scores by kind of scene; none where the data tell fewer than two kinds. Missing clips have no kind."""
    results_with_kind = results.only(lambda entry: isinstance(entry, Case) and bool(entry.annotations.get(KIND)))
    kinds = results_with_kind.groups(lambda entry: str(entry.annotations[KIND]) if isinstance(entry, Case) else "")
    metric_ids = [metric_id for metric_id in metrics if results_with_kind.expected(metric_id)]
    if len(kinds) < 2 or not metric_ids:
        return []
    without = len(results.cases) - len(results_with_kind.cases)
    note = "as the dataset tells it" + (f"; {without} clips have none" if without else "")
    rows = [
        (f"{model}, {kind}", [part.cell(metric_id) for metric_id in metric_ids])
        for model in results.models
        for kind, mine in kinds.items()
        if (part := mine.where(model=model)).cases
    ]
    return [make_table("Scores by kind of scene", note, [METRICS[metric_id].title for metric_id in metric_ids], rows)]


def _action_space_of_entry(entry: Entry) -> Space:
    """The action space of a clip, made or missing, by the name of its recording."""
    name = entry.id.removesuffix(f"@{entry.model}").rpartition("/")[2]
    annotations = parse_action_space(name, entry.condition)
    return entry.condition == VARIED, annotations.get("speed", math.inf), annotations.get("angle", math.inf)


def _action_space_name(varied: bool, speed: float, angle: float) -> str:
    return ("varied" if varied else "shared") + ("" if math.isinf(speed) else f" {speed:g}x, angle {angle:g}")


def _varied_minus_shared_cell(results: Results, metric_id: str) -> Cell:
    shared, varied = (
        [record.value for record in results.where(condition=test).scores(metric_id) if record.value is not None]
        for test in (SHARED, VARIED)
    )
    n, of = len(shared) + len(varied), results.expected(metric_id)
    if not shared or not varied:
        return Cell(n, of)
    difference = sum(varied) / len(varied) - sum(shared) / len(shared)
    return Cell(n, of, difference, welch_interval(varied, shared))


def paper_tables_by_perspective(results: Results) -> list[Table]:
    """The paper's table of each perspective that has clips, with the columns that were asked."""
    tables = []
    for perspective, mine, columns in _perspective_parts(results):
        heads = [f"{column.title} {'↑' if column.higher_is_better else '↓'}" for column in columns]
        rows = [
            (model, [_column_cell(part, column) for column in columns]) for model, part in mine.groups("model").items()
        ]
        tables.append(make_table(f"As the paper prints it, {PERSONS[perspective]}", NOTE, heads, rows))
    return tables


def paper_boards_by_perspective(run: RunFacts) -> list[Board]:
    """The same as boards, so that several runs and the printed numbers stand one below the other."""
    protocol = run.facts["protocol"]["metrics"]
    boards = []
    for perspective, mine, columns in _perspective_parts(run.results):
        heads = tuple(_paper_board_column(column, f"{protocol[column.metric]} {column.test}") for column in columns)
        rows = board_rows_of_models(mine, run.name, partial(_paper_board_cells, columns))
        truths = truth_digests(run.plan, mine)
        title = f"mind, {PERSONS[perspective]}, as printed"
        boards.append(Board(title, protocol_tag(run.facts), heads, tuple(rows), NOTE, truths=truths))
    return boards


def _paper_board_column(column: PaperColumn, protocol: str = "") -> BoardColumn:
    return BoardColumn(column.key, column.title, column.higher_is_better, 4, protocol)


@cache
def published_mind_boards(supplement: bool = False) -> tuple[Board, ...]:
    """Tables 2 and 3 of the paper; its models compete within those that see as much of the context."""
    heads = tuple(map(_paper_board_column, COLUMNS))
    boards = []
    for number, entry in PUBLISHED["tables"].items():
        rows = [board_row_of_printed_line(model, "paper", heads, line, group) for model, group, line in entry["rows"]]
        protocol = f"{PUBLISHED['source']}, Table {number} ({ANOTHER_PROTOCOL})"
        boards.append(Board(f"Published: MIND, {entry['title']}", protocol, heads, tuple(rows), as_printed=True))
    return tuple(boards)


def _perspective_parts(results: Results) -> list[tuple[str, Results, list[PaperColumn]]]:
    """The perspectives that have clips, and the columns that the run asked there; one column alone is no table."""
    parts = []
    for perspective in PERSPECTIVES:
        mine = results.where(subset=perspective)
        columns = [
            column
            for column in COLUMNS
            if column.metric in results.metrics and mine.where(condition=column.test).expected(column.metric)
        ]
        if len(columns) > 1:
            parts.append((perspective, mine, columns))
    return parts


def _column_cell(part: Results, column: PaperColumn) -> Cell:
    return part.where(condition=column.test).cell(column.metric)


def _paper_board_cells(columns: Sequence[PaperColumn], part: Results) -> dict[str, BoardCell]:
    return {column.key: as_board_cell(_column_cell(part, column)) for column in columns}


def export_mind_results(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, object]:
    """result.json of the one model, or result_<model>.json of each of several."""
    files: dict[str, object] = {}
    is_single = len(facts.get("models") or results.models) == 1  # of all models, also of those that have nothing yet
    for model in results.models:
        mine = results.where(model=model)
        files["result.json" if is_single else _unused_result_file_name(model, files)] = {
            "schema_version": SCHEMA_VERSION,
            "model": model,
            "protocol": facts["protocol"],
            "finished": facts.get("finished", True),
            "video_max_time": _video_max_time_of_run(facts.get("parameters") or {}),
            "coverage": dict(sorted(coverage_by_part(results_by_perspective_and_test(mine)).items())),
            "data": [*_result_rows(mine), *map(_rejected_row, mine.rejected)],
        }
    return files


def _video_max_time_of_run(parameters: Mapping[str, Mapping[str, int | None]]) -> int | None:
    """How many frames of each prediction were looked at, at most, where the run was told."""
    metric_ids = (*KEYS["lcm"].values(), "mind_imaging", "mind_dino")
    limits = (parameters.get(metric_id, {}).get("video_max_time") for metric_id in metric_ids)
    return next((most for most in limits if most is not None), None)


def _unused_result_file_name(model: str, used_names: Container[str]) -> str:
    """A name for the result of a model, with its odd characters replaced, that no other model has."""
    name = "result_" + "".join(c if c.isalnum() or c in "-._" else "_" for c in model)
    while f"{name}.json" in used_names:
        name += "_"
    return f"{name}.json"


def _result_rows(results: Results) -> list[Row]:
    rows = []
    mirrors: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for case in results.cases:
        row = _measured_row_fields(case, results)
        if case.condition == MIRROR:
            folder = case.sample.rpartition("/")[2]
            row["video_name"] = case.annotations["video_name"]
            row["mark_time"] = None if row["sample_frames"] is None else row["sample_frames"] // 2
            mirrors[case.subset, folder].append(row)
        else:
            identity = {"path": case.sample.rpartition("/")[2], "perspective": case.subset, "test_type": case.condition}
            times = {name: case.annotations[name] for name in ("mark_time", "total_time")}
            kind = {KIND: case.annotations[KIND]} if KIND in case.annotations else {}
            rows.append({**identity, **kind, **times, **row})
    for (perspective, folder), videos in mirrors.items():
        names = [video["video_name"] for video in videos]
        error = next((video["error"] for video in videos if video["error"]), None)
        place = {"path": folder, "perspective": perspective, "test_type": MIRROR}
        rows.append({**place, "videos": names, "error": error, "video_results": videos})
    return rows


def _measured_row_fields(case: Case, results: Results) -> Row:
    """The measured part of a row."""
    keys = ("gsc",) if case.condition == MIRROR else ("lcm", "visual_quality", "dino", "action")
    row: Row = {"error": None, "sample_frames": None, "n_frames_scored": 0, "metric_status": {}}
    for key in keys:
        records = {name: record for name, metric_id in KEYS[key].items() if (record := results.answer(case, metric_id))}
        for name, record in records.items():
            status = {"status": "ok"} if record.scored else {"status": record.status, "reason": record.sentence}
            row["metric_status"][f"{key}.{name}"] = status
            if record.failed or record.facts.get("refused"):
                row["error"] = record.sentence
            row["sample_frames"] = record.facts.get("sample_frames", row["sample_frames"])
            if "motion_mse" in record.facts:
                row["motion_mse"] = record.facts["motion_mse"]
        values = _action_fields(records) if key == "action" else _per_frame_fields(records, results)
        if values:
            row[key] = values
            row["n_frames_scored"] = max(row["n_frames_scored"], values.get("length", 0))
    return row


def _per_frame_fields(records: Mapping[str, Record], results: Results) -> Row:
    """Values per frame and their means, of the measures that were scored."""
    fields: Row = {}
    for name, record in records.items():
        if not record.scored:
            continue
        series = results.series(record.case, record.question)
        values = [] if series is None else series["value"].tolist()
        fields |= {"length": len(values), name: values, f"avg_{name}": record.value}
        fields |= {fact: record.facts[fact] for fact in ("psnr_is_capped", "described_by") if fact in record.facts}
    if fields:
        for name in [name for name in records if name not in fields]:
            fields |= {name: [], f"avg_{name}": None}
    return fields


def _action_fields(records: Mapping[str, Record]) -> Row:
    """Errors by group and action, translation and rotation side by side; null for one that has none.

    Where the true camera rests, there are turns and no lengths: nobody can tell the unit of the estimated path.
    """
    groups = {name: record.facts.get("groups", {}) for name, record in records.items()}
    fields: Row = {}
    for group in dict.fromkeys(group for groups_of_metric in groups.values() for group in groups_of_metric):
        statistics = {name: groups_of_metric.get(group, {}) for name, groups_of_metric in groups.items()}
        fields[group] = {"count": next(values["count"] for values in statistics.values() if values)}
        for name in KEYS["action"]:
            unit, values = "_deg" if name == "rpe_rot" else "", statistics.get(name, {})
            fields[group] |= {f"{name}_{what}{unit}": values.get(what) for what in ("mean", "median")}
    return fields


def _rejected_row(entry: Rejected) -> Row:
    """The row of a clip that nobody could look at; the public evaluator has none, readers expect its keys."""
    status = {"*": {"status": "missing" if entry.missing else "refused", "reason": entry.reason}}
    times = ("mark_time", "total_time", "sample_frames")
    return {
        "path": entry.id.removesuffix(f"@{entry.model}").removeprefix(f"{entry.subset}/{entry.condition}/"),
        "perspective": entry.subset,
        "test_type": entry.condition,
        **({"videos": [], "video_results": []} if entry.condition == MIRROR else dict.fromkeys(times)),
        "error": entry.reason,
        "n_frames_scored": 0,
        "metric_status": status,
    }
