"""The files that the public evaluator writes, from the results of a run: for existing tools (docs/mbench.md).

Every `scores` has the same keys: `score` (0-1), `score_raw` where it is another number, and in setting T, where a judge
was asked, `triggered` and `trigger_score`. An item that does not pose the test has no score, and one of which nobody
knows has no `triggered`; what their metric gave stands in `metadata.raw_scores`, with all its facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Record
from revisit.results import Results
from revisit.suites.mbench.names import TRIGGER, MemoryDimension, upstream_metric_name
from revisit.suites.mbench.scoring import Answers, TriggerVerdict, answers_with_counting_rule

FOLDER = "metrics"
STANDING_FIELDS = (  # what a group's scores rest on: fields of a Standing
    "n", "of", "posed", "not_posed", "unknown", "reliability", "reliability_interval", "coverage", "m_score",
    "m_interval", "strict", "ungated",
)  # fmt: skip


def export(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, object]:
    """Texts and contents of the files by name."""
    answers = answers_with_counting_rule(results)
    items = ({"item_id": _item_id(case), "model_id": case.model} for case in results.cases)
    files: dict[str, object] = {"items.jsonl": _json_lines_text(items)}
    for dimension in answers.asked_dimensions():
        name = upstream_metric_name(dimension, answers.setting)
        mine = results.records_for(dimension.id)
        units = (unit for record in mine for unit in unit_export_rows(answers, record))
        files[f"{FOLDER}/{name}/units.jsonl"] = _json_lines_text(units)
        files[f"{FOLDER}/{name}/items.jsonl"] = _json_lines_text(item_export_row(answers, record) for record in mine)
        files[f"{FOLDER}/{name}/summary.json"] = metric_summary_content(facts, answers, dimension)
    return files


def item_export_row(answers: Answers, record: Record) -> dict[str, object]:
    """The line of an item: canonical scores, its status, and everything the metric said."""
    case, verdict = record.case, answers.trigger_verdict(record.case, record.question)
    status, reason = str(record.status), record.sentence
    if record.scored and not verdict.posed:
        status = "not_triggered" if verdict.posed is False else "trigger_unknown"
        reason = verdict.reason
    raw = {"score": record.value, "raw": record.raw, **record.facts}
    return {
        "item_id": _item_id(case),
        "model_id": case.model,
        "subset": case.subset,
        "sample_id": case.sample,
        "condition_id": case.condition,
        "valid": status == "scored",
        "status": status,
        **({"reason": reason} if reason and status != "scored" else {}),
        "scores": (_score_fields(record.value, record.raw) if status == "scored" else {})
        | _trigger_fields(answers, verdict),
        "metadata": {"raw_scores": raw, "protocol": record.protocol},
    }


def unit_export_rows(answers: Answers, record: Record) -> Iterator[dict[str, object]]:
    """The lines of the units of an item; none where the item has no score."""
    case, verdict = record.case, answers.trigger_verdict(record.case, record.question)
    if not record.scored or not verdict.posed:
        return
    series = answers.results.series(case, record.question)
    columns = series.columns if series is not None and "value" in series.columns else {}
    value = columns.get("value", np.array([record.value], dtype=float))
    for row in range(len(value)):
        cells = {name: _json_value_or_none(column[row]) for name, column in sorted(columns.items())}
        score = _json_value_or_none(value[row])
        if score is None:
            continue
        raw = cells.get("raw", record.raw if not columns else None)
        yield {
            "unit_id": f"{_item_id(case)}__{_unit_name_from_frames(cells, row)}",
            "item_id": _item_id(case),
            "model_id": case.model,
            "scores": {**_score_fields(score, raw), **_trigger_fields(answers, verdict)},
            "metadata": {"raw_scores": {name: value for name, value in cells.items() if name != "value"}},
        }


def metric_summary_content(facts: Mapping[str, Any], answers: Answers, dimension: MemoryDimension) -> dict[str, object]:
    """The content of summary.json: the canonical scores by model, and beside them what they rest on."""
    groups = {model: model_group_row(answers, model, dimension) for model in answers.results_by_model}
    return {
        "metric": upstream_metric_name(dimension, answers.setting),
        "group_by": "model_id",
        "protocol": facts["protocol"],
        **facts["made_by"].get(dimension.id, {}),
        **({"trigger_judge": judge} if (judge := facts["made_by"].get(TRIGGER, {}).get("judge")) else {}),
        "rule": answers.rule,
        "groups": {model: row for model, row in groups.items() if row["of"]},
    }


def model_group_row(answers: Answers, model: str, dimension: MemoryDimension) -> dict[str, object]:
    """The group of a model."""
    standing = answers.standing_of_model(model, dimension)
    scores = _score_fields(standing.reliability, standing.raw)
    if answers.rule == "trigger":
        cases = answers.results_by_model[model].where(subset=dimension.subset).cases
        confidences = (answers.trigger_verdict(case, dimension.id).confidence for case in cases)
        sure = [confidence for confidence in confidences if confidence is not None]
        decided = standing.of - standing.unknown
        if decided:
            scores["triggered"] = standing.posed / decided
        if sure:
            scores["trigger_score"] = sum(sure) / len(sure)
    return scores | {name: getattr(standing, name) for name in STANDING_FIELDS}


def _score_fields(score: float | None, raw: float | None) -> dict[str, float]:
    if score is None:
        return {}
    return {"score": score, **({"score_raw": raw} if raw is not None and raw != score else {})}


def _trigger_fields(answers: Answers, verdict: TriggerVerdict) -> dict[str, float]:
    """`triggered` and `trigger_score`, where a judge said so."""
    if answers.rule != "trigger":
        return {}
    scores = {} if verdict.posed is None else {"triggered": float(verdict.posed)}
    return scores if verdict.confidence is None else {**scores, "trigger_score": verdict.confidence}


def _unit_name_from_frames(cells: Mapping[str, float | None], row: int) -> str:
    """`f12_f48` for a pair of frames, `f12` for one, else the number of the unit."""
    frames = [f"f{int(number)}" for name in ("frame", "other") if isinstance(number := cells.get(name), int | float)]
    return "_".join(frames) or f"u{row}"


def _item_id(case: Case) -> str:
    return str(case.annotations["item_id"])


def _json_value_or_none(value: Any) -> Any:
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def _json_lines_text(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
