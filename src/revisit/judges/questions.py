"""Questions, and what a valid answer to each looks like.

A schema says three things: the JSON Schema that a server may enforce (`json`), the sentence that tells a judge
how to answer (`says`), and whether a value is valid (`check`). Schemas nest: a Record has named fields, Many is
a list. Nothing is guessed: a value that is not valid raises Malformed with the sentence why, and the question is
asked again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from revisit.core import digest
from revisit.core.texts import parse_json


class Malformed(ValueError):
    """A reply that is no valid answer; the message says what a valid one looks like."""


class Schema(Protocol):
    """What a valid answer looks like."""

    def json(self) -> dict[str, Any]:
        """As JSON Schema."""

    def says(self) -> str:
        """As an instruction to the judge, without a full stop."""

    def check(self, value: Any) -> Any:
        """The value in its plain form, or Malformed."""


@dataclass(frozen=True)
class YesNo:
    """True or False."""

    def json(self) -> dict[str, Any]:
        return {"type": "string", "enum": ["yes", "no"]}

    def says(self) -> str:
        return "yes or no"

    def check(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        word = _word(value)
        if word not in ("yes", "no"):
            raise Malformed(f"expected yes or no, got {_short(value)}")
        return word == "yes"


@dataclass(frozen=True)
class Rating:
    """A whole number from `low` to `high`."""

    low: int = 1
    high: int = 5

    def json(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def says(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def check(self, value: Any) -> int:
        found = _number(value)
        if found is None or found != int(found) or not self.low <= found <= self.high:
            raise Malformed(f"expected {self.says()}, got {_short(value)}")
        return int(found)


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`."""

    low: float = 0.0
    high: float = 1.0

    def json(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.low, "maximum": self.high}

    def says(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def check(self, value: Any) -> float:
        found = _number(value)
        if found is None or not self.low <= found <= self.high:
            raise Malformed(f"expected {self.says()}, got {_short(value)}")
        return found


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.options)}

    def says(self) -> str:
        return f"one of {', '.join(self.options)}"

    def check(self, value: Any) -> str:
        by_word = {_word(option): option for option in self.options}
        if not isinstance(value, str) or _word(value) not in by_word:
            raise Malformed(f"expected {self.says()}, got {_short(value)}")
        return by_word[_word(value)]


@dataclass(frozen=True)
class Text:
    """Some words."""

    at_most: int = 500

    def json(self) -> dict[str, Any]:
        return {"type": "string"}

    def says(self) -> str:
        return f"text of at most {self.at_most} characters"

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or not 0 < len(value.strip()) <= self.at_most:
            raise Malformed(f"expected {self.says()}, got {_short(value)}")
        return value.strip()


@dataclass(frozen=True)
class Many:
    """A list of answers of one schema."""

    item: Schema
    at_least: int = 1
    at_most: int = 100

    def json(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json(), "minItems": self.at_least, "maxItems": self.at_most}

    def says(self) -> str:
        count = str(self.at_least) if self.at_least == self.at_most else f"{self.at_least} to {self.at_most}"
        return f"a list of {count} items, each {self.item.says()}"

    def check(self, value: Any) -> list[Any]:
        if not isinstance(value, list) or not self.at_least <= len(value) <= self.at_most:
            found = f"a list of {len(value)}" if isinstance(value, list) else _short(value)
            raise Malformed(f"expected {self.says()}; got {found}")
        return [self.item.check(item) for item in value]


@dataclass(frozen=True)
class Record:
    """A JSON object with exactly these fields; fields that nobody asked for are left out."""

    fields: Mapping[str, Schema]

    def json(self) -> dict[str, Any]:
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
            raise Malformed(f"expected {self.says()}, got {_short(value)}")
        missing = [name for name in self.fields if name not in value]
        if missing:
            raise Malformed(f"the field {missing[0]!r} is missing; expected {self.says()}")
        found = {}
        for name, schema in self.fields.items():
            try:
                found[name] = schema.check(value[name])
            except Malformed as error:
                raise Malformed(f"{name}: {error}") from None
        return found


@dataclass(frozen=True)
class Question:
    """One thing to ask about some frames. `about` is for judges that read no prose; language models ignore it.

    Its identity is its text, its schema, `about` and `rules`: a question under another id is not paid for again.
    """

    id: str
    text: str
    schema: Schema = field(default_factory=YesNo)
    about: Mapping[str, Any] = field(default_factory=dict)
    rules: str = ""  # what a language model is told before, where it is not shown frames but writes something

    @property
    def digest(self) -> str:
        said = {"rules": self.rules} if self.rules else {}
        return digest({"text": self.text, "schema": self.schema.json(), "about": dict(self.about), **said}, 24)

    def read(self, reply: str) -> Any:
        """The answer in a reply: plain, as JSON, or as JSON within prose; Malformed where there is none."""
        return read_reply(self.schema, reply)


def read_reply(schema: Schema, reply: str) -> Any:
    """The one valid answer in a reply, which may wrap it in prose or a code block."""
    text = without_thinking(reply)
    if not text.strip():
        raise Malformed(f"expected {schema.says()}, got an empty reply")
    if isinstance(schema, Record | Many):
        return schema.check(_json_within(text, list if isinstance(schema, Many) else dict))
    plain = _unwrapped(text)
    try:
        return schema.check(plain)
    except Malformed:
        found = _words_within(schema, text)
        if len(found) != 1:
            raise Malformed(f"expected {schema.says()} and nothing else, got {_short(text)}") from None
        return found.pop()


def without_thinking(reply: str) -> str:
    """What follows the thoughts of a model that writes them down; nothing where the thoughts never end."""
    if "</think>" in reply:
        return reply.rpartition("</think>")[2]
    return "" if reply.lstrip().startswith("<think>") else reply


def _unwrapped(text: str) -> Any:
    """The value of `{"answer": value}` or of a JSON literal, else the text itself. Another object answers nothing."""
    try:
        value = parse_json(text)
    except ValueError:
        return text.strip()
    if isinstance(value, dict):
        named = {str(name).lower(): item for name, item in value.items()}
        if "answer" not in named:
            raise Malformed(f"expected an object with an answer, got {_short(text)}")
        return named["answer"]
    return value


def _words_within(schema: Schema, text: str) -> set[Any]:
    """Distinct valid answers that stand in a short piece of prose, such as `**Answer:** Yes.`"""
    if len(text) > 400 or isinstance(schema, Text):
        return set()
    found: set[Any] = set()
    options = sorted(schema.options, key=len, reverse=True) if isinstance(schema, Choice) else []
    pattern = "|".join(rf"\b{re.escape(option)}\b" for option in options) or r"-?\d+(?:\.\d+)?|[A-Za-z]+"
    for word in re.findall(pattern, text, re.IGNORECASE):
        try:
            found.add(schema.check(word))
        except Malformed:
            continue
    return found


def _json_within(text: str, kind: type) -> Any:
    """The JSON value of this kind in a text; the longest, where prose or a draft surrounds it."""
    decoder = json.JSONDecoder()
    best: tuple[int, Any] | None = None
    start = 0
    opening = re.compile(r"[{\[]")
    while found := opening.search(text, start):
        try:
            value, end = decoder.raw_decode(text, found.start())
        except ValueError:
            start = found.start() + 1
            continue
        if isinstance(value, dict) and kind is list and len(value) == 1:  # {"items": [...]}
            value = next(iter(value.values()))
        if isinstance(value, kind) and (best is None or end - found.start() > best[0]):
            best = end - found.start(), value
        start = end
    if best is None:
        raise Malformed(f"expected JSON, got {_short(text)}")
    return best[1]


def _word(value: Any) -> str:
    """A value as one lower-case phrase without punctuation around it."""
    return re.sub(r"^\W+|\W+$", "", str(value)).lower()


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 80 else text[:77] + "...")
