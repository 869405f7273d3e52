"""The funnel: how many clips get as far as posing the question of memory, by the gates that were asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from revisit.core import Case
from revisit.results.clip_answers import ClipAnswers
from revisit.results.file_types import Stage
from revisit.results.metric_columns import NO_ANSWER
from revisit.results.score_names import find_metric_of_score

RETURNED, LEAVES = "left, returned", ("left, returned", "left, not returned")
VIEW = (
    # stage, gate, labels that pass; without labels, the open ones
    ("camera moved", "camera_moved", ()),
    ("view left", "view_return", LEAVES),
    ("view returned", "view_return", (RETURNED,)),
)
LOOKED_AWAY = "camera looked away"
RETURN_GATES = {"view_return", "target_return"}
TARGET = (
    (LOOKED_AWAY, "look_away", ()),
    ("target hidden", "target_return", ("hidden, returned", "hidden, not returned")),
    ("target returned", "target_return", ("hidden, returned",)),
)
MEMORY = ("target_return", "returning", "outcome")  # families that judge memory by their own rules
# Stages that every clip can reach, whether anybody asked about memory or not.
BEFORE = ("expected clips", "all clips", "readable", "scored")


def count_funnel_stages(results: ClipAnswers) -> list[Stage]:
    """All clips → readable → moved → left → returned → scored; stages of gates that nobody asked are left out."""
    readable = results.readable
    stages = [make_stage("all clips", results.cases), make_stage("readable", readable.cases)]
    remaining: Sequence[Case] = readable.cases
    for name, gate, labels in VIEW:
        if readable.was_asked(gate):
            remaining = cases_passing_gate(results, remaining, gate, labels)
            stages.append(make_stage(name, remaining))
    remaining = [case for case in readable.cases if case.target is not None]
    if remaining and readable.was_asked("target_return"):
        stages.append(make_stage("target given", remaining))
        for name, gate, labels in TARGET:
            if readable.was_asked(gate):
                remaining = cases_passing_gate(results, remaining, gate, labels)
                stages.append(make_stage(name, remaining))
    memory = [id for id in results.metrics if requires_looking_away_and_back(id)]
    return stages + memory_scored_stage(results, memory)


def looks_away_and_returns(results: ClipAnswers, case: Case) -> bool | None:
    """Whether the camera looks away and comes back, to the first view or to the target; None if the gates cannot tell.

    A target that the scene itself hides is no look away.
    """
    gates = ("view_return", "look_away", "target_return")
    view, away, target = (results.answer(case, gate) or NO_ANSWER for gate in gates)
    if view.label == RETURNED or (away.label == "looks away" and target.label == "hidden, returned"):
        return True
    return False if view.status in ("open", "closed") else None


def memory_scored_stage(results: ClipAnswers, metrics: Sequence[str]) -> list[Stage]:
    """The last stage: clips with a score of memory; nothing where nobody asked for one."""
    if not results.was_asked(*metrics):
        return []
    scored = results.scored_cases(metrics)
    return [make_stage("memory scored", [case for case in results.readable.cases if case.id in scored])]


def dataset_funnel(results: ClipAnswers, memory_metrics: Sequence[str]) -> list[Stage]:
    """Expected clips → those that are there → readable → those with a score of these metrics of memory."""
    stages = {"expected clips": results.entries, "all clips": results.cases, "readable": results.readable.cases}
    return [*(make_stage(name, clips) for name, clips in stages.items()), *memory_scored_stage(results, memory_metrics)]


def make_stage(name: str, clips: Sequence[Any]) -> Stage:
    """A stage that these clips reach."""
    return {"stage": name, "n": len(clips)}


def cases_passing_gate(
    results: ClipAnswers, cases: Iterable[Case], gate: str, passing_labels: Sequence[str] = ()
) -> list[Case]:
    """The cases that a gate found to be so, or where it is open."""
    answers = [(case, results.answer(case, gate) or NO_ANSWER) for case in cases]
    return [
        case
        for case, answer in answers
        if (answer.label in passing_labels if passing_labels else answer.status == "open")
    ]


def count_testable_and_all(funnel: Sequence[Stage]) -> tuple[int, int] | None:
    """How many clips posed the test, and of how many; None where nobody was asked."""
    stages = {stage["stage"]: int(stage["n"]) for stage in funnel}
    testable_stages: list[str] = [name for name in ("test posed", "memory scored") if name in stages]
    testable_stages += [name for name in reversed(stages) if name not in BEFORE]
    return (stages[testable_stages[0]], stages["all clips"]) if testable_stages and "all clips" in stages else None


def requires_looking_away_and_back(metric_id: str) -> bool:
    """Whether only a clip which looked away and back can get a score of this metric."""
    metric = find_metric_of_score(metric_id)
    return metric is not None and (metric.family in MEMORY or not {*metric.gates}.isdisjoint(RETURN_GATES))
