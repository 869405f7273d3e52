"""Scores of one clip in memory, and what is kept of it: answers and small pictures, no frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from revisit.core import OBSERVERS, SUITES, Case, Record, Rejected, Series, evidence_id
from revisit.core.observer import Params
from revisit.engine.dependencies import observed_kinds_needed_by
from revisit.engine.evidence_plan import ALWAYS
from revisit.engine.in_memory import SeenBefore, observe_and_score_cases, plan_for_given_cases
from revisit.engine.plan import Plan
from revisit.engine.request import load_observer_set
from revisit.results.question_ranking import read_suite_questions

PARTS = ("digests", "wanted", "references", "tasks")  # of a plan


@dataclass
class Spent:
    """Seconds, and where they went."""

    total: float = 0.0
    networks: float = 0.0  # observers with weights
    observers: float = 0.0  # all others

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.total + other.total, self.networks + other.networks, self.observers + other.observers)


@dataclass(frozen=True)
class ScoredClip:
    """All that is kept of a clip; it can be sent to another process."""

    cases: tuple[Case, ...]  # the clip, and its truth
    records: tuple[Record, ...]
    series: Mapping[tuple[str, str], Series]
    planned: Mapping[str, dict[str, Any]]  # the parts of its plan that a plan of all clips is put together from
    pictures: Mapping[str, Any]  # evidence that a page shows, by its address
    lacking: frozenset[str]  # metrics that cannot be asked of it
    spent: Spent


@dataclass
class ClipScorer:
    """Which metrics are asked, and by which observers; what was seen of references stays for the next checkpoint."""

    suite: str
    observer_set: str
    protocol: str | None
    metrics: Sequence[str]
    params: Mapping[str, Params]
    seen: SeenBefore = field(default_factory=SeenBefore)
    _of_truth: set[str] = field(default_factory=set)  # addresses of evidence that stays

    def plan_for_cases(self, *cases: Case) -> Plan:
        """What is asked of these cases, or of any."""
        entries = cases or [Rejected("any", "none came yet", missing=True)]
        return plan_for_given_cases(
            SUITES[self.suite], entries, load_observer_set(self.observer_set),
            protocol=self.protocol, metrics=self.metrics, parameters=self.params, truth=True,
        )  # fmt: skip

    def score_clip(self, case: Case) -> ScoredClip:
        """The answers about a clip with its frames in memory."""
        plan, cache, self.seen.seconds = self.plan_for_cases(case), self.seen.cache, {}
        results = observe_and_score_cases(plan, self.seen)
        truths = {plan.digests[truth.id] for truth in results.truths}
        self._of_truth |= {key for key, (owner, _, _) in plan.tasks.items() if owner in truths}
        pairs = [pair for one in plan.wanted.values() for pair in (*one.keys.items(), *one.reference.items())]
        evidence_by_key = {key: cache.load(object, key) for kind, key in pairs if kind in ALWAYS and key in cache}
        cache.keep_only(self._of_truth)
        absent = plan.wanted[case.id].absent
        needs = {metric.id: observed_kinds_needed_by(metric, optional=False) for metric in plan.metrics}
        lacking = frozenset(id for id, kinds in needs.items() if any(evidence_id(kind) in absent for kind in kinds))
        networks = sum(spent for id, spent in self.seen.seconds.items() if OBSERVERS[id].weights)
        cases = {one.id: _without_frames(one) for one in plan.cases}
        tasks = {key: (owner, replace(clip, frames=None), task) for key, (owner, clip, task) in plan.tasks.items()}
        of_truths = [record for truth in results.truths for record in results.of(truth).values()]
        return ScoredClip(
            tuple(cases.values()),
            tuple(record.with_changed_fields(case=cases[record.case.id]) for record in (*results.records, *of_truths)),
            results._series,
            {**{name: dict(getattr(plan, name)) for name in PARTS}, "tasks": tasks},
            evidence_by_key,
            lacking,
            Spent(0.0, networks, sum(self.seen.seconds.values()) - networks),
        )

    def plan_for_all_clips(self, clips: Sequence[ScoredClip], rejected: Sequence[Rejected]) -> Plan:
        """One plan of all clips, without their frames."""
        parts: dict[str, Any] = {
            name: {id: value for clip in clips for id, value in clip.planned[name].items()} for name in PARTS
        }
        cases = [case for clip in clips for case in clip.cases]
        truths = {case.id: case for case in cases if case.truth}
        parts["cases"] = (*(case for case in cases if not case.truth), *truths.values())
        total = len(clips) + len(rejected)
        return replace(self.plan_for_cases(), rejected=tuple(rejected), clips={}, total=total, **parts)

    def memory_metrics(self) -> list[str]:
        """Metrics of the suite that answer its questions of memory, the best first."""
        questions = [question for question in read_suite_questions(SUITES[self.suite].card) if question.memory]
        return [metric for question in questions for metric in question.metrics]


def _without_frames(case: Case) -> Case:
    """The case without its frames."""
    reference = None if case.reference is None else replace(case.reference, frames=None)
    return replace(case, clip=replace(case.clip, frames=None), reference=reference)
