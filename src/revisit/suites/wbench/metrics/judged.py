"""Judged: whether the place, the subject, what was asked for in each turn and its consequences are seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from revisit.core import Metric, PublishedMaker, Score, Unscored, metric
from revisit.core.text import read_package_yaml
from revisit.evidence.judged import require_passed_canary
from revisit.suites.wbench.evidence import CaseRatings
from revisit.suites.wbench.metrics.rules import CARD

FAMILY = "wbench_judged"
# The published columns are one judge's answers to questions of its own: answers of others stand in for them.
DOUBAO = PublishedMaker("Doubao, by WBench's own questions", "asked_as", names=("wbench",))


def register_question_metric(column: str, facts: Mapping[str, str]) -> Metric:
    """The metric of one question, with the facts of questions.yaml."""

    def score_rating(ratings: CaseRatings) -> Score | Unscored:
        if column not in ratings.question:
            return Unscored("does_not_apply", f"the case does not ask for {facts['title'].lower()}")
        require_passed_canary(ratings.canary)
        value = float(np.asarray(ratings.value)[ratings.question.index(column)])
        made_by = {"judge": ratings.judge, "asked_as": f"Revisit's question to {ratings.judge}"}
        if np.isnan(value):
            return Unscored("unanswered", "the judge gave no valid rating", made_by)
        return Score(value, facts=made_by)

    return metric(
        id=facts["metric"], version=1, title=facts["title"], needs=(CaseRatings,), upstream=column,
        published_by=(DOUBAO,), responds_to=(facts["responds_to"],), doc=facts["doc"], **CARD,
        blind_to=("writing in the video that instructs the judge, where the canary does not notice it",),
    )(score_rating)  # fmt: skip


for column, facts in read_package_yaml("revisit.suites.wbench", "questions.yaml").items():
    register_question_metric(column, facts)
