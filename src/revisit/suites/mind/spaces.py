"""Action spaces: what a model makes of speeds and angles that it was not trained on, and what that costs it.

The recordings of mem_test share one action space; those of action_space_test vary the speed of walking and the angle of
turning, which their names tell. The gap is the mean over varied ones minus the mean over shared ones, with Welch's
interval over clips.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import METRICS, Case, Rejected
from revisit.stats.intervals import difference_interval
from revisit.suites.mind.selection import MAIN, SHARED, VARIED
from revisit.suites.tables import ByCase, cell

Space = tuple[float, float]  # speed and angle; (inf, inf) where the name tells none


def tables(
    cases: Sequence[Case], rejected: Sequence[Rejected], answers: ByCase, asked: Sequence[str]
) -> list[dict[str, Any]]:
    """Scores by action space, and the gap between shared and varied ones; none where no clip varies it."""
    main = [case for case in cases if case.condition in MAIN]
    if not asked or not any(case.condition == VARIED for case in main):
        return []
    models = sorted({case.model for case in main})
    titles = [METRICS[id].title for id in asked]
    return [
        {
            "title": "Scores by action space",
            "note": "speed and angle as the names of the recordings tell them; mem_test has the shared action space",
            "columns": titles,
            "rows": [
                {"name": f"{model}, {name}", "cells": [cell(id, mine, answers) for id in asked]}
                for model in models
                for name, mine in _by_space([case for case in main if case.model == model])
            ],
        },
        {
            "title": "Varied minus shared action spaces",
            "note": "action_space_test minus mem_test, with Welch's 95 % interval; clips of both counted",
            "columns": titles,
            "rows": [
                {"name": model, "cells": [_gap(id, model, main, rejected, answers) for id in asked]} for model in models
            ],
        },
    ]


def _by_space(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    """The clips of a model, the shared action space first, then by speed and angle."""
    groups: dict[tuple[bool, Space], list[Case]] = defaultdict(list)
    for case in cases:
        told = case.annotations
        groups[case.condition == VARIED, (told.get("speed", math.inf), told.get("angle", math.inf))].append(case)
    return [(_named(varied, *space), groups[varied, space]) for varied, space in sorted(groups)]


def _named(varied: bool, speed: float, angle: float) -> str:
    told = "" if math.isinf(speed) else f"{speed:g}x, angle {angle:g}"
    return " ".join(filter(None, ["varied" if varied else "shared", told]))


def _gap(id: str, model: str, cases: Sequence[Case], rejected: Sequence[Rejected], answers: ByCase) -> dict[str, Any]:
    def scores(test: str) -> list[float]:
        found = [
            answers.get(case.id, {}).get(id, {}) for case in cases if case.model == model and case.condition == test
        ]
        return [record["score"] for record in found if record.get("status") == "scored"]

    shared, varied = scores(SHARED), scores(VARIED)
    expected = [case for case in cases if case.model == model] + [
        entry for entry in rejected if entry.model == model and entry.condition in MAIN
    ]
    made: dict[str, Any] = {"n": len(shared) + len(varied), "of": len(expected), "failed": 0}
    if shared and varied:
        made["mean"] = sum(varied) / len(varied) - sum(shared) / len(shared)
        interval = difference_interval(varied, shared)
        made["interval"] = None if interval is None else list(interval)
    return made
