"""The JSON files of a run as types: plan.json, run.json, summary.json, and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

Details = Mapping[str, Any]  # values that only who wrote them knows: parameters, annotations, facts of a judge


class RejectedEntry(TypedDict):
    """A clip of the dataset that is missing or was refused."""

    id: str
    reason: str
    model: str
    subset: str
    condition: str
    missing: bool


class CaseEntry(TypedDict, total=False):
    """A case with the digests and the evidence of its clip."""

    id: str
    suite: str
    model: str
    sample: str
    subset: str
    condition: str
    seed: int
    prompt: str
    camera: str
    target: Details | None
    target_name: str
    phases: list[int] | None
    align: str
    truth: bool
    annotations: Details
    artifacts: dict[str, str]
    clip: Details
    reference: Any  # a clip, or None
    digest: str | None
    reference_digest: str | None
    evidence: dict[str, str]  # kind -> key
    absent: dict[str, dict[str, str]]  # kind -> kind and sentence of the reason
    reference_evidence: dict[str, str]


class MadeBy(TypedDict, total=False):
    """Who answered a question: the observer set, and the judge where one was asked."""

    set: str
    judge: str


class OwnObservers(TypedDict):
    """Whether observers that the set adds to `lite` made the evidence of a question, and which were missing."""

    own: bool
    lacking: list[str]


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


class ObserverEntry(TypedDict, total=False):
    """All that the evidence of an observer depends on; what follows `decoding` only where there is some."""

    observer: str
    version: int
    frames: str
    size: int | str | None
    weights: list[str]
    params: Details
    decoding: str | int
    decoded_by: str
    judge: Details | None
    shown: ObserverEntry | str | None  # the observer of the pictures that a judge is asked about, or the key of these
    inputs: Details
    precision: str
    file: str
    clip: str
    reference: str
    align: str


class ProtocolEntry(TypedDict, total=False):
    """The protocol of a run."""

    name: str
    hash: str
    parameters: dict[str, Details]
    align: str
    judge: Any  # facts of the judge, or None
    metrics: dict[str, str]
    gates: dict[str, str]
    made_by: dict[str, MadeBy]
    observers: dict[str, ObserverEntry]
    decoded_by: str


class Invocation(TypedDict, total=False):
    """One call of the command into a run."""

    command: str
    started: str
    finished: str | None
    seconds: float | None
    counters: Details


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


class Stage(TypedDict):
    """A stage of the funnel, and how many clips reach it."""

    stage: str
    n: int
