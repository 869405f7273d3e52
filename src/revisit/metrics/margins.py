"""Margins: a verdict counts only if slightly higher or lower thresholds give the same one.

A grey level more, a pixel to the side or another codec moves every cue a little. A gate is therefore evaluated again
with its thresholds one to four steps off, a step being the size of such changes. A verdict that changes within the
first step is too close to call; the number of steps it survives is its confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from revisit.core import GateResult

STEPS = 4
UNSURE = "cannot tell"


def add_confidence_or_make_unsure(
    verdict: GateResult, verdicts_at_steps: Callable[[int], Iterable[GateResult]]
) -> GateResult:
    """The verdict with its confidence (0 to 1), or "cannot tell"; `verdicts_at_steps` has those so many steps off."""
    if verdict.state == "unsure":
        return verdict
    for steps in range(1, STEPS + 1):
        for other in verdicts_at_steps(steps):
            if other.label == verdict.label:
                continue
            facts = {**verdict.facts, "confidence": (steps - 1) / STEPS}
            if steps > 1:
                return replace(verdict, facts=facts)
            reason = f"too close to call: {verdict.label!r}, but {other.label!r} with slightly different thresholds"
            return GateResult("unsure", UNSURE, reason, facts, verdict.units)
    return replace(verdict, facts={**verdict.facts, "confidence": 1.0})
