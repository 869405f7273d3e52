"""What was to be answered, worked out again from the plan.json and run.json of a run by whoever checks it.

Questions with their versions and protocols, the cases that each is asked of, and the addresses of evidence and answers:
all of them follow from what a run records, so that nothing of it can be dropped or changed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from revisit.core import GATES, METRICS, OBSERVERS, SUITES, Case, Gate, Metric, Observer, RevisitError, digest
from revisit.core.evidence import evidence_id
from revisit.core.registry import Registry
from revisit.engine.dependencies import Parameters, ProtocolFacts, judge_facts_for_observer, protocol_facts, short_hash
from revisit.engine.evidence_plan import BESIDE, OPTIONAL, to_dict_if_dataclass
from revisit.networks.settings import PRECISIONS
from revisit.results.file_types import CaseEntry, Details, ObserverEntry, PlanFile, RunFile

FILE_IS_GONE = "the bundle has no digest of the file {} beside the clip, as where it was gone by then"


@dataclass(frozen=True)
class PlannedAnswers:
    """What the plan.json and run.json of a run say was to be answered; `files` are digests of files beside clips."""

    plan: PlanFile
    run: RunFile
    files: Mapping[str, Mapping[str, str]]  # case -> artifact -> digest

    @cached_property
    def protocol_tags(self) -> dict[str, str]:
        """Metric or gate -> its protocol, as `name:hash`; gates first."""
        return {**self.plan["gates"], **self.plan["metrics"]}

    def is_gate(self, id: str) -> bool:
        return id in self.plan["gates"]

    def installed_observer(self, kind: str) -> Observer | None:
        """The observer of this machine that made a kind of evidence; None where it is not the same version."""
        recorded = self.run["protocol"]["observers"].get(kind) or {}
        id = str(recorded.get("observer"))
        return OBSERVERS[id] if id in OBSERVERS and OBSERVERS[id].version == recorded.get("version") else None

    def judge_of(self, observer: Observer) -> Details | None:
        """Facts of the judge that an observer asked."""
        return judge_facts_for_observer(self.run["protocol"]["judge"], observer.id)

    def maker_facts(self, kind: type, chosen: Parameters) -> ObserverEntry | None:
        """Everything that a kind of evidence depends on, except the clip; None where nobody made it."""
        recorded = self.run["protocol"]["observers"]  # those of this machine may be others
        facts, observer = recorded.get(evidence_id(kind)), self.installed_observer(evidence_id(kind))
        if facts is None or observer is None or observer.shows is None:
            return facts
        return {**facts, "judge": self.judge_of(observer), "shown": recorded.get(evidence_id(observer.shows))}

    @property
    def parameters(self) -> Parameters:
        return self.run["protocol"]["parameters"]

    def installed_metric_or_gate(self, id: str) -> Metric | Gate | None:
        """The metric or gate of this machine; None where there is none of this name."""
        registry: Registry[Gate] | Registry[Metric] = GATES if self.is_gate(id) else METRICS
        if id not in registry:
            return None
        return registry[id]

    def protocol_facts_of(self, id: str) -> ProtocolFacts | None:
        """All that the protocol of a question covers, by the metrics installed here; None where it is not installed."""
        check = self.installed_metric_or_gate(id)
        if check is None:
            return None
        try:
            return protocol_facts(check, self, self.parameters)
        except RevisitError:  # parameters that the version here does not have
            return None

    def protocol_tag_of(self, facts: ProtocolFacts) -> str:
        """The protocol of a question that these facts make."""
        return f"{self.plan['protocol']}:{short_hash(facts)}"

    def questions_for(self, entry: CaseEntry) -> list[str]:
        """Metrics and gates that are asked of a case of the plan."""
        suite = self.plan["suite"]
        return [id for id in self.protocol_tags if suite not in SUITES or SUITES[suite].asks(id, entry)]

    def possible_evidence_keys(self, entry: CaseEntry, case: Case, kind: str) -> set[str] | str:
        """The addresses that evidence of a case may have, or why that cannot be told here.

        There are several because a run does not record in which precision its networks ran.
        """
        observer = self.installed_observer(kind)
        if observer is None:
            return "the observer that made it is not installed here in that version"
        inputs: dict[str, object] = {}
        for name in observer.inputs:
            plain_name = name.removesuffix(OPTIONAL)
            if plain_name.startswith(BESIDE):
                artifact = plain_name.removeprefix(BESIDE)
                file_digest = self.files.get(case.id, {}).get(artifact) if artifact in case.artifacts else ""
                if file_digest is None:
                    return FILE_IS_GONE.format(artifact)
                inputs[name] = file_digest
            else:
                inputs[name] = to_dict_if_dataclass(getattr(case, plain_name))
        facts = {**self.run["protocol"]["observers"][kind], "inputs": inputs}
        if observer.kind == "file":
            content = self.files.get(case.id, {}).get(observer.artifact)
            if content is None:
                return FILE_IS_GONE.format(observer.artifact)
            facts["file"] = content
        else:
            facts["clip"] = entry["digest"]
            if observer.shows is not None:
                picture_key = entry["evidence"].get(evidence_id(observer.shows))
                facts |= {"judge": self.judge_of(observer), "shown": picture_key}
            if observer.pairs:
                facts |= {"reference": entry.get("reference_digest"), "align": case.align or self.plan["align"]}
        several = [facts, *({**facts, "precision": name} for name in PRECISIONS if observer.weights)]
        return {digest(one, 40) for one in several}


def dataset_slots_by_model(entries: Iterable[CaseEntry | Case]) -> dict[str, set[tuple[Any, ...]]]:
    """Model -> what it has clips of: part of the dataset, condition, sample and seed. The truth is no model."""
    slots_by_model: dict[str, set[tuple[Any, ...]]] = {}
    for entry in entries:
        facts = entry if isinstance(entry, Mapping) else vars(entry)
        if not facts.get("truth"):
            place = tuple(facts[name] for name in ("subset", "condition", "sample", "seed"))
            slots_by_model.setdefault(facts["model"], set()).add(place)
    return slots_by_model


def changed_fact_paths(claimed: Any, here: Any, place: str = "") -> list[str]:
    """Places at which two protocols differ, where both say something."""
    if isinstance(claimed, Mapping) and isinstance(here, Mapping):
        both = [name for name in claimed if name in here]
        return [line for name in both for line in changed_fact_paths(claimed[name], here[name], f"{place}.{name}")]
    return [] if digest(claimed) == digest(here) else [place.removeprefix(".")]
