"""Preference pairs: two models' clips of one record, and which one a rule prefers, for training rewards.

There is a rule per measure, and the paper's rule `displacement` (docs/wrbench.md). Every pair says what the gates
found, so that a reward never learns from a return that nobody could judge.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from revisit.core import Case
from revisit.core.grouping import group_items
from revisit.results import Results
from revisit.suites.wrbench.records import record_id_of_case
from revisit.suites.wrbench.tables import ALL, inputs_may_show_return

MARGIN = 0.1  # of a score from 0 to 1: smaller differences are ties
DEGREES = 5.0  # of a turn: smaller differences are ties
GATES = ("camera_moved", "view_return", "target_return", "wr_reobservation")
DISPLACEMENT = "displacement"
STATIC, LEAKS, AT_REST = "asked to rest", "with inputs that may show the answer", "with a camera that did not move"
LOST, UNJUDGED = f"{DISPLACEMENT}: integrity not held", f"{DISPLACEMENT}: a return that cannot be judged"


@dataclass(frozen=True)
class PairVerdict:
    """What one rule makes of two clips, or why it makes nothing of them."""

    a: Case
    b: Case
    measure: str = ""
    scores: tuple[float, float] = (0.0, 0.0)
    margin: float = 0.0
    why_not: str = ""

    @property
    def preferred_side(self) -> str:
        difference = self.scores[0] - self.scores[1]
        return "tie" if abs(difference) < self.margin else "a" if difference > 0 else "b"


def preference_pair_lines(measured: Results, digests: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A line of preference_pairs.jsonl per pair and measure: both clips, which one is preferred, and the gates."""
    for verdict in _pair_verdicts(measured):
        if verdict.why_not:
            continue
        yield {
            "record": record_id_of_case(verdict.a),
            "measure": verdict.measure,
            "a": _pair_side_json(verdict.a, verdict.scores[0], digests),
            "b": _pair_side_json(verdict.b, verdict.scores[1], digests),
            "difference": verdict.scores[0] - verdict.scores[1],
            "preferred": verdict.preferred_side,
            "margin": verdict.margin,
            "return_judgeable": _both_returns_judgeable(verdict, measured),
            "gates": {"a": _gate_states(verdict.a, measured), "b": _gate_states(verdict.b, measured)},
        }


def count_preference_pairs(measured: Results) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Measure -> how many pairs prefer a, b or neither; and how many were left out, by the reason."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    left_out: Counter[str] = Counter()
    for verdict in _pair_verdicts(measured):
        if verdict.why_not:
            left_out[verdict.why_not] += 1
        else:
            counts[verdict.measure][verdict.preferred_side] += 1
    return {measure: dict(preferences) for measure, preferences in counts.items()}, dict(left_out)


def _pair_verdicts(measured: Results) -> Iterator[PairVerdict]:
    """Every pair of clips under every rule that both have a score for; and those that are no pair."""
    for _, clips in sorted(group_items(measured.cases, record_id_of_case).items()):
        for a, b in combinations(sorted(clips, key=lambda case: case.model), 2):
            if a.model == b.model:
                continue
            if why := _reason_for_no_pair(a, b, measured):
                yield PairVerdict(a, b, why_not=why)
                continue
            for measure in ALL:
                one, other = (measured.score(case, measure) for case in (a, b))
                if one is not None and other is not None:
                    yield PairVerdict(a, b, measure, (one, other), MARGIN)
            far = [_turn_to_requested_side(case, measured) for case in (a, b)]
            if far[0] is not None and far[1] is not None and far[0][1] == far[1][1]:
                verdict = PairVerdict(a, b, DISPLACEMENT, (far[0][0], far[1][0]), DEGREES)
                yield replace(verdict, why_not=_reason_to_withhold(verdict, measured))


def _reason_for_no_pair(a: Case, b: Case, measured: Results) -> str:
    """Why two models' clips of one record are no pair; nothing where they are one."""
    if inputs_may_show_return(a) or inputs_may_show_return(b):
        return LEAKS
    if a.condition == "static":
        return STATIC
    return "" if all(_gate_is_open(case, "camera_moved", measured) for case in (a, b)) else AT_REST


def _both_returns_judgeable(verdict: PairVerdict, measured: Results) -> bool:
    return all(_gate_is_open(case, "wr_reobservation", measured) for case in (verdict.a, verdict.b))


def _reason_to_withhold(verdict: PairVerdict, measured: Results) -> str:
    """Why a pair by displacement is not exported; nothing where it is."""
    if not _both_returns_judgeable(verdict, measured):
        return UNJUDGED
    better, worse = (verdict.b, verdict.a) if verdict.preferred_side == "b" else (verdict.a, verdict.b)
    for measure in ("integrity", "integrity_network", "integrity_lite"):
        one, other = measured.score(better, measure), measured.score(worse, measure)
        if one is not None and other is not None:
            return "" if one >= other - MARGIN else LOST
    return LOST


def _turn_to_requested_side(case: Case, measured: Results) -> tuple[float, str] | None:
    """Degrees turned to the asked side, and the measure that tells them."""
    for measure in ("alignment", "alignment_odometry"):
        record = measured.answer(case, measure)
        if record is not None and record.raw is not None:
            return record.raw * math.copysign(1, float(record.facts.get("requested_deg") or 0.0)), measure
    return None


def _pair_side_json(case: Case, score: float, digests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "case": case.id,
        "model": case.model,
        "video": str(case.clip.path),
        "digest": digests.get(case.id),
        "prompt": case.prompt,
        "score": score,
    }


def _gate_is_open(case: Case, gate: str, measured: Results) -> bool:
    record = measured.answer(case, gate)
    return record is not None and record.status == "open"


def _gate_states(case: Case, measured: Results) -> dict[str, dict[str, str]]:
    records = [record for gate in GATES if (record := measured.answer(case, gate)) is not None]
    return {record.question: {"status": record.status, "label": record.label} for record in records}
