"""Preference pairs: two models' clips of one record, and which one each measure prefers, for training rewards.

A pair is exported per measure on which both clips have a score and differ by at least a margin; ties are kept as ties.
The returned measures are defined only where both clips passed the re-observation gate; every pair says what the gates
found, so that a reward never learns from a return that nobody could judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from revisit.core import Case
from revisit.suites.tables import ByCase
from revisit.suites.wrbench.metrics import COLUMNS
from revisit.suites.wrbench.records import record_of
from revisit.suites.wrbench.tables import MEASURES

MARGIN = 0.1  # of a score from 0 to 1: smaller differences are ties
GATES = ("camera_moved", "view_return", "target_return", "wr_reobservation")


def preference_pairs(cases: Sequence[Case], answers: ByCase, *, margin: float = MARGIN) -> Iterator[dict[str, Any]]:
    """One object per pair of clips and measure: both scores, which is preferred (a, b or tie), and both's gates."""
    by_record: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if not case.annotations.get("leaks"):
            by_record[record_of(case)].append(case)
    for record, clips in sorted(by_record.items()):
        for a, b in combinations(sorted(clips, key=lambda case: case.model), 2):
            gates = {side: _gates(case, answers) for side, case in (("a", a), ("b", b))}
            for measure in MEASURES:
                scores = [_score(case, measure, answers) for case in (a, b)]
                if scores[0] is None or scores[1] is None:
                    continue
                difference = scores[0] - scores[1]
                yield {
                    "record": record,
                    "measure": measure,
                    "a": {"case": a.id, "model": a.model, "score": scores[0]},
                    "b": {"case": b.id, "model": b.model, "score": scores[1]},
                    "difference": difference,
                    "preferred": "tie" if abs(difference) < margin else "a" if difference > 0 else "b",
                    "margin": margin,
                    "return_judgeable": all(
                        made.get("wr_reobservation", {}).get("status") == "open" for made in gates.values()
                    ),
                    "gates": gates,
                }


def _score(case: Case, measure: str, answers: ByCase) -> float | None:
    for id in COLUMNS[measure]:
        record = answers.get(case.id, {}).get(id)
        if record is not None and record["status"] == "scored":
            return float(record["score"])
    return None


def _gates(case: Case, answers: ByCase) -> dict[str, dict[str, str]]:
    records = answers.get(case.id, {})
    return {
        gate: {"status": records[gate]["status"], "label": records[gate].get("label", "")}
        for gate in GATES
        if gate in records
    }
