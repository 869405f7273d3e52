"""Banks: yes-or-no questions with a dimension and a polarity, each asked in a separate call.

A positive question describes what should be seen, a negative one a failure; the judge is not told which is which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.evidence.judged import NO, UNANSWERED, YES, BankQuestion, JudgeAnswers, bank_digest
from revisit.judges.protocol import JudgeAnswer
from revisit.judges.questions import Question

Kind = TypeVar("Kind", bound=JudgeAnswers)


def load_package_bank(package: str, file_name: str) -> tuple[BankQuestion, ...]:
    """The questions of a YAML file that came with a package."""
    rows = read_package_yaml(package, file_name)
    return bank_questions_from_rows([{**row, "answer": yes_no_or_empty(row)} for row in rows])


def bank_questions_from_rows(rows: Iterable[Mapping[str, str]], first: int = 1) -> tuple[BankQuestion, ...]:
    """Questions with a dimension, the right answer (yes or no) and a text, as a bank that is numbered from `first`."""
    numbered = enumerate(rows, first)
    return tuple(BankQuestion(k, row["dimension"], row["answer"] == "yes", row["text"]) for k, row in numbered)


def yes_no_or_empty(row: object) -> str:
    """The right answer of a question in a YAML file, yes or no; empty where it says neither."""
    answer = row.get("answer") if isinstance(row, dict) else None
    answer = {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else answer  # as YAML reads yes and no
    return str(answer) if answer in ("yes", "no") else ""


def judge_questions_of_bank(questions: Sequence[BankQuestion], context: str = "") -> list[Question]:
    """The questions of a bank as a judge is asked them."""
    return [Question(f"question.{one.id}", f"{context}{one.text}") for one in questions]


def make_bank_evidence(
    kind: type[Kind], questions: Sequence[BankQuestion], answers: Sequence[JudgeAnswer], frames_digest: str
) -> Kind:
    """A bank with its answers, as evidence."""
    return kind(
        question=np.array([one.id for one in questions], np.int64),
        dimension=tuple(one.dimension for one in questions),
        positive=np.array([one.positive for one in questions], bool),
        answer=np.array([yes_no_code(answer) for answer in answers], np.int8),
        p_yes=np.array([math.nan if answer.p_yes is None else answer.p_yes for answer in answers], float),
        judge=first_model_name(answers),
        frames=frames_digest,
        bank=bank_digest(questions),
        text=tuple(one.text for one in questions),
        problems=unanswered_sentences([f"question {one.id}" for one in questions], answers),
    )


def yes_no_code(answer: JudgeAnswer) -> int:
    """YES, NO or UNANSWERED."""
    return UNANSWERED if answer.status != "answered" else YES if answer.value else NO


def first_model_name(answers: Sequence[JudgeAnswer]) -> str:
    """The model that answered, as it calls itself."""
    return next((answer.model for answer in answers if answer.model), "")


def unanswered_sentences(names: Sequence[str], answers: Sequence[JudgeAnswer]) -> tuple[str, ...]:
    """A sentence for every question without a valid answer."""
    pairs = zip(names, answers, strict=True)
    return tuple(
        f"{name} has no valid answer: {answer.reason}" for name, answer in pairs if answer.status != "answered"
    )


def fill_template(text: str, values: Mapping[str, str]) -> str:
    """A wording with its {names} replaced; other braces stay as they are."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
