"""Judged: whether the place, the subject, what was asked for in each turn and its consequences are seen."""

from __future__ import annotations

import numpy as np

from revisit.core import Metric, PublishedMaker, Score, Unscored, metric
from revisit.evidence.judged import failed_canary
from revisit.suites.wbench.evidence import CaseRatings
from revisit.suites.wbench.metrics.rules import PAPER

FAMILY = "wbench_judged"
# The published columns are one judge's answers to questions of its own: answers of others stand in for them.
DOUBAO = PublishedMaker("Doubao, by WBench's own questions", "asked_as", names=("wbench",))


def question_metric(id: str, title: str, upstream: str, doc: str, *responds_to: str) -> Metric:
    """The metric of one question."""

    def scored(ratings: CaseRatings) -> Score | Unscored:
        if upstream not in ratings.question:
            return Unscored("does_not_apply", f"the case does not ask for {title.lower()}")
        if reason := failed_canary(ratings.canary):
            return reason
        value = float(np.asarray(ratings.value)[ratings.question.index(upstream)])
        facts = {"judge": ratings.judge, "asked_as": f"Revisit's question to {ratings.judge}"}
        if np.isnan(value):
            return Unscored("unanswered", "the judge gave no valid rating", facts)
        return Score(value, facts=facts)

    return metric(
        id=f"wb_{id}", version=1, title=title, unit="score", range=(0, 1), higher_is_better=True, needs=(CaseRatings,),
        suites=("wbench",), paper=PAPER, upstream=upstream, published_by=(DOUBAO,), responds_to=responds_to,
        blind_to=("writing in the video that instructs the judge, where the canary does not notice it",), doc=doc,
    )(scored)  # fmt: skip


scene = question_metric(
    "scene", "Scene adherence", "scene_adherence", "How well the clip shows the described place.", "wrong content"
)
subject = question_metric(
    "subject_adherence", "Subject adherence", "subject_adherence", "How well the clip shows the described subject.",
    "changed object",
)  # fmt: skip
event = question_metric(
    "event_edit",
    "Event edit",
    "event_edit_adherence",
    "How far the events happened that turns asked for.",
    "missing event",
)
action = question_metric(
    "subject_action", "Subject action", "subject_action_adherence", "How far the subject did what turns asked for.",
    "missing event",
)  # fmt: skip
switch = question_metric(
    "perspective_switch", "Perspective switch", "perspective_switch_adherence",
    "How far the view changed between first and third person as asked.", "wrong camera",
)  # fmt: skip
causal = question_metric(
    "causal",
    "Causal fidelity",
    "causal_fidelity",
    "How far things happen as their causes demand.",
    "impossible motion",
)
