"""The question bank: files as the public benchmark writes them, and the filters that made them, as pure functions.

A clip's file `{scene}-{number}-questions.csv` has one row with five JSON lists: the questions as written, a judge's
answers about the true clip, about a clip known to fail, about the same clip with a hint at its failure, and the final
questions. Numbers are the only key: texts may differ between the lists. docs/memobench-vqa.md tells of the filters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from revisit.core import MediaError, UsageError
from revisit.core.text import parse_json
from revisit.datasets.clips import first_file
from revisit.evidence.judged import NO, YES, BankQuestion, find_json_in_reply, parse_whole_number, parse_yes_or_no
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import csv_text, read_csv_table
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import possible_bank_file_stems

STAGES = {
    "truth": "Evaluation on ground truth",
    "failure": "Evaluation on failure",
    "hinted": "Revised Evaluation on failure",
}
START, FINAL = "Start Questions", "Final questions"
COLUMNS = ("scene", "video_id", START, *STAGES.values(), FINAL)
CASE_COLUMNS = ("scene", "video_id", "hint", "folder", "Finished", "prompt")
LEAST_PER_DIMENSION = 2  # every dimension of every published final bank has at least two
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Judgement:
    """A judge's answer to one question about one clip, and the verdict it wrote beside it."""

    question: BankQuestion  # as the judge echoed it
    answer: int  # YES or NO
    verdict: bool  # Pass as written; it may contradict the answer
    reasoning: str = ""


@dataclass(frozen=True)
class Bank:
    """The questions about one clip and how they were chosen."""

    scene: str
    number: int
    start: tuple[BankQuestion, ...]
    truth: tuple[Judgement, ...]
    failure: tuple[Judgement, ...]
    hinted: tuple[Judgement, ...]
    final: tuple[BankQuestion, ...]


def ground_truth_filter(questions: Sequence[BankQuestion], truth: Iterable[Judgement]) -> tuple[BankQuestion, ...]:
    """The questions whose verdict on the true clip is Pass."""
    passed = {judged.question.id for judged in truth if judged.verdict}
    return tuple(question for question in questions if question.id in passed)


def failure_filter(
    questions: Sequence[BankQuestion], failure: Iterable[Judgement], hinted: Iterable[Judgement]
) -> tuple[BankQuestion, ...]:
    """The questions whose verdict on the failure clip is the same with and without the hint."""
    first = {judged.question.id: judged.verdict for judged in failure}
    second = {judged.question.id: judged.verdict for judged in hinted}
    return tuple(q for q in questions if q.id in first and first[q.id] == second.get(q.id))


def review_filter(questions: Sequence[BankQuestion], approved: Mapping[int, bool]) -> tuple[BankQuestion, ...]:
    """The questions that a person approved; refused while one of them has not been reviewed."""
    missing = [str(question.id) for question in questions if question.id not in approved]
    if missing:
        raise MediaError(f"question {', '.join(missing)} has no review; a review must say yes or no to each question")
    return tuple(question for question in questions if approved[question.id])


def thin_dimensions(questions: Iterable[BankQuestion]) -> dict[str, int]:
    """Dimensions with fewer questions than every published bank has, and how many: ask for more of these."""
    counts = Counter(question.dimension for question in questions)
    return {name: counts[name] for name in DIMENSIONS.values() if counts[name] < LEAST_PER_DIMENSION}


def find_bank_file(folder: Path, clip: str) -> Path | None:
    """The file of a clip's questions in a folder of the bank, or None."""
    return first_file(folder / f"{name}-questions.csv" for name in possible_bank_file_stems(clip))


def questions_as_dicts(questions: Iterable[BankQuestion]) -> list[dict[str, object]]:
    """Questions as a case carries them under `questions`."""
    return [asdict(question) for question in questions]


def read_bank(path: Path) -> Bank:
    """The bank of one clip, every fault named in one sentence."""
    with raise_media_errors_naming_file(path):
        _, rows = read_csv_table(path, COLUMNS, ", ".join(COLUMNS), MOST_BYTES)
        if len(rows) != 1:
            raise MediaError(f"it has {len(rows)} rows of data; a file of questions has one")
        row = rows[0]
        bank = Bank(
            scene=row["scene"],
            number=_parse_natural_number(row["video_id"], "video_id"),
            start=tuple(_parse_question(entry, START) for entry in _parse_json_objects(row[START], START)),
            final=tuple(_parse_question(entry, FINAL) for entry in _parse_json_objects(row[FINAL], FINAL)),
            **{stage: _parse_judgements(row[column], column) for stage, column in STAGES.items()},
        )
        _refuse_inconsistent_bank(bank)
    return bank


def write_bank(bank: Bank) -> str:
    """The text of a bank's file, with the line ends in it."""
    start, final = ([question.as_public_bank_row() for question in stage] for stage in (bank.start, bank.final))
    stages = [[_judgement_as_dict(judged) for judged in getattr(bank, stage)] for stage in STAGES]
    return csv_text(COLUMNS, [[bank.scene, str(bank.number), *map(json.dumps, (start, *stages, final))]])


def read_failure_hints(path: Path) -> dict[str, str]:
    """Clip -> what is known to be wrong with its failure clip, from failure-cases.csv."""
    with raise_media_errors_naming_file(path):
        _, rows = read_csv_table(path, CASE_COLUMNS, ", ".join(CASE_COLUMNS), MOST_BYTES)
    return {row["folder"]: row["hint"] for row in rows}


def _parse_natural_number(value: object, where: str) -> int:
    number = parse_whole_number(value)
    if number is None or number < 0:
        raise MediaError(f"{where} is {str(value)[:40]!r}; expected a whole number")
    return number


def _parse_json_objects(cell: str, column: str) -> list[dict[str, object]]:
    try:
        entries = find_json_in_reply(cell)
    except ValueError:
        raise MediaError(f"{column} is not JSON; expected a list of questions") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise MediaError(f"{column} is not a list of objects; expected a list of questions")
    return entries


def _parse_question(entry: Mapping[str, object], column: str) -> BankQuestion:
    number = _parse_natural_number(entry.get("ID"), f"an ID in {column}")
    where = f"{column}, question {number}"
    dimension = _require_word(entry, "Dimension", DIMENSIONS.values(), where)
    polarity = _require_word(entry, "Dimension Polarity", ("Positive", "Negative"), where)
    text = entry.get("Question")
    if not isinstance(text, str) or not text.strip():
        raise MediaError(f"{where}: it has no text under Question")
    return BankQuestion(number, dimension, polarity == "Positive", text)


def _require_word(entry: Mapping[str, object], name: str, words: Iterable[str], where: str) -> str:
    """What an entry has under a name, if it is one of these words."""
    value = entry.get(name)
    if value not in (*words,):
        raise MediaError(f"{where}: {name} is {str(value)[:40]!r}; expected {', '.join(words)}")
    return str(value)


def _parse_judgements(cell: str, column: str) -> tuple[Judgement, ...]:
    judgements = []
    for entry in _parse_json_objects(cell, column):
        question = _parse_question(entry, column)
        answer, where = parse_yes_or_no(entry.get("Answer")), f"{column}, question {question.id}"
        if answer not in (YES, NO):
            raise MediaError(f"{where}: Answer is {str(entry.get('Answer'))[:40]!r}; expected yes or no")
        verdict = _require_word(entry, "Verdict", ("Pass", "Fail"), where)
        judgements.append(Judgement(question, answer, verdict == "Pass", str(entry.get("Reasoning", ""))))
    return tuple(judgements)


def _refuse_inconsistent_bank(bank: Bank) -> None:
    """Refuse numbers that occur twice or appear from nowhere, and a dimension or polarity that changes on the way."""
    start = {question.id: question for question in bank.start}
    lists = {column: [one.question for one in getattr(bank, stage)] for stage, column in STAGES.items()}
    for column, questions in {START: bank.start, **lists, FINAL: bank.final}.items():
        twice = [str(number) for number, count in Counter(q.id for q in questions).items() if count > 1]
        if twice:
            raise MediaError(f"{column} has question {', '.join(twice)} more than once; each number may occur once")
        for question in questions:
            first = start.get(question.id)
            if first is None:
                raise MediaError(f"{column} has question {question.id}, which {START} does not have")
            if (question.dimension, question.positive) != (first.dimension, first.positive):
                raise MediaError(f"{column}, question {question.id}: dimension or polarity differs from {START}")


def _judgement_as_dict(judged: Judgement) -> dict[str, object]:
    return {
        **judged.question.as_public_bank_row(),
        "Answer": "Yes" if judged.answer == YES else "No",
        "Verdict": "Pass" if judged.verdict else "Fail",
        "Reasoning": judged.reasoning,
    }


# Number of a question -> what most reviewers say of it: `decision` (keep, edit or drop), and its new `text`.
Decisions = Mapping[str, Mapping[str, str]]


def read_review_decisions(path: Path) -> Mapping[str, Decisions]:
    """The reviews of a file, or of a folder with a reviews.json."""
    path = path / "reviews.json" if path.is_dir() else path
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        sound = all(isinstance(one["decision"], str) for clip in content.values() for one in clip.values())
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        sound = False
    if not sound or not content:
        raise UsageError(f"{path}: no reviews in it; `revisit labels export` writes them as reviews.json")
    decisions: Mapping[str, Decisions] = content
    return decisions


def write_reviewed_banks(folder: Path, reviews: Path, out: Path) -> list[str]:
    """Write the reviewed banks of all clips that were reviewed; say what became of each."""
    lines = []
    for clip, mine in sorted(read_review_decisions(reviews).items()):
        path = find_bank_file(folder, clip)
        if path is None:
            raise UsageError(f"{folder} has no bank of {clip}")
        bank = read_bank(path)
        final = []
        for question in bank.final:
            review = mine.get(str(question.id), {"decision": "keep"})
            if review["decision"] == "edit" and review.get("text"):
                question = replace(question, text=str(review["text"]))
            if review["decision"] != "drop":
                final.append(question)
        out.mkdir(parents=True, exist_ok=True)
        (out / path.name).write_bytes(write_bank(replace(bank, final=tuple(final))).encode())
        before = {question.id: question.text for question in bank.final}
        edited = sum(before[question.id] != question.text for question in final)
        thin = ", ".join(f"{name} {n}" for name, n in thin_dimensions(final).items())
        line = f"{clip}: {len(final)} of {len(bank.final)} questions kept, {edited} of them in new words"
        lines.append(line + (f"; too few left: {thin}" if thin else ""))
    return lines
