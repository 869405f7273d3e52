"""The evidence that each case needs, and the tasks that make it, so that each clip is decoded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from revisit.core import (
    NEEDS_BOX,
    OBSERVERS,
    Case,
    Clip,
    Gate,
    MediaError,
    Metric,
    Observer,
    Reason,
    Suite,
    digest,
    evidence_id,
)
from revisit.engine.dependencies import (
    ObserverSet,
    Parameters,
    judge_facts_for_observer,
    observed_ids_needed_by,
    observed_kinds_needed_by,
    why_unavailable,
)
from revisit.engine.jobs import ObserverTask
from revisit.media import file_digest
from revisit.media.cache_folders import cache_root
from revisit.media.digest import ClipDigests
from revisit.observers.sets import maker_by_set
from revisit.results.file_types import ObserverEntry

ALWAYS = ("frame_facts", "thumbnails")  # evidence the report shows, whatever is scored
PICTURES = ("thumbnails",)  # what it shows of a reference, which may be long
BESIDE = "artifacts."  # an observer's input that is a file beside the clip, such as artifacts.da3
LACKING = {"target": "no_target", "target_or_name": "no_target", "camera": "no_camera"}  # input -> kind of reason
OPTIONAL = "?"  # behind an input without which an observer can do its work, too
Inputs = tuple[dict[str, object], dict[str, object], dict[Path, str]]  # values, as hashed, and files with digests
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
        tasks, absent = self._tasks_and_reasons_by_kind(case, checks)
        for task in tasks.values():
            self.tasks.setdefault(task.key, (self.digests[case.id], case.clip, task))
        keys = {kind: task.key for kind, task in tasks.items()}
        self.by_case[case.id] = CaseEvidence(keys, absent, self._plan_reference_pictures(case, keys))

    def _tasks_and_reasons_by_kind(self, case: Case, checks: Sequence[Metric | Gate]) -> TasksAndReasons:
        """The task of each kind of evidence of a case, or why there is none; thousands differ in the clip alone."""
        ids = tuple(check.id for check in checks)
        brings_more = (
            case.reference or case.artifacts or case.truth or any(getattr(case, name) for name in self._fields)
        )
        address, clip_digest = self.observers.evidence_key_for_clip, self.digests[case.id]
        if ids in self._of_clip_alone and not brings_more:
            same, absent = self._of_clip_alone[ids]
            return {
                kind: msgspec.structs.replace(task, key=address(task.observer, clip_digest))
                for kind, task in same.items()
            }, absent
        tasks: dict[str, ObserverTask] = {}
        absent = {}
        for kind in self._kinds(ids):
            task = self.task_or_reason(case, kind)
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

    def task_or_reason(self, case: Case, kind: type) -> ObserverTask | Reason:
        """How to make one kind of evidence for one case, or the reason why it cannot be made."""
        maker = self.observers.maker(kind)
        if maker is None:
            return _not_in_set_reason(evidence_id(kind), self.observers.id)
        if case.truth and maker.shows is not None:
            return Reason("no_judge", "the truth is not put to the judge, whose answers cost")
        read = self._observer_inputs_or_reason(case, maker)
        if isinstance(read, Reason):
            return read
        inputs, hashed_inputs, files = read
        params, observer_entry = self.observers.parameters_and_facts_of(maker, self.parameters)
        make = partial(
            ObserverTask, observer=maker.id, module=maker.fn.__module__, params=params, inputs=inputs, files=files
        )
        facts: ObserverEntry = {**observer_entry, "inputs": hashed_inputs}
        if maker.kind == "file":
            imported = self._artifact_file_or_reason(case, maker.artifact)
            if isinstance(imported, Reason):
                makers = maker_by_set(evidence_id(kind)).items()
                able = [name for name, other in makers if other.kind != "file" and _has_required_fields(case, other)]
                if able and maker.artifact not in case.artifacts:
                    hint = f"; --set {' or '.join(able)} makes it from the frames"
                    return replace(imported, sentence=imported.sentence + hint)
                return imported
            file, facts["file"] = imported
            files[file] = imported[1]
            return make(digest(facts, 40), file=file)
        clip_digest = facts["clip"] = self.cached_digest_of(case.clip)
        if maker.shows is not None:
            if self.observers.judge is None:
                return Reason("no_judge", "no judge was given; pass --judge, see docs/judges.md")
            pictures = self.task_or_reason(case, maker.shows)
            if isinstance(pictures, Reason):
                return pictures
            facts["judge"], facts["shown"] = judge_facts_for_observer(self.observers.judge, maker.id), pictures.key
            return make(digest(facts, 40), shown=pictures)
        align = case.align or self.align
        reference = None
        if maker.pairs:
            if case.reference is None:
                return Reason("no_reference", "no reference video was given for this case")
            try:
                reference = self.cached_digest_of(case.reference)
            except MediaError as error:
                return Reason("unreadable", f"the reference cannot be read: {error}")
            facts["reference"], facts["align"] = reference, align
            inputs["align"] = align
        if why := why_unavailable(maker):
            return Reason("not_installed", why)
        alone = not hashed_inputs and reference is None  # thousands of clips differ in nothing but themselves
        key = self.observers.evidence_key_for_clip(maker.id, clip_digest) if alone else digest(facts, 40)
        return make(key, reference=reference)

    def _observer_inputs_or_reason(self, case: Case, maker: Observer) -> Inputs | Reason:
        """The inputs of an observer from a case, or the reason why one is missing; of a file the content is hashed."""
        inputs: dict[str, object] = {}
        hashed: dict[str, object] = {}
        files: dict[Path, str] = {}
        for name in maker.inputs:
            of_case, optional = name.removesuffix(OPTIONAL), name.endswith(OPTIONAL)
            if of_case.startswith(BESIDE):
                artifact = of_case.removeprefix(BESIDE)
                inputs[name], hashed[name] = None, ""
                if artifact in case.artifacts or not optional:
                    beside = self._artifact_file_or_reason(case, artifact)
                    if isinstance(beside, Reason):
                        return beside
                    inputs[name], hashed[name] = beside
                    files[beside[0]] = beside[1]
                continue
            value = getattr(case, of_case)
            if value in (None, "") and not optional:
                if of_case == "target" and case.target_name:
                    return NEEDS_BOX
                words = f"{of_case.replace('_', ' ')} {'were' if of_case.endswith('s') else 'was'}"
                return Reason(LACKING.get(of_case, "no_file"), f"no {words} given for this case")
            inputs[name], hashed[name] = value, to_dict_if_dataclass(value)
        return inputs, hashed, files

    def _artifact_file_or_reason(self, case: Case, artifact: str) -> tuple[Path, str] | Reason:
        """A file that came with the clip and the digest of its content, or the reason why there is none."""
        words = artifact.replace("_", " ")
        file = case.artifacts.get(artifact)
        if file is None:
            command = next((maker.made_by for maker in OBSERVERS.values() if maker.artifact == artifact), "")
            hint = f"; `{command}` makes one" if command else ""
            return Reason("no_file", f"no {words} file was given for this case{hint}")
        try:
            return file, self.cached_digest_of(file)
        except MediaError as error:
            return Reason("unreadable", f"the {words} file cannot be read: {error}")

    def _plan_reference_pictures(self, case: Case, keys: Mapping[str, str]) -> dict[str, str]:
        """Pictures of the reference, where it is decoded anyway because something is compared with it."""
        if case.reference is None or not any(self.tasks[key][2].reference for key in keys.values()):
            return {}
        alone = replace(case, clip=case.reference, reference=None, target=None)
        pictures = {}
        for kind in [self.observers.roles[id].makes for id in PICTURES if id in self.observers.roles]:
            task = self.task_or_reason(alone, kind)
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


@lru_cache(maxsize=256)
def _not_in_set_reason(kind: str, observers: str) -> Reason:
    others = " or ".join(maker_by_set(kind))
    hint = f"; --set {others} has one" if others else ""
    return Reason("not_in_set", f"needs {kind}, which no observer in the set {observers!r} makes{hint}")


def _has_required_fields(case: Case, maker: Observer) -> bool:
    """Whether a case has the fields without which an observer can do nothing."""
    needed = [name for name in maker.inputs if not name.startswith(BESIDE) and not name.endswith(OPTIONAL)]
    return all(getattr(case, name) not in (None, "") for name in needed)


def to_dict_if_dataclass(value: Any) -> Any:
    """An input of an observer, as the address of its evidence says it."""
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
