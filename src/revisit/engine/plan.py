"""The plan: everything that the chosen metrics need, so that each clip is decoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from revisit.core import (
    DERIVED,
    GATES,
    METRICS,
    OBSERVERS,
    Case,
    Clip,
    Gate,
    MediaError,
    Metric,
    Reason,
    Rejected,
    Suite,
    UsageError,
    evidence_id,
)
from revisit.core.protocol import canonical, digest_of_bytes
from revisit.engine.availability import Availability, availability
from revisit.engine.baselines import with_categories
from revisit.engine.clip_digests import Digests
from revisit.engine.dataset_cases import read_entries, stratified
from revisit.engine.dependencies import (
    ObserverSet,
    Parameters,
    asks_judge,
    gates_of,
    observed_kinds,
    parameters_of,
    protocol_facts,
    short_hash,
)
from revisit.engine.evidence_keys import BESIDE, OPTIONAL, task_for
from revisit.engine.ground_truth import parted, with_truth
from revisit.engine.jobs import Job, ObserverTask, jobs_of
from revisit.media import decoding_build, file_digest
from revisit.media.cache_folders import cache_root
from revisit.results.record_files import case_to_json, plain

ALWAYS = ("frame_facts", "thumbnails")  # evidence the report shows, whatever is scored
PICTURES = ("thumbnails",)  # what it shows of a reference, which may be long
Observed = tuple[dict[str, ObserverTask], dict[str, Reason]]  # kind of evidence -> how to make it, or why it cannot be


@dataclass(frozen=True)
class Wanted:
    """Evidence of one case: a key where an observer can make it, else the reason why not."""

    keys: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Reason] = field(default_factory=dict)
    reference: Mapping[str, str] = field(default_factory=dict)  # of the reference clip, for the report


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
        return self.suite.asked(self.askers, case)

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
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Ids of the evidence that observers make for each metric and gate."""
        return {asker.id: tuple(sorted(map(evidence_id, observed_kinds(asker)))) for asker in self.askers}

    def keys_for(self, case: Case, askers: Sequence[Metric | Gate]) -> set[str]:
        """Keys of the evidence of a case that these use, with what is always shown; none where nothing is asked."""
        if not askers:
            return set()
        wanted = self.wanted[case.id]
        kinds = {*ALWAYS, *(kind for asker in askers for kind in self.kinds[asker.id])}
        keys = {key for kind, key in wanted.keys.items() if kind in kinds}
        shown = (self.tasks[key][2].shown for key in keys)
        return {*keys, *(task.key for task in shown if task is not None), *wanted.reference.values()}

    def makers(self, asker: Metric | Gate) -> dict[str, str]:
        """The observer set that answers a question, and the judge where one is asked."""
        judged = asks_judge(asker, self.observers)
        return {
            "set": self.observers.id,
            **({"judge": str((self.observers.judge or {}).get("model"))} if judged else {}),
        }

    @cached_property
    def availability(self) -> Availability:
        """Which observers that the set adds to `lite` are needed, and can run here."""
        return availability(self.observers, self.askers)

    def own_observers(self) -> dict[str, Any]:
        """Metric or gate -> whether observers that the set adds to `lite` made its evidence, and which it lacked."""
        ran = {task.observer for _, _, task in self.tasks.values()} & {one.id for one in self.availability.running}
        found = {}
        for asker in self.askers:
            makers = {maker.id for kind in observed_kinds(asker) if (maker := self.observers.maker(kind)) is not None}
            lacks = sorted(makers & self.availability.missing.keys())
            found[asker.id] = {"own": bool(makers & ran), "lacking": lacks}
        return found

    def record_keys(self, case: Case, askers: Iterable[Metric | Gate]) -> dict[str, str]:
        """The address of each answer: equal when nothing that could change it has changed."""
        wanted = self.wanted[case.id]
        asked = {asker.id: (self.asker_hash(asker), self.kinds[asker.id]) for asker in askers}
        return answer_keys(case, wanted, asked)

    def answers_depend_on(self, case: Case) -> bytes:
        """All that the addresses of a case's answers are made of, beside what is asked."""
        wanted, asked = self.wanted[case.id], [asker.id for asker in self.askers_of(case)]
        absent = {id: reason.sentence for id, reason in wanted.absent.items()}
        return msgspec.json.encode([_said(case), wanted.keys, absent, asked], enc_hook=plain)

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
        return jobs_of(keys, self.tasks, self.clips)

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
            "observers": self.own_observers(),
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
    entries = read_entries(suite, source, roots, options or {})
    cases, ceilings = parted(entries.cases)
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
    if decoding := (suite.card.get("decoding") or {}).get(protocol) or "":
        decoding_build(decoding)  # says what is missing, before anything is read
        observers = replace(observers, decoding=decoding)
        cases = [_decoded(case, decoding) for case in cases]
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
    known = Digests(cache_root(), source)

    def digest_of(thing: Clip | Path) -> str:
        if thing not in by_path:
            by_path[thing] = known.of(thing) if isinstance(thing, Clip) else file_digest(thing)
            if isinstance(thing, Clip):
                clips.setdefault(by_path[thing], thing)
        return by_path[thing]

    uses = _Uses([observers.roles[id].makes for id in ALWAYS if id in observers.roles])

    read = {name.removesuffix(OPTIONAL) for maker in observers.roles.values() for name in maker.inputs}
    read = {name for name in read if not name.startswith(BESIDE)}
    alike: dict[tuple[str, ...], Observed] = {}  # what is asked -> of a case that brings nothing but its clip

    def observed(case: Case, mine: Sequence[Metric | Gate], clip: str) -> Observed:
        """How each kind of evidence of a case is made, and why others cannot be; thousands differ in the clip alone."""
        asked = tuple(asker.id for asker in mine)
        more = case.reference or case.artifacts or case.truth or any(getattr(case, name) for name in read)
        if asked in alike and not more:
            known, absent = alike[asked]
            keys = {id: observers.address_of_clip(task.observer, clip) for id, task in known.items()}
            return {id: msgspec.structs.replace(task, key=keys[id]) for id, task in known.items()}, absent
        made: dict[str, ObserverTask] = {}
        absent = {}
        for kind in uses.kinds(mine):
            found = task_for(case, kind, observers.maker(kind), observers, parameters, clip, align, digest_of)
            if isinstance(found, Reason):
                absent[evidence_id(kind)] = found
            else:
                made[evidence_id(kind)] = found
        absent |= {id: absent[lacked] for id, lacked in uses.useless(mine, made, absent).items()}
        made = {id: task for id, task in made.items() if id not in absent}
        made |= {_role(task.shown): task.shown for task in made.values() if task.shown is not None}
        if not more and all(task.key == observers.address_of_clip(task.observer, clip) for task in made.values()):
            alike[asked] = made, absent
        return made, absent

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
        mine = suite.asked(askers, case)
        if not mine:  # nobody asks anything of it, so it is not decoded
            wanted[case.id] = Wanted()
            continue
        made, absent = observed(case, mine, digests[case.id])
        for task in made.values():
            tasks.setdefault(task.key, (digests[case.id], case.clip, task))
        keys = {id: task.key for id, task in made.items()}
        wanted[case.id] = Wanted(keys, absent, show_reference(case, keys))
    known.keep()
    return Plan(
        suite, tuple(cases), entries.rejected, chosen, gates, observers, protocol, parameters, align, digests,
        unreadable, wanted, tasks, clips, limit if left_out else None, total,
        {case.id: by_path[case.reference] for case in cases if case.reference in by_path}, entries.remarks,
    )  # fmt: skip


def answer_keys(case: Case, wanted: Wanted, asked: Mapping[str, tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """The address of each answer about a case; `asked` are metrics and gates with their tags and kinds of evidence.

    The digest of `{"asker": …, "case": …, "evidence": …}`, put together from texts that answers of a case share.
    """
    told = canonical(_said(case)).encode()
    absent = {id: reason.sentence for id, reason in wanted.absent.items()}
    evidence: dict[tuple[str, ...], bytes] = {}
    keys = {}
    for id, (tag, kinds) in asked.items():
        if kinds not in evidence:
            parts = (f'"{kind}":{canonical(wanted.keys.get(kind) or absent.get(kind))}' for kind in kinds)
            evidence[kinds] = b'%b,"evidence":{%b}}' % (told, ",".join(parts).encode())
        keys[id] = digest_of_bytes(f'{{"asker":"{tag}","case":'.encode() + evidence[kinds], 24)
    return keys


def _said(case: Case) -> dict[str, Any]:
    """What metrics may read of a case."""
    said = {name: getattr(case, name) for name in ("phases", "camera", "prompt", "condition")}
    return {**said, "annotations": dict(case.annotations)}


def _of_protocol(observers: ObserverSet, wanted: Mapping[str, str]) -> ObserverSet:
    """The set with the observers that a protocol insists on, for the kinds of evidence that the set has at all."""
    own = {role: OBSERVERS[id] for role, id in wanted.items() if role in observers.roles}
    return replace(observers, roles={**observers.roles, **own})


def _decoded(case: Case, decoding: str) -> Case:
    """The case with pixels by another decoding, also those of the clip that it is compared with."""
    reference = None if case.reference is None else replace(case.reference, decoding=decoding)
    return replace(case, clip=replace(case.clip, decoding=decoding), reference=reference)


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
