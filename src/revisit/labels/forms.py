"""Forms: what a page of ours sends, as an answer; what does not fit its item is refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from revisit.core import UsageError
from revisit.core.text import parse_json
from revisit.labels.items import ItemQuestion, LabelItem
from revisit.labels.label import BACK, CANNOT, GONE, JUDGEABLE, is_fraction_box
from revisit.labels.project import ShownClip
from revisit.labels.store import RaterAnswer

LONGEST = 4000  # characters of a comment or of a question
MOST_FIELDS, MOST_BOXES = 200, 20
SIDES = {"left": "a", "right": "b"}
Fields = Mapping[str, Sequence[str]]


def parse_fields(body: bytes) -> Fields:
    """The fields of a form."""
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise UsageError("this form is not from this application") from None


def field_value(fields: Fields, name: str) -> str:
    """The value of a field, or nothing."""
    return fields.get(name, [""])[0]


def parse_item_answer(
    item: LabelItem, rater: str, fields: Fields, swapped: bool, shots: Sequence[ShownClip]
) -> RaterAnswer:
    """The whole answer of a form."""
    answers: dict[str, str] = {}
    judged = field_value(fields, f"q.{JUDGEABLE}") or "both"
    for question in item.questions:
        if question.returned and judged != "both":
            answers[question.id] = CANNOT
        else:
            answers |= _parse_question_answer(item, question, fields, swapped)
    parts = _parse_marks_and_remarks(item, fields, shots)
    return RaterAnswer(item.id, rater, answers, **parts, swapped=swapped, seconds=seconds_on_task(fields))


def draft_json(item: LabelItem, fields: Fields) -> str:
    """What a half-filled form says, as it stands: fields of the item's own, not yet un-swapped."""
    names = {f"{part}.{question.id}" for question in item.questions for part in ("q", "text")}
    names |= {f"frame.{name}" for name in (GONE, BACK, "worst")} | {"boxes", "comment", "seconds"}
    own_fields = {name: [value[:LONGEST] for value in values[:40]] for name, values in fields.items() if name in names}
    return json.dumps({"form": own_fields}, ensure_ascii=False)


def fields_of_draft(item: LabelItem, draft: Mapping[str, Any], swapped: bool) -> dict[str, list[str]]:
    """The fields with which a page is opened again: of a draft, or of an answer that was taken back."""
    if "form" in draft:
        return {str(name): list(values) for name, values in draft["form"].items()}
    if not draft:
        return {}
    fields: dict[str, list[str]] = {}
    for question in item.questions:
        answer = draft["answers"].get(question.id)
        if question.several:
            fields[f"q.{question.id}"] = [kind for kind in question.answers if kind in draft["answers"]]
        elif answer is not None:
            fields[f"q.{question.id}"] = [answer_as_shown(item, answer, swapped)]
    fields |= {f"frame.{name}": [str(frame)] for name, frame in draft["frames"].items()}
    fields |= {f"text.{question_id}": [text] for question_id, text in draft["texts"].items()}
    return fields | {"boxes": [json.dumps(draft["boxes"])], "comment": [draft["comment"]]}


def seconds_on_task(fields: Fields) -> float:
    """Time on task as the page counted it; what cannot be is 0."""
    try:
        seconds = float(field_value(fields, "seconds") or 0)
    except ValueError:
        return 0.0
    return round(seconds, 1) if 0 <= seconds <= 24 * 3600 else 0.0


def _parse_question_answer(item: LabelItem, question: ItemQuestion, fields: Fields, swapped: bool) -> dict[str, str]:
    values = list(fields.get(f"q.{question.id}", ()))
    allowed = question.answers
    if question.several:
        if not values:
            raise UsageError("choose at least one answer; there is one for 'nothing of the kind'")
        if "none" in values and len(values) > 1:
            raise UsageError("'nothing goes wrong' cannot be combined with other answers")
        wrong = [value for value in values if value not in allowed]
        if wrong:
            raise UsageError(f"unknown answer {wrong[0][:40]!r}")
        return dict.fromkeys(values, "yes")
    value = SIDES.get(values[0], values[0]) if values and item.task == "pairwise" else values[0] if values else ""
    if not value:
        raise UsageError(f"this question has no answer yet: {question.text}")
    if value not in allowed or (values[0] in ("a", "b") and item.task == "pairwise"):
        raise UsageError(f"unknown answer {values[0][:40]!r}")
    if swapped:
        value = {"a": "b", "b": "a"}.get(value, value)
    return {question.id: value}


def answer_as_shown(item: LabelItem, answer: str, swapped: bool) -> str:
    """An answer as the page shows it."""
    if item.task != "pairwise" or answer not in ("a", "b"):
        return answer
    return "left" if (answer == "a") != swapped else "right"


def _parse_marks_and_remarks(item: LabelItem, fields: Fields, shots: Sequence[ShownClip]) -> dict[str, Any]:
    """Frames, boxes, new words and the comment, which go with the answers of a form."""
    frames = {}
    for name in (GONE, BACK, "worst"):
        text = field_value(fields, f"frame.{name}").strip()
        if text:
            if not text.isdecimal() or len(text) > 9 or int(text) >= shots[0].frames:
                raise UsageError(f"the frame {text[:20]!r} is not in this clip, which has {shots[0].frames} frames")
            frames[name] = int(text)
    parts: dict[str, Any] = {
        "frames": frames,
        "boxes": _parse_boxes(field_value(fields, "boxes")),
        "comment": _printable_within_limit(field_value(fields, "comment")),
        "texts": {},
    }
    if item.task == "marks":
        _require_consistent_marks(field_value(fields, "q.target"), parts)
    for question in item.questions:
        if item.task == "review":
            choice = field_value(fields, f"q.{question.id}")
            words = _printable_within_limit(field_value(fields, f"text.{question.id}"))
            if choice == "edit" and words in ("", question.text):
                raise UsageError("to edit a question, change its words")
            if choice in ("edit", "drop") and not parts["comment"]:
                raise UsageError("give a short reason")
            parts["texts"] |= {question.id: words} if choice == "edit" else {}
    return parts


def _require_consistent_marks(verdict: str, parts: Mapping[str, Any]) -> None:
    gone_frame, back = parts["frames"].get(GONE), parts["frames"].get(BACK)
    expected = {"never hidden": (False, False), "hidden, returned": (True, True), "hidden, not returned": (True, False)}
    if verdict in expected and (gone_frame is not None, back is not None) != expected[verdict]:
        raise UsageError(f"“{verdict}” does not fit the marked frames")
    if gone_frame is not None and back is not None and gone_frame >= back:
        raise UsageError("the target must disappear before it returns")
    if verdict in expected and not parts["boxes"]:
        raise UsageError("draw a box around the target in the first frame")


def _parse_boxes(text: str) -> list[dict[str, Any]]:
    try:
        entries = parse_json(text) if text else []
        if not isinstance(entries, list) or len(entries) > MOST_BOXES:
            raise ValueError
        boxes: list[dict[str, Any]] = []
        for entry in entries:
            box = [round(float(value), 4) for value in entry["box"]]
            if not is_fraction_box(box):
                raise ValueError
            name = _printable_within_limit(str(entry.get("name") or "target"))[:200]
            boxes.append({"name": name, "frame": int(entry.get("frame", 0)), "box": box})
        return boxes
    except UsageError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise UsageError("draw the box from one corner to the other, within the picture") from None


def _printable_within_limit(text: str) -> str:
    if len(text) > LONGEST:
        raise UsageError(f"a text may have at most {LONGEST} characters")
    return "".join(c for c in text.replace("\r\n", "\n").strip() if c.isprintable() or c in "\n\t")
