"""MemoBench (arXiv 2606.27537): questions about a clip, written by a judge from the prompt and the first frame.

Twenty-four questions, six in each of four dimensions, half of each positive and half negative, so that a judge who
always says yes passes half of them. What is kept of them is decided by the suite's own filters
(`revisit.suites.memobench.question_bank`).

Our words are our own, so numbers compare with published ones in kind only. Users may give words of theirs in a file
(docs/memobench-vqa.md). Whoever has upstream's repository may ask with its words: `wording_from_repository` takes them
out of its script, and the file it makes stays with the user.

A clip's questions are asked one by one, or all in one call, as the public script does (`together`): the judge is told
the polarities and replies with a table (ID, Dimension, Answer, Verdict, Reasoning), of which the answers count.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from revisit.core import UsageError, observer
from revisit.core.text import read_package_yaml, read_yaml_file
from revisit.evidence import judged as bank
from revisit.evidence.judged import (
    JudgeAnswers,
    JudgeFrames,
    case_questions,
    judge_answers_from_entries,
)
from revisit.judges.banks import fill_template, judge_questions_of_bank, make_bank_evidence
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import Choice, JsonObject, Malformed, Many, Question, Rating, Schema, Text

PLACES = {"questions": ("prompt",), "judge": ("questions",), "hinted": ("questions", "hint")}  # what each must hold
SCRIPT = "llm-vqa.py"
# Function of the public script whose prompt is ours under this name, and its variables -> ours.
FUNCTIONS = {"questions": "generate_questions", "judge": "evaluate_video", "hinted": "evaluate_video_with_hint"}
VARIABLES = {"generation_prompt": "prompt"}
MOST_BYTES = 1 << 20

PER_DIMENSION = 6
WORDS = read_package_yaml(__package__, "questions.yaml")
FOCUS: Mapping[str, str] = WORDS["focus"]
COUNT = PER_DIMENSION * len(FOCUS)
ABOUT = Choice(tuple(FOCUS))
NEW = JsonObject(
    {"id": Rating(1, COUNT), "dimension": ABOUT, "polarity": Choice(("positive", "negative")), "question": Text(300)}
)
PUBLIC = JsonObject(
    {
        "ID": Rating(1, 999),
        "Dimension": ABOUT,
        "Dimension Polarity": Choice(("Positive", "Negative")),
        "Question": Text(500),
    }
)


@dataclass(frozen=True)
class NewQuestions(Many):
    """Twenty-four questions with numbers from 1, six per dimension, three of each polarity."""

    item: Schema = NEW
    at_least: int = COUNT
    at_most: int = COUNT

    def check(self, value: Any) -> list[Any]:
        entries = super().check(value)
        if sorted(one["id"] for one in entries) != list(range(1, COUNT + 1)):
            raise Malformed(f"the ids must be the numbers from 1 to {COUNT}, each once")
        counts = Counter((one["dimension"], one["polarity"]) for one in entries)
        for name, polarity in product(FOCUS, ("positive", "negative")):
            if (count := counts[name, polarity]) != PER_DIMENSION // 2:
                raise Malformed(f"{name} has {count} {polarity} questions; expected {PER_DIMENSION // 2}")
        if len({one["question"].lower() for one in entries}) < COUNT:
            raise Malformed("a question is asked twice; all must differ")
        return entries


def question_writing_request(prompt: str, earlier_questions: Sequence[str] = (), wording: str = "") -> Question:
    """The request for a bank of questions, in our words or in the user's.

    `earlier_questions` are earlier questions, of which no more are wanted; our words say so.
    """
    if wording:
        return Question("memobench.questions", wording.replace("{prompt}", prompt.strip()), PublicQuestions())
    focus = "\n".join(f"- {name}: {what}" for name, what in FOCUS.items())
    text = WORDS["write"].format(prompt=prompt.strip(), focus=focus, count=PER_DIMENSION, half=PER_DIMENSION // 2)
    if earlier_questions:
        text += "\n".join(["\nDo not repeat any of these:", *(f"- {one}" for one in earlier_questions)])
    return Question("memobench.questions", text, NewQuestions())


@dataclass(frozen=True)
class PublicQuestions(Many):
    """Questions as the public script asks for them: ID, Dimension, Dimension Polarity, Question."""

    item: Schema = PUBLIC
    at_least: int = len(FOCUS)
    at_most: int = 4 * COUNT

    def check(self, value: Any) -> list[Any]:
        entries = super().check(value)
        if len({one["ID"] for one in entries}) < len(entries):
            raise Malformed("an ID occurs twice; each question needs its own")
        names = {"ID": "id", "Dimension": "dimension", "Dimension Polarity": "polarity", "Question": "question"}
        plain = [{ours: one[theirs] for theirs, ours in names.items()} for one in entries]
        return [{**one, "polarity": one["polarity"].lower()} for one in plain]


def questions_from_written_answer(value: Sequence[Mapping[str, Any]]) -> tuple[bank.BankQuestion, ...]:
    """The questions of a valid answer, by number."""
    questions = [
        bank.BankQuestion(one["id"], one["dimension"], one["polarity"] == "positive", one["question"]) for one in value
    ]
    return tuple(sorted(questions, key=lambda question: question.id))


ROW = JsonObject(
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
    """A row per question; `judge_answers_from_entries` tells what a row lacks, so that one bad row costs no other."""

    item: Schema = ROW

    def check(self, value: Any) -> list[Any]:
        if not isinstance(value, list) or not any(bank.entry_question_number(row) is not None for row in value):
            raise Malformed(f"expected {self.says()}")
        return value


def ask_all_questions_in_one_table(
    questions: Sequence[bank.BankQuestion], wording: str = "", **fields: str
) -> Question:
    """All questions of a bank as one, in our words or in the user's, whose {questions} is the list as JSON."""
    values = {"questions": json.dumps([one.as_public_bank_row() for one in questions], ensure_ascii=False), **fields}
    schema = AnswerTable(at_least=len(questions), at_most=len(questions))
    return Question("vqa.table", fill_template(wording or WORDS["table"], values), schema)


def judge_answers_from_table(
    questions: Sequence[bank.BankQuestion], answer: JudgeAnswer, frames: str = ""
) -> JudgeAnswers:
    """What a table answers; every question unanswered where there is no table."""
    if answer.status == "answered":
        return judge_answers_from_entries(questions, answer.value, judge=answer.model, frames=frames)
    return make_bank_evidence(JudgeAnswers, questions, [answer] * len(questions), frames)


@observer(id="judge.vqa", version=2, kind="judge", makes=JudgeAnswers, shows=JudgeFrames, inputs=("annotations",))
def ask_bank_questions(frames: Frames, annotations: Mapping[str, object], *, together: bool = False) -> JudgeDialogue:
    """A judge's answers to the questions that come with the case (MemoBench); `together`: in one call, as a table."""
    questions = case_questions(annotations)
    if together and questions:
        wording = annotations.get("vqa_wording")
        own = str(wording.get("judge", "")) if isinstance(wording, Mapping) else ""
        answers = yield [ask_all_questions_in_one_table(questions, own)]
        return judge_answers_from_table(questions, answers[0], frames.digest)
    answers = (yield judge_questions_of_bank(questions)) if questions else []
    return make_bank_evidence(JudgeAnswers, questions, answers, frames.digest)


def read_question_wording(path: Path) -> dict[str, str]:
    """The wordings of a file, each with the places that it needs."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; `revisit judge wording REPOSITORY` makes one")
    content = read_yaml_file(path)
    if not isinstance(content, dict) or not content or not all(isinstance(text, str) for text in content.values()):
        raise UsageError(f"{path}: expected texts under some of {', '.join(PLACES)}")
    for name, text in content.items():
        if name not in PLACES:
            raise UsageError(f"{path}: unknown wording {name!r}; choose from {', '.join(PLACES)}")
        missing = [place for place in PLACES[name] if f"{{{place}}}" not in text]
        if missing:
            raise UsageError(f"{path}: {name} does not say where {{{missing[0]}}} goes")
    return {str(name): text for name, text in content.items()}


def wording_from_repository(folder: Path) -> dict[str, str]:
    """The wordings of the public script in a copy of its repository. The script is read, not run."""
    scripts = sorted(folder.rglob(SCRIPT)) if folder.is_dir() else []
    if not scripts or scripts[0].stat().st_size > MOST_BYTES:
        raise UsageError(f"{folder}: there is no {SCRIPT} in it; expected a copy of MemoBench's repository")
    try:
        tree = ast.parse(scripts[0].read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        raise UsageError(f"{scripts[0]}: this Python file cannot be read") from None
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    texts = {}
    for ours, theirs in FUNCTIONS.items():
        parts = ast.walk(functions[theirs]) if theirs in functions else ()
        templates = [_f_string_template(part) for part in parts if isinstance(part, ast.JoinedStr)]
        texts[ours] = max(templates, key=len, default="").strip()  # the longest
        if not all(f"{{{place}}}" in texts[ours] for place in PLACES[ours]):
            raise UsageError(f"{scripts[0]}: no prompt was found in {theirs}(); is this the script of MemoBench?")
    return texts


def wording_as_yaml(texts: Mapping[str, str]) -> str:
    """The text of a file of wordings."""
    return yaml.safe_dump(dict(texts), sort_keys=False, allow_unicode=True, default_style="|")


def _f_string_template(node: ast.JoinedStr) -> str:
    """An f-string, its variables as {names}."""
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            parts.append("{" + VARIABLES.get(part.value.id, part.value.id) + "}")
    return "".join(parts)
