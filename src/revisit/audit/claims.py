"""Claims: what the cards of the metrics promise, in terms of the failures that worlds can show.

A metric says in `responds_to` what it is meant to notice. The words are for readers; claims.yaml says which failures
test them. A word that no failure of ours shows is reported as not tested: a claim is never counted as kept because
nobody looked. The id or the title of a failure stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from revisit.core import Metric
from revisit.core.text import read_package_yaml
from revisit.worlds.failures import FAILURES

IDENTITY = ("colour_drift", "texture_drift", "shape_drift")
MEANS: Mapping[str, Sequence[str]] = read_package_yaml(__package__, "claims.yaml")
# Where one word means another thing in one metric: colours of the whole picture, not of the target.
OWN_MEANING = {("lighting_consistency", "colour drift"): ["lighting"]}

RETURN_GATES = {"view_return", "target_return"}
# Signs of one fault each, which only the diagnosis reads together: no second target is no proof of memory.
SIGNS = ("target_departure", "camera_departure", "look_departure")
OF_MEMORY = {"vanish", *IDENTITY, "state_reset", "state_frozen", "teleport", "duplicate", "background"}


@dataclass(frozen=True)
class MetricClaims:
    """Failures a metric says it notices, and its words that no failure of ours can test."""

    kinds: tuple[str, ...]
    untested: tuple[str, ...]


def metric_claims(metric: Metric) -> MetricClaims:
    """What the card of a metric promises."""
    kinds: set[str] = set()
    untested = []
    for word in metric.responds_to:
        called_so = [kind for kind, failure in FAILURES.items() if word in (kind, failure.title)]
        failures = OWN_MEANING.get((metric.id, word)) or MEANS.get(word) or called_so
        kinds.update(failures)
        if not failures:
            untested.append(word)
    return MetricClaims(tuple(kind for kind in FAILURES if kind in kinds), tuple(untested))


def is_memory_metric(metric: Metric) -> bool:
    """Whether a good score can be read as: the world was remembered.

    It can where only a clip that looked away and back is scored at all, where only what came back is looked at, and
    where the card claims that a lost, changed or misplaced target, or another place, would be noticed. A sign of one
    fault is none: its absence says nothing of the others.
    """
    if metric.higher_is_better is None or metric.family in SIGNS:
        return False
    gated = bool(set(metric.gates) & RETURN_GATES) or metric.id.endswith("_returned")
    return gated or bool(OF_MEMORY & set(metric_claims(metric).kinds))
