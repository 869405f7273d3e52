"""The question pipeline: from a prompt and a first frame to the questions that a clip is scored with.

1. A judge writes 24 questions (six per dimension, three of each polarity) from the prompt and the first frame.
2. It answers them about the true clip; what the true clip does not pass is dropped.
3. It answers the rest about a clip that is known to fail, without and with a hint at what is wrong; what it judges
   differently is dropped. Without such a clip this step is left out, and said so.
4. Where a dimension has fewer than two left, further questions are asked for, in at most `rounds` rounds.
5. A person reviews what is left (`review_sheet`, `read_reviews`); `revisit eval --judge` scores clips with it.

The filters are those of `questions`. A question without a valid answer is dropped, never counted as a no.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from revisit.core import MediaError, RevisitError
from revisit.evidence.answers import NO, UNANSWERED, YES, Question
from revisit.judges.asker import Asker
from revisit.judges.asking import Frames
from revisit.judges.protocols.banks import asked, verdict
from revisit.judges.protocols.memobench import hinted, read_questions, write_questions
from revisit.suites.memobench.questions import (
    Bank,
    Judgement,
    Review,
    csv_text,
    failure_filter,
    ground_truth_filter,
    thin_dimensions,
)

CHECKS = ("unambiguous", "right_polarity", "answerable")
SHEET = ("ID", "Dimension", "Polarity", "Question", "Ground truth", "Failure", "Failure with hint", *CHECKS)
WORDS = {YES: "yes", NO: "no", UNANSWERED: ""}


@dataclass(frozen=True)
class Shown:
    """What the judge sees of one clip: its first frame, the true clip, and one that is known to fail, if there is."""

    first: Frames
    truth: Frames
    failure: Frames | None = None
    hint: str = ""


def make_bank(asker: Asker, scene: str, number: int, prompt: str, shown: Shown, *, rounds: int = 3) -> Bank:
    """The bank of one clip, made by a judge."""
    bank = Bank(scene, number, (), (), (), (), ())
    for _ in range(rounds):
        wanted = thin_dimensions(bank.final)
        if not wanted:
            break
        new = _written(asker, prompt, shown.first, bank, wanted)
        truth = judged(asker, shown.truth, new)
        passed = ground_truth_filter(new, truth)
        failure = second = ()  # type: tuple[Judgement, ...]
        final = passed
        if shown.failure is not None:
            failure = judged(asker, shown.failure, passed)
            second = judged(asker, shown.failure, passed, shown.hint)
            final = failure_filter(passed, failure, second)
        bank = Bank(
            scene,
            number,
            bank.start + new,
            bank.truth + truth,
            bank.failure + failure,
            bank.hinted + second,
            bank.final + final,
        )
    return bank


def judged(asker: Asker, frames: Frames, questions: Sequence[Question], hint: str = "") -> tuple[Judgement, ...]:
    """The judge's answers about one clip, by polarity; questions without a valid answer are left out."""
    made = []
    for question, answer in zip(questions, asker.ask(frames, asked(questions, hinted(hint))), strict=True):
        if answer.status == "failed":
            raise RevisitError(f"question {question.id} could not be asked: {answer.reason}")
        if (said := verdict(answer)) != UNANSWERED:
            passes = said == (YES if question.positive else NO)
            made.append(Judgement(question, said, passes, "" if answer.p_yes is None else f"p_yes {answer.p_yes:.3f}"))
    return tuple(made)


def _written(asker: Asker, prompt: str, first: Frames, bank: Bank, wanted: Mapping[str, int]) -> tuple[Question, ...]:
    """New questions; in later rounds only those of the dimensions that are short of them."""
    answer = asker.ask(first, [write_questions(prompt, [question.text for question in bank.start])])[0]
    if answer.status != "answered":
        raise RevisitError(f"the judge wrote no valid list of questions: {answer.reason}")
    offset = max((question.id for question in bank.start), default=0)
    return tuple(
        replace(question, id=question.id + offset)
        for question in read_questions(answer.value)
        if question.dimension in wanted
    )


def review_sheet(bank: Bank) -> str:
    """A CSV for a person: each final question, what the judge said of the clips, and three checks to fill in."""

    def said(stage: Sequence[Judgement]) -> dict[int, str]:
        return {one.question.id: WORDS[one.answer] for one in stage}

    stages = [said(bank.truth), said(bank.failure), said(bank.hinted)]
    rows = [
        [
            str(question.id),
            question.dimension,
            "positive" if question.positive else "negative",
            question.text,
            *(stage.get(question.id, "") for stage in stages),
            *("" for _ in CHECKS),
        ]
        for question in bank.final
    ]
    return csv_text(SHEET, rows)


def read_reviews(text: str) -> dict[int, Review]:
    """The checks of a sheet that a person filled in with yes or no; rows without any are not reviewed."""
    found = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        given = [(row.get(name) or "").strip().lower() for name in CHECKS]
        if not any(given):
            continue
        number = (row.get("ID") or "").strip()
        if not number.isdecimal() or any(word not in ("yes", "no") for word in given):
            raise MediaError(f"question {number or '?'} of the sheet: fill in yes or no under {', '.join(CHECKS)}")
        found[int(number)] = Review(*(word == "yes" for word in given))
    return found
