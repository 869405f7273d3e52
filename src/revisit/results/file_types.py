"""The JSON files of a run as types: plan.json, run.json, summary.json, and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

Details = Mapping[str, Any]  # values that only who wrote them knows: parameters, annotations, facts of a judge
# A Case with the digests of its clip and reference, the keys of their `evidence` and `reference_evidence` by kind, and
# under `absent` by kind why there is none.
CaseEntry = dict[str, Any]
RejectedEntry = dict[str, Any]  # a Rejected: a clip of the dataset that is missing or was refused
MadeBy = dict[str, str]  # who answered a question: the observer `set`, and the `judge` where one was asked
OwnObservers = dict[str, Any]  # `own`: whether observers that the set adds to `lite` made it; `lacking` ones
ObserverEntry = dict[str, Any]  # all that the evidence of an observer depends on
# `name` and `hash` of a run's protocol, its `parameters`, alignment and judge, of each metric and gate its own name and
# hash and who made it, and the entries of the `observers`.
ProtocolEntry = dict[str, Any]
Stage = dict[str, Any]  # of the funnel: its name (`stage`), and how many clips reach it (`n`)
Invocation = dict[str, Any]  # one call of the command into a run: its words, when it started and ended, its counters


class PlanFile(TypedDict, total=False):
    """plan.json; those of earlier versions lack some."""

    suite: str
    protocol: str
    set: str
    align: str
    partial: int | None
    total_cases: int
    remarks: list[str]
    metrics: dict[str, str]  # id -> name and hash of its protocol
    gates: dict[str, str]
    made_by: dict[str, MadeBy]
    observers: dict[str, OwnObservers]
    cases: list[CaseEntry]
    rejected: list[RejectedEntry]


class RunFile(TypedDict, total=False):
    """run.json."""

    revisit: str
    suite: str
    set: str
    observed_by: str
    request: Any  # what the plan was made from, or None
    adds: bool
    protocol: ProtocolEntry
    environment: Details
    cache: str
    notes: dict[str, list[str]]
    counters: Details
    invocations: list[Invocation]
