"""Contents of audit.json, and a name for those of the files that one function writes and one table reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

CellJson = Mapping[str, Any]  # a Cell as summary.json has it
Content = dict[str, Any]  # of horizon.json, sweep.json, steadiness.json and real.json, and of parts of audit.json


class KindAudit(TypedDict):
    """AUC, effect and tau of a metric on one kind of failure."""

    claimed: bool
    n: int
    of: int
    auc: float | None
    tau: float | None
    effect: dict[str, float | None] | None
    read: str
    means: dict[str, Content]
    unscored: dict[str, int]
    response: str


class MetricAudit(TypedDict):
    """What one metric does on every kind of failure and every floor."""

    title: str
    family: str
    version: int
    higher_is_better: bool | None
    memory: bool
    claims: list[str]
    untested_claims: list[str]
    blind_to: list[str]
    ceiling: Content
    perfect: Content
    floors: dict[str, Content]
    kinds: dict[str, KindAudit]
    specificity: Content
    failing: list[Content]


class AuditContent(TypedDict, total=False):
    """audit.json; the package keeps a part of it for the cards of the metrics."""

    grid: Content
    kinds: dict[str, Content]
    floors: dict[str, Content]
    metrics: dict[str, MetricAudit]
    gates: dict[str, dict[str, dict[str, int]]]
    diagonal: dict[str, Content]
    failing: list[Content]
    not_asked: dict[str, str]
    rules: dict[str, float]
    diagnosis: Content
