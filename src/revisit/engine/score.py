"""Scoring: gates, derived evidence and metrics of one case, each computed once, from cached evidence.

Scorers are processes that score cases while others are observed: what one process scores is little beside what one
observes, but not beside what sixteen do. Metrics that another process cannot import, such as those of a notebook's
cell, are scored in this one.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import (
    DERIVED,
    GATES,
    METRICS,
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
from revisit.core.observer import single_threaded_libraries
from revisit.engine.cache import EvidenceCache, MemoryCache
from revisit.engine.dependencies import Parameters, resolve_parameters
from revisit.engine.evidence_plan import CaseEvidence
from revisit.engine.jobs import error_sentence
from revisit.engine.plan import Plan
from revisit.engine.worker_processes import SPAWN, guard_child_start, ignore_interrupt_and_end_with_parent
from revisit.media import save_npz

CheckReference = tuple[bool, str, int, str]  # whether it is a gate, id, version, module
Done = Callable[[list[Record]], None]


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


def make_scoring_input(
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
        plan.answer_keys_by_check(case, checks),
        {check.id: plan.protocol_with_hash(check) for check in checks},
        {key: failures[key] for key in evidence.keys.values() if key in failures},
        verdicts or {},
    )


class CaseScorer:
    """The evidence of one case, loaded when first asked for."""

    def __init__(self, scoring_input: ScoringInput, cache: EvidenceCache | MemoryCache) -> None:
        self.scoring_input, self.case, self.cache = scoring_input, scoring_input.case, cache
        self.evidence: dict[str, object] = {}
        self.verdicts = dict(scoring_input.verdicts)

    def evidence_or_unscored(self, kind: type) -> Any:
        """The evidence, or Unscored with the reason why there is none."""
        if kind is Case:
            return self.case
        id = evidence_id(kind)
        if id not in self.evidence:
            self.evidence[id] = (
                self._call_with_evidence(DERIVED[id]) if id in DERIVED else self._load_observed_evidence(kind, id)
            )
        return self.evidence[id]

    def _load_observed_evidence(self, kind: type, id: str) -> Any:
        evidence = self.scoring_input.wanted
        if id not in evidence.keys:
            return Unscored(evidence.absent[id])
        key = evidence.keys[id]
        record = self.cache.load(kind, key)
        if record is None:
            raise CheckFailed(
                self.scoring_input.failures.get(key) or f"{id} is not in the cache; run the same eval command again"
            )
        return record

    def arguments_or_unscored(self, check: Metric | Gate | Derived) -> list[Any] | Unscored:
        values = []
        for kind in (*check.needs, *getattr(check, "optional", ())):
            evidence = self.evidence_or_unscored(kind)
            if not isinstance(evidence, Unscored):
                values.append(evidence)
            elif kind in check.needs:
                return evidence
            else:
                values.append(None)
        return values

    def gate_result(self, gate: Gate) -> GateResult | Unscored:
        if gate.id not in self.verdicts:
            self.verdicts[gate.id] = self._call_with_evidence(gate)
        return self.verdicts[gate.id]

    def score(self, metric: Metric) -> Score | Unscored:
        for gate_id in metric.gates:
            verdict = self.gate_result(GATES[gate_id])
            if isinstance(verdict, Unscored):
                return verdict
            if verdict.state != "open":
                return Unscored(verdict.refusal, facts={"gate": gate_id})
        return self._call_with_evidence(metric)

    def _call_with_evidence(self, check: Metric | Gate | Derived) -> Any:
        """What a metric, gate or derivation makes of the evidence, or Unscored where it lacks some."""
        arguments = self.arguments_or_unscored(check)
        if isinstance(arguments, Unscored):
            return arguments
        return check(*arguments, **resolve_parameters(check, self.scoring_input.parameters))


def run_checks(scorer: CaseScorer, checks: Sequence[Metric | Gate]) -> Iterator[tuple[Record, Series | None]]:
    """Records of one case for the given metrics and gates, each with the values behind it."""
    for check in checks:
        started = time.perf_counter()
        answer, series = _record_fields_and_series(scorer, check)
        answer["n_units"] = 0 if series is None else len(series)
        answer["seconds"] = round(time.perf_counter() - started, 4)
        tag, key = scorer.scoring_input.tags[check.id], scorer.scoring_input.keys[check.id]
        record = Record(
            scorer.case, check.id, isinstance(check, Gate), version=check.version, protocol=tag, key=key, **answer
        )
        yield record, series


def score_case(scorer: CaseScorer, checks: Sequence[Metric | Gate], units: Path) -> list[Record]:
    """Records of one case; the values behind them are written to the folder `units`."""
    return [record_with_saved_units(record, series, units) for record, series in run_checks(scorer, checks)]


def record_with_saved_units(record: Record, series: Series | None, units: Path) -> Record:
    """The record, with the values behind it in a file of the folder `units`."""
    if series is None or not len(series):
        return record
    path = units / record.key[:2] / f"{record.key}.npz"
    save_npz(path, dict(series.columns))
    return record.with_changed_fields(units=path.relative_to(units.parent).as_posix())


def _record_fields_and_series(scorer: CaseScorer, check: Metric | Gate) -> tuple[dict[str, Any], Series | None]:
    """Fields of the record of what a metric or gate said of a case, and the values per frame or pair behind it."""
    try:
        if scorer.scoring_input.unreadable:
            raise CheckFailed(scorer.scoring_input.unreadable)
        answer = scorer.score(check) if isinstance(check, Metric) else scorer.gate_result(check)
        facts = to_json_value(answer.facts)
    except (CheckFailed, RevisitError) as error:
        return {"status": "failed", "reason": Reason("failed", str(error))}, None
    except Exception as error:  # a fault in one metric must not cost the others their scores
        return {"status": "failed", "reason": Reason("failed", f"{check.id} failed: {error_sentence(error)}")}, None
    if isinstance(answer, Unscored):
        return {"status": "unscored", "reason": answer.reason, "facts": facts}, None
    if isinstance(answer, Score):
        return {"status": "scored", "facts": facts, "value": answer.value, "raw": answer.raw}, answer.units
    reason = answer.refusal if answer.state != "open" else None
    return {"status": answer.state, "reason": reason, "facts": facts, "label": answer.label}, answer.units


def to_json_value(value: Any) -> Any:
    """Numbers, strings, lists and mappings only, so that it survives JSON; not-a-number becomes null.

    TypeError for whatever else a metric may have put there.
    """
    if isinstance(value, Mapping):
        return {str(name): to_json_value(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_json_value(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(item) for item in value]
    if isinstance(value, np.generic):
        return to_json_value(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"its facts hold a {type(value).__name__}, which JSON cannot say")


class Scorers(AbstractContextManager["Scorers"]):
    """So many processes that score; with 0, cases are scored at once, in this one."""

    def __init__(self, processes: int, cache: EvidenceCache, units: Path) -> None:
        self.cache, self.units = cache, units
        self._pool = (
            ProcessPoolExecutor(processes, SPAWN, ignore_interrupt_and_end_with_parent, (os.getpid(),))
            if processes
            else None
        )
        self._pending: dict[Future[list[Record]], tuple[ScoringInput, Sequence[Metric | Gate], Done]] = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def submit_case(self, scoring_input: ScoringInput, checks: Sequence[Metric | Gate], done: Done) -> None:
        """Score a case; `done` is given the records, at once or from `collect`."""
        references = [(isinstance(check, Gate), check.id, check.version, check.fn.__module__) for check in checks]
        if self._pool is None or any(module == "__main__" for *_, module in references):
            done(self._score_in_this_process(scoring_input, checks))
            return
        try:
            with guard_child_start():
                scored = self._pool.submit(_score_case_in_worker, scoring_input, references, self.cache, self.units)
        except RuntimeError:  # all of its processes are lost with one that was killed
            done(self._score_in_this_process(scoring_input, checks))
            return
        self._pending[scored] = scoring_input, checks, done

    def collect(self, all: bool = False) -> None:
        """Hand over what is scored by now, or everything."""
        while self._pending:
            ready, _ = wait(self._pending, None if all else 0, FIRST_COMPLETED)
            for scored in ready:
                scoring_input, checks, done = self._pending.pop(scored)
                lost = scored.exception() is not None  # a process that was killed, or that does not know a metric
                done(self._score_in_this_process(scoring_input, checks) if lost else scored.result())
            if not all:
                return

    def _score_in_this_process(self, scoring_input: ScoringInput, checks: Sequence[Metric | Gate]) -> list[Record]:
        with single_threaded_libraries():  # as in a process of its own; threads for small matrices only wait
            return score_case(CaseScorer(scoring_input, self.cache), checks, self.units)


def _score_case_in_worker(
    scoring_input: ScoringInput, references: Sequence[CheckReference], cache: EvidenceCache, units: Path
) -> list[Record]:
    return score_case(CaseScorer(scoring_input, cache), [_load_check(*one) for one in references], units)


def _load_check(is_gate: bool, id: str, version: int, module: str) -> Metric | Gate:
    registry = GATES if is_gate else METRICS
    if id not in registry:
        importlib.import_module(module)  # of a plugin that registered itself in the parent process only
    check: Metric | Gate = registry[id]
    if check.version != version:
        raise LookupError(f"{id} has another version here")
    return check
