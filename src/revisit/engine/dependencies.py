"""What a metric or gate depends on, down to the observers.

The closure of `needs` over derivations and gates says which evidence has to be observed, and is
hashed into the protocol: two numbers are comparable when their closures are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypedDict

from revisit import weights
from revisit.core import DERIVED, GATES, Case, Derived, Gate, Metric, Observer, UsageError, digest, evidence_id
from revisit.core.protocol import canonical_json, sha256_hex_prefix
from revisit.media import DECODING_RULE, decoding_build, decoding_by_name
from revisit.networks import settings
from revisit.results.file_types import Details, ObserverEntry

CLIP = "\0"  # where the digest of a clip comes, which is hexadecimal
Parameters = Mapping[str, Details]  # metric, gate, evidence or observer id -> parameters


@dataclass(frozen=True)
class ObserverSet:
    """Which observer fills each role (kind of evidence), which judge is asked, and whose pixels they are shown."""

    id: str
    roles: Mapping[str, Observer]
    judge: Details | None = None  # everything its answers depend on; None where there is no judge
    decoding: str = ""  # of the protocol (`media.pixel_rules`); empty for our own rules

    def parameters_and_facts_of(self, observer: Observer, chosen: Parameters) -> tuple[Details, ObserverEntry]:
        """Parameters and facts of one of these observers, worked out once for all clips."""
        cached = self._facts_by_observer.get(observer.id)
        if cached is None or cached[0] is not chosen:
            facts = observer_facts(observer, chosen, self.decoding)
            if self.decoding:  # the same protocol, but not the same pixels, with another version of the library
                facts["decoded_by"] = decoding_build(self.decoding)
            if observer.weights and (precision := settings.requested_precision()):
                facts["precision"] = precision  # what was made in half precision does not answer for float32
            before, _, after = canonical_json({**facts, "inputs": {}, "clip": CLIP}).partition(canonical_json(CLIP))
            cached = chosen, resolve_parameters(observer, chosen), facts, before, after
            self._facts_by_observer[observer.id] = cached
        return cached[1:3]

    def evidence_key_for_clip(self, observer_id: str, clip_digest: str) -> str:
        """The digest of the facts of an observer and a clip of which nothing else is given."""
        *_, before, after = self._facts_by_observer[observer_id]
        return sha256_hex_prefix(f'{before}"{clip_digest}"{after}'.encode(), 40)

    @cached_property
    def _facts_by_observer(self) -> dict[str, tuple[Parameters, Details, ObserverEntry, str, str]]:
        """Observer -> chosen parameters, all of its own, its facts, and the text of these before and after the clip."""
        return {}

    def maker(self, kind: type) -> Observer | None:
        return self.roles.get(evidence_id(kind))

    def maker_facts(self, kind: type, chosen: Parameters) -> ObserverEntry | None:
        """Everything that a kind of evidence depends on, except the clip; None where nobody makes it.

        Of answers this is also the judge, and what it is shown.
        """
        maker = self.maker(kind)
        facts = observer_facts(maker, chosen, self.decoding) if maker else None
        if maker and facts and maker.shows is not None:
            shown = self.maker(maker.shows)
            facts["judge"] = judge_facts_for_observer(self.judge, maker.id)
            facts["shown"] = observer_facts(shown, chosen, self.decoding) if shown else None
        return facts

    def makers_for(self, check: Metric | Gate) -> list[Observer]:
        """The observers that make evidence for a metric or gate."""
        makers = (self.maker(kind) for kind in observed_kinds_needed_by(check))
        return [maker for maker in makers if maker is not None]


def judge_facts_for_observer(judge: Details | None, observer_id: str) -> Details | None:
    """Facts of the judge that an observer asks: that of its role, else the one for all."""
    if judge is None or "roles" not in judge:
        return judge
    return judge["roles"].get(observer_id) or {name: value for name, value in judge.items() if name != "roles"}


def walk_dependencies(check: Metric | Gate | Derived, *, optional: bool = True) -> Iterator[Gate | Derived | type]:
    """All that a metric, gate or derivation rests on: gates, derivations, and in the end observed kinds of evidence."""
    kinds = [*check.needs, *(getattr(check, "optional", ()) if optional else ())]
    ids = [evidence_id(kind) for kind in kinds if kind is not Case]
    below: list[Gate | Derived] = [DERIVED[id] for id in ids if id in DERIVED]
    below += [GATES[id] for id in getattr(check, "gates", ())]
    yield from (kind for kind in kinds if kind is not Case and evidence_id(kind) not in DERIVED)
    for one in below:
        yield one
        yield from walk_dependencies(one, optional=optional)


def observed_kinds_needed_by(check: Metric | Gate | Derived, *, optional: bool = True) -> set[type]:
    """Kinds of evidence that observers have to provide, with those that are only used where they exist."""
    return {one for one in walk_dependencies(check, optional=optional) if isinstance(one, type)}


def observed_ids_needed_by(check: Metric | Gate | Derived, *, optional: bool = True) -> tuple[str, ...]:
    """The ids of these kinds, sorted."""
    return tuple(sorted(map(evidence_id, observed_kinds_needed_by(check, optional=optional))))


def reads_case(check: Metric | Gate | Derived) -> bool:
    """Whether a check, or a gate or derivation that it rests on, is given the case itself."""
    below = [one for one in walk_dependencies(check) if not isinstance(one, type)]
    return any(Case in (*one.needs, *getattr(one, "optional", ())) for one in (check, *below))


def why_unavailable(observer: Observer) -> str:
    """Why an observer cannot run here, by its weights and by what it says itself; nothing where it can."""
    lacking = weights.why_missing(observer.weights) if observer.weights else None
    return lacking or (observer.ready() if observer.ready is not None else None) or ""


def asks_judge(check: Metric | Gate, observers: ObserverSet) -> bool:
    """Whether a judge is asked for the answer."""
    return observers.judge is not None and any(maker.shows is not None for maker in observers.makers_for(check))


def resolve_parameters(check: Metric | Gate | Derived | Observer, chosen: Parameters) -> Details:
    """The defaults of the function, overlaid with what the protocol sets; unknown names are refused."""
    overrides = dict(chosen.get(check.id, {}))
    unknown = sorted(set(overrides) - set(check.params))
    if unknown:
        raise UsageError(
            f"the protocol sets {', '.join(unknown)} on {check.id}, whose parameters are "
            f"{', '.join(check.params) or 'none'}; correct the suite's card.yaml"
        )
    return {**check.params, **overrides}


def merge_parameters(*sources: Parameters) -> dict[str, dict[str, object]]:
    """Parameters of several sources; the last one counts."""
    merged: dict[str, dict[str, object]] = {}
    for parameters in sources:
        for id, values in parameters.items():
            merged[id] = {**merged.get(id, {}), **values}
    return merged


def observer_facts(observer: Observer, chosen: Parameters, decoding: str = "") -> ObserverEntry:
    """Everything about an observer that its evidence depends on."""
    return {
        "observer": observer.id,
        "version": observer.version,
        "frames": str(observer.frames),
        "size": observer.size,
        "weights": weights.digests(observer.weights),
        "params": resolve_parameters(observer, chosen),
        "decoding": f"{decoding} {decoding_by_name(decoding).rule}" if decoding else DECODING_RULE,
    }


class ProtocolFacts(TypedDict):
    """All that an answer depends on, except the clip: what the hash of a protocol covers."""

    id: str
    version: int
    params: Details
    evidence: dict[str, ProtocolFacts | ObserverEntry | None]
    gates: dict[str, ProtocolFacts]


class Makers(Protocol):
    """Who makes each kind of evidence: an observer set, or what a run has recorded of one."""

    def maker_facts(self, kind: type, chosen: Parameters) -> ObserverEntry | None: ...


def protocol_facts(check: Metric | Gate | Derived, observers: Makers, chosen: Parameters) -> ProtocolFacts:
    """Everything about a metric or gate that its answer depends on, except the clip."""
    facts: ProtocolFacts = {
        "id": check.id,
        "version": check.version,
        "params": resolve_parameters(check, chosen),
        "evidence": {},
        "gates": {},
    }
    for kind in [*check.needs, *getattr(check, "optional", ())]:
        if kind is Case:
            continue
        id = evidence_id(kind)
        if id in DERIVED:
            facts["evidence"][id] = protocol_facts(DERIVED[id], observers, chosen)
        else:
            facts["evidence"][id] = observers.maker_facts(kind, chosen)
    for gate_id in getattr(check, "gates", ()):
        facts["gates"][gate_id] = protocol_facts(GATES[gate_id], observers, chosen)
    return facts


def gates_of(metrics: Iterable[Metric], always_asked_ids: Iterable[str] = ()) -> list[Gate]:
    """The gates a suite always asks and those its metrics stand behind, each once."""
    ids = dict.fromkeys([*always_asked_ids, *(gate_id for metric in metrics for gate_id in metric.gates)])
    return [GATES[id] for id in ids]


def short_hash(facts: object) -> str:
    return digest(facts, 8)
