"""What a judge makes of any clip: does the world outlast a look away, and the user's own questions."""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.judged import NO, UNANSWERED, YES, require_passed_canary
from revisit.suites.folder.evidence import OWN, RETURNS, MemoryAnswers

FAMILY = "judged"


@metric(
    id="judged_memory", version=1, title="Memory, by a judge", unit="score", range=(0, 1), higher_is_better=True,
    needs=(MemoryAnswers,), responds_to=("vanish", "state reset", "wrong place", "place replaced"),
    blind_to=("frozen camera", "what happens in view"),
)  # fmt: skip
def judged_memory(answers: MemoryAnswers) -> Score | Unscored:
    """Share of the questions about the return that a judge answers rightly; asked only where it sees a return."""
    require_passed_canary(answers.canary)
    returns = answers.answer[[name == RETURNS for name in answers.dimension]]
    if not len(returns) or returns[0] == UNANSWERED:
        return Unscored("unanswered", "the judge did not say whether a part of the scene leaves the view and returns")
    if returns[0] == NO:
        return Unscored("gate_closed", "the judge sees no part of the scene that leaves the view and comes back")
    chosen = np.array([name != RETURNS and not name.startswith(OWN) for name in answers.dimension], bool)
    return _right_answer_share(answers, chosen)


@metric(
    id="judged_own", version=1, title="Your own questions, by a judge", unit="score", range=(0, 1),
    higher_is_better=True, needs=(MemoryAnswers,), responds_to=("what you ask",), blind_to=("what you do not ask",),
)  # fmt: skip
def judged_own_questions(answers: MemoryAnswers) -> Score | Unscored:
    """Share of the questions in your file (--option questions=FILE.yaml) that a judge answers as you say is right."""
    require_passed_canary(answers.canary)
    chosen = np.array([name.startswith(OWN) for name in answers.dimension], bool)
    if not chosen.any():
        return Unscored("no_file", "there are no questions of your own; --option questions=FILE.yaml brings them")
    return _right_answer_share(answers, chosen)


def _right_answer_share(answers: MemoryAnswers, chosen: np.ndarray) -> Score | Unscored:
    """The share of some questions that pass; unscored where one has no answer."""
    answer, numbers = answers.answer[chosen], answers.question[chosen]
    if not len(answer):
        return Unscored("unanswered", "no question was put to the judge")
    if (answer == UNANSWERED).any():
        open_ = numbers[answer == UNANSWERED].tolist()
        return Unscored("unanswered", f"{len(open_)} of {len(answer)} questions have no answer", {"unanswered": open_})
    passed = (answer == YES) == answers.positive[chosen]
    names = np.array(answers.dimension)[chosen]
    shares = {name.removeprefix(f"{OWN}: "): float(passed[names == name].mean()) for name in dict.fromkeys(names)}
    facts = {"questions": len(answer), "dimensions": shares, "judge": answers.judge, "frames": answers.frames}
    return Score(float(passed.mean()), units=Series(question=numbers, value=passed.astype(float)), facts=facts)
