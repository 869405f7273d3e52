"""Rules of a benchmark's metrics: `upstream` is what its public evaluator does, `corrected` what its questions mean."""

from __future__ import annotations

from revisit.core import UsageError

RULES = ("corrected", "upstream")


def is_upstream_rule(rule: str) -> bool:
    """Whether the rule is `upstream`."""
    if rule not in RULES:
        raise UsageError(f"unknown rule {rule!r}; a protocol sets one of {', '.join(RULES)}")
    return rule == "upstream"
