"""Scoring: gates, derived evidence and metrics of one case, each computed once, from cached evidence."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from revisit.core import (
    DERIVED,
    GATES,
    Case,
    Derived,
    Gate,
    GateResult,
    Metric,
    Reason,
    Record,
    RevisitError,
    Score,
    Series,
    Unscored,
    evidence_id,
)
from revisit.core.records import Status
from revisit.engine.cache import EvidenceCache, MemoryCache
from revisit.engine.dependencies import Parameters, parameters_of
from revisit.engine.evidence_plan import CaseEvidence
from revisit.engine.plan import Plan
from revisit.media import save_npz
from revisit.results.file_types import Details


class CheckFailed(Exception):
    """An answer that is owed but could not be made: a broken file, or a fault in the code."""


@dataclass(frozen=True)
class ScoringInput:
    """All that the answers of one case depend on, beside evidence. It can be sent to another process."""

    case: Case
    wanted: CaseEvidence
    parameters: Parameters
    unreadable: str = ""  # why the clip cannot even be hashed
    keys: Mapping[str, str] = field(default_factory=dict)  # metric or gate -> address of its answer
    tags: Mapping[str, str] = field(default_factory=dict)  # metric or gate -> comparability tag
    failures: Mapping[str, str] = field(default_factory=dict)  # evidence key -> why it could not be made
    verdicts: Mapping[str, GateResult | Unscored] = field(default_factory=dict)  # of gates that have answered before


def scoring_input(
    plan: Plan,
    case: Case,
    checks: Sequence[Metric | Gate],
    failures: Mapping[str, str],
    verdicts: Mapping[str, GateResult | Unscored] | None = None,
) -> ScoringInput:
    """What the plan says of a case that these are asked about."""
    evidence = plan.wanted[case.id]
    return ScoringInput(
        case,
        evidence,
        plan.parameters,
        plan.unreadable.get(case.id, ""),
        plan.record_keys(case, checks),
        {check.id: plan.protocol_hash(check) for check in checks},
        {key: failures[key] for key in evidence.keys.values() if key in failures},
        verdicts or {},
    )


class CaseScorer:
    """The evidence of one case, loaded when first asked for."""

    def __init__(self, sheet: ScoringInput, cache: EvidenceCache | MemoryCache) -> None:
        self.sheet, self.case, self.cache = sheet, sheet.case, cache
        self.evidence: dict[str, object] = {}
        self.verdicts = dict(sheet.verdicts)

    def get(self, kind: type) -> Any:
        """The evidence, or Unscored with the reason why there is none."""
        if kind is Case:
            return self.case
        id = evidence_id(kind)
        if id not in self.evidence:
            self.evidence[id] = self._derive(DERIVED[id]) if id in DERIVED else self._load(kind, id)
        return self.evidence[id]

    def _load(self, kind: type, id: str) -> Any:
        evidence = self.sheet.wanted
        if id not in evidence.keys:
            return Unscored(evidence.absent[id])
        key = evidence.keys[id]
        record = self.cache.load(kind, key)
        if record is None:
            raise CheckFailed(
                self.sheet.failures.get(key) or f"{id} is not in the cache; run the same eval command again"
            )
        return record

    def _derive(self, derivation: Derived) -> Any:
        arguments = self.arguments(derivation)
        if isinstance(arguments, Unscored):
            return arguments
        for kind in derivation.optional:
            record = self.get(kind)
            arguments.append(None if isinstance(record, Unscored) else record)
        return derivation.fn(*arguments, **parameters_of(derivation, self.sheet.parameters))

    def arguments(self, check: Metric | Gate | Derived) -> list[Any] | Unscored:
        values = []
        for kind in check.needs:
            evidence = self.get(kind)
            if isinstance(evidence, Unscored):
                return evidence
            values.append(evidence)
        return values

    def verdict(self, gate: Gate) -> GateResult | Unscored:
        if gate.id not in self.verdicts:
            arguments = self.arguments(gate)
            if isinstance(arguments, Unscored):
                self.verdicts[gate.id] = arguments
            else:
                self.verdicts[gate.id] = gate(*arguments, **parameters_of(gate, self.sheet.parameters))
        return self.verdicts[gate.id]

    def score(self, metric: Metric) -> Score | Unscored:
        for gate_id in metric.gates:
            verdict = self.verdict(GATES[gate_id])
            if isinstance(verdict, Unscored):
                return verdict
            if verdict.state != "open":
                return Unscored(verdict.refusal, facts={"gate": gate_id})
        arguments = self.arguments(metric)
        if isinstance(arguments, Unscored):
            return arguments
        return metric(*arguments, **parameters_of(metric, self.sheet.parameters))


@dataclass(frozen=True)
class CheckAnswer:
    """What a metric or gate said of a case, and the values per frame or pair behind it."""

    status: Status
    reason: Reason | None = None
    facts: Details = field(default_factory=dict)
    value: float | None = None
    raw: float | None = None
    label: str = ""
    series: Series | None = None


def run_checks(bench: CaseScorer, checks: Sequence[Metric | Gate]) -> Iterator[tuple[Record, Series | None]]:
    """Records of one case for the given metrics and gates, each with the values behind it."""
    for check in checks:
        started = time.perf_counter()
        answer = _run_check(bench, check)
        record = Record(
            bench.case,
            check.id,
            isinstance(check, Gate),
            answer.status,
            answer.value,
            answer.raw,
            answer.label,
            answer.reason,
            answer.facts,
            check.version,
            bench.sheet.tags[check.id],
            bench.sheet.keys[check.id],
            n_units=0 if answer.series is None else len(answer.series),
            seconds=round(time.perf_counter() - started, 4),
        )
        yield record, answer.series


def score_case(bench: CaseScorer, checks: Sequence[Metric | Gate], units: Path) -> list[Record]:
    """Records of one case; the values behind them are written to the folder `units`."""
    records = []
    for record, series in run_checks(bench, checks):
        if series is not None and len(series):
            path = units / record.key[:2] / f"{record.key}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            save_npz(path, dict(series.columns))
            record = record.changed(units=path.relative_to(units.parent).as_posix())
        records.append(record)
    return records


def _run_check(bench: CaseScorer, check: Metric | Gate) -> CheckAnswer:
    try:
        if bench.sheet.unreadable:
            raise CheckFailed(bench.sheet.unreadable)
        answer = bench.score(check) if isinstance(check, Metric) else bench.verdict(check)
        facts = to_plain(answer.facts)
    except (CheckFailed, RevisitError) as error:
        return CheckAnswer("failed", Reason("failed", str(error)))
    except Exception as error:  # a fault in one metric must not cost the others their scores
        return CheckAnswer("failed", Reason("failed", f"{check.id} failed: {type(error).__name__}: {error}"))
    if isinstance(answer, Unscored):
        return CheckAnswer("unscored", answer.reason, facts)
    if isinstance(answer, Score):
        return CheckAnswer("scored", None, facts, answer.value, answer.raw, series=answer.units)
    reason = answer.refusal if answer.state != "open" else None
    return CheckAnswer(cast(Status, answer.state), reason, facts, label=answer.label, series=answer.units)


def to_plain(value: Any) -> Any:
    """Numbers, strings, lists and mappings only, so that it survives JSON; not-a-number becomes null.

    TypeError for whatever else a metric may have put there.
    """
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"its facts hold a {type(value).__name__}, which JSON cannot say")
