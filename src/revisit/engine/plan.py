"""The plan: everything that the chosen metrics need, so that each clip is decoded once.

Cases are grouped into jobs: clips that are tied together by a reference go to one worker, the
reference first, so that its frames are decoded once and compared with every clip that needs them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from revisit import weights
from revisit.core import (
    DERIVED,
    GATES,
    METRICS,
    OBSERVERS,
    ONLY_NAMED,
    Case,
    Clip,
    Gate,
    MediaError,
    Metric,
    Observer,
    Reason,
    Rejected,
    Remark,
    RevisitError,
    Suite,
    UsageError,
    digest,
    evidence_id,
)
from revisit.core.protocol import canonical, digest_of_text
from revisit.core.texts import mended
from revisit.engine.floors import with_categories
from revisit.engine.needs import (
    ObserverSet,
    Parameters,
    gates_of,
    observed_kinds,
    parameters_of,
    protocol_facts,
    short_hash,
)
from revisit.engine.truth import parted, with_truth
from revisit.media import clip_digest, file_digest
from revisit.networks import settings
from revisit.observers.sets import sets_that_make, sets_that_observe
from revisit.results.files import case_to_json

ALWAYS = ("frame_facts", "thumbnails")  # evidence the report shows, whatever is scored
BESIDE = "artifacts."  # an observer's input that is a file beside the clip, such as artifacts.da3
LACKING = {"target": "no_target", "target_or_name": "no_target", "camera": "no_camera"}  # input -> kind of reason
OPTIONAL = "?"  # behind an input without which an observer can do its work, too
PICTURES = ("thumbnails",)  # what it shows of a reference, which may be long


@dataclass(frozen=True)
class ObserverTask:
    """One observer on one clip; `key` is the address of its evidence."""

    key: str
    observer: str
    module: str  # imported in the worker, so that plugins are found there too
    params: Mapping[str, Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None  # digest of the other clip, for observers of pairs
    file: Path | None = None  # what an importer reads, instead of frames
    files: Mapping[Path, str] = field(default_factory=dict)  # all files that are read besides the clip, with digests
    shown: ObserverTask | None = None  # makes the pictures that a judge is asked about


@dataclass(frozen=True)
class ClipTask:
    """One decode: a clip and everything that has to be observed in it."""

    digest: str
    clip: Clip
    observers: tuple[ObserverTask, ...]


@dataclass(frozen=True)
class Job:
    """Clips for one worker, in order: a reference comes before the clips compared with it."""

    clips: tuple[ClipTask, ...]
    references: frozenset[str]  # digests whose frames later clips of this job need


@dataclass(frozen=True)
class Wanted:
    """Evidence of one case: a key where an observer can make it, else the reason why not."""

    keys: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Reason] = field(default_factory=dict)
    reference: Mapping[str, str] = field(default_factory=dict)  # of the reference clip, for the report

    @property
    def all_keys(self) -> list[str]:
        return [*self.keys.values(), *self.reference.values()]


@dataclass(frozen=True)
class Plan:
    """What will be asked of which case, and what has to be observed for it."""

    suite: Suite
    cases: tuple[Case, ...]
    rejected: tuple[Rejected, ...]
    metrics: tuple[Metric, ...]
    gates: tuple[Gate, ...]
    observers: ObserverSet
    protocol: str
    parameters: Parameters
    align: str
    digests: Mapping[str, str]  # case id -> clip digest
    unreadable: Mapping[str, str]  # case id -> why its clip cannot even be hashed
    wanted: Mapping[str, Wanted]  # case id -> evidence
    tasks: Mapping[str, tuple[str, Clip, ObserverTask]]  # evidence key -> how to make it
    clips: Mapping[str, Clip]  # digest -> clip
    partial: int | None = None  # --limit, if it left cases out
    total: int = 0
    references: Mapping[str, str] = field(default_factory=dict)  # case id -> digest of the clip it is compared with
    remarks: tuple[str, ...] = ()  # on how the source was read

    @property
    def askers(self) -> list[Metric | Gate]:
        """Everything that is asked: gates, then metrics."""
        return [*self.gates, *self.metrics]

    def askers_of(self, case: Case) -> list[Metric | Gate]:
        """Everything that is asked of one case: what its suite keeps to other parts of the dataset is left out."""
        return [asker for asker in self.askers if self.suite.asks(asker.id, case)]

    def asker_hash(self, asker: Metric | Gate) -> str:
        """`protocol:hash`, the comparability tag of one metric's or gate's results."""
        if asker.id not in self._hashes:
            made = short_hash(protocol_facts(asker, self.observers, self.parameters))
            self._hashes[asker.id] = f"{self.protocol}:{made}"
        return self._hashes[asker.id]

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {}

    @cached_property
    def _kinds(self) -> dict[str, list[str]]:
        """Ids of the evidence that observers make for each metric and gate."""
        return {asker.id: sorted(map(evidence_id, observed_kinds(asker))) for asker in self.askers}

    def makers(self, asker: Metric | Gate) -> dict[str, str]:
        """The observer set that answers a question, and the judge where one is asked."""
        kinds = [self.observers.maker(kind) for kind in observed_kinds(asker)]
        judged = self.observers.judge is not None and any(maker is not None and maker.shows for maker in kinds)
        return {
            "set": self.observers.id,
            **({"judge": str((self.observers.judge or {}).get("model"))} if judged else {}),
        }

    def record_keys(self, case: Case, askers: Iterable[Metric | Gate]) -> dict[str, str]:
        """The address of each answer: equal when nothing that could change it has changed.

        The digest of `{"asker": …, "case": …, "evidence": …}`, put together from texts that answers of a case share.
        """
        wanted = self.wanted[case.id]
        said = {name: getattr(case, name) for name in ("phases", "camera", "prompt", "condition")}
        told = canonical({**said, "annotations": dict(case.annotations)})
        absent = {id: reason.sentence for id, reason in wanted.absent.items()}
        evidence = {
            id: f'"{id}":{canonical(wanted.keys.get(id) or absent.get(id))}'
            for id in {id for asker in askers for id in self._kinds[asker.id]}
        }
        return {
            asker.id: digest_of_text(
                f'{{"asker":"{self.asker_hash(asker)}","case":{told},'
                f'"evidence":{{{",".join(evidence[id] for id in self._kinds[asker.id])}}}}}',
                24,
            )
            for asker in askers
        }

    def spoilt(self, case: Case, broken: Mapping[str, str]) -> dict[str, str]:
        """The sentence for each piece of evidence that a broken clip or reference leaves unmade.

        `broken` has the sentence for each clip that cannot be read, by its digest.
        """
        found = {}
        for key in self.wanted[case.id].keys.values():
            owner, _, task = self.tasks[key]
            if owner in broken:
                found[key] = broken[owner]
            elif task.reference is not None and task.reference in broken:
                found[key] = f"the reference cannot be read: {broken[task.reference]}"
        return found

    def jobs(self, keys: Iterable[str]) -> list[Job]:
        """Work that makes these pieces of evidence, each clip in exactly one job."""
        per_clip: dict[str, list[ObserverTask]] = defaultdict(list)
        for key in dict.fromkeys(keys):
            owner, _, task = self.tasks[key]
            if task.shown is None:  # a judge is asked in the main process
                per_clip[owner].append(task)
        references = {task.reference for tasks in per_clip.values() for task in tasks if task.reference}
        for reference in references:
            per_clip.setdefault(reference, [])
        order = {owner: position for position, owner in enumerate(self.clips)}
        jobs = []
        for component in _components(per_clip):
            members = sorted(component, key=lambda owner: (_depth(owner, per_clip), order[owner]))
            clips = tuple(ClipTask(owner, self.clips[owner], tuple(per_clip[owner])) for owner in members)
            needed = frozenset(t.reference for owner in members for t in per_clip[owner] if t.reference)
            jobs.append(Job(clips, needed))
        return sorted(jobs, key=lambda job: min(order[clip.digest] for clip in job.clips))

    def as_json(self) -> dict[str, Any]:
        """The content of plan.json."""
        return {
            "suite": self.suite.id,
            "protocol": self.protocol,
            "set": self.observers.id,
            "align": self.align,
            "partial": self.partial,
            "total_cases": self.total,
            "remarks": list(self.remarks),
            "metrics": {metric.id: self.asker_hash(metric) for metric in self.metrics},
            "gates": {gate.id: self.asker_hash(gate) for gate in self.gates},
            "made_by": {asker.id: self.makers(asker) for asker in self.askers},
            "cases": [
                {
                    **case_to_json(case),
                    "digest": self.digests.get(case.id),
                    "reference_digest": self.references.get(case.id),
                    "evidence": dict(self.wanted[case.id].keys),
                    "absent": {id: dict(vars(reason)) for id, reason in self.wanted[case.id].absent.items()},
                    "reference_evidence": dict(self.wanted[case.id].reference),
                }
                for case in self.cases
            ],
            "rejected": [asdict(entry) for entry in self.rejected],
        }


def make_plan(
    suite: Suite,
    source: Path,
    observers: ObserverSet,
    *,
    protocol: str | None = None,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    align: str = "auto",
    roots: Sequence[Path] = (),
    options: Mapping[str, str] | None = None,
    overrides: Parameters | None = None,
    truth: bool = False,
) -> Plan:
    """Read the suite's cases and work out what has to be observed, without decoding anything.

    `overrides` are parameters that take the place of the protocol's, as a sweep sets them. With `truth`, references
    are scored as clips of their own.
    """
    unknown = sorted(set(options or {}) - set(suite.options))
    if unknown:
        raise UsageError(
            f"suite {suite.id} has no option {unknown[0]!r}; its options are {', '.join(suite.options) or 'none'}"
        )
    entries = [_writable(entry) for entry in _read(suite, source, roots, options or {})]
    cases, twice = _each_once([entry for entry in entries if isinstance(entry, Case)], source)
    rejected = (*(entry for entry in entries if isinstance(entry, Rejected)), *twice)
    remarks = tuple(entry.sentence for entry in entries if isinstance(entry, Remark))
    if not cases and not rejected:
        raise UsageError(f"{source}: no videos found; expected mp4, mkv, webm or mov files, or folders of frames")
    cases, ceilings = parted(cases)
    total = len(cases)
    if limit is not None:
        cases = stratified(cases, limit)
    left_out = len(cases) < total
    if truth:
        cases = with_truth(cases, ceilings)
    cases = with_categories(cases)

    protocol = protocol or next(iter(suite.protocols))
    if protocol not in suite.protocols:
        raise UsageError(f"suite {suite.id} has no protocol {protocol!r}; it has {', '.join(suite.protocols)}")
    observers = _of_protocol(observers, (suite.card.get("observers") or {}).get(protocol) or {})
    parameters = dict(suite.protocols[protocol] or {})
    for id in parameters:
        if not any(id in registry for registry in (METRICS, GATES, DERIVED, OBSERVERS)):
            raise UsageError(f"protocol {protocol} of suite {suite.id} sets parameters of {id!r}, which does not exist")
    asked_for = dict(suite.settings(**(options or {}))) if suite.settings is not None else {}
    for id, given in [*asked_for.items(), *(overrides or {}).items()]:
        parameters[id] = {**parameters.get(id, {}), **given}
    metrics = suite.chosen(metrics)
    named = [id for id in metrics if id not in GATES]
    chosen = tuple(METRICS[id] for id in (named if metrics else suite.metrics()))
    for metric in chosen:
        parameters_of(metric, parameters)
    # A user who names metrics wants just these: the gates a suite always shows are then asked only if named, too.
    gates = tuple(gates_of(chosen, [id for id in metrics if id in GATES] if metrics else suite.card.get("gates", ())))

    askers: list[Metric | Gate] = [*gates, *chosen]
    digests: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    wanted: dict[str, Wanted] = {}
    tasks: dict[str, tuple[str, Clip, ObserverTask]] = {}
    clips: dict[str, Clip] = {}
    by_path: dict[Clip | Path, str] = {}

    def digest_of(thing: Clip | Path) -> str:
        if thing not in by_path:
            by_path[thing] = clip_digest(thing) if isinstance(thing, Clip) else file_digest(thing)
            if isinstance(thing, Clip):
                clips.setdefault(by_path[thing], thing)
        return by_path[thing]

    uses = _Uses([observers.roles[id].makes for id in ALWAYS if id in observers.roles])

    def show_reference(case: Case, keys: Mapping[str, str]) -> dict[str, str]:
        """Pictures of the reference, where it is decoded anyway because something is compared with it."""
        if case.reference is None or not any(tasks[key][2].reference for key in keys.values()):
            return {}
        alone = replace(case, clip=case.reference, reference=None, target=None)
        found = {}
        for kind in [observers.roles[id].makes for id in PICTURES if id in observers.roles]:
            made = task_for(
                alone, kind, observers.maker(kind), observers, parameters, digest_of(alone.clip), align, digest_of
            )
            if isinstance(made, ObserverTask):
                found[evidence_id(kind)] = made.key
                tasks.setdefault(made.key, (digest_of(alone.clip), alone.clip, made))
        return found

    for case in cases:
        try:
            digests[case.id] = digest_of(case.clip)
        except MediaError as error:
            unreadable[case.id] = str(error)
            wanted[case.id] = Wanted()
            continue
        made: dict[str, ObserverTask] = {}
        absent: dict[str, Reason] = {}
        mine = [asker for asker in askers if suite.asks(asker.id, case)]
        if not mine:  # nobody asks anything of it, so it is not decoded
            wanted[case.id] = Wanted()
            continue
        for kind in uses.kinds(mine):
            found = task_for(
                case, kind, observers.maker(kind), observers, parameters, digests[case.id], align, digest_of
            )
            if isinstance(found, Reason):
                absent[evidence_id(kind)] = found
            else:
                made[evidence_id(kind)] = found
        absent |= {id: absent[lacked] for id, lacked in uses.useless(mine, made, absent).items()}
        made = {id: task for id, task in made.items() if id not in absent}
        made |= {_role(task.shown): task.shown for task in made.values() if task.shown is not None}
        for task in made.values():
            tasks.setdefault(task.key, (digests[case.id], case.clip, task))
        keys = {id: task.key for id, task in made.items()}
        wanted[case.id] = Wanted(keys, absent, show_reference(case, keys))
    return Plan(
        suite, tuple(cases), rejected, chosen, gates, observers, protocol, parameters, align, digests, unreadable,
        wanted, tasks, clips, limit if left_out else None, total,
        {case.id: by_path[case.reference] for case in cases if case.reference in by_path}, remarks,
    )  # fmt: skip


def _read(
    suite: Suite, source: Path, roots: Sequence[Path], options: Mapping[str, str]
) -> Iterator[Case | Rejected | Remark]:
    """What a suite reads; whatever goes wrong in its reader is one sentence."""
    try:
        yield from suite.read(source, roots, **options)
    except RevisitError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())[:200]
        raise UsageError(f"{source}: cannot be read as {suite.id} ({type(error).__name__}: {told})") from error


def _writable(entry: Case | Rejected | Remark) -> Case | Rejected | Remark:
    """The entry, or a refusal of a case that holds what no file of a run can: it must not cost the others theirs."""
    if not isinstance(entry, Case):
        return replace(entry, **{name: mended(value) for name, value in vars(entry).items()})
    try:
        content = {**vars(entry), "clip": str(entry.clip.path), "reference": None, "target": None, "artifacts": None}
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        for clip in filter(None, (entry.clip, entry.reference)):
            str(clip.path).encode()
        case_to_json(replace(entry, clip=Clip(Path()), reference=None))
    except UnicodeEncodeError:
        why = "a name or text of it is not UTF-8; rename the file, or mend the text"
    except RecursionError:
        why = "its annotations are nested too deeply"
    except (ValueError, TypeError) as error:
        why = f"its annotations hold what JSON cannot say ({error}); leave it out, or write null"
    else:
        return entry
    return Rejected(*(mended(text) for text in (entry.id, why, entry.model, entry.subset, entry.condition)))


def _each_once(cases: Sequence[Case], source: Path) -> tuple[list[Case], list[Rejected]]:
    """The cases by their ids, each once: everything of a clip is kept under its id, so a second one is refused."""
    first: dict[str, Case] = {}
    twice = []
    for case in cases:
        if first.setdefault(case.id, case) is not case:
            mine, other = (
                path.relative_to(source).as_posix() if path.is_relative_to(source) else path.name
                for path in (case.clip.path, first[case.id].clip.path)
            )
            why = f"{mine} and {other} have one id, {case.id}; rename one of them, or keep only one"
            twice.append(Rejected(f"{case.id} ({mine})", why, case.model, case.subset, case.condition))
    return list(first.values()), twice


def _of_protocol(observers: ObserverSet, wanted: Mapping[str, str]) -> ObserverSet:
    """The set with the observers that a protocol insists on, for the kinds of evidence that the set has at all."""
    own = {role: OBSERVERS[id] for role, id in wanted.items() if role in observers.roles}
    return replace(observers, roles={**observers.roles, **own})


def task_for(
    case: Case,
    kind: type,
    maker: Observer | None,
    observers: ObserverSet,
    parameters: Parameters,
    clip: str,
    align: str,
    digest_of: Any,
) -> ObserverTask | Reason:
    """How to make one kind of evidence for one case, or the reason why it cannot be made."""
    if maker is None:
        others = " or ".join(name for name in ("small", "paper") if name in sets_that_make(evidence_id(kind)))
        hint = f"; --set {others} has one" if others else ""
        return Reason(
            "not_in_set", f"needs {evidence_id(kind)}, which no observer in the set {observers.id!r} makes{hint}"
        )
    if case.truth and maker.shows is not None:
        return Reason("no_judge", "the truth is not put to the judge, whose answers cost")
    inputs: dict[str, Any] = {}
    files: dict[Path, str] = {}
    said: dict[str, Any] = {}  # what the evidence's address says of the inputs: of a file its content, wherever it lies
    for name in maker.inputs:
        asked, optional = name.removesuffix(OPTIONAL), name.endswith(OPTIONAL)
        if asked.startswith(BESIDE):
            artifact = asked.removeprefix(BESIDE)
            given = artifact in case.artifacts or not optional
            beside: tuple[Path | None, str] | Reason = _beside(case, artifact, digest_of) if given else (None, "")
            if isinstance(beside, Reason):
                return beside
            inputs[name], said[name] = beside
            if beside[0] is not None:
                files[beside[0]] = beside[1]
            continue
        value = getattr(case, asked)
        if value in (None, "") and not optional:
            if asked == "target" and case.target_name:
                return ONLY_NAMED
            return Reason(LACKING.get(asked, "no_file"), f"no {asked.replace('_', ' ')} was given for this case")
        inputs[name], said[name] = value, _plain(value)
    params, about = observers.facts_of(maker, parameters)
    facts = {**about, "inputs": said}
    if maker.weights and settings.precision():  # what was made in half precision does not answer for float32
        facts["precision"] = settings.precision()
    if maker.kind == "file":
        found = _beside(case, maker.artifact, digest_of)
        if isinstance(found, Reason):
            able = [name for name, other in sets_that_observe(evidence_id(kind)) if _has_inputs(case, other)]
            hint = f"; --set {' or '.join(able)} makes it from the frames" if able else ""
            return replace(found, sentence=found.sentence + (hint if maker.artifact not in case.artifacts else ""))
        file, facts["file"] = found
        files[file] = found[1]
        return ObserverTask(digest(facts, 40), maker.id, maker.fn.__module__, params, inputs, file=file, files=files)
    facts["clip"] = clip
    if maker.shows is not None:
        if observers.judge is None:
            return Reason("no_judge", "no judge was given; pass --judge, see docs/judges.md")
        shows = observers.maker(maker.shows)
        shown = task_for(case, maker.shows, shows, observers, parameters, clip, align, digest_of)
        if isinstance(shown, Reason):
            return shown
        facts |= {"judge": observers.judge_of(maker.id), "shown": shown.key}
        return ObserverTask(digest(facts, 40), maker.id, maker.fn.__module__, params, inputs, files=files, shown=shown)
    align = case.align or align
    reference = None
    if maker.pairs:
        if case.reference is None:
            return Reason("no_reference", "no reference video was given for this case")
        try:
            reference = digest_of(case.reference)
        except MediaError as error:
            return Reason("unreadable", f"the reference cannot be read: {error}")
        facts |= {"reference": reference, "align": align}
        inputs["align"] = align
    if maker.weights and (why := weights.why_missing(maker.weights)):
        return Reason("not_installed", why)
    if maker.ready is not None and (why := maker.ready()):
        return Reason("not_installed", why)
    return ObserverTask(digest(facts, 40), maker.id, maker.fn.__module__, params, inputs, reference, files=files)


def _has_inputs(case: Case, maker: Observer) -> bool:
    """Whether a case has the fields without which an observer can do nothing."""
    needed = [name for name in maker.inputs if not name.startswith(BESIDE) and not name.endswith(OPTIONAL)]
    return all(getattr(case, name) not in (None, "") for name in needed)


def _beside(case: Case, artifact: str, digest_of: Any) -> tuple[Path, str] | Reason:
    """A file that came with the clip and the digest of its content, or the reason why there is none."""
    words = artifact.replace("_", " ")
    file = case.artifacts.get(artifact)
    if file is None:
        command = next((maker.made_by for maker in OBSERVERS.values() if maker.artifact == artifact), "")
        hint = f"; `{command}` makes one" if command else ""
        return Reason("no_file", f"no {words} file was given for this case{hint}")
    try:
        return file, digest_of(file)
    except MediaError as error:
        return Reason("unreadable", f"the {words} file cannot be read: {error}")


def _role(task: ObserverTask) -> str:
    return evidence_id(OBSERVERS[task.observer].makes)


class _Uses:
    """Who uses which evidence. Thousands of cases are alike in what they ask and lack, so each answer is kept."""

    def __init__(self, always: Sequence[type]) -> None:
        self.always = always
        self._wants: dict[str, tuple[set[type], set[str]]] = {}
        self._kinds: dict[tuple[str, ...], list[type]] = {}
        self._useless: dict[Any, dict[str, str]] = {}

    def _of(self, asker: Metric | Gate) -> tuple[set[type], set[str]]:
        """Kinds of evidence that an asker uses, and ids of those that it cannot do without."""
        if asker.id not in self._wants:
            needed = {evidence_id(kind) for kind in observed_kinds(asker, optional=False)}
            self._wants[asker.id] = observed_kinds(asker), needed
        return self._wants[asker.id]

    def kinds(self, askers: Sequence[Metric | Gate]) -> list[type]:
        """All that they use, and what is always shown."""
        asked = tuple(asker.id for asker in askers)
        if asked not in self._kinds:
            kinds = {kind for asker in askers for kind in self._of(asker)[0]}
            self._kinds[asked] = sorted({*kinds, *self.always}, key=evidence_id)
        return self._kinds[asked]

    def useless(
        self, askers: Sequence[Metric | Gate], made: Mapping[str, Any], absent: Mapping[str, Any]
    ) -> dict[str, str]:
        """Evidence that nobody could use in a case, because all who want it lack something else; and what they lack."""
        situation = tuple(asker.id for asker in askers), frozenset(made), frozenset(absent)
        if situation in self._useless:
            return self._useless[situation]
        used = {evidence_id(kind) for kind in self.always}
        lacking: dict[str, str] = {}
        for asker in askers:
            kinds, needed = self._of(asker)
            wants = {evidence_id(kind) for kind in kinds}
            lacks = sorted(needed & absent.keys())
            if lacks:
                lacking.update(dict.fromkeys(wants & made.keys(), lacks[0]))
            else:
                used |= wants
        found = {id: lacked for id, lacked in sorted(lacking.items()) if id not in used}
        self._useless[situation] = found
        return found


def stratified(cases: Sequence[Case], limit: int) -> list[Case]:
    """At most `limit` cases, spread evenly over models, subsets and conditions.

    Within a stratum cases are taken in the order of a hash of the sample's name, so that different
    models are judged on the same samples and the choice does not depend on file order.
    """
    if limit < 1:
        raise UsageError(f"--limit takes a positive number of cases, not {limit}")
    strata: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        strata[case.model, case.subset, case.condition].append(case)
    for members in strata.values():
        members.sort(key=lambda case: (digest([case.sample, case.seed]), case.id))
    picked: set[str] = set()
    depth = 0
    while len(picked) < min(limit, len(cases)):
        for _, members in sorted(strata.items()):
            if depth < len(members) and len(picked) < limit:
                picked.add(members[depth].id)
        depth += 1
    return [case for case in cases if case.id in picked]


def _components(per_clip: Mapping[str, Sequence[ObserverTask]]) -> list[list[str]]:
    """Clips connected by references, as groups."""
    parent = {owner: owner for owner in per_clip}

    def root(owner: str) -> str:
        while parent[owner] != owner:
            parent[owner] = parent[parent[owner]]
            owner = parent[owner]
        return owner

    for owner, tasks in per_clip.items():
        for task in tasks:
            if task.reference:
                parent[root(owner)] = root(task.reference)
    groups: dict[str, list[str]] = defaultdict(list)
    for owner in per_clip:
        groups[root(owner)].append(owner)
    return list(groups.values())


def _depth(owner: str, per_clip: Mapping[str, Sequence[ObserverTask]], seen: frozenset[str] = frozenset()) -> int:
    """Length of the chain of references below a clip: references are decoded first."""
    below = [task.reference for task in per_clip[owner] if task.reference and task.reference not in seen | {owner}]
    return max((1 + _depth(reference, per_clip, seen | {owner}) for reference in below), default=0)


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
