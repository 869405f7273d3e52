"""Probes: is what can be seen, and what came back, where and how it should be?

Evidence: `ProbeAnswers` to a few yes-or-no probes per axis, some worded so that yes is right and some so that no
is. A probe counts with the judge's probability of the right answer, p_yes or 1 - p_yes, taken from the
log-probabilities of its answer token; where a judge gives none, a plain yes or no counts as 1 or 0, and the facts
say so. The score is the mean over the probes of an axis (WRBench eq. 4-6, arXiv 2606.20545). A probe without an
answer leaves the axis unscored: half of a balanced pair is not balanced. The two returned axes are asked only where
the re-observation gate is open.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.answers import UNANSWERED, YES, JudgeAnswers
from revisit.evidence.judged import ProbeAnswers
from revisit.metrics.judge_answers import mistrusted

PAPER = "arXiv:2606.20545 eq. 4-6"


def p_yes_of(answers: JudgeAnswers) -> np.ndarray:
    """The probability of yes per question: the judge's own, else 1 or 0 for its word; nan where it said nothing."""
    said = np.where(answers.answer == UNANSWERED, np.nan, (answers.answer == YES).astype(float))
    return np.where(np.isnan(answers.p_yes), said, answers.p_yes)


def probe_score(answers: ProbeAnswers, axis: str) -> Score | Unscored:
    """Mean probability of the right answer over the probes of an axis."""
    if doubt := mistrusted(answers.canary):
        return doubt
    mine = np.array([name == axis for name in answers.dimension], bool)
    if not mine.any():
        return Unscored("does_not_apply", f"the judge was not asked about {axis.replace('_', ' ')} consistency")
    p_yes, positive = p_yes_of(answers)[mine], answers.positive[mine]
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


@metric(
    id="wr_visible_spatial", version=1, title="Visible spatial consistency", unit="score", range=(0, 1),
    higher_is_better=True, needs=(ProbeAnswers,), suites=("wrbench",), paper=PAPER, upstream="D3",
    responds_to=("wrong place", "object slides with the camera"),
    blind_to=("what happens out of view", "frozen camera"),
)  # fmt: skip
def visible_spatial(answers: ProbeAnswers) -> Score | Unscored:
    """Mean probability that subject, target and fixed things stand where they should while they are in view."""
    return probe_score(answers, "visible_spatial")


@metric(
    id="wr_visible_state", version=1, title="Visible state consistency", unit="score", range=(0, 1),
    higher_is_better=True, needs=(ProbeAnswers,), suites=("wrbench",), paper=PAPER, upstream="D4",
    responds_to=("event did not happen", "state reset in view"), blind_to=("what happens out of view",),
)  # fmt: skip
def visible_state(answers: ProbeAnswers) -> Score | Unscored:
    """Mean probability that the event happens, goes on and is held as it should while it is in view."""
    return probe_score(answers, "visible_state")


@metric(
    id="wr_returned_spatial", version=1, title="Returned spatial consistency", unit="score", range=(0, 1),
    higher_is_better=True, needs=(ProbeAnswers,), gates=("wr_reobservation",), suites=("wrbench",), paper=PAPER,
    upstream="D5", responds_to=("vanish", "wrong place", "duplicate"), blind_to=("clips that never return",),
)  # fmt: skip
def returned_spatial(answers: ProbeAnswers) -> Score | Unscored:
    """Mean probability that the subject is back in its expected place, relative to the fixed things."""
    return probe_score(answers, "returned_spatial")


@metric(
    id="wr_returned_state", version=1, title="Returned state consistency", unit="score", range=(0, 1),
    higher_is_better=True, needs=(ProbeAnswers,), gates=("wr_reobservation",), suites=("wrbench",), paper=PAPER,
    upstream="D6", responds_to=("state reset", "state frozen"), blind_to=("clips that never return",),
)  # fmt: skip
def returned_state(answers: ProbeAnswers) -> Score | Unscored:
    """Mean probability that the event has gone on while it was hidden."""
    return probe_score(answers, "returned_state")
