"""The CSV files that the public MemoBench scripts write, from the records of a run: for existing tools.

Columns, their order, units and decimals are the public ones (docs/leaderboard.md); what was not measured is an empty
cell, never 0. Instead of a time, the name of an eval file holds the protocol, so that equal work gives equal files.
Numbers are those of the run's protocol: only `upstream` is meant to be set beside the public evaluator's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from revisit.core import Case, Record
from revisit.evidence.judged import case_questions
from revisit.media.text_files import csv_text
from revisit.results import Results
from revisit.suites.memobench.columns import EVAL_COLUMNS, LEADERBOARD, ORS_COLUMNS, Place, PublicColumn
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import REAL, parse_clip_name
from revisit.suites.memobench.radar import radar_svg

FOLDER = "memobench_csv"
IDENTITY = ("id", "scene", "data_type")  # columns of every file that say which clip a row is of


def export(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, str]:
    """Texts of the CSV files by name."""
    protocol = path_safe_name(facts["protocol"].replace(":", "-"))
    files: dict[str, str] = {}
    board = []
    models = {model: mine for model, mine in results.groups().items() if mine.cases}
    for model, folder in unique_folder_name_by_model(models).items():
        mine = models[model]
        subsets = {case.subset.lower() for case in mine.cases}
        mode = "both" if len(subsets) > 1 else "".join(subsets)
        files[f"{FOLDER}/outputs/{folder}/eval_{mode}_{protocol}.csv"] = eval_csv_text(mine)
        if mine.scores("memo_ors"):
            files[f"{FOLDER}/ors_results/{folder}/ors_scores.csv"] = ors_csv_text(mine)
        for name, text in vqa_csv_texts_by_name(mine).items():
            files[f"{FOLDER}/vqa_results/{folder}/{name}"] = text
        board.append([model, *(_column_mean_text(mine, column) for column in LEADERBOARD.values())])
    means = {model: {id: mine.cell(id).mean for id in mine.metrics} for model, mine in models.items()}
    if figure := radar_svg(means):
        files["radar.svg"] = figure
    if board:
        files[f"{FOLDER}/leaderboard.csv"] = csv_text(("Model", *LEADERBOARD), board, "\n")
    return files


def eval_csv_text(results: Results) -> str:
    """One row per clip with the 48 public columns; a column `error` where a clip failed."""
    errors = {
        case.id: next(iter(records.values())).sentence
        for case in results.cases
        if (records := results.of(case)) and all(record.failed for record in records.values())
    }
    head = [*EVAL_COLUMNS, *(["error"] if errors else [])]
    rows = []
    for case in results.cases:
        row = _clip_cells(case) | _metric_cells_by_column(EVAL_COLUMNS, results.of(case))
        if error := errors.get(case.id):
            row = {**{name: row[name] for name in IDENTITY}, "error": error}
        rows.append([row.get(name, "") for name in head])
    return csv_text(head, rows, "\n")


def ors_csv_text(results: Results) -> str:
    """One row per clip whose object was looked for."""
    rows = []
    for record in results.scores("memo_ors"):
        row = _clip_cells(record.case) | _metric_cells_by_column(ORS_COLUMNS, {"memo_ors": record})
        row |= {"clip_id": row["id"], "n_gen": row["num_frames"]}
        rows.append([row[name] for name in ORS_COLUMNS])
    return csv_text(tuple(ORS_COLUMNS), rows)


def vqa_csv_texts_by_name(results: Results) -> dict[str, str]:
    """A file per clip that a judge answered about, and overall.csv."""
    files: dict[str, str] = {}
    overall = []
    for case in results.cases:
        records = {name: results.answer(case, f"memo_vqa_{short}") for short, name in DIMENSIONS.items()}
        values = {name: record_number_at(record, ()) for name, record in records.items()}
        scores = {name: round(value / 100, 4) for name, value in values.items() if value is not None}
        clip = parse_clip_name(case.sample)
        if not scores or clip is None:
            continue
        scene, _, number = clip.question_key.rpartition("-")
        judged, head = _judged_answer_entries(case, records), (scene or "real", number)
        row = (*head, case.sample, json.dumps(judged), json.dumps(scores))
        files[f"{clip.question_key}.csv"] = csv_text(("scene", "video_id", "folder", "Evaluation", "score"), [row])
        overall.append([*head, *(_format_public_number(scores.get(name), 1, 4) for name in DIMENSIONS.values())])
    if overall:
        files["overall.csv"] = csv_text(("scene", "video_id", *DIMENSIONS.values()), overall)
    return files


def unique_folder_name_by_model(models: Iterable[str]) -> dict[str, str]:
    """A folder name for each model, odd characters replaced, none used twice."""
    folders: dict[str, str] = {}
    for model in sorted(models):
        name = path_safe_name(model)
        while name in folders.values():
            name += "_"
        folders[model] = name
    return folders


def path_safe_name(name: str) -> str:
    """The name with everything replaced that a path cannot or should not hold."""
    safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in name)
    return "_" + safe.lstrip(".") if safe.startswith(".") or not safe else safe


def record_number_at(record: Record | None, place: Place) -> float | None:
    """The score of a record, or one of its facts; None where it was not scored or does not say."""
    if record is None or not record.scored:
        return None
    value: Any = record.facts if place else record.value
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _clip_cells(case: Case) -> dict[str, str]:
    """What a row says of its clip: which it is, its length, phases and lens."""
    scene = "real" if case.subset == REAL else case.sample.rpartition("_")[0]
    hidden, returned = case.phases or ("", "")
    frames, true_frames = (case.annotations.get(name, "") for name in ("frames", "gt_frames"))
    cells: dict[str, object] = dict(zip(IDENTITY, (case.sample, scene, case.subset.lower()), strict=True))
    cells |= {"num_frames": frames, "h_start": hidden, "r_start": returned, "gt_frames": true_frames}
    cells |= {name: round(float(case.annotations[name]), 2) for name in ("fx", "fy") if name in case.annotations}
    return {name: str(value) for name, value in cells.items()}


def _metric_cells_by_column(
    columns: Mapping[str, PublicColumn | None], records: Mapping[str, Record]
) -> dict[str, str]:
    """Column -> its number, of the columns that have a metric."""
    cells = {}
    for name, column in columns.items():
        if column is not None:
            value = record_number_at(records.get(column.metric), column.place)
            cells[name] = _format_public_number(value, column.factor, column.decimals or 0)
    return cells


def _format_public_number(value: float | None, factor: float, decimals: int) -> str:
    """A number as the public files write it: rounded, without padding; nothing for None."""
    if value is None:
        return ""
    rounded = round(factor * value, decimals)
    return str(int(rounded)) if decimals == 0 else repr(float(rounded))


def _column_mean_text(results: Results, column: PublicColumn) -> str:
    numbers = (record_number_at(record, column.place) for record in results.records_for(column.metric))
    values = [number for number in numbers if number is not None]
    return f"{column.factor * sum(values) / len(values):.4f}" if values else ""


def _judged_answer_entries(case: Case, records: Mapping[str, Record | None]) -> list[dict[str, object]]:
    """The answers as a judge's list, from what failed and what was left open."""
    entries = []
    for question in case_questions(case.annotations):
        record = records.get(question.dimension)
        facts = record.facts if record else {}
        if "failed" not in facts or question.id in facts["unanswered"]:
            continue
        passed = question.id not in facts["failed"]
        judged = {"Answer": "Yes" if passed == question.positive else "No", "Verdict": "Pass" if passed else "Fail"}
        entries.append({**question.as_public_bank_row(), **judged})
    return entries
