"""Observes and scores clips in this process, without workers, cache or files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from revisit.core import Case, Rejected, Suite
from revisit.engine.cache import MemoryCache
from revisit.engine.dependencies import ObserverSet, Parameters
from revisit.engine.observe import observe
from revisit.engine.plan import Plan, make_plan
from revisit.engine.score import CaseScorer, run_checks, scoring_input
from revisit.media import Limits
from revisit.results import Results


def plan_of(
    suite: Suite,
    cases: Sequence[Case],
    observers: ObserverSet,
    *,
    protocol: str | None = None,
    metrics: Sequence[str] = (),
    overrides: Parameters | None = None,
) -> Plan:
    """The plan for cases that were not read from anywhere."""

    def read(source: Path, roots: Sequence[Path]) -> Sequence[Case | Rejected]:
        return cases

    return make_plan(
        replace(suite, read=read), Path(), observers, protocol=protocol, metrics=metrics, overrides=overrides
    )


def score_cases(plan: Plan) -> Results:
    """The answers to everything the plan asks."""
    cache = MemoryCache()
    failures: dict[str, str] = {}
    broken: dict[str, str] = {}
    for job in plan.jobs(plan.tasks):
        for _, outcome in observe(job, cache, Limits()):
            failures |= outcome.failed
            broken |= outcome.broken
    records, behind = [], {}
    for case in plan.cases:
        checks = plan.checks_for(case)
        sheet = scoring_input(plan, case, checks, {**failures, **plan.failed_evidence(case, broken)})
        for record, series in run_checks(CaseScorer(sheet, cache), checks):
            records.append(record)
            if series is not None:
                behind[case.id, record.question] = series
    return Results(plan.cases, records, plan.rejected, asks=plan.suite.asks, series=behind)
