"""Records → tables: per model, per perspective and test; coverage of what the dataset expects; actions by group.

A cell counts the clips of the tests its metric is asked of, missing ones included: a model that leaves out the hard
clips shows it in its coverage.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import Case, Rejected
from revisit.results import Results
from revisit.suites.mind import spaces
from revisit.suites.mind.metrics import KEYS, tests_of
from revisit.suites.mind.read import PERSPECTIVES, TESTS
from revisit.suites.mind.selection import MIRROR
from revisit.suites.tables import (
    ByCase,
    by_case,
    cell,
    column,
    failures,
    in_sentences,
    metric_ids,
    unreadable,
    was_asked,
)

MEMORY = (*KEYS["lcm"].values(), *KEYS["gsc"].values())


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    cases, rejected, records = results.cases, results.rejected, results.records
    answers = by_case(records)
    reasons = {id: _never_asked(id, cases, answers) for id in metric_ids(records)}
    asked = [id for id, reason in reasons.items() if reason is None]
    models = sorted({case.model for case in cases} | {entry.model for entry in rejected})

    def of(model: str | None, parts: Sequence[tuple[str, str]]) -> tuple[list[Case], list[Rejected]]:
        """The cases of a model, or of all, in some parts, and what is lacking there."""
        return (
            [case for case in cases if model in (None, case.model) and (case.subset, case.condition) in parts],
            [entry for entry in rejected if model in (None, entry.model) and (entry.subset, entry.condition) in parts],
        )

    def scores(model: str, parts: Sequence[tuple[str, str]], ids: Sequence[str]) -> dict[str, Any]:
        made = {}
        for id in ids:
            mine, lacking = of(model, [part for part in parts if part[1] in tests_of(id)])
            made[id] = cell(id, mine, answers, len(lacking))
        return made

    whole = [(perspective, test) for perspective in PERSPECTIVES for test in TESTS]
    tests = {test for id in reasons for test in tests_of(id)}
    posed = [part for part in whole if part[1] in tests]  # a clip of which nothing was asked poses no test
    tables = {}
    for part in whole:
        ids = [id for id in asked if part[1] in tests_of(id)]
        present = [model for model in models if any(of(model, [part]))]
        if present and ids:
            tables[" ".join(part)] = {
                "metrics": ids,
                "models": {
                    model: {"cases": len(of(model, [part])[0]), "scores": scores(model, [part], ids)}
                    for model in present
                },
            }
    return {
        "cases": len(cases),
        "rejected": in_sentences(rejected, "prediction", lambda entry: f"{entry.subset}/{entry.condition}"),
        "failed": failures(records),
        "metrics": {id: column(id, records) for id in asked},
        "not_asked": {id: reason for id, reason in reasons.items() if reason is not None},
        "models": {
            model: {
                "cases": len(of(model, whole)[0]),
                "funnel": _funnel(*of(model, posed), answers),
                "labels": {},
                "scores": scores(model, whole, asked),
            }
            for model in models
        },
        "funnel": _funnel(*of(None, posed), answers),
        "parts": tables,
        "tables": spaces.tables(cases, rejected, answers, [id for id in asked if tests_of(id) != (MIRROR,)]),
        "coverage": {model: coverage(*of(model, whole)) for model in models},
        "actions": {model: _actions(of(model, whole)[0], answers) for model in models},
    }


def coverage(cases: Sequence[Case], rejected: Sequence[Rejected]) -> dict[str, dict[str, Any]]:
    """Per perspective and test: clips that the dataset expects, those found, and those missing or refused."""
    found = Counter((case.subset, case.condition) for case in cases)
    lacking: dict[tuple[str, str], list[Rejected]] = defaultdict(list)
    for entry in rejected:
        lacking[entry.subset, entry.condition].append(entry)
    return {
        " ".join(part): {
            "expected": found[part] + len(lacking[part]),
            "found": found[part],
            "missing": sum(entry.missing for entry in lacking[part]),
            "refused": sum(not entry.missing for entry in lacking[part]),
        }
        for part in sorted({*found, *lacking})
    }


def _never_asked(id: str, cases: Sequence[Case], answers: ByCase) -> str | None:
    """Why nobody could be asked in any clip of the metric's tests: one reason for all, and no clip looked at."""
    mine = [answers[case.id][id] for case in cases if case.condition in tests_of(id) and id in answers[case.id]]
    if not mine:
        return "no clip of its tests is here"
    reasons = {record["reason"] if record["status"] == "unscored" and not record["facts"] else None for record in mine}
    return next(iter(reasons)) if len(reasons) == 1 else None


def _funnel(cases: Sequence[Case], rejected: Sequence[Rejected], answers: ByCase) -> list[dict[str, Any]]:
    readable = [case for case in cases if not unreadable(answers[case.id])]
    scored = [case for case in readable if any(answers[case.id].get(id, {}).get("status") == "scored" for id in MEMORY)]
    stages = [
        {"stage": "expected clips", "n": len(cases) + len(rejected)},
        {"stage": "all clips", "n": len(cases)},
        {"stage": "readable", "n": len(readable)},
    ]
    return [*stages, {"stage": "memory scored", "n": len(scored)}] if was_asked(MEMORY, answers, cases) else stages


def _actions(cases: Sequence[Case], answers: ByCase) -> dict[str, dict[str, float]]:
    """Errors of all steps of a model by group and action: means over steps, whichever clip they are from."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in cases:
        for name, id in KEYS["action"].items():
            record = answers[case.id].get(id, {})
            for group, values in (record.get("facts") or {}).get("groups", {}).items():
                sums[group][f"{name}_count"] += values["count"]
                sums[group][f"{name}_mean"] += values["count"] * values["mean"]
    return {
        group: {
            name: value / values[name.replace("_mean", "_count")] if name.endswith("_mean") else int(value)
            for name, value in sorted(values.items())
        }
        for group, values in sorted(sums.items())
    }
