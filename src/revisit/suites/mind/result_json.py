"""result.json: the rows that readers of the public evaluator's file expect, and what it leaves out (docs/mind.md).

It is valid JSON: an infinite or missing value is null. It is written anew while clips come in, with the rows of those
that are done; `finished` says whether it is the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from revisit.core import Case, Record, Rejected
from revisit.results import Results
from revisit.results.tables import coverage_by_part
from revisit.suites.mind.metrics import KEYS
from revisit.suites.mind.metrics.selection import MIRROR
from revisit.suites.mind.read import KIND
from revisit.suites.mind.summary import results_by_perspective_and_test

SCHEMA_VERSION = 2
Row = dict[str, Any]  # of result.json; its keys depend on the test and on what was measured


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
