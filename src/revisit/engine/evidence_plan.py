"""The evidence that each case needs, and the tasks that make it, so that each clip is decoded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import msgspec

from revisit.core import OBSERVERS, Case, Clip, Gate, MediaError, Metric, Reason, Suite, evidence_id
from revisit.engine.dependencies import ObserverSet, Parameters, observed_ids_needed_by, observed_kinds_needed_by
from revisit.engine.evidence_keys import BESIDE, OPTIONAL, observer_task_or_reason
from revisit.engine.jobs import ObserverTask
from revisit.media import file_digest
from revisit.media.cache_folders import cache_root
from revisit.media.digest import ClipDigests

ALWAYS = ("frame_facts", "thumbnails")  # evidence the report shows, whatever is scored
PICTURES = ("thumbnails",)  # what it shows of a reference, which may be long
# Kind of evidence -> its task, or why there is none.
TasksAndReasons = tuple[dict[str, ObserverTask], dict[str, Reason]]


@dataclass(frozen=True)
class CaseEvidence:
    """Evidence of one case: a key where an observer can make it, else the reason why not."""

    keys: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Reason] = field(default_factory=dict)
    reference: Mapping[str, str] = field(default_factory=dict)  # of the reference clip, for the report


@dataclass
class EvidencePlanner:
    """Collects, case by case, the tasks of all evidence that the checks of a suite need."""

    suite: Suite
    checks: Sequence[Metric | Gate]
    observers: ObserverSet
    parameters: Parameters
    align: str
    source: Path
    digests: dict[str, str] = field(default_factory=dict)  # case id -> clip digest
    unreadable: dict[str, str] = field(default_factory=dict)  # case id -> why its clip cannot even be hashed
    by_case: dict[str, CaseEvidence] = field(default_factory=dict)
    tasks: dict[str, tuple[str, Clip, ObserverTask]] = field(default_factory=dict)  # key -> clip digest, clip, task
    clips: dict[str, Clip] = field(default_factory=dict)  # digest -> clip

    def __post_init__(self) -> None:
        self.clip_digests = ClipDigests(cache_root(), self.source)
        self.digest_of: dict[Clip | Path, str] = {}  # of clips, and of files beside them, where it was needed
        roles = self.observers.roles
        self._always = [roles[id].makes for id in ALWAYS if id in roles]
        self._used = {check.id: observed_kinds_needed_by(check) for check in self.checks}
        self._required = {check.id: {*observed_ids_needed_by(check, optional=False)} for check in self.checks}
        # Answers are kept, because thousands of cases are alike.
        self._kinds, self._useless = cache(self._kinds_used_or_always_shown), cache(self._find_unusable_evidence)
        inputs = {name.removesuffix(OPTIONAL) for maker in roles.values() for name in maker.inputs}
        self._fields = {name for name in inputs if not name.startswith(BESIDE)}  # of a case, which observers read
        self._of_clip_alone: dict[tuple[str, ...], TasksAndReasons] = {}  # by ids of checks

    def cached_digest_of(self, file: Clip | Path) -> str:
        """The digest of a clip, or of a file beside one."""
        if file not in self.digest_of:
            self.digest_of[file] = (
                self.clip_digests.find_or_compute(file) if isinstance(file, Clip) else file_digest(file)
            )
            if isinstance(file, Clip):
                self.clips.setdefault(self.digest_of[file], file)
        return self.digest_of[file]

    def plan_case_evidence(self, case: Case) -> None:
        """Plan the evidence of a case; one that is asked nothing is not decoded."""
        self.by_case[case.id] = CaseEvidence()
        try:
            self.digests[case.id] = self.cached_digest_of(case.clip)
        except MediaError as error:
            self.unreadable[case.id] = str(error)
            return
        checks = self.suite.checks_asked_of(self.checks, case)
        if not checks:
            return
        tasks, absent = self._tasks_and_reasons_by_kind(case, checks, self.digests[case.id])
        for task in tasks.values():
            self.tasks.setdefault(task.key, (self.digests[case.id], case.clip, task))
        keys = {kind: task.key for kind, task in tasks.items()}
        self.by_case[case.id] = CaseEvidence(keys, absent, self._plan_reference_pictures(case, keys))

    def _tasks_and_reasons_by_kind(
        self, case: Case, checks: Sequence[Metric | Gate], clip_digest: str
    ) -> TasksAndReasons:
        """The task of each kind of evidence of a case, or why there is none; thousands differ in the clip alone."""
        ids = tuple(check.id for check in checks)
        brings_more = (
            case.reference or case.artifacts or case.truth or any(getattr(case, name) for name in self._fields)
        )
        address = self.observers.evidence_key_for_clip
        if ids in self._of_clip_alone and not brings_more:
            same, absent = self._of_clip_alone[ids]
            return {
                kind: msgspec.structs.replace(task, key=address(task.observer, clip_digest))
                for kind, task in same.items()
            }, absent
        tasks: dict[str, ObserverTask] = {}
        absent = {}
        for kind in self._kinds(ids):
            task = self._task_or_reason(case, kind, clip_digest)
            if isinstance(task, Reason):
                absent[evidence_id(kind)] = task
            else:
                tasks[evidence_id(kind)] = task
        useless = self._useless(ids, frozenset(tasks), frozenset(absent))
        absent |= {id: absent[lacked] for id, lacked in useless.items()}
        tasks = {kind: task for kind, task in tasks.items() if kind not in absent}
        shown = [task.shown for task in tasks.values() if task.shown is not None]
        tasks |= {evidence_id(OBSERVERS[task.observer].makes): task for task in shown}
        if not brings_more and all(task.key == address(task.observer, clip_digest) for task in tasks.values()):
            self._of_clip_alone[ids] = tasks, absent
        return tasks, absent

    def _task_or_reason(self, case: Case, kind: type, clip_digest: str) -> ObserverTask | Reason:
        return observer_task_or_reason(
            case, kind, self.observers, self.parameters, clip_digest, self.align, self.cached_digest_of
        )

    def _plan_reference_pictures(self, case: Case, keys: Mapping[str, str]) -> dict[str, str]:
        """Pictures of the reference, where it is decoded anyway because something is compared with it."""
        if case.reference is None or not any(self.tasks[key][2].reference for key in keys.values()):
            return {}
        alone = replace(case, clip=case.reference, reference=None, target=None)
        pictures = {}
        for kind in [self.observers.roles[id].makes for id in PICTURES if id in self.observers.roles]:
            task = self._task_or_reason(alone, kind, self.cached_digest_of(alone.clip))
            if isinstance(task, ObserverTask):
                pictures[evidence_id(kind)] = task.key
                self.tasks.setdefault(task.key, (self.cached_digest_of(alone.clip), alone.clip, task))
        return pictures

    def _kinds_used_or_always_shown(self, ids: tuple[str, ...]) -> list[type]:
        """All evidence that these checks use, and what is always shown."""
        return sorted({*self._always, *(kind for id in ids for kind in self._used[id])}, key=evidence_id)

    def _find_unusable_evidence(
        self, ids: tuple[str, ...], made: frozenset[str], absent: frozenset[str]
    ) -> dict[str, str]:
        """Evidence that none of them can use, because each that wants it lacks other evidence -> which one."""
        used = {evidence_id(kind) for kind in self._always}
        lacking: dict[str, str] = {}
        for id in ids:
            kinds = {evidence_id(kind) for kind in self._used[id]}
            if lacks := sorted(self._required[id] & absent):
                lacking.update(dict.fromkeys(kinds & made, lacks[0]))
            else:
                used |= kinds
        return {id: lacked for id, lacked in sorted(lacking.items()) if id not in used}
