"""Judged: the pictures a judge is shown, and what it answers to questions about a clip.

Everything a judge says has four fields in common: `judge` (the model), `frames` (the digest of what it saw),
`canary` (the control questions about a picture that we add: "" not asked, "passed", or a sentence that says which one
the judge got wrong or left open) and `problems` (a sentence for every question without a valid answer).

A question has a number, a dimension and a polarity: a positive one describes what should be seen (yes passes), a
negative one describes a failure (no passes). Number, dimension and polarity come from the bank of questions and never
from what a judge echoes. A question without a usable answer is unanswered; that is not a no.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated, Any

import numpy as np

from revisit.core import Array, NoScore, digest, evidence

YES, NO, UNANSWERED = 1, 0, -1
AROUND = " \t\r\n.,;:!*_`'\"()[]"  # what may stand around a yes or a no
PASSED = "passed"  # the canary of a clip whose control questions were answered right


@evidence(id="judge_frames")
@dataclass(frozen=True)
class JudgeFrames:
    """The pictures a judge is shown, as JPEG files one after the other in `jpeg`."""

    index: Annotated[Array, "N"]  # frame numbers
    time: Annotated[Array, "N"]  # seconds
    jpeg: Annotated[Array, "bytes"]  # uint8
    offsets: Annotated[Array, "N + 1"]  # picture k is jpeg[offsets[k]:offsets[k + 1]]
    width: int
    height: int
    digest: str  # of the decoded frames, their times, and the size and quality of the pictures
    seconds: float  # length of the clip

    def picture(self, k: int) -> bytes:
        """The k-th picture as a JPEG file."""
        return self.jpeg[self.offsets[k] : self.offsets[k + 1]].tobytes()


def require_passed_canary(canary: str, facts: dict[str, object] | None = None) -> None:
    """NoScore where there is a reason not to use a judge's answers about this clip."""
    if canary not in ("", PASSED):
        raise NoScore("untrusted", f"the judge failed a control question: {canary}", facts)


@dataclass(frozen=True)
class BankQuestion:
    """One yes-or-no question of a bank."""

    id: int
    dimension: str
    positive: bool  # yes passes; otherwise no passes
    text: str

    def as_public_bank_row(self) -> dict[str, object]:
        """The question as files of public banks write it."""
        polarity = "Positive" if self.positive else "Negative"
        return {"ID": self.id, "Dimension": self.dimension, "Dimension Polarity": polarity, "Question": self.text}


@dataclass(frozen=True, kw_only=True)
class JudgedEvidence:
    """What a judge says of a clip, in the fields of those who ask it no bank of questions."""

    judge: str  # who answered: a model's name
    frames: str = ""  # digest of the frames the judge saw
    canary: str = ""  # control questions: "" not asked, "passed", or which one the judge got wrong (see above)
    problems: tuple[str, ...] = ()  # what was wrong with the reply, a sentence each


@evidence(id="judge_answers")
@dataclass(frozen=True)
class JudgeAnswers:
    """The answers to all questions of a bank about one clip, in the order of the bank."""

    question: Annotated[Array, "Q; each once"]  # numbers of the questions
    dimension: Annotated[tuple[str, ...], "Q"]  # what each question is about
    positive: Annotated[Array, "Q"]  # whether yes passes
    answer: Annotated[Array, "Q; -1 to 1"]  # YES, NO or UNANSWERED
    p_yes: Annotated[Array, "Q; 0 to 1"]  # the judge's probability of yes; nan where it gave none
    judge: str  # who answered: a model's name, or where the answers were read
    frames: str = ""  # digest of the frames the judge saw; "" where nobody recorded it
    bank: str = ""  # digest of the questions, see `bank_digest`
    text: tuple[str, ...] = ()  # (Q,) the questions, for people to read
    reply: str = ""  # the judge's own list of answers as JSON, if it wrote one: the `upstream` rule scores it
    problems: tuple[str, ...] = ()  # what was wrong with the reply, a sentence each
    canary: str = ""  # control questions: "" not asked, "passed", or which one the judge got wrong (see above)


def bank_digest(questions: Iterable[BankQuestion]) -> str:
    """A hash that is equal for equal questions in equal order."""
    return digest([asdict(question) for question in questions])


def judge_answers_from_entries(
    questions: Sequence[BankQuestion], entries: Sequence[Any], *, judge: str, frames: str = ""
) -> JudgeAnswers:
    """The answers in a judge's list of objects (ID, Answer, p_yes), by the rules of docs/memobench-vqa.md.

    Numbers may be written as text; the column may be called "Answer" or "Answer (Yes/No)"; a yes or a no may have
    punctuation around it. Entries with other numbers are passed over. A question that is missing, has another
    answer, or has two that differ is unanswered.
    """
    answers_by_question: dict[int, list[tuple[int, float]]] = {question.id: [] for question in questions}
    dimensions = {question.id: question.dimension for question in questions}
    messages: list[str] = []
    for position, entry in enumerate(entries, 1):
        number = entry_question_number(entry)
        if number is None:
            messages.append(f"entry {position} has no question number under ID; it was ignored")
        elif number not in answers_by_question:
            messages.append(f"entry {position} answers question {number}, which was not asked; it was ignored")
        else:
            answer, p_yes = _entry_answer_and_p_yes(entry)
            if answer == UNANSWERED:
                messages.append(f"question {number} is answered with neither yes nor no: {_entry_answer_text(entry)}")
            echoed = entry.get("Dimension", dimensions[number])
            if echoed != dimensions[number]:
                messages.append(f"question {number} is echoed under {str(echoed)[:40]!r}; the bank's dimension counts")
            answers_by_question[number].append((answer, p_yes))
    answers = np.full(len(questions), UNANSWERED, np.int8)
    p_yes_of = np.full(len(questions), np.nan)
    for row, question in enumerate(questions):
        entry_answers = answers_by_question[question.id]
        if not entry_answers:
            messages.append(f"question {question.id} was not answered")
        elif len({answer for answer, _ in entry_answers}) > 1:
            messages.append(
                f"question {question.id} has {len(entry_answers)} answers that differ; it counts as unanswered"
            )
        else:
            answers[row], p_yes_of[row] = entry_answers[0]
            if len(entry_answers) > 1:
                messages.append(f"question {question.id} has {len(entry_answers)} equal answers; they count once")
    return JudgeAnswers(
        question=np.array([question.id for question in questions], np.int64),
        dimension=tuple(question.dimension for question in questions),
        positive=np.array([question.positive for question in questions], bool),
        answer=answers,
        p_yes=p_yes_of,
        judge=judge,
        frames=frames,
        bank=bank_digest(questions),
        text=tuple(question.text for question in questions),
        reply=json.dumps(list(entries), ensure_ascii=False),
        problems=tuple(messages),
    )


def case_questions(annotations: Mapping[str, Any]) -> tuple[BankQuestion, ...]:
    """The questions that a case carries under `questions`, as `asdict` writes them; none if it carries none."""
    return tuple(BankQuestion(**question) for question in annotations.get("questions") or ())


def find_json_in_reply(text: str) -> Any:
    """The JSON value in a judge's reply: the whole of it, in a fenced block, or with prose around it.

    Where an object has two answers under one name, the last counts as in any JSON, and the other stays under the name
    with a space behind it, so that nobody takes it for one answer. Raises ValueError where there is no JSON, or a
    second list or object behind the first: nobody knows which one is meant.
    """
    candidates = [text.strip()]
    if "```" in text:
        block = text[text.find("\n", text.find("```")) + 1 : text.rfind("```")]
        candidates.append(block.strip())
    candidates += [text[start:] for start in sorted(at for at in (text.find("["), text.find("{")) if at >= 0)]
    decoder = json.JSONDecoder(object_pairs_hook=_keep_both_answers)
    for candidate in candidates:
        try:
            value, end = decoder.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        if candidate[:1] not in ("[", "{") and candidate[end:].strip():
            continue
        if _contains_json_object(candidate[end:]):
            raise ValueError("there are two lists or objects in it, and only one can be meant")
        return value
    raise ValueError(f"there is no JSON in it: {text.strip()[:60]!r}")


def _keep_both_answers(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; an answer that stands in it twice, differently, also under its name with a space behind it."""
    merged = dict(pairs)
    for name, value in pairs:
        if name.strip().lower().startswith("answer") and merged[name] != value:
            merged[f"{name} "] = value
    return merged


def _contains_json_object(text: str) -> bool:
    """Whether a text holds a JSON object, or a list of some."""
    for opening in islice(re.finditer(r"[{\[]", text), 1000):  # a file may be made of brackets
        try:
            value, _ = json.JSONDecoder().raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or (value and isinstance(value[0], dict)):
            return True
    return False


def parse_yes_or_no(answer: object) -> int:
    """YES or NO for a plain yes or no, with punctuation around it or as a truth value; else UNANSWERED."""
    if isinstance(answer, bool):
        return YES if answer else NO
    word = answer.strip(AROUND).lower() if isinstance(answer, str) else ""
    return {"yes": YES, "no": NO}.get(word, UNANSWERED)


def parse_whole_number(value: object) -> int | None:
    """The whole number that a value is, or is written as; None for anything else."""
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() and len(value.strip()) < 10 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def entry_question_number(entry: object) -> int | None:
    """The number of the question that an entry answers."""
    return parse_whole_number(dict(_lowercase_items(entry)).get("id")) if isinstance(entry, Mapping) else None


def _lowercase_items(entry: Mapping[str, object]) -> list[tuple[str, object]]:
    """Names and values of an entry; names in small letters may occur twice."""
    return [(str(name).strip().lower(), value) for name, value in entry.items()]


def _entry_answer_and_p_yes(entry: Mapping[str, object]) -> tuple[int, float]:
    """What an entry answers, and with which probability of yes."""
    columns = _lowercase_items(entry)
    p_yes = dict(columns).get("p_yes")
    answers = {parse_yes_or_no(value) for name, value in columns if name in ("answer", "answer (yes/no)")}
    answer = answers.pop() if len(answers) == 1 else UNANSWERED
    if isinstance(p_yes, int | float) and not isinstance(p_yes, bool) and 0 <= p_yes <= 1:
        return answer, float(p_yes)
    return answer, math.nan


def _entry_answer_text(entry: Mapping[str, object]) -> str:
    answers = [value for name, value in _lowercase_items(entry) if name.startswith("answer")]
    return repr(str(answers[0])[:40]) if answers else "no column Answer"
