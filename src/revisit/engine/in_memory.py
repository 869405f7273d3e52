"""Clips in this process: observed and scored without workers, without a cache, without a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Observer, Reason, Rejected, Suite, UsageError, evidence_id
from revisit.engine.cache import MemoryCache
from revisit.engine.needs import ObserverSet, Parameters
from revisit.engine.observe import observe
from revisit.engine.plan import ClipTask, Job, Plan, make_plan, task_for
from revisit.engine.score import Bench, answers
from revisit.media import Limits, clip_digest
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
        bench = Bench(plan, case, cache, {**failures, **plan.spoilt(case, broken)})
        for record, series in answers(bench, plan.askers_of(case)):
            records.append(record)
            if series is not None:
                behind[case.id, record.question] = series
    return Results(plan.cases, records, plan.rejected, asks=plan.suite.asks, series=behind)


def observe_case(case: Case, observer: Observer, parameters: Mapping[str, Any]) -> Any:
    """The evidence that one observer makes of one case."""
    observers = ObserverSet("by hand", {evidence_id(observer.makes): observer})
    chosen = {observer.id: parameters}
    digest = clip_digest(case.clip)
    task = task_for(case, observer.makes, observer, observers, chosen, digest, case.align or "auto", _digest_of)
    if isinstance(task, Reason):
        raise UsageError(f"{observer.id}: {task.sentence}")
    clips = [ClipTask(digest, case.clip, (task,))]
    if task.reference is not None and case.reference is not None and task.reference != digest:
        clips.insert(0, ClipTask(task.reference, case.reference, ()))
    cache = MemoryCache()
    job = Job(tuple(clips), frozenset({task.reference} if task.reference else ()))
    for _, outcome in observe(job, cache, Limits()):
        for sentence in (*outcome.broken.values(), *outcome.failed.values()):
            raise UsageError(sentence)
    return cache.load(observer.makes, task.key)


def _digest_of(thing: Any) -> str:
    from revisit.media import file_digest

    return file_digest(thing) if isinstance(thing, Path) else clip_digest(thing)
