"""Results → tables: the standard ones, over all tests and per perspective and test; actions by group.

A cell counts the clips of the tests its metric is asked of, missing ones included: a model that leaves out the hard
clips shows it in its coverage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from revisit.results import Results
from revisit.results.funnel import Stage, memory_stage, stage
from revisit.results.tables import standard_summary
from revisit.suites.mind import spaces
from revisit.suites.mind.measures import KEYS
from revisit.suites.mind.read import PERSPECTIVES, TESTS

MEMORY = (*KEYS["lcm"].values(), *KEYS["gsc"].values())


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    standard = standard_summary(
        results,
        funnel=partial(_funnel, asked=results.metrics),
        parts=parts_of(results),
        noun="prediction",
        places=("subset", "condition"),
    )
    return standard | {
        "tables": spaces.tables(results, list(standard["metrics"])),
        "actions": {model: _actions(mine) for model, mine in results.groups().items()},
    }


def parts_of(results: Results) -> dict[str, Results]:
    """The results by perspective and test."""
    return {
        f"{perspective} {test}": results.where(subset=perspective, condition=test)
        for perspective in PERSPECTIVES
        for test in TESTS
    }


def _funnel(results: Results, asked: Sequence[str]) -> list[Stage]:
    """Expected clips → found → readable → scored; a clip of which nothing was asked poses no test."""
    mine = results.only(lambda entry: any(results.asks(id, entry) for id in asked))
    stages = {"expected clips": mine.entries, "all clips": mine.cases, "readable": mine.readable.cases}
    return [*(stage(name, clips) for name, clips in stages.items()), *memory_stage(mine, MEMORY)]


def _actions(results: Results) -> Mapping[str, Mapping[str, float]]:
    """Errors of all steps by group and action: means over steps, whichever clip they are from."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in results.cases:
        for name, id in KEYS["action"].items():
            record = results.answer(case, id)
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
