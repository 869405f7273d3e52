"""Judge answers: whether the answers of a judge about a clip are whole, and whether they are trusted at all."""

from __future__ import annotations

import numpy as np

from revisit.core import InvalidEvidence, Unscored
from revisit.evidence.answers import NO, UNANSWERED, YES, JudgeAnswers
from revisit.evidence.judged import PASSED


def mistrusted(canary: str) -> Unscored | None:
    """The reason not to use a judge's answers about this clip, if there is one."""
    return None if canary in ("", PASSED) else Unscored("untrusted", f"the judge failed a control question: {canary}")


def validate(answers: JudgeAnswers) -> None:
    """Raise InvalidEvidence unless every question has one number, dimension, polarity, answer and probability."""
    count = len(answers.question)
    for name in ("dimension", "positive", "answer", "p_yes"):
        values = getattr(answers, name)
        if len(values) != count:
            raise InvalidEvidence(f"JudgeAnswers.{name} has {len(values)} rows for {count} questions; one row each")
    if len(np.unique(answers.question)) != count:
        raise InvalidEvidence("JudgeAnswers.question holds a number twice; a bank has each question once")
    if not np.isin(answers.answer, (YES, NO, UNANSWERED)).all():
        raise InvalidEvidence("JudgeAnswers.answer must be 1 (yes), 0 (no) or -1 (unanswered)")
    known = answers.p_yes[~np.isnan(answers.p_yes)]
    if len(known) and (known.min() < 0 or known.max() > 1):
        raise InvalidEvidence("JudgeAnswers.p_yes must lie between 0 and 1, or be nan where the judge gave none")
