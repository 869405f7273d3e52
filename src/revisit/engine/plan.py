"""The plan: everything that the chosen metrics need, so that each clip is decoded once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from revisit.core import (
    DERIVED,
    GATES,
    METRICS,
    OBSERVERS,
    Case,
    Clip,
    Gate,
    Metric,
    Rejected,
    Suite,
    UsageError,
    evidence_id,
)
from revisit.core.protocol import canonical_json, sha256_hex_prefix
from revisit.core.text import suggest_names
from revisit.engine.availability import Availability, check_observer_availability
from revisit.engine.dataset_cases import find_copies_under_other_samples, identical_clip_sentences, read_cases
from revisit.engine.dependencies import (
    ObserverSet,
    Parameters,
    asks_judge,
    gates_of,
    merge_parameters,
    observed_ids_needed_by,
    protocol_facts,
    reads_case,
    resolve_parameters,
    short_hash,
)
from revisit.engine.evidence_plan import ALWAYS, CaseEvidence, EvidencePlanner
from revisit.engine.jobs import ObserverTask, ObservingJob, make_observing_jobs
from revisit.media import decoding_build
from revisit.results.file_types import CaseEntry, MadeBy, OwnObservers, PlanFile
from revisit.results.record_files import case_to_json, rejected_to_json, to_builtin_type

TARGET_INPUTS = {"target", "target?", "target_or_name"}  # of observers


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
    wanted: Mapping[str, CaseEvidence]  # case id -> evidence
    tasks: Mapping[str, tuple[str, Clip, ObserverTask]]  # evidence key -> how to make it
    clips: Mapping[str, Clip]  # digest -> clip
    partial: int | None = None  # --limit, if it left cases out
    total: int = 0
    references: Mapping[str, str] = field(default_factory=dict)  # case id -> digest of the clip it is compared with
    remarks: tuple[str, ...] = ()  # on how the source was read

    @property
    def checks(self) -> list[Metric | Gate]:
        """Everything that is asked: gates, then metrics."""
        return [*self.gates, *self.metrics]

    def checks_for(self, case: Case) -> list[Metric | Gate]:
        """Everything that is asked of one case: what its suite keeps to other parts of the dataset is left out."""
        return self.suite.checks_asked_of(self.checks, case)

    def protocol_with_hash(self, check: Metric | Gate) -> str:
        """`protocol:hash`, the comparability tag of one metric's or gate's results."""
        return f"{self.protocol}:{self._protocol_hashes[check.id]}"

    @cached_property
    def _protocol_hashes(self) -> dict[str, str]:
        return {one.id: short_hash(protocol_facts(one, self.observers, self.parameters)) for one in self.checks}

    @cached_property
    def evidence_ids_by_check(self) -> dict[str, tuple[str, ...]]:
        """Ids of the evidence that observers make for each metric and gate."""
        return {check.id: observed_ids_needed_by(check) for check in self.checks}

    def evidence_keys_for(self, case: Case, checks: Sequence[Metric | Gate]) -> set[str]:
        """Keys of the evidence of a case that these use, with what is always shown; none where nothing is asked."""
        if not checks:
            return set()
        evidence = self.wanted[case.id]
        kinds = {*ALWAYS, *(kind for check in checks for kind in self.evidence_ids_by_check[check.id])}
        keys = {key for kind, key in evidence.keys.items() if kind in kinds}
        pictures = (self.tasks[key][2].shown for key in keys)
        return {*keys, *(task.key for task in pictures if task is not None), *evidence.reference.values()}

    def made_by(self, check: Metric | Gate) -> MadeBy:
        """The observer set that answers a question, and the judge where one is asked."""
        makers: MadeBy = {"set": self.observers.id}
        if asks_judge(check, self.observers):
            makers["judge"] = str((self.observers.judge or {}).get("model"))
        return makers

    @cached_property
    def availability(self) -> Availability:
        """Which observers that the set adds to `lite` are needed, and can run here."""
        return check_observer_availability(self.observers, self.checks)

    def own_observers_by_check(self) -> dict[str, OwnObservers]:
        """Metric or gate -> whether observers that the set adds to `lite` made its evidence, and which it lacked."""
        ran = {task.observer for _, _, task in self.tasks.values()} & {one.id for one in self.availability.running}
        by_check: dict[str, OwnObservers] = {}
        for check in self.checks:
            makers = {maker.id for maker in self.observers.makers_for(check)}
            lacks = sorted(makers & self.availability.missing.keys())
            by_check[check.id] = {"own": bool(makers & ran), "lacking": lacks}
        return by_check

    def answer_keys_by_check(self, case: Case, checks: Iterable[Metric | Gate]) -> dict[str, str]:
        """The address of each answer: equal when nothing that could change it has changed."""
        evidence = self.wanted[case.id]
        tags_and_kinds = {
            check.id: (self.protocol_with_hash(check), self.evidence_ids_by_check[check.id]) for check in checks
        }
        return compute_answer_keys(case, evidence, tags_and_kinds, self.checks_reading_target)

    @cached_property
    def checks_reading_target(self) -> frozenset[str]:
        """Checks that are given the case, and with it the target, beside evidence that no target went into.

        Where the target went into evidence, the address of that evidence tells one target from another.
        """
        makers = [maker for check in self.checks for maker in self.observers.makers_for(check)]
        of_target = {evidence_id(maker.makes) for maker in makers if TARGET_INPUTS & {*maker.inputs}}
        return frozenset(
            check.id
            for check in self.checks
            if reads_case(check) and not of_target.intersection(observed_ids_needed_by(check, optional=False))
        )

    def encode_answer_dependencies(self, case: Case) -> bytes:
        """All that the addresses of a case's answers are made of, beside what is asked."""
        evidence, ids = self.wanted[case.id], [check.id for check in self.checks_for(case)]
        absent = {id: reason.sentence for id, reason in evidence.absent.items()}
        return msgspec.json.encode(
            [_case_fields_that_metrics_read(case, target=True), evidence.keys, absent, ids], enc_hook=to_builtin_type
        )

    def failed_evidence_sentences(self, case: Case, broken_clips: Mapping[str, str]) -> dict[str, str]:
        """The sentence for each piece of evidence that a broken clip or reference leaves unmade.

        `broken_clips` has the sentence for each clip that cannot be read, by its digest.
        """
        sentences = {}
        for key in self.wanted[case.id].keys.values():
            owner, _, task = self.tasks[key]
            if owner in broken_clips:
                sentences[key] = broken_clips[owner]
            elif task.reference is not None and task.reference in broken_clips:
                sentences[key] = f"the reference cannot be read: {broken_clips[task.reference]}"
        return sentences

    def observing_jobs_for(self, keys: Iterable[str]) -> list[ObservingJob]:
        """Work that makes these pieces of evidence, each clip in exactly one job."""
        return make_observing_jobs(keys, self.tasks, self.clips)

    def _case_entry(self, case: Case) -> CaseEntry:
        evidence = self.wanted[case.id]
        return {
            **case_to_json(case),
            "digest": self.digests.get(case.id),
            "reference_digest": self.references.get(case.id),
            "evidence": dict(evidence.keys),
            "absent": {id: dict(vars(reason)) for id, reason in evidence.absent.items()},
            "reference_evidence": dict(evidence.reference),
        }

    def as_json(self) -> PlanFile:
        """The content of plan.json."""
        return {
            "suite": self.suite.id,
            "protocol": self.protocol,
            "set": self.observers.id,
            "align": self.align,
            "partial": self.partial,
            "total_cases": self.total,
            "remarks": list(self.remarks),
            "metrics": {metric.id: self.protocol_with_hash(metric) for metric in self.metrics},
            "gates": {gate.id: self.protocol_with_hash(gate) for gate in self.gates},
            "made_by": {check.id: self.made_by(check) for check in self.checks},
            "observers": self.own_observers_by_check(),
            "cases": [self._case_entry(case) for case in self.cases],
            "rejected": [rejected_to_json(entry) for entry in self.rejected],
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
    from revisit.results.question_ranking import read_suite_questions  # which workers do not need

    read_suite_questions(suite.card)  # says what is wrong with them, before anything is read
    protocol = protocol or next(iter(suite.protocols))
    if protocol not in suite.protocols:
        raise UsageError(f"suite {suite.id} has no protocol {protocol!r}; {suggest_names(protocol, suite.protocols)}")
    of_reader = (suite.card.get("reading") or {}).get(protocol) or {}
    reading = {**(options or {}), **of_reader}
    cases, rejected, sentences, total = read_cases(suite, source, roots, reading, limit=limit, truth=truth)
    insisted = (suite.card.get("observers") or {}).get(protocol) or {}  # of the kinds of evidence that the set has
    own = {role: OBSERVERS[id] for role, id in insisted.items() if role in observers.roles}
    observers = replace(observers, roles={**observers.roles, **own})
    if decoding := (suite.card.get("decoding") or {}).get(protocol) or "":
        decoding_build(decoding)  # says what is missing, before anything is read
        observers = replace(observers, decoding=decoding)
        cases = [_case_with_decoding(case, decoding) for case in cases]
    of_protocol = suite.protocols[protocol] or {}
    for id in of_protocol:
        if not any(id in registry for registry in (METRICS, GATES, DERIVED, OBSERVERS)):
            raise UsageError(f"protocol {protocol} of suite {suite.id} sets parameters of {id!r}, which does not exist")
    asked_for = suite.settings(**(options or {})) if suite.settings is not None else {}
    parameters = merge_parameters(of_protocol, asked_for, overrides or {})
    metrics = suite.resolve_check_ids(metrics)
    named = [id for id in metrics if id not in GATES]
    usual = suite.default_metrics(judge=observers.judge is not None)
    chosen = tuple(METRICS[id] for id in (named if metrics else usual))
    for metric in chosen:
        resolve_parameters(metric, parameters)
    # A user who names metrics wants just these: the gates a suite always shows are then asked only if named, too.
    gates = tuple(gates_of(chosen, [id for id in metrics if id in GATES] if metrics else suite.card.get("gates", ())))

    evidence = EvidencePlanner(suite, [*gates, *chosen], observers, parameters, align, source)
    for case in cases:
        evidence.plan_case_evidence(case)
    repeated: dict[str, str] = {}
    if suite.card.get("copies_count_once"):
        repeated = find_copies_under_other_samples(cases, evidence.digests, evidence.cached_digest_of)
    remarks = (*sentences, *identical_clip_sentences(cases, evidence.digests, repeated))
    cases = [case for case in cases if case.id not in repeated]
    evidence.clip_digests.save()
    return Plan(
        suite,
        tuple(cases),
        rejected,
        chosen,
        gates,
        observers,
        protocol,
        parameters,
        align,
        evidence.digests,
        evidence.unreadable,
        evidence.by_case,
        evidence.tasks,
        evidence.clips,
        limit if limit is not None and limit < total else None,
        total,
        {case.id: evidence.digest_of[case.reference] for case in cases if case.reference in evidence.digest_of},
        remarks,
    )


def compute_answer_keys(
    case: Case,
    evidence_of_case: CaseEvidence,
    tags_and_kinds: Mapping[str, tuple[str, tuple[str, ...]]],
    checks_reading_target: Collection[str] = (),
) -> dict[str, str]:
    """The address of each answer about a case; `tags_and_kinds` has the tag of a check and its kinds of evidence.

    The digest of `{"asker": …, "case": …, "evidence": …}`, put together from texts that answers of a case share.
    """
    case_texts = [canonical_json(_case_fields_that_metrics_read(case, target=one)).encode() for one in (False, True)]
    absent = {id: reason.sentence for id, reason in evidence_of_case.absent.items()}
    evidence: dict[tuple[str, ...], str] = {}
    keys = {}
    for id, (tag, kinds) in tags_and_kinds.items():
        if kinds not in evidence:
            parts = (
                f'"{kind}":{canonical_json(evidence_of_case.keys.get(kind) or absent.get(kind))}' for kind in kinds
            )
            evidence[kinds] = ",".join(parts)
        case_text = case_texts[id in checks_reading_target]
        keys[id] = sha256_hex_prefix(
            b'{"asker":"%b","case":%b,"evidence":{%b}}' % (tag.encode(), case_text, evidence[kinds].encode()), 24
        )
    return keys


def _case_fields_that_metrics_read(case: Case, *, target: bool) -> dict[str, object]:
    """What metrics may read of a case; its target only where it has one."""
    fields = {name: getattr(case, name) for name in ("phases", "camera", "prompt", "condition")}
    if target and case.target is not None:
        fields["target"] = vars(case.target)
    if target and case.target_name:
        fields["target_name"] = case.target_name
    return {**fields, "annotations": dict(case.annotations)}


def _case_with_decoding(case: Case, decoding: str) -> Case:
    """The case with pixels by another decoding, also those of the clip that it is compared with."""
    reference = None if case.reference is None else replace(case.reference, decoding=decoding)
    return replace(case, clip=replace(case.clip, decoding=decoding), reference=reference)
