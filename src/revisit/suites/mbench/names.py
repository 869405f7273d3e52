"""Names: the twelve dimensions of MBench, and the 23 names under which its evaluator registers them.

A name is `mbencha` or `mbencht`, the axis, and the dimension: `mbencha.environment.spatial_epipolar`. Camera
interaction exists for the action-conditioned setting (A) only; all others for text (T), too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from revisit.core import UsageError
from revisit.core.suites import metrics_of
from revisit.core.text import did_you_mean_question, read_package_yaml

Axis = Literal["entity", "environment", "causal"]
SETTINGS = {"A": "mbencha", "T": "mbencht"}
SUBSETS = ("object", "human", "environment", "causal")
AXES: tuple[Axis, ...] = ("entity", "environment", "causal")
TRIGGER = "judged_trigger"  # the gate of setting T: a judge finds that the clip poses the test
JUDGED = frozenset({TRIGGER, "judged_progress", "judged_correctness"})  # what a judge is asked
MOVED = "camera_moved"  # the gate of setting A: the camera did not simply rest


@dataclass(frozen=True)
class MemoryDimension:
    """A dimension: its axis and name as upstream spells them, our metric, and the subset it is asked of."""

    axis: Axis
    name: str
    id: str
    subset: str
    title: str
    short: str  # in the head of a column
    settings: str = "AT"
    averaged: str = "AT"  # settings in which it counts in the mean of its axis
    poses: bool = False  # whether it needs the camera-pose artifact
    conditioned: bool = True  # whether only clips that pose the test count; a camera that rests has disobeyed


DIMENSIONS = tuple(MemoryDimension(**row) for row in read_package_yaml(__package__, "dimensions.yaml"))
BY_ID = {dimension.id: dimension for dimension in DIMENSIONS}


def upstream_metric_name(dimension: MemoryDimension, setting: str) -> str:
    """`mbencha.environment.spatial_epipolar`."""
    return f"{SETTINGS[setting]}.{dimension.axis}.{dimension.name}"


def dimensions_by_upstream_name() -> dict[str, tuple[str, MemoryDimension]]:
    """Upstream's 23 names -> setting and dimension, first all of A, then all of T."""
    return {
        upstream_metric_name(d, setting): (setting, d) for setting in SETTINGS for d in dimensions_of_setting(setting)
    }


def gates_of_setting(setting: str, judged: bool) -> list[str]:
    """The gate that says which clips pose the test; in setting T only a judge can say so."""
    return [MOVED] if setting == "A" else [TRIGGER] if judged else []


def dimensions_of_setting(setting: str) -> list[MemoryDimension]:
    """The dimensions that a setting has."""
    return [dimension for dimension in DIMENSIONS if setting in dimension.settings]


def named_dimensions_or_all(names: Iterable[str], setting: str) -> list[MemoryDimension]:
    """The dimensions that a list of names asks for in a dataset of one setting; all of them for an empty list.

    A name is upstream's, its last part, or our metric's id.
    """
    by_name = dimensions_by_upstream_name()
    every = dimensions_of_setting(setting)
    mine = {spelling: d for d in every for spelling in (upstream_metric_name(d, setting), d.name, d.id)}
    dimensions: dict[str, MemoryDimension] = {}
    for name in names:
        if name in mine:
            dimensions[mine[name].id] = mine[name]
        elif name in by_name:
            raise UsageError(
                f"{name} is for setting {by_name[name][0]}, but this is a dataset of setting {setting} "
                f"({SETTINGS[setting]}); choose names that begin with {SETTINGS[setting]}"
            )
        else:
            hint = did_you_mean_question(name, [*mine, *by_name]) or "`revisit mbench list-metrics` lists them"
            raise UsageError(f"there is no metric called {name!r}; {hint}")
    return list(dimensions.values()) or every


def suite_metric_ids() -> list[str]:
    """Ids of the metrics of this suite: the twelve dimensions in upstream's order, then what plugins add."""
    return list(dict.fromkeys([*BY_ID, *metrics_of("mbench")]))
