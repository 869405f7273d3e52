"""Judged: what a judge says of MBench's questions (arXiv 2606.00793), and whether it is trusted at all.

Evidence: `TriggerAnswer` and `ProgressRatings`; the wording of the questions is ours (questions.py).
A missing or malformed answer is never a no: the gate is unsure, the score is Unscored. A clip whose control questions
(`revisit.judges.canary`) were answered wrongly is not scored by anything that rests on a judge.
"""

from __future__ import annotations

import numpy as np

from revisit.core import GateResult, InvalidEvidence, Score, Unscored, UsageError, gate, metric
from revisit.evidence.judged import require_passed_canary
from revisit.suites.mbench.evidence import ProgressRatings, TriggerAnswer

PAPER = "arXiv:2606.00793 section 4"
BLIND = ("writing in the video that instructs the judge, where the canary does not notice it",)


@gate(id="judged_trigger", version=1, title="the memory test is posed", needs=(TriggerAnswer,))
def memory_test_posed(answer: TriggerAnswer, *, confidence: float = 0.0) -> GateResult | Unscored:
    """Open if a judge finds that the clip poses the memory test of its subset, at least this surely."""
    require_passed_canary(answer.canary)
    facts = {"judge": answer.judge, "confidence": answer.confidence, "question": answer.question}
    if answer.triggered < 0:
        return GateResult("unsure", "unknown", "the judge gave no valid answer on whether the test is posed", facts)
    if not answer.triggered:
        return GateResult("closed", "not posed", "the judge says that the clip does not pose the test", facts)
    if answer.confidence < confidence:
        sentence = f"the judge is only {answer.confidence:g} sure that the clip poses the test"
        return GateResult("unsure", "posed?", sentence, facts)
    return GateResult("open", "posed", facts=facts)


@metric(
    id="judged_progress", version=1, title="Judged: progress", unit="score", range=(0, 1), higher_is_better=True,
    needs=(ProgressRatings,), paper=PAPER, upstream="state_progress",
    responds_to=("state frozen", "state reset"), blind_to=BLIND,
)  # fmt: skip
def judged_progress(ratings: ProgressRatings, *, rule: str = "corrected") -> Score | Unscored:
    """How far the described change went: (rating - 1) / 4; with the rule `readme`, rating / 5."""
    return _score_unless_canary_failed(ratings, _rating_as_share(ratings.progress, rule), ratings.progress)


@metric(
    id="judged_correctness", version=1, title="Judged: correctness", unit="score", range=(0, 1),
    higher_is_better=True, needs=(ProgressRatings,), paper=PAPER, upstream="progress_correctness",
    responds_to=("state reset", "wrong result"), blind_to=BLIND,
)  # fmt: skip
def judged_correctness(ratings: ProgressRatings, *, rule: str = "corrected") -> Score | Unscored:
    """How right the described change is, times how far it went; the rule `readme` leaves out how far it went."""
    value = _rating_as_share(ratings.correctness, rule)
    if rule != "readme":
        value *= _rating_as_share(ratings.progress, rule)
    return _score_unless_canary_failed(ratings, value, ratings.correctness)


def _rating_as_share(rating: float, rule: str) -> float:
    if rule not in ("corrected", "readme"):
        raise UsageError(f"unknown rule {rule!r}; choose corrected (as in the paper) or readme")
    if not (np.isnan(rating) or 1 <= rating <= 5):
        raise InvalidEvidence(f"a rating must be between 1 and 5, or nan if there is none; got {rating:g}")
    return rating / 5 if rule == "readme" else (rating - 1) / 4


def _score_unless_canary_failed(ratings: ProgressRatings, value: float, raw: float) -> Score | Unscored:
    require_passed_canary(ratings.canary)
    facts = {"judge": ratings.judge, "progress": ratings.progress, "correctness": ratings.correctness}
    if np.isnan(value):
        return Unscored("unanswered", "the judge gave no valid rating", facts)
    return Score(value, raw=raw, facts=facts)
