"""Labels: what people say is the right answer to a question about a clip, as CSV or JSON lines.

docs/judge-calibration.md describes the columns. Rows with the same clip and question are several people's: the most
frequent label counts, and where there is none the question is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.core.text import convert_read_errors, parse_numbered_json_lines
from revisit.judges.questions import Choice, Malformed, Question, Rating, Schema, YesNo
from revisit.media.text_files import csv_dict_reader
from revisit.stats.agreement import most_frequent_vote

KNOWN = ("clip", "question", "label", "form", "subset", "polarity", "pair", "rater", "about")


@dataclass(frozen=True)
class JudgeLabel:
    """A question about a clip and its right answer."""

    clip: Path
    question: Question
    right: Any  # True or False, a whole number, or a word, by the question's schema
    subset: str = ""
    polarity: str = ""
    pair: str = ""


@dataclass(frozen=True)
class JudgeLabels:
    """The questions of a file that have a right answer, and how many have none because people disagree."""

    rows: tuple[JudgeLabel, ...]
    disputed: int = 0
    raters: Mapping[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)


def load_judge_labels(path: Path) -> JudgeLabels:
    """The labels of a CSV or JSON lines file."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected labels as .csv or .jsonl")
    with convert_read_errors(path, "a file of labels"):
        text = path.read_text(encoding="utf-8-sig")
        is_csv = path.suffix.lower() == ".csv"
        rows = list(enumerate(csv_dict_reader(text), 2) if is_csv else parse_numbered_json_lines(text))
        if not rows:
            raise UsageError(f"{path}: no labels found; expected rows with clip, question and label")
        every = [_parse_label_row(row, path, number) for number, row in rows]
    groups = group_items(every, lambda label: (str(label.clip), label.question.digest))
    rows_with_answer: list[JudgeLabel] = []
    for labels in groups.values():
        right = most_frequent_vote([label.right for label in labels])
        rows_with_answer += [label for label in labels if right is not None and label.right == right][:1]
    raters = {key: tuple(label.right for label in labels) for key, labels in groups.items() if len(labels) > 1}
    return JudgeLabels(tuple(rows_with_answer), len(groups) - len(rows_with_answer), raters)


def schema_from_form(form: str) -> Schema:
    """The schema that a form names: yes-no, a range such as 1-5, or words to choose from."""
    low, dash, high = form.partition("-")
    if form in ("", "yes-no"):
        return YesNo()
    if dash and low.isdecimal() and high.isdecimal() and int(low) < int(high):
        return Rating(int(low), int(high))
    options = tuple(option.strip() for option in form.split(",") if option.strip())
    if len(options) < 2:
        raise UsageError(f"form must be yes-no, a range such as 1-5, or words such as red,green,blue, not {form!r}")
    return Choice(options)


def _parse_label_row(row: Any, path: Path, number: int) -> JudgeLabel:
    where = f"{path}, line {number}"
    if not isinstance(row, dict):
        raise UsageError(f"{where}: expected a JSON object with clip, question and label")
    values = {str(name).strip(): value for name, value in row.items() if value not in (None, "")}
    missing = [name for name in ("clip", "question", "label") if name not in values]
    unknown = sorted(set(values) - set(KNOWN))
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"unknown column {unknown[0]!r}"
        raise UsageError(f"{where}: {what}; the columns are {', '.join(KNOWN)}")
    polarity = str(values.get("polarity", ""))
    if polarity not in ("", "positive", "negative"):
        raise UsageError(f"{where}: polarity must be positive or negative, not {polarity!r}")
    about = values.get("about", {})
    if not isinstance(about, dict):
        raise UsageError(f"{where}: `about` must be a JSON object, which is only possible in a .jsonl file")
    try:
        schema = schema_from_form(str(values.get("form", "yes-no")))
        right = schema.check(values["label"])
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    except Malformed as error:
        raise UsageError(f"{where}: the label does not fit the form: {error}") from None
    question = Question(f"label.{number}", str(values["question"]).strip(), schema, about)
    subset, pair = str(values.get("subset", "")), str(values.get("pair", ""))
    return JudgeLabel(path.parent / str(values["clip"]), question, right, subset, polarity, pair)
