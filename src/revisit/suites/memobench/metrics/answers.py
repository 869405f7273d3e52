"""Answers: the share of a bank's questions that a clip passes, by dimension (docs/memobench-vqa.md).

A positive question passes with yes, a negative one with no. `corrected` and `paper` leave unanswered questions out of
the denominator and count them; `upstream` scores the judge's own list as the public script does, faults included.
"""

from __future__ import annotations

import json

import numpy as np

from revisit.core import Metric, NoScore, Score, Series, Unscored
from revisit.evidence.judged import NO, UNANSWERED, YES, JudgeAnswers, require_passed_canary
from revisit.suites.memobench.metrics import rules

DIMENSIONS = {
    "if": "Instruction Following",
    "ob": "Object and Background",
    "cm": "Continuity of Memory",
    "pa": "Physics Adherence",
}


def upstream_pass_rates(answers: JudgeAnswers, facts_of_refusal: dict[str, object]) -> dict[str, float]:
    """Pass rate per dimension as the public script computes it from the judge's own list; a refusal has the facts."""
    entries = json.loads(answers.reply) if answers.reply else _entries_from_parsed_answers(answers)
    polarity = dict(zip(answers.question.tolist(), answers.positive.tolist(), strict=True))
    verdicts: dict[str, list[bool]] = {}
    for position, entry in enumerate(entries, 1):
        try:
            answer = entry.get("Answer", "").strip().lower()
            passing = "yes" if polarity.get(entry["ID"], True) else "no"
            verdicts.setdefault(entry["Dimension"], []).append(answer == passing)
        except (KeyError, TypeError, AttributeError):
            raise NoScore(
                "refused",
                f"the public script stops at entry {position} of the judge's list: it needs ID, Dimension and an "
                "Answer that is text",
                facts_of_refusal,
            ) from None
    return {dimension: round(sum(passed) / len(passed), 4) for dimension, passed in verdicts.items()}


def _entries_from_parsed_answers(answers: JudgeAnswers) -> list[dict[str, object]]:
    """The list that a judge would have written who left out what it did not answer."""
    rows = zip(answers.question.tolist(), answers.dimension, answers.answer.tolist(), strict=True)
    return [
        {"ID": number, "Dimension": dimension, "Answer": "Yes" if answer == YES else "No"}
        for number, dimension, answer in rows
        if answer != UNANSWERED
    ]


def score_pass_rate(answers: JudgeAnswers, dimension: str, rule: str) -> Score | Unscored:
    """Pass rate in percent of one dimension.

    Facts: counts, the interval that unanswered questions leave open, and which questions failed.
    """
    rules.check_rule(rule)
    mine = np.array([name == dimension for name in answers.dimension], bool)
    total = int(mine.sum())
    if not total:
        return Unscored("does_not_apply", f"the question bank of this clip has no question about {dimension}")
    passed = np.where(answers.answer == UNANSWERED, np.nan, answers.answer == np.where(answers.positive, YES, NO))
    values, numbers = passed[mine], answers.question[mine]
    valid, passes = ~np.isnan(values), int(np.nansum(values))
    p_pass = np.where(answers.positive, answers.p_yes, 1 - answers.p_yes)[mine]
    facts: dict[str, object] = {
        "asked": total,
        "answered": int(valid.sum()),
        "passed": passes,
        "unanswered": numbers[~valid].tolist(),
        "failed": numbers[values == 0].tolist(),
        "interval": [100 * passes / total, 100 * (passes + int((~valid).sum())) / total],
        "judge": answers.judge,
        "bank": answers.bank,
        "frames": answers.frames,
        "problems": list(answers.problems),
    }
    if not np.isnan(p_pass).any():
        facts["expected"] = 100 * float(p_pass.mean())  # the pass rate, each question weighed by its probability
    if rule == "upstream":
        rates = upstream_pass_rates(answers, facts)
        if dimension not in rates:
            return Unscored("unanswered", f"the judge's list has no answers under {dimension}", facts)
        value = 100 * rates[dimension]
    else:
        require_passed_canary(answers.canary, facts)
        if not valid.any():
            return Unscored("unanswered", f"none of the {total} questions has an answer", facts)
        value = 100 * float(values[valid].mean())
    units = Series(question=numbers[valid], value=values[valid])
    return Score(value, units=units if len(units) else None, facts=facts)


def register_vqa_metric(
    dimension: str, subject: str, *responds_to: str, blind_to: tuple[str, ...] = ("frozen camera",)
) -> Metric:
    """The metric of one dimension."""
    name = DIMENSIONS[dimension]

    def score_dimension(answers: JudgeAnswers, *, rule: str = "corrected") -> Score | Unscored:
        return score_pass_rate(answers, name, rule)

    return rules.percent_metric(
        id=f"memo_vqa_{dimension}", version=1, title=f"VQA: {name.lower()}", needs=(JudgeAnswers,),
        paper=f"{rules.PAPER} section 3.5", upstream=name, responds_to=responds_to,
        blind_to=(*blind_to, "what no question asks"),
        doc=f"Share of the questions about {subject} that pass, in percent.",
    )(score_dimension)  # fmt: skip


vqa_if = register_vqa_metric(
    "if", "following the prompt", "frozen camera", "wrong camera", "missing event", blind_to=()
)
vqa_ob = register_vqa_metric("ob", "object and background", "changed object", "changed background")
vqa_cm = register_vqa_metric("cm", "what goes on while unseen", "object vanishes", "teleport", "state reset")
vqa_pa = register_vqa_metric("pa", "physics", "impossible motion", "wrong light")
