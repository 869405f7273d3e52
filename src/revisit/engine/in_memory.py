"""Observes and scores clips in this process, without workers, cache or files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Record, Rejected, Series, Suite
from revisit.engine.cache import MemoryCache
from revisit.engine.dependencies import ObserverSet, Parameters
from revisit.engine.observe import observe_job
from revisit.engine.parameters import check_parameters, require_parameters_used
from revisit.engine.plan import Plan, make_plan
from revisit.engine.score import CaseScorer, make_scoring_input, run_checks
from revisit.media import Limits
from revisit.results import Results


def plan_for_given_cases(
    suite: Suite,
    cases: Sequence[Case | Rejected],
    observers: ObserverSet,
    *,
    parameters: Parameters | None = None,
    **how: Any,
) -> Plan:
    """The plan for cases that were not read from anywhere, with parameters of the user's; `how` goes to `make_plan`."""
    overrides = check_parameters(parameters or {})
    plan = make_plan(replace(suite, read=lambda source, roots: cases), Path(), observers, overrides=overrides, **how)
    require_parameters_used(plan, overrides)
    return plan


@dataclass
class SeenBefore:
    """What calls of `observe_and_score_cases` hand on to the next ones, for clips that come again: references."""

    cache: MemoryCache = field(default_factory=MemoryCache)
    answers: dict[tuple[str, str], list[tuple[Record, Series | None]]] = field(default_factory=dict)  # of truths
    seconds: dict[str, float] = field(default_factory=dict)  # that observers took in all


def observe_and_score_cases(plan: Plan, memory: SeenBefore | None = None) -> Results:
    """The answers to everything the plan asks; evidence and truths' answers that `memory` holds are not made again."""
    memory = SeenBefore() if memory is None else memory
    failures: dict[str, str] = {}
    broken: dict[str, str] = {}
    for job in plan.observing_jobs_for(key for key in plan.tasks if key not in memory.cache):
        for _, outcome in observe_job(job, memory.cache, Limits()):
            failures |= outcome.failed
            broken |= outcome.broken
            for key, spent in outcome.made.items():
                observer = plan.tasks[key][2].observer
                memory.seconds[observer] = memory.seconds.get(observer, 0.0) + spent
    records, behind = [], {}
    for case in plan.cases:
        place = case.id, plan.digests.get(case.id, "")
        answers = memory.answers.get(place) if case.truth else None
        if answers is None:
            checks = plan.checks_for(case)
            scoring_input = make_scoring_input(
                plan, case, checks, {**failures, **plan.failed_evidence_sentences(case, broken)}
            )
            answers = list(run_checks(CaseScorer(scoring_input, memory.cache), checks))
        if case.truth:
            memory.answers[place] = answers
        for record, series in answers:
            records.append(record)
            if series is not None:
                behind[case.id, record.question] = series
    return Results(plan.cases, records, plan.rejected, asks=plan.suite.asks, series=behind)
