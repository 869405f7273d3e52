"""Questions, and what a valid answer to each looks like.

A schema says three things: the JSON Schema that a server may enforce (`json`), the sentence that tells a judge
how to answer (`says`), and whether a value is valid (`check`). Schemas nest: a Record has named fields, Many is
a list. Nothing is guessed: a value that is not valid raises Malformed with the sentence why, and the question is
asked again. Where in a reply an answer may stand is told by `replies`; no words are looked for in prose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from revisit.core import UsageError, digest
from revisit.judges.replies import (
    Passage,
    candidate_passages,
    fold_wide_and_invisible,
    lines_and_sentences,
    parse_json_or_code_block,
    parse_json_unique_names,
    successively_unwrapped_forms,
)

JsonSchema = dict[str, object]


class Malformed(ValueError):
    """A reply that is no valid answer; the message says what a valid one looks like."""


@dataclass(frozen=True)
class YesNo:
    """True or False."""

    def json(self) -> JsonSchema:
        return {"type": "string", "enum": ["yes", "no"]}

    def says(self) -> str:
        return "yes or no"

    def check(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        word = next((form.lower() for form in _plain_forms_if_text(value) if form.lower() in ("yes", "no")), None)
        if word is None:
            raise Malformed(f"expected yes or no, got {_quote_shortened(value)}")
        return word == "yes"


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`."""

    low: float = 0.0
    high: float = 1.0

    def json(self) -> JsonSchema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}

    def says(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def check(self, value: Any) -> float:
        number = _parse_finite_number(value)
        if number is None or not self.low <= number <= self.high:
            raise Malformed(f"expected {self.says()}, got {_quote_shortened(value)}")
        return number


@dataclass(frozen=True)
class Rating(Number):
    """A whole number from `low` to `high`."""

    low: int = 1
    high: int = 5

    def json(self) -> JsonSchema:
        return {**super().json(), "type": "integer"}

    def says(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def check(self, value: Any) -> int:
        number = super().check(value)
        if number != int(number):
            raise Malformed(f"expected {self.says()}, got {_quote_shortened(value)}")
        return int(number)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    def json(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.options)}

    def says(self) -> str:
        return f"one of {', '.join(self.options)}"

    def check(self, value: Any) -> str:
        for form in _plain_forms_if_text(value):
            if form in self.options:
                return form
            similar = [one for one in self.options if _fold_case_and_spaces(one) == _fold_case_and_spaces(form)]
            if len(similar) == 1:
                return similar[0]
        raise Malformed(f"expected {self.says()}, got {_quote_shortened(value)}")


@dataclass(frozen=True)
class Text:
    """Some words."""

    at_most: int = 500

    def json(self) -> JsonSchema:
        return {"type": "string"}

    def says(self) -> str:
        return f"text of at most {self.at_most} characters"

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or not 0 < len(value.strip()) <= self.at_most:
            raise Malformed(f"expected {self.says()}, got {_quote_shortened(value)}")
        return value.strip()


@dataclass(frozen=True)
class Many:
    """A list of answers of one schema."""

    item: Schema
    at_least: int = 1
    at_most: int = 100

    def json(self) -> JsonSchema:
        return {"type": "array", "items": self.item.json(), "minItems": self.at_least, "maxItems": self.at_most}

    def says(self) -> str:
        count = str(self.at_least) if self.at_least == self.at_most else f"{self.at_least} to {self.at_most}"
        return f"a list of {count} items, each {self.item.says()}"

    def check(self, value: Any) -> list[Any]:
        if not isinstance(value, list) or not self.at_least <= len(value) <= self.at_most:
            received = f"a list of {len(value)}" if isinstance(value, list) else _quote_shortened(value)
            raise Malformed(f"expected {self.says()}; got {received}")
        return [self.item.check(item) for item in value]


@dataclass(frozen=True)
class JsonObject:
    """A JSON object with exactly these fields; fields that nobody asked for are left out."""

    fields: Mapping[str, Schema]

    def json(self) -> JsonSchema:
        return {
            "type": "object",
            "properties": {name: schema.json() for name, schema in self.fields.items()},
            "required": list(self.fields),
            "additionalProperties": False,
        }

    def says(self) -> str:
        fields = ", ".join(f'"{name}": {schema.says()}' for name, schema in self.fields.items())
        return f"a JSON object {{{fields}}}"

    def check(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Malformed(f"expected {self.says()}, got {_quote_shortened(value)}")
        missing = [name for name in self.fields if name not in value]
        if missing:
            raise Malformed(f"the field {missing[0]!r} is missing; expected {self.says()}")
        values = {}
        for name, schema in self.fields.items():
            try:
                values[name] = schema.check(value[name])
            except Malformed as error:
                raise Malformed(f"{name}: {error}") from None
        return values


Schema = YesNo | Number | Choice | Text | Many | JsonObject  # what a valid answer looks like


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


@dataclass(frozen=True)
class Question:
    """One thing to ask about some frames. `about` is for judges that read no prose; language models ignore it.

    Its identity is its text, its schema, `about` and `rules`: a question under another id is not paid for again.
    """

    id: str
    text: str
    schema: Schema = field(default_factory=YesNo)
    about: Mapping[str, object] = field(default_factory=dict)
    rules: str = ""  # what a language model is told before, where it is not shown frames but writes something

    @property
    def digest(self) -> str:
        rules = {"rules": self.rules} if self.rules else {}
        return digest({"text": self.text, "schema": self.schema.json(), "about": dict(self.about), **rules}, 24)

    def read(self, reply: str) -> Any:
        """The answer that a reply is.

        Parameters
        ----------
        reply
            What the judge wrote. Thoughts that end in `</think>` are passed over.

        Returns
        -------
        Any
            The answer in its plain form.

        Raises
        ------
        Malformed
            Where the reply is not exactly a valid answer, alone or behind an agreed marker (docs/judges.md).

        Examples
        --------
        >>> Question("sky", "Is it blue?").read("**Answer:** Yes.")
        True
        >>> Question("sky", "Is it blue?").read("There is no way to tell.")
        Traceback (most recent call last):
        ...
        revisit.judges.questions.Malformed: expected yes or no and nothing else, got 'There is no way to tell.'
        """
        return parse_answer_and_passage(self.schema, reply)[0]


def parse_answer_and_passage(schema: Schema, reply: str) -> tuple[Any, Passage]:
    """The answer that a reply is, and the passage that holds it and nothing else; Malformed where it is none."""
    last: Malformed | None = None
    for candidates in candidate_passages(reply, _answer_marker_names(schema)):
        try:
            values = [_parse_passage_value(schema, passage.text) for passage in candidates]
        except Malformed as error:
            last = error
            continue
        first = candidates[0]
        if all(value == values[0] for value in values) and not _has_other_answer_before(
            schema, values[0], first.before
        ):
            return values[0], first
        raise Malformed(
            f"expected {schema.says()} and nothing else, got more than one answer: {_quote_shortened(reply)}"
        )
    if last is None:
        raise Malformed(f"expected {schema.says()}, got an empty reply")
    if isinstance(schema, JsonObject | Many):
        raise last
    raise Malformed(f"expected {schema.says()} and nothing else, got {_quote_shortened(reply)}")


def _answer_marker_names(schema: Schema) -> Sequence[str]:
    """The names under which an answer may stand: `Answer: 4`, `{"answer": 4}`."""
    if isinstance(schema, Number):
        return ("answer", "rating", "score")
    return ("answer", "choice") if isinstance(schema, Choice) else ("answer",)


def _parse_passage_value(schema: Schema, text: str) -> Any:
    """The valid answer that a passage is."""
    if isinstance(schema, JsonObject | Many):
        try:
            value = parse_json_or_code_block(text)
        except ValueError:
            raise Malformed(
                f"expected {schema.says()} as JSON and nothing else, got {_quote_shortened(text)}"
            ) from None
        if isinstance(schema, Many) and isinstance(value, dict) and len(value) == 1:  # {"items": [...]}
            value = next(iter(value.values()))
        return schema.check(value)
    if isinstance(schema, Text):
        return schema.check(text)
    for form in successively_unwrapped_forms(text):
        if form.startswith("{"):
            return schema.check(_answer_in_json_object(form, _answer_marker_names(schema)))
    return schema.check({"true": True, "false": False}.get(text, text))


def _answer_in_json_object(text: str, names: Sequence[str]) -> Any:
    """The value of `{"answer": value}`, whatever else stands in the object. Another object answers nothing."""
    try:
        content = parse_json_unique_names(text)
    except ValueError:
        raise Malformed(f"expected an object with an answer, got {_quote_shortened(text)}") from None
    markers = {*names, *(f"final {name}" for name in names)}
    values = [value for name, value in content.items() if str(name).strip().lower().replace("_", " ") in markers]
    if not values or any(value != values[0] for value in values):
        raise Malformed(f"expected an object with one answer, got {_quote_shortened(text)}")
    return values[0]


def _has_other_answer_before(schema: Schema, value: Any, before: str) -> bool:
    """Whether another answer stands by itself in what a judge wrote before its answer."""
    if isinstance(schema, JsonObject | Many | Text):
        return False
    for statement in lines_and_sentences(before):
        try:
            if schema.check(statement) != value:
                return True
        except Malformed:
            continue
    return False


def _plain_forms_if_text(value: Any) -> Iterator[str]:
    """A text as it is, and without what may stand around an answer; nothing for what is no text."""
    return successively_unwrapped_forms(value) if isinstance(value, str) else iter(())


def _fold_case_and_spaces(text: str) -> str:
    return " ".join(fold_wide_and_invisible(text).lower().split())


NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _parse_finite_number(value: Any) -> float | None:
    """The finite number that a value is, or is written as."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = next((form for form in _plain_forms_if_text(value) if NUMBER.fullmatch(form)), "nan")
    try:
        number = float(text if isinstance(value, str) else value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _quote_shortened(value: Any) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 80 else text[:77] + "...")
