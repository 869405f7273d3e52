"""Banks: yes-or-no questions with a dimension and a polarity, each asked in a call of its own.

A positive question describes what should be seen, a negative one a failure; the judge is not told which is which.
`together` asks all questions of a clip in one call, as MemoBench's public script does: the judge is told the polarities
and replies with a table (ID, Dimension, Answer, Verdict, Reasoning), of which the answers count.
A case brings its questions along (MemoBench); WRBench's probes (`wrbench`) are the same for all cases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from revisit.core import observer
from revisit.evidence import answers as bank
from revisit.evidence.answers import (
    NO,
    UNANSWERED,
    YES,
    JudgeAnswers,
    answers_from,
    bank_digest,
    question_number,
    questions_in,
)
from revisit.evidence.judged import JudgeFrames
from revisit.judges.asking import Answer, Frames, Talk
from revisit.judges.questions import Choice, Malformed, Many, Question, Rating, Record, Schema, Text

Kind = TypeVar("Kind", bound=JudgeAnswers)


def asked(questions: Sequence[bank.Question], context: str = "") -> list[Question]:
    """The questions of a bank as a judge is asked them."""
    return [Question(f"question.{one.id}", f"{context}{one.text}") for one in questions]


def answered(kind: type[Kind], questions: Sequence[bank.Question], answers: Sequence[Answer], frames: str) -> Kind:
    """A bank with its answers, as evidence."""
    return kind(
        question=np.array([one.id for one in questions], np.int64),
        dimension=tuple(one.dimension for one in questions),
        positive=np.array([one.positive for one in questions], bool),
        answer=np.array([verdict(answer) for answer in answers], np.int8),
        p_yes=np.array([math.nan if answer.p_yes is None else answer.p_yes for answer in answers], float),
        judge=judge_of(answers),
        frames=frames,
        bank=bank_digest(questions),
        text=tuple(one.text for one in questions),
        problems=problems([f"question {one.id}" for one in questions], answers),
    )


def verdict(answer: Answer) -> int:
    """YES, NO or UNANSWERED."""
    return UNANSWERED if answer.status != "answered" else YES if answer.value else NO


def judge_of(answers: Sequence[Answer]) -> str:
    """The model that answered, as it calls itself."""
    return next((answer.model for answer in answers if answer.model), "")


def problems(names: Sequence[str], answers: Sequence[Answer]) -> tuple[str, ...]:
    """A sentence for every question without a valid answer."""
    pairs = zip(names, answers, strict=True)
    return tuple(
        f"{name} has no valid answer: {answer.reason}" for name, answer in pairs if answer.status != "answered"
    )


ROW = Record(
    {
        "ID": Rating(1, 9999),
        "Dimension": Text(80),
        "Answer": Choice(("Yes", "No")),
        "Verdict": Choice(("Pass", "Fail")),
        "Reasoning": Text(1000),
    }
)


@dataclass(frozen=True)
class AnswerTable(Many):
    """A row per question; what a row lacks is told by `answers_from`, so that one bad row does not cost the others."""

    item: Schema = ROW

    def check(self, value: Any) -> list[Any]:
        if not isinstance(value, list) or not any(question_number(row) is not None for row in value):
            raise Malformed(f"expected {self.says()}")
        return value


def table_question(questions: Sequence[bank.Question], wording: str = "", **more: str) -> Question:
    """All questions of a bank as one, in our words or in the user's, whose {questions} is the list as JSON."""
    listed = [
        {
            "ID": one.id,
            "Dimension": one.dimension,
            "Dimension Polarity": "Positive" if one.positive else "Negative",
            "Question": one.text,
        }
        for one in questions
    ]
    said = {"questions": json.dumps(listed, ensure_ascii=False), **more}
    schema = AnswerTable(at_least=len(questions), at_most=len(questions))
    return Question("vqa.table", filled(wording or TABLE, said), schema)


TABLE = (
    "These are questions about the video, as JSON: {questions}\n"
    "A question with positive polarity asks about what should be seen: yes passes, no fails. One with negative "
    "polarity describes a fault: yes fails, no passes. Look at the video from the first to the last frame. Reply with "
    "a JSON list that has one object for each question: its ID and Dimension as they are given, Answer (Yes or No), "
    "Verdict (Pass or Fail), and Reasoning, a sentence on what the video shows."
)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A wording with its {names} replaced; other braces stay as they are."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def table_answers(questions: Sequence[bank.Question], answer: Answer, frames: str = "") -> JudgeAnswers:
    """What a table answers; every question unanswered where there is no table."""
    if answer.status == "answered":
        return answers_from(questions, answer.value, judge=answer.model, frames=frames)
    return answered(JudgeAnswers, questions, [answer] * len(questions), frames)


@observer(id="judge.vqa", version=1, kind="judge", makes=JudgeAnswers, shows=JudgeFrames, inputs=("annotations",))
def vqa(frames: Frames, annotations: Mapping[str, Any], *, together: bool = False) -> Talk:
    """A judge's answers to the questions that come with the case (MemoBench); `together`: in one call, as a table."""
    questions = questions_in(annotations)
    if together and questions:
        answers = yield [table_question(questions, str((annotations.get("vqa_wording") or {}).get("judge", "")))]
        return table_answers(questions, answers[0], frames.digest)
    answers = (yield asked(questions)) if questions else []
    return answered(JudgeAnswers, questions, answers, frames.digest)
