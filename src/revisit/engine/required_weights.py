"""Which weights an evaluation uses: those of an observer set, or of a suite or metric in that set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from revisit.core import METRICS, OBSERVERS, SUITES, Gate, Metric, evidence_id
from revisit.engine.dependencies import gates_of, observed_kinds
from revisit.observers.sets import load_roles


def weights_used(set: str, suite: str = "", metrics: Sequence[str] = ()) -> dict[str, list[str]]:
    """Weights → observers of this set that load them: all, or those behind a suite's or some metrics' evidence."""
    roles = load_roles(set)
    wanted = list(roles.values())
    if suite or metrics:
        asked = [METRICS[id] for id in (metrics or SUITES[suite].metrics())]
        always = SUITES[suite].card.get("gates", ()) if suite and not metrics else ()
        wanted = [roles[id] for id in evidence_of(asked, always) if id in roles]
    found: dict[str, list[str]] = {}
    for observer in wanted:
        for id in observer.weights:
            found.setdefault(id, []).append(observer.id)
    return found


def evidence_of(metrics: Sequence[Metric], always: Iterable[str] = ()) -> list[str]:
    """Ids of the evidence that these metrics, and the gates before them, rest on."""
    askers: list[Metric | Gate] = [*gates_of(metrics, always), *metrics]
    kinds = {kind for asker in askers for kind in observed_kinds(asker)}
    return sorted(evidence_id(kind) for kind in kinds)


def users_of_weights() -> dict[str, list[str]]:
    """Weights → all observers that load them."""
    found: dict[str, list[str]] = {}
    for observer in OBSERVERS.values():
        for id in observer.weights:
            found.setdefault(id, []).append(observer.id)
    return found
