"""Records → tables: dimensions by model on condition that the test is posed, with axes, total and rank.

Setting T: reliability, coverage and M-Score. Setting A: reliability alone, over clips whose camera moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from revisit.core import Case, Rejected
from revisit.results import Results
from revisit.stats.intervals import mean_interval
from revisit.suites.folder.summary import labels
from revisit.suites.mbench.names import AXES, BY_ID, DIMENSIONS, SUBSETS, Dimension, upstream_name
from revisit.suites.mbench.ranking import COLUMNS, contribution, ranking
from revisit.suites.mbench.records import Answers, answers_of
from revisit.suites.mbench.scoring import Standing
from revisit.suites.tables import (
    clip,
    column,
    failures,
    in_sentences,
    kind_of,
    metric_ids,
    never_asked,
    unreadable,
)

NOTES = {
    "trigger": "100 times the M-Score; an interval is what unknown triggers leave open",
    "camera": "100 times the mean over clips whose camera moved, for action over all; A has no M-Score",
    "all": "100 times the mean over all scored clips, whether they pose the test or not",
}


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    cases, rejected, records = results.cases, results.rejected, results.records
    answers = answers_of(cases, rejected, records)
    reasons = {id: never_asked(id, records) for id in metric_ids(records)}
    shown = [id for id, reason in reasons.items() if reason is None]
    models = answers.models
    asked = [dimension for dimension in answers.asked() if dimension.id in shown]
    standings = {d.id: {model: answers.standing(model, d) for model in models} for d in asked}
    ranked = ranking(answers, asked, standings)

    def scores(model: str, subset: str | None = None) -> dict[str, Any]:
        ids = [id for id in shown if subset is None or id in {d.id for d in asked if d.subset == subset}]
        return {id: cell(answers, model, id, next((d for d in asked if d.id == id), None)) for id in ids}

    parts = {}
    for subset in SUBSETS:
        ids = [dimension.id for dimension in asked if dimension.subset == subset]
        present = [model for model in models if any(answers.of(model, subset))]
        if ids and present:
            counts = {model: len(answers.of(model, subset)[0]) for model in present}
            mine = {model: {"cases": counts[model], "scores": scores(model, subset)} for model in present}
            parts[subset] = {"metrics": ids, "models": mine}
    return {
        "cases": len(cases),
        "rejected": in_sentences(rejected, "video"),
        "failed": failures(records),
        "metrics": {id: column(id, records) for id in shown},
        "not_asked": {id: reason for id, reason in reasons.items() if reason is not None},
        "models": {
            model: {
                "cases": len(answers.of(model)[0]),
                "funnel": _funnel(answers, model),
                "labels": labels(answers.of(model)[0], answers.records),
                "scores": scores(model),
            }
            for model in models
        },
        "funnel": _funnel(answers, None),
        "parts": parts if len(parts) > 1 else {},
        "sentences": _sentences(answers, ranked),
        "tables": _tables(answers, asked, standings, ranked),
        "coverage": {model: coverage(*answers.of(model)) for model in models},
        "mbench": {
            "setting": answers.setting,
            "rule": answers.rule,
            "dimensions": {
                d.id: {
                    "upstream": upstream_name(d, answers.setting),
                    "models": {model: _as_json(made) for model, made in standings[d.id].items()},
                }
                for d in asked
            },
            "ranking": ranked,
        },
    }


def cell(answers: Answers, model: str, id: str, dimension: Dimension | None) -> dict[str, Any]:
    """Reliability of a model under a metric: mean over the items that count, the rest by reason.

    Where items count whether they pose the test or not, there is no interval: nothing may be called best then.
    """
    cases, lacking = answers.of(model, dimension.subset if dimension else None)
    scored: list[tuple[float, str]] = []
    reasons: Counter[str] = Counter({"missing": len(lacking)} if lacking else {})
    failed = 0
    for case in cases:
        record = answers.records.get(case.id, {}).get(id)
        verdict = answers.verdict(case, id)
        if record is None:
            continue
        if record["status"] == "failed":
            failed += 1
        elif record["status"] == "unscored":
            reasons[kind_of(record["reason"])] += 1
        elif not verdict.posed:
            reasons["test not posed" if verdict.posed is False else "unknown whether the test is posed"] += 1
        else:
            scored.append((float(record["score"]), case.sample))
    made: dict[str, Any] = {"n": len(scored), "of": len(cases) + len(lacking), "failed": failed}
    if scored:
        values = [value for value, _ in scored]
        made["mean"] = sum(values) / len(values)
        interval = mean_interval(values, [sample for _, sample in scored]) if answers.rule != "all" else None
        made["interval"] = None if interval is None else clip(interval, (0, 1))
    if reasons:
        made["unscored"] = dict(sorted(reasons.items()))
    return made


def coverage(cases: Sequence[Case], rejected: Sequence[Rejected]) -> dict[str, dict[str, int]]:
    """Per subset: items of the list, those with a video, and those missing or refused."""
    made = {}
    for subset in (*SUBSETS, ""):
        lacking = [entry for entry in rejected if entry.subset == subset]
        found = sum(case.subset == subset for case in cases)
        if found or lacking:
            missing = sum(entry.missing for entry in lacking)
            made[subset or "unknown subset"] = {
                "expected": found + len(lacking), "found": found, "missing": missing, "refused": len(lacking) - missing,
            }  # fmt: skip
    return made


def _tables(
    answers: Answers,
    asked: Sequence[Dimension],
    standings: Mapping[str, Mapping[str, Standing]],
    ranked: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    order = [row["model"] for row in ranked]
    tables = []
    if asked and answers.rule == "trigger":
        for title, which in (("Reliability S", "reliability_interval"), ("Coverage C", "coverage")):
            rows = [
                {"name": m, "cells": [_percent(standings[d.id][m], getattr(standings[d.id][m], which)) for d in asked]}
                for m in order
            ]
            note = "100 times; an interval is what unknown triggers leave open"
            tables.append({"title": title, "note": note, "columns": [d.short for d in asked], "rows": rows})
    if asked:
        rows = []
        for row in ranked:
            made = [standings[d.id][row["model"]] for d in asked]
            cells = [_percent(one, contribution(one, answers.rule)) for one in made]
            counts = [_counted(axis, answers.setting, asked, row["left_out"]) for axis in AXES]
            counts.append({key: sum(count[key] for count in counts) for key in ("n", "of")})
            sums = [{**count, **_mean_and_interval(row[name])} for count, name in zip(counts, COLUMNS, strict=True)]
            name = row["model"] if row["rank"] is None else f"{row['rank']}. {row['model']}"
            rows.append({"name": name, "cells": [*cells, *sums]})
        title = "M-Score" if answers.rule == "trigger" else "Reliability"
        columns = [*(d.short for d in asked), *(f"{axis} axis" for axis in AXES), "total"]
        tables.append(
            {
                "title": f"{title}, MBench-{answers.setting}",
                "note": NOTES[answers.rule],
                "columns": columns,
                "rows": rows,
            }
        )
    if answers.rule != "all" and len(ranked) > 1 and any(row["rank"] for row in ranked):
        gate = "the trigger" if answers.setting == "T" else "the camera gate"
        rows = [{"name": row["model"], "cells": _beside(row)} for row in ranked]
        note = f"100 times; without: the mean over all scored clips. up: places won by {gate}"
        columns = ["total with", "rank with", "total without", "rank without", "up"]
        tables.append({"title": f"Ranks with and without {gate}", "note": note, "columns": columns, "rows": rows})
    return tables


def _beside(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells of a model in the table of ranks; a model that is not ranked has a dash."""
    rank, other = row["rank"], row["ungated"]["rank"]
    up = None if None in (rank, other) else other - rank
    without = row["ungated"]["total"]
    totals = [_mean_and_interval(row["order"]) if rank else {}, {} if without is None else {"mean": without}]
    ranks = [{} if value is None else {"mean": value, "text": str(value)} for value in (rank, other)]
    moved = {} if up is None else {"mean": up, "text": f"{up:+d}" if up else "0"}
    cells = [totals[0], ranks[0], totals[1], ranks[1], moved]
    return [{"n": int(bool(cell)), "of": 1, "interval": None, **cell} for cell in cells]


def _counted(axis: str, setting: str, asked: Sequence[Dimension], left_out: Sequence[str]) -> dict[str, int]:
    """How many dimensions of an axis its mean is over, of those that it has."""
    known = [d for d in asked if d.axis == axis and setting in d.averaged and d.id not in left_out]
    return {"n": len(known), "of": len([d for d in DIMENSIONS if d.axis == axis and setting in d.averaged])}


def _percent(made: Standing, interval: tuple[float, float] | None) -> dict[str, Any]:
    scaled = None if interval is None else [100 * interval[0], 100 * interval[1]]
    return {"n": made.n, "of": made.of, **_mean_and_interval(scaled)}


def _mean_and_interval(interval: Sequence[float] | None) -> dict[str, Any]:
    """The middle of an interval with its ends, or the value alone where they are one."""
    if interval is None:
        return {}
    low, high = interval
    return {"mean": (low + high) / 2, "interval": None if low == high else [low, high]}


def _sentences(answers: Answers, ranked: Sequence[Mapping[str, Any]]) -> list[str]:
    said = []
    expected, found = len(answers.cases) + len(answers.rejected), len(answers.cases)
    if found < expected:
        said.append(f"coverage: {found} of {expected} items have a video that can be used")
    if answers.rule == "all" and answers.setting == "T":
        said.append(
            "no judge said which clips pose the test: scores are raw, there is no M-Score, and nobody is ranked"
        )
    unknown = sum(1 for case in answers.cases if (v := answers.posed[case.id]) is not None and v.posed is None)
    if unknown:
        who = "the judge" if answers.setting == "T" else "the camera gate"
        said.append(f"of {unknown} clips {who} could not say whether they pose the test; they are in no mean")
    if ranked and ranked[0]["left_out"] and ranked[0]["rank"]:
        titles = ", ".join(BY_ID[id].title.lower() for id in ranked[0]["left_out"])
        said.append(f"not every model has a value of {titles}: axes and total are without")
    if answers.literal and answers.setting == "A":
        for model in answers.models:
            cases, lacking = answers.of(model)
            still = sum((verdict := answers.posed[case.id]) is not None and verdict.posed is False for case in cases)
            if still > (len(cases) + len(lacking)) / 2:
                said.append(f"the paper ranks everybody: the camera of {model} rests in {still} of {len(cases)} clips")
    for row in ranked:
        if row["rank"] is None and (answers.rule != "all" or answers.setting == "A"):
            said.append(f"{row['model']} is not ranked: {row['reason']}")
    return said


def _funnel(answers: Answers, model: str | None) -> list[dict[str, Any]]:
    cases = [case for case in answers.cases if model in (None, case.model)]
    lacking = sum(1 for entry in answers.rejected if model in (None, entry.model))
    readable = [case for case in cases if not unreadable(answers.records.get(case.id, {}))]
    posed = [case for case in readable if (verdict := answers.posed[case.id]) is not None and verdict.posed]
    stages = [
        {"stage": "expected clips", "n": len(cases) + lacking},
        {"stage": "all clips", "n": len(cases)},
        {"stage": "readable", "n": len(readable)},
    ]
    gated = any(answers.posed[case.id] is not None for case in cases)
    if gated:
        stages.append({"stage": "test posed", "n": len(posed)})
    scored = [
        case
        for case in (posed if gated else readable)
        if any(r["status"] == "scored" for r in answers.records.get(case.id, {}).values())
    ]
    return [*stages, {"stage": "memory scored" if gated else "scored", "n": len(scored)}]


def _as_json(made: Standing) -> dict[str, Any]:
    return {**asdict(made), "m_score": made.m_score}
