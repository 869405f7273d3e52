"""Replies of judges, labelled by hand: what is no answer never becomes one, and no plain answer is lost.

`judge_replies/house.jsonl` was written with the rule of docs/judges.md in hand, before the parser;
`judge_replies/independent.jsonl` by somebody who had not seen the parser.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from revisit.judges.questions import Choice, Malformed, Many, Number, Question, Rating, Record, Schema, YesNo

FOLDER = Path(__file__).parent / "judge_replies"
HALVES = ("house", "independent")


def replies(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").split("\n") if line]


def schema_of(described: dict[str, Any]) -> Schema:
    kind = described["kind"]
    if kind == "rating":
        return Rating(described["low"], described["high"])
    if kind == "number":
        return Number(described["low"], described["high"])
    if kind == "choice":
        return Choice(tuple(described["options"]))
    if kind == "record":
        return Record({name: schema_of(field) for name, field in described["fields"].items()})
    if kind == "many":
        return Many(schema_of(described["item"]), described["count"], described["count"])
    assert kind == "yes_no"
    return YesNo()


def read(row: dict[str, Any]) -> Any:
    """The answer that is read, None where there is none."""
    try:
        return Question("q", "?", schema_of(row["schema"])).read(row["reply"])
    except Malformed:
        return None


def compare(half: str) -> tuple[int, int, list[str], list[str]]:
    """Replies with an answer, replies without, those that became one wrongly, and those that were lost."""
    rows = [(row, read(row)) for row in replies(half)]
    wrong = [
        f"{row['reply']!r} -> {value!r}, expected {row['answer']!r}"
        for row, value in rows
        if value is not None and (type(value) is bool, value) != (type(row["answer"]) is bool, row["answer"])
    ]
    lost = [f"{row['reply']!r}, expected {row['answer']!r}" for row, value in rows if value is None and row["answer"] is not None]
    answers = sum(row["answer"] is not None for row, _ in rows)
    return answers, len(rows) - answers, wrong, lost


@pytest.mark.parametrize("half", HALVES)
def test_what_is_no_answer_never_becomes_one(half):
    _, nothing, wrong, _ = compare(half)
    assert nothing >= 50 and not wrong, "\n".join(wrong)


@pytest.mark.parametrize("half", HALVES)
def test_no_plain_answer_is_lost(half):
    answers, _, _, lost = compare(half)
    assert answers >= 50 and not lost, "\n".join(lost)
