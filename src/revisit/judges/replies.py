"""Where the answer stands in a reply: alone, or behind an agreed marker, and nowhere else (docs/judges.md).

This file knows the forms of replies and not what a valid answer is. It never looks for words inside of sentences:
"there is no way to tell" holds a no and answers nothing. Passages are cut from the folded reply, which has the length
of the reply, so that the log-probabilities of the answer's token can be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from revisit.core.text import read_package_yaml, replace_surrogates

# Full-width characters, and what cannot be seen, each as one plain character.
_FOLDS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FOLDS |= dict.fromkeys((0x3000, 0x00A0, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), 0x20)
_FOLDS |= {ord("。"): ord("."), ord("｡"): ord(".")}

_THOUGHTS = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHTS_BEGIN = re.compile(r"\s*<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```|```([^`\n]*)```", re.DOTALL)
_STOPS = re.compile(r"(?<![.!])(?:\.|!+)$")
AROUND_TOKEN = " \t\r\n.!*_`\"'“”‘’«»()[]{}:。！"  # what may stand around a yes or a no in one token

_FORMS = read_package_yaml("revisit.judges", "replies.yaml")
_REMARK = re.compile(_FORMS["remark"], re.IGNORECASE | re.MULTILINE)
_LEAD = re.compile(_FORMS["lead"], re.IGNORECASE)
_DOUBT = re.compile(_FORMS["doubt"], re.IGNORECASE)
_END_OF_TURN = re.compile(r"(?:<\|[A-Za-z_]{1,20}\|>|</s>|<eos>|<end_of_turn>)$")
_TAG = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_NESTING = 8  # most layers around an answer
MOST_REMARKS = 20  # places looked at where an explanation may begin


@dataclass(frozen=True)
class Passage:
    """A part of a folded reply in which the answer must stand, and nothing else."""

    text: str
    start: int  # in the reply
    before: str = ""  # the judge's words in front of it


def fold_wide_and_invisible(text: str) -> str:
    """The text with full-width characters as plain ones and invisible ones as spaces; its length stays."""
    return text.translate(_FOLDS)


def strip_thinking(reply: str) -> str:
    """What follows the thoughts of a model that writes them down; nothing where the thoughts never end."""
    ends = [match.end() for match in _THOUGHTS.finditer(reply)]
    if ends:
        return reply[ends[-1] :]
    return "" if _THOUGHTS_BEGIN.match(reply) else reply


def successively_unwrapped_forms(text: str) -> Iterator[str]:
    """A text, then what is left of it as closing stops, quotes, bold, code blocks and brackets are taken off."""
    text = fold_wide_and_invisible(text).strip()
    for _ in range(_NESTING):
        yield text
        inner = _strip_outer_layer(text)
        if inner is None:
            return
        text = inner


def parse_json_unique_names(text: str) -> Any:
    """The value of JSON that names nothing twice; ValueError for whatever is none."""
    try:
        return replace_surrogates(json.loads(text, object_pairs_hook=_dict_of_unique_names))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_json_or_code_block(text: str) -> Any:
    """The JSON value that a passage is, alone or in a code block; ValueError where it is none."""
    plain = text.strip()
    block = _BLOCK.fullmatch(plain)
    return parse_json_unique_names((block.group(1) or block.group(2) or "").strip() if block else plain)


def candidate_passages(reply: str, names: Sequence[str]) -> Iterator[list[Passage]]:
    """The readings of a reply, one after the other: the passages that answer if this is how the reply is meant.

    `names` are the markers: `Answer: ...`. All passages of a reading must hold the same answer.
    """
    body = fold_wide_and_invisible(strip_thinking(reply))
    body_passage = _strip_passage_spaces(Passage(_strip_end_of_turn_tokens(body), len(reply) - len(body)))
    if not body_passage.text:
        return
    yield [body_passage]
    block = _BLOCK.fullmatch(body_passage.text)
    if block is not None and block.group(1) is not None:
        body_passage = _strip_passage_spaces(Passage(block.group(1), body_passage.start + block.start(1)))
    for one in dict.fromkeys((body_passage, _strip_final_explanation(body_passage, names))):
        if one is not body_passage:
            yield [one]
        yield from _passages_after_markers(one, names)


def lines_and_sentences(text: str) -> Iterator[str]:
    """The lines of a text, and its sentences."""
    for line in text.splitlines():
        yield line
        yield from re.split(r"(?<=[.!?])\s+", line)


def _passages_after_markers(body: Passage, names: Sequence[str]) -> Iterator[list[Passage]]:
    """The passages behind markers, behind whole sentences or nothing; tags and JSON are markers themselves."""
    tags = list(_TAG.finditer(body.text))
    if tags:
        before, after = body.text[: tags[0].start()], body.text[tags[0].end() :]
        if not after.strip() and _is_complete_and_without_doubt(before):
            yield [Passage(tags[0].group(1), body.start + tags[0].start(1), before)]
        return
    marks = list(_answer_marker_pattern(names).finditer(body.text))
    if marks and _is_complete_and_without_doubt(before := body.text[: marks[0].start()]):
        ends = [*(mark.start() for mark in marks[1:]), len(body.text)]
        passages = []
        for mark, end in zip(marks, ends, strict=True):
            text = _strip_closing_emphasis(body.text[mark.end() : end], mark["around"])
            passages.append(_strip_passage_spaces(Passage(text, body.start + mark.end(), before)))
        yield passages
        return
    start = _start_of_only_json(body.text)
    if start and (_is_complete_and_without_doubt(body.text[:start]) or _last_line_introduces_json(body.text[:start])):
        yield [Passage(body.text[start:], body.start + start, body.text[:start])]


def _answer_marker_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """`Answer:`, `**Final answer:**`, `The answer is`, `### Answer`: at the start of a line, or after a sentence."""
    alternatives = "|".join(re.escape(name) for name in names)
    name = rf"(?:final[ \t]+)?(?:{alternatives})"
    return re.compile(
        rf"(?:^|(?<=[.!?]))[ \t]*(?:"
        rf"(?P<around>|\*\*|__|\*|_)(?P<bold>\*\*|__|\*|_|)(?:(?:the|my)[ \t]+)?{name}"
        rf"(?:(?P=bold)[ \t]*:|[ \t]*:(?P=bold)(?!\w)|(?<=\w)[ \t]+is[ \t]*:?(?P=bold)(?=[ \t\n]))"
        rf"|^[ \t]*(?:\#{{1,6}}[ \t]*(?:\*\*)?{name}(?:\*\*)?:?(?:\*\*)?|\*\*{name}\*\*)[ \t]*$"
        rf")",
        re.IGNORECASE | re.MULTILINE,
    )


def _strip_closing_emphasis(text: str, around: str | None) -> str:
    """The text without the end of the bold that began before its marker."""
    cut = text.rstrip()
    return cut[: -len(around)] if around and cut.endswith(around) else text


def _is_complete_and_without_doubt(before: str) -> bool:
    """Whether what stands before a marker ended: nothing, a sentence, or a paragraph that leads nowhere else.

    A sentence that says that nobody can tell is taken for no end: the answer behind it is a guess.
    """
    text = before.rstrip(" \t")
    if not text.strip():
        return True
    if _DOUBT.search(list(lines_and_sentences(text.strip()))[-1]):
        return False
    paragraph = text.endswith("\n") and text.rstrip(" \t\n") != text[:-1].rstrip(" \t")
    last = text.rstrip().rstrip("*_`\"'”’)")
    if last.endswith((".", "!", "?")):
        return True
    return paragraph and not last.endswith((":", ",", ";", "-", "–", "—"))


def _last_line_introduces_json(before: str) -> bool:
    lines = before.strip().splitlines()
    return bool(lines) and _LEAD.fullmatch(lines[-1].strip().strip("*")) is not None


def _start_of_only_json(text: str) -> int:
    """Where the JSON begins, in a code block or not, that ends a text and is the only one in it; 0 where none is."""
    blocks = list(_BLOCK.finditer(text))
    if blocks:
        return blocks[0].start() if len(blocks) == 1 and blocks[0].end() == len(text) else 0
    opening = re.search(r"[{\[]", text)
    return opening.start() if opening is not None else 0


def _strip_final_explanation(body: Passage, names: Sequence[str]) -> Passage:
    """The passage without a last paragraph that is named an explanation; the passage itself where it has none."""
    for match in islice(_REMARK.finditer(body.text), MOST_REMARKS):
        head, tail = body.text[: match.start()], body.text[match.start() :]
        if head.strip() and not re.search(r"\n[ \t]*\n", tail) and not _answer_marker_pattern(names).search(tail):
            return Passage(head.rstrip(), body.start)
    return body


def _strip_end_of_turn_tokens(text: str) -> str:
    """The text without control tokens at its end, which some servers write out."""
    text = text.rstrip()
    while match := _END_OF_TURN.search(text, max(0, len(text) - 24)):
        text = text[: match.start()].rstrip()
    return text


def _strip_passage_spaces(passage: Passage) -> Passage:
    """The passage without spaces around it, and where it begins then."""
    text = passage.text.lstrip()
    return Passage(text.rstrip(), passage.start + len(passage.text) - len(text), passage.before)


def _strip_outer_layer(text: str) -> str | None:
    """The text without its outermost layer; None where it has none."""
    block = _BLOCK.fullmatch(text)
    if block is not None:
        return (block.group(1) or block.group(2) or "").strip()
    if _STOPS.search(text):
        return _STOPS.sub("", text).rstrip()
    for opening, closing in _FORMS["around"]:
        inside = len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing)
        if inside and not (opening == "[" and _is_valid_json(text)):
            return text[len(opening) : -len(closing)].strip()
    return None


def _is_valid_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _dict_of_unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("one name stands in it twice")
    return content
