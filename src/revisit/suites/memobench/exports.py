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
from revisit.evidence.answers import case_questions
from revisit.media.text_files import csv_text
from revisit.results import Results
from revisit.suites.export_facts import ExportFacts
from revisit.suites.memobench.columns import FIDELITY, LEADERBOARD, SCORE, Place, PublicColumn
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import REAL, SYNTHETIC, parse_clip
from revisit.suites.memobench.radar import radar

FOLDER = "memobench_csv"
PHASES = {"O": "visible", "H": "hidden", "R": "returned", "ALL": "all"}  # as the public columns call them -> ours

# Column -> (metric, place, factor, decimals), in the public order.
Source = tuple[str, Place, float, int]
RAW: dict[str, Source | None] = {
    "TemporalScore": ("memo_motion_smoothness", ("temporal_score",), 1, 4),
    "AestheticScore": ("memo_aesthetic", SCORE, 1, 4),
    "ImageQuality": ("memo_image_quality", SCORE, 1, 4),
    "ObjIdentityMean": ("memo_identity", ("mean",), 1, 4),
    "ObjIdentityMin": ("memo_identity", ("minimum",), 1, 4),
    "GeoConsistencyMean": ("memo_geo3d", ("mean",), 1, 4),
    "GeoConsistencyMin": ("memo_geo3d", ("minimum",), 1, 4),
    "ImageRewardScore": ("memo_image_reward", SCORE, 1, 2),  # on 0-100, as the public file has it
    "GTRevisitSim": None,  # a diagnostic of neither the paper nor the leaderboard
    **{
        f"GT_{phase}_{name}": (id, ("mean", ours), 1, 4)
        for phase, ours in PHASES.items()
        for name, id in FIDELITY.items()
    },
    "CameraControllability": ("memo_camera", SCORE, 1, 2),  # on 0-100
    "ATE_RotDeg": ("memo_camera", ("ate_deg",), 1, 3),
    "TotalGT_RotDeg": ("memo_camera", ("true_rotation_deg",), 1, 3),
    "MeanRotErrorDeg": ("memo_camera", ("step_error_deg",), 1, 3),
}
PERCENT: dict[str, Source | None] = {
    "TemporalScore_pct": ("memo_motion_smoothness", SCORE, 1, 1),
    "AestheticScore_pct": ("memo_aesthetic", ("percent",), 1, 1),
    "ImageQuality_pct": ("memo_image_quality", ("percent",), 1, 1),
    "GeoConsistencyMean_pct": ("memo_geo3d", ("mean",), 100, 1),
    "GeoConsistencyMin_pct": ("memo_geo3d", ("minimum",), 100, 1),
    "ImageRewardScore_pct": ("memo_image_reward", SCORE, 1, 1),
    "GTRevisitSim_pct": None,
    "ObjIdentityMean_pct": ("memo_identity", ("mean",), 100, 1),
    "ObjIdentityMin_pct": ("memo_identity", ("minimum",), 100, 1),
    "CameraControllability_pct": ("memo_camera", SCORE, 1, 1),
    "MotionSmoothness": ("memo_motion_smoothness", SCORE, 1, 2),
    "VisualQuality": ("memo_visual_quality", SCORE, 1, 2),
    "Geo3DConsistency": ("memo_geo3d", SCORE, 1, 2),
    "ObjIdentityConsistency": ("memo_identity", SCORE, 1, 2),
}
ABOUT = ("id", "scene", "data_type", "num_frames", "h_start", "r_start", "gt_frames")
EVAL_COLUMNS = (*ABOUT, *RAW, "fx", "fy", *PERCENT)
ORS_COLUMNS = (
    "clip_id", "data_type", "scene", "n_gen", "r_start", "ors", "detection_rate", "mean_confidence", "n_r_frames",
    "n_detected",
)  # fmt: skip
VQA_COLUMNS = ("scene", "video_id", "folder", "Evaluation", "score")


def export(run: Path, facts: ExportFacts, results: Results) -> dict[str, str]:
    """Texts of the CSV files by name."""
    protocol = safe_name(facts["protocol"].replace(":", "-"))
    files: dict[str, str] = {}
    board = []
    models = {model: results.where(model=model) for model in sorted({case.model for case in results.cases})}
    for model, folder in model_folders(models).items():
        mine = models[model]
        files[f"{FOLDER}/outputs/{folder}/eval_{_mode(mine)}_{protocol}.csv"] = eval_csv(mine)
        if mine.scores("memo_ors"):
            files[f"{FOLDER}/ors_results/{folder}/ors_scores.csv"] = ors_csv(mine)
        for name, text in vqa_csvs(mine).items():
            files[f"{FOLDER}/vqa_results/{folder}/{name}"] = text
        board.append([model, *(_mean_cell(mine, column) for column in LEADERBOARD.values())])
    figure = radar({model: _means(mine) for model, mine in models.items()})
    if figure:
        files["radar.svg"] = figure
    if board:
        files[f"{FOLDER}/leaderboard.csv"] = csv_text(("Model", *LEADERBOARD), board, "\n")
    return files


def _means(results: Results) -> dict[str, float]:
    """Metric -> mean over the clips that have a score."""
    cells = {metric_id: results.cell(metric_id) for metric_id in results.metrics}
    return {metric_id: cell.mean for metric_id, cell in cells.items() if cell.mean is not None}


def eval_csv(results: Results) -> str:
    """One row per clip with the 48 public columns; a column `error` where a clip failed."""
    errors = {case.id: _error(results.of(case)) for case in results.cases}
    failed = any(errors.values())
    rows = []
    for case in results.cases:
        row: dict[str, str] = {**_clip_cells(case)}
        if errors[case.id] is None:
            row |= _positions(case)
            row |= {name: _cell(results.of(case), source) for name, source in {**RAW, **PERCENT}.items()}
        rows.append([*(row.get(name, "") for name in EVAL_COLUMNS), *([errors[case.id] or ""] if failed else [])])
    return csv_text((*EVAL_COLUMNS, *(["error"] if failed else [])), rows, "\n")


def ors_csv(results: Results) -> str:
    """One row per clip whose object was looked for."""
    rows = []
    for record in results.scores("memo_ors"):
        row = {**_clip_cells(record.case), **_positions(record.case)}
        shares = [_number(value_at(record, (name,)), 1, 4) for name in ("ors", "detection_rate", "mean_confidence")]
        counts = [_number(value_at(record, (name,)), 1, 0) for name in ("returned_frames", "detected")]
        clip_cells = [row["id"], row["data_type"], row["scene"], row["num_frames"], row["r_start"]]
        rows.append([*clip_cells, *shares, *counts])
    return csv_text(ORS_COLUMNS, rows)


def vqa_csvs(results: Results) -> dict[str, str]:
    """A file per clip that a judge answered about, and overall.csv."""
    files: dict[str, str] = {}
    overall = []
    for case in results.cases:
        metric_by_dimension = {name: f"memo_vqa_{short}" for short, name in DIMENSIONS.items()}
        values = {
            name: value
            for name, metric_id in metric_by_dimension.items()
            if (value := results.score(case, metric_id)) is not None
        }
        clip = parse_clip(case.sample)
        if not values or clip is None:
            continue
        scene, _, number = clip.question_key.rpartition("-")
        scores = {name: round(value / 100, 4) for name, value in values.items()}
        records = {name: results.answer(case, metric_id) for name, metric_id in metric_by_dimension.items()}
        row = [scene or "real", number, case.sample, json.dumps(_evaluation(case, records)), json.dumps(scores)]
        files[f"{clip.question_key}.csv"] = csv_text(VQA_COLUMNS, [row])
        overall.append([scene or "real", number, *(_number(scores.get(name), 1, 4) for name in DIMENSIONS.values())])
    if overall:
        files["overall.csv"] = csv_text(("scene", "video_id", *DIMENSIONS.values()), overall)
    return files


def model_folders(models: Iterable[str]) -> dict[str, str]:
    """A folder name for each model, odd characters replaced, none used twice."""
    folders: dict[str, str] = {}
    for model in sorted(models):
        name = safe_name(model)
        while name in folders.values():
            name += "_"
        folders[model] = name
    return folders


def safe_name(name: str) -> str:
    """The name with everything replaced that a path cannot or should not hold."""
    safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in name)
    return "_" + safe.lstrip(".") if safe.startswith(".") or not safe else safe


def value_at(record: Record | None, place: Place) -> float | None:
    """The score of a record, or one of its facts; None where it was not scored or does not say."""
    if record is None or not record.scored:
        return None
    value: Any = record.facts if place else record.value
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _clip_cells(case: Case) -> dict[str, str]:
    real = case.subset == REAL
    scene = "real" if real else case.sample.rpartition("_")[0]
    return {"id": case.sample, "scene": scene, "data_type": (REAL if real else SYNTHETIC).lower()}


def _positions(case: Case) -> dict[str, str]:
    hidden, returned = case.phases or ("", "")
    frames, true_frames = (case.annotations.get(name, "") for name in ("frames", "gt_frames"))
    cells = {"num_frames": frames, "h_start": hidden, "r_start": returned, "gt_frames": true_frames}
    cells |= {name: round(float(case.annotations[name]), 2) for name in ("fx", "fy") if name in case.annotations}
    return {name: str(value) for name, value in cells.items()}


def _cell(records: Mapping[str, Record], source: Source | None) -> str:
    if source is None:
        return ""
    metric_id, place, factor, decimals = source
    return _number(value_at(records.get(metric_id), place), factor, decimals)


def _number(value: float | None, factor: float, decimals: int) -> str:
    """A number as the public files write it: rounded, without padding; nothing for None."""
    if value is None:
        return ""
    rounded = round(factor * value, decimals)
    return str(int(rounded)) if decimals == 0 else repr(float(rounded))


def _mean_cell(results: Results, column: PublicColumn) -> str:
    values = [
        value for record in results.records_for(column.metric) if (value := value_at(record, column.place)) is not None
    ]
    return f"{column.factor * sum(values) / len(values):.4f}" if values else ""


def _error(records: Mapping[str, Record]) -> str | None:
    """The sentence of a clip of which nothing could be measured."""
    if records and all(record.failed for record in records.values()):
        return next(iter(records.values())).sentence
    return None


def _evaluation(case: Case, records: Mapping[str, Record | None]) -> list[dict[str, object]]:
    """The answers as a judge's list, from what failed and what was left open."""
    entries = []
    for question in case_questions(case.annotations):
        record = records.get(question.dimension)
        facts = record.facts if record else {}
        if "failed" not in facts or question.id in facts["unanswered"]:
            continue
        passed = question.id not in facts["failed"]
        entries.append(
            {
                **question.public(),
                "Answer": "Yes" if passed == question.positive else "No",
                "Verdict": "Pass" if passed else "Fail",
            }
        )
    return entries


def _mode(results: Results) -> str:
    subsets = {case.subset for case in results.cases}
    return "both" if len(subsets) > 1 else "".join(subsets).lower()
