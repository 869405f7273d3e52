"""Action spaces: how a model does with speeds and angles that it was not trained on.

The recordings of mem_test share one action space; those of action_space_test vary the speed of walking and the angle of
turning, which their names tell. The gap is the mean over varied ones minus the mean over shared ones, with Welch's
interval over clips.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from revisit.core import METRICS
from revisit.results import Cell, Results
from revisit.results.results import Entry
from revisit.results.tables import Table, table
from revisit.stats.intervals import difference_interval
from revisit.suites.mind.read import action_space
from revisit.suites.mind.selection import MAIN, SHARED, VARIED

Space = tuple[bool, float, float]  # varied, speed and angle; the latter inf where the name tells none


def tables(results: Results, metrics: Sequence[str]) -> list[Table]:
    """Scores by action space, and the gap between shared and varied ones; none where no clip varies it."""
    main = results.where(condition=MAIN)
    asked = [id for id in metrics if main.expected(id)]
    if not asked or not any(case.condition == VARIED for case in main.cases):
        return []
    models = main.groups()
    titles = [METRICS[id].title for id in asked]
    return [
        table(
            "Scores by action space",
            "speed and angle from the names of the recordings; mem_test has the shared action space",
            titles,
            [
                (f"{model}, {_named(*space)}", [part.cell(id) for id in asked])
                for model, mine in models.items()
                for space, part in mine.groups(_space).items()  # the shared one first, then by speed and angle
            ],
        ),
        table(
            "Varied minus shared action spaces",
            "action_space_test minus mem_test, with Welch's 95 % interval and the numbers of clips",
            titles,
            [(model, [_gap(mine, id) for id in asked]) for model, mine in models.items()],
        ),
    ]


def _space(entry: Entry) -> Space:
    """The action space of a clip, made or missing, by the name of its recording."""
    name = entry.id.removesuffix(f"@{entry.model}").rpartition("/")[2]
    told = action_space(name, entry.condition)
    return entry.condition == VARIED, told.get("speed", math.inf), told.get("angle", math.inf)


def _named(varied: bool, speed: float, angle: float) -> str:
    told = "" if math.isinf(speed) else f"{speed:g}x, angle {angle:g}"
    return " ".join(filter(None, ["varied" if varied else "shared", told]))


def _gap(results: Results, id: str) -> Cell:
    shared, varied = (
        [record.value for record in results.scores(id) if record.value is not None and record.case.condition == test]
        for test in (SHARED, VARIED)
    )
    n, of = len(shared) + len(varied), results.expected(id)
    if not shared or not varied:
        return Cell(n, of)
    difference = sum(varied) / len(varied) - sum(shared) / len(shared)
    return Cell(n, of, difference, difference_interval(varied, shared))
