"""Probes: are visible and returned things in the right place and state (docs/wrbench.md)?

A probe counts with the judge's probability of the right answer; where a judge gives none, a plain yes or no counts as 1
or 0. The score is the mean over the probes of an axis (WRBench eq. 4-6, arXiv 2606.20545). A probe without an answer
leaves the axis unscored: half of a balanced pair is not balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revisit.core import Metric, Score, Series, Unscored, metric
from revisit.evidence.judged import UNANSWERED, YES, JudgeAnswers, require_passed_canary
from revisit.suites.wrbench.evidence import ProbeAnswers
from revisit.suites.wrbench.metrics import FACTS

PAPER = "arXiv:2606.20545 eq. 4-6"


def yes_probabilities(answers: JudgeAnswers) -> np.ndarray:
    """The probability of yes per question: the judge's own, else 1 or 0 for its word; nan where it said nothing."""
    hard_answers = np.where(answers.answer == UNANSWERED, np.nan, (answers.answer == YES).astype(float))
    return np.where(np.isnan(answers.p_yes), hard_answers, answers.p_yes)


def mean_probe_score(answers: ProbeAnswers, axis: str) -> Score | Unscored:
    """Mean probability of the right answer over the probes of an axis."""
    require_passed_canary(answers.canary)
    mine = np.array([name == axis for name in answers.dimension], bool)
    if not mine.any():
        return Unscored("does_not_apply", f"the judge was not asked about {axis.replace('_', ' ')} consistency")
    p_yes, positive = yes_probabilities(answers)[mine], answers.positive[mine]
    numbers = answers.question[mine]
    if np.isnan(p_yes).any():
        open_ = numbers[np.isnan(p_yes)].tolist()
        sentence = f"{len(open_)} of {len(numbers)} probes have no answer"
        return Unscored("unanswered", sentence, {"unanswered": open_})
    right = np.where(positive, p_yes, 1 - p_yes)
    facts = {
        "probes": len(numbers),
        "positive": float(right[positive].mean()) if positive.any() else None,
        "negative": float(right[~positive].mean()) if (~positive).any() else None,
        "from_probabilities": bool((~np.isnan(answers.p_yes[mine])).all()),
        "judge": answers.judge,
        "frames": answers.frames,
    }
    return Score(float(right.mean()), units=Series(question=numbers, value=right), facts=facts)


def register_probe_metric(axis: str, card: Mapping[str, Any]) -> Metric:
    """The metric of one axis; the returned ones are asked only of what has returned."""

    def score_probes(answers: ProbeAnswers) -> Score | Unscored:
        return mean_probe_score(answers, axis)

    return metric(
        id=f"wr_{axis}", version=1, title=f"{axis.replace('_', ' ').capitalize()} consistency", unit="score",
        range=(0, 1), higher_is_better=True, needs=(ProbeAnswers,), suites=("wrbench",), paper=PAPER,
        gates=("wr_reobservation",) if axis.startswith("returned") else (), upstream=card["upstream"],
        responds_to=tuple(card["responds_to"]), blind_to=tuple(card["blind_to"]), doc=card["doc"],
    )(score_probes)  # fmt: skip


for axis, card in FACTS["probes"].items():
    register_probe_metric(axis, card)
