"""Imports a judge's answers to yes-or-no questions about a clip from a file.

Formats: a results CSV of the public MemoBench script (columns scene, video_id, Evaluation, ...), a JSON list of
objects with ID and Answer, an object with such a list under `answers` and the names `judge` and `frames`, or JSON
lines of such objects. Rules for broken answers: docs/memobench-vqa.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import MediaError, observer
from revisit.core.text import parse_json
from revisit.evidence.judged import (
    BankQuestion,
    JudgeAnswers,
    case_questions,
    entry_question_number,
    find_json_in_reply,
    judge_answers_from_entries,
)
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import csv_dict_reader, read_text

MOST_BYTES = 16 << 20
EXPECTED = 'a list of objects with "ID" and "Answer" (Yes or No), or a results CSV with such a list under Evaluation'


@observer(
    id="import.vqa_answers", version=2, kind="file", makes=JudgeAnswers, artifact="vqa_answers",
    inputs=("annotations",), sets=("lite",),
)  # fmt: skip
def vqa_answers(path: Path, annotations: Mapping[str, object]) -> JudgeAnswers:
    """The answers in a file, for the questions of the case or, where it has none, for those that the file echoes."""
    with raise_media_errors_naming_file(path):
        entries, judge, frames = read_answer_entries(path)
        questions = case_questions(annotations) or questions_from_answer_entries(entries)
    return judge_answers_from_entries(questions, entries, judge=judge, frames=frames)


def read_answer_entries(path: Path) -> tuple[Sequence[Any], str, str]:
    """The entries of a file of answers, unchecked, who gave them, and the digest of the frames they are about."""
    text, what = read_text(path, MOST_BYTES), "it"
    name, kind = f"answers in {path.suffix.removeprefix('.') or 'a file'}", path.suffix.lower()
    if kind == ".csv":
        rows = list(csv_dict_reader(text))
        if len(rows) != 1 or not rows[0].get("Evaluation"):
            raise MediaError(f"it has {len(rows)} rows; expected one row with the judge's list under Evaluation")
        text, what = rows[0]["Evaluation"], "its Evaluation"
    try:
        lines = kind in (".jsonl", ".ndjson")
        content = [parse_json(line) for line in text.split("\n") if line.strip()] if lines else find_json_in_reply(text)
    except ValueError as error:
        raise MediaError(f"{what} is not JSON ({error}); expected {EXPECTED}") from None
    if isinstance(content, dict) and isinstance(content.get("answers"), list):
        return content["answers"], str(content.get("judge") or name), str(content.get("frames") or "")
    if not isinstance(content, list):
        raise MediaError(f"{what} is a {type(content).__name__}; expected {EXPECTED}")
    return content, name, ""


def questions_from_answer_entries(entries: Sequence[Any]) -> tuple[BankQuestion, ...]:
    """The questions as the entries echo them; refused unless each says its number, dimension and polarity."""
    questions: dict[int, BankQuestion] = {}
    for position, entry in enumerate(entries, 1):
        number = entry_question_number(entry)
        polarity = entry.get("Dimension Polarity") if isinstance(entry, dict) else None
        if number is None or polarity not in ("Positive", "Negative") or not entry.get("Dimension"):
            raise MediaError(
                f"entry {position} lacks ID, Dimension or Dimension Polarity, and no question bank was given that has "
                "them; give the folder of the bank"
            )
        question = BankQuestion(number, str(entry["Dimension"]), polarity == "Positive", str(entry.get("Question", "")))
        questions.setdefault(number, question)
    return tuple(questions.values())
