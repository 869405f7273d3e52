"""The work of a run, unit by unit: clips that are tied together by references, and the cases that are about them.

A process claims a unit, looks what others have done of it since, observes what is missing, scores, and gives it back.
What another process holds is looked at again later; if that process was killed, its claim is free by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from revisit.core import Case
from revisit.engine.cache import EvidenceCache
from revisit.engine.costs import Costs
from revisit.engine.jobs import ClipTask, ObservingJob
from revisit.engine.leases import POLL, Claims
from revisit.engine.resume import ResumedRun


@dataclass
class WorkUnit:
    """What one process does at a time."""

    names: frozenset[str]  # digests of the clips
    cases: list[Case] = field(default_factory=list)
    to_come: int = 0  # clips to be observed, and cases to be scored


@dataclass
class SharedWork:
    """What is left to do of a run; `recorded` is to be told when a case is scored that was given to `record`."""

    resumed: ResumedRun
    cache: EvidenceCache
    claims: Claims
    record: Callable[[Case], None]  # has a case scored
    costs: Costs
    alone: Callable[[], bool]  # whether nobody else has recorded anything: our own answers, thousands, need no reading
    hands: Callable[[], int]  # how many jobs are worked on at a time

    def __post_init__(self) -> None:
        self.plan = self.resumed.plan
        self._to_do = self._to_take = 0.0  # seconds that one processor needs for all that is missing; for what is left
        self._opened_at = self.resumed.lines.file_and_bytes_read
        self._left = self._make_work_units()
        self._of_clip: dict[str, WorkUnit] = {}  # of the units that are being worked on
        self._of_case: dict[str, WorkUnit] = {}
        self._lacks: dict[str, tuple[Case, set[str]]] = {}  # case -> evidence it waits for
        self._waiting: dict[str, list[str]] = {}  # evidence -> cases
        self._settled_keys: set[str] = set()  # evidence that was made or given up
        self._busy = True

    def claim_jobs(self) -> Iterator[ObservingJob] | None:
        """What is to be observed, claimed job by job as it is taken; None when nothing is left.

        Called again for what others held at first, after a moment where they hold all that is left.
        """
        if not self._left:
            return None
        if not self._busy:
            time.sleep(POLL)
        todo, self._left, self._busy = self._left, [], False
        # The longest comes first; what needs no observing comes last, while the others are observed.
        missing = [self._missing_evidence_keys(unit.cases) for unit in todo]
        cost = [self._estimated_seconds_of_evidence(keys) if keys else -1.0 for keys in missing]
        self._to_do = self._to_take = sum(max(seconds, 0.0) for seconds in cost)
        order = sorted(range(len(todo)), key=lambda k: -cost[k])
        return self._claim_units_and_yield_jobs([todo[k] for k in order])

    def score_unblocked_cases(self, keys: Collection[str]) -> None:
        """Score the cases that waited for this evidence, made or given up, and for nothing else."""
        self._settled_keys.update(keys)
        for key in keys:
            for id in self._waiting.pop(key, ()):
                case, lacks = self._lacks[id]
                lacks.discard(key)
                if not lacks:
                    del self._lacks[id]
                    self.record(case)

    def count_observed_clip(self, clip: ClipTask) -> None:
        """A clip was observed."""
        self._count_down_unit(self._of_clip[clip.digest])

    def count_recorded_case(self, case: Case) -> None:
        """The answers of a case were written."""
        self._count_down_unit(self._of_case.pop(case.id))

    def _count_down_unit(self, unit: WorkUnit) -> None:
        """When all of a unit is done, others may look at it."""
        unit.to_come -= 1
        if not unit.to_come:
            self.claims.release(unit.names)

    def _make_work_units(self) -> list[WorkUnit]:
        units, of_clip = [], {}
        for job in self.plan.observing_jobs_for(self.resumed.needed_evidence_keys()):
            unit = WorkUnit(frozenset(clip.digest for clip in job.clips))
            units.append(unit)
            of_clip.update(dict.fromkeys(unit.names, unit))
        for case in self.plan.cases:
            if self.resumed.questions[case.id]:
                name = self.plan.digests.get(case.id, case.id)
                if name not in of_clip:
                    of_clip[name] = WorkUnit(frozenset([name]))
                    units.append(of_clip[name])
                of_clip[name].cases.append(case)
        return [unit for unit in units if unit.cases]

    def _claim_units_and_yield_jobs(self, units: list[WorkUnit]) -> Iterator[ObservingJob]:
        for unit in units:
            if not self.claims.claim_all_or_none(unit.names):
                self._left.append(unit)
                continue
            self._busy = True
            cases = self._unanswered_cases(unit)
            missing = self._missing_evidence_keys(cases)
            jobs = [part for job in self.plan.observing_jobs_for(sorted(missing)) for part in self._split_job(job)]
            unit.to_come = sum(len(job.clips) for job in jobs) + len(cases)
            self._of_clip.update({clip.digest: unit for job in jobs for clip in job.clips})
            self._of_case.update({case.id: unit for case in cases})
            if not unit.to_come:
                self.claims.release(unit.names)
            for case in cases:
                lacks = self.resumed.needed_evidence_keys_of_case(case) & missing - self._settled_keys
                if not lacks:
                    self.record(case)
                    continue
                self._lacks[case.id] = case, lacks
                for key in lacks:
                    self._waiting.setdefault(key, []).append(case.id)
            yield from jobs

    def _split_job(self, job: ObservingJob) -> list[ObservingJob]:
        """The job, split where it is as much as several workers would do of all there is, or of what is left."""
        mine = sum(map(self._estimated_seconds_of_clip, job.clips))
        rest, self._to_take = max(self._to_take, mine), self._to_take - mine
        if job.max_split_parts == 1 or not mine:
            return [job]
        of_all, of_rest = (int(round(self.hands() * mine / whole, 6)) for whole in (max(self._to_do, mine), rest))
        return job.split(of_all if of_all > 1 else of_rest, self._estimated_seconds_of_clip)

    def _estimated_seconds_of_clip(self, clip: ClipTask) -> float:
        return self.costs.estimate_total_seconds((clip.clip, task) for task in clip.observers)

    def _missing_evidence_keys(self, cases: Collection[Case]) -> set[str]:
        keys = {key for case in cases for key in self.resumed.needed_evidence_keys_of_case(case)}
        return {key for key in keys if key not in self.cache}

    def _estimated_seconds_of_evidence(self, keys: Collection[str]) -> float:
        """About how long it takes to make this evidence."""
        tasks = (self.plan.tasks[key] for key in keys)
        return self.costs.estimate_total_seconds((clip, task) for _, clip, task in tasks if task.shown is None)

    def _unanswered_cases(self, unit: WorkUnit) -> list[Case]:
        """The cases that nobody has answered since the run was opened."""
        if not self.alone() and self.resumed.lines.read_appended_lines().file_and_bytes_read != self._opened_at:
            for case in unit.cases:
                self.resumed.questions[case.id] = self.resumed.unanswered_checks(case, self.resumed.failed)
        return [case for case in unit.cases if self.resumed.questions[case.id]]
